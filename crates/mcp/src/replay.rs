//! What a session's streams hold: events on their way to a client, and those that it may ask for
//! again after it lost its connection.
//!
//! ```text
//!   send ──▶ unsent (a reader is attached: on its way; none: kept for one who comes back)
//!               │ handed to a reader
//!               ▼
//!             sent (kept for a client that lost its connection before it read them)
//! ```
//! Rules kept here:
//! - Everything that no reader is waiting for is bounded: [`SESSION_BYTES`] over all streams of a
//!   session, [`REPLAY_EVENTS`] per stream, [`ENDED_KEPT`] ended streams. What was sent makes room
//!   first, oldest streams first.
//! - What is too large to be kept at all pushes nothing out.
//! - An answer that does not fit is gone: a short error takes its place, so that a client that
//!   comes back hears of it. A notice that does not fit is left out.
//! - Notices are left out while more than [`UNSENT_BYTES`] wait for a slow reader; answers are not.
//! - Events of a stream are numbered. One that was left out leaves a gap; no other is renumbered.
//!
//! Bodies are the owner's: here they are only kept, counted and handed out. Left to others: tasks,
//! sockets, and the bound over all sessions of a caller (`shares.rs`).

use std::collections::{BTreeMap, VecDeque};

use crate::message::Id;

/// Bytes of a session that no reader is waiting for.
pub const SESSION_BYTES: usize = 1024 * 1024;
/// Events of one stream that were sent and can be sent again.
pub const REPLAY_EVENTS: usize = 256;
/// Notices are left out while more than this waits for a reader.
pub const UNSENT_BYTES: usize = 1024 * 1024;
/// Ended streams that a session remembers.
pub const ENDED_KEPT: usize = 16;

/// What an event is to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The answer to this request.
    Answer(Id),
    /// Somebody waits for it.
    Needed,
    /// It may be left out.
    Notice,
}

/// An event as its owner wrote it.
#[derive(Clone, Debug)]
pub struct Body<B> {
    /// The text.
    pub text: B,
    /// Its bytes.
    pub bytes: usize,
}

/// Whether an event was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was.
    Kept,
    /// It was left out.
    LeftOut,
    /// It was an answer that does not fit: the note that says so takes its place.
    Gone,
}

/// What a reader does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<B> {
    /// Hand this out; the next one is at this number.
    Event(B, u64),
    /// Wait.
    Nothing,
    /// It is over.
    Over,
}

/// Where a client that comes back goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// On this stream, at this event.
    At(u32, u64),
    /// What it asks for was there and is not kept any more.
    Gone,
    /// There was no such stream.
    Unknown,
}

#[derive(Debug)]
struct Kept<B> {
    /// `None`: it was left out.
    body: Option<Body<B>>,
    weight: Weight,
}

impl<B> Kept<B> {
    fn bytes(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.bytes)
    }
}

/// One stream.
#[derive(Debug)]
struct Ring<B> {
    events: VecDeque<Kept<B>>,
    /// The number of the first event that is kept.
    first: u64,
    /// Events before this one have been handed to a reader.
    sent: u64,
    sent_bytes: usize,
    unsent_bytes: usize,
    is_ended: bool,
    /// The reader that is attached is let go when it has read everything.
    is_paused: bool,
    /// Counts attachments: a reader whose number is not this one has been replaced.
    reader: u64,
    has_reader: bool,
}

impl<B> Default for Ring<B> {
    fn default() -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            sent: 0,
            sent_bytes: 0,
            unsent_bytes: 0,
            is_ended: false,
            is_paused: false,
            reader: 0,
            has_reader: false,
        }
    }
}

impl<B: Clone> Ring<B> {
    fn end_number(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Bytes that no reader is waiting for.
    fn idle_bytes(&self) -> usize {
        self.sent_bytes + if self.has_reader { 0 } else { self.unsent_bytes }
    }

    fn push(&mut self, body: Body<B>, weight: Weight) {
        self.unsent_bytes += body.bytes;
        self.events.push_back(Kept { body: Some(body), weight });
    }

    /// Forgets the oldest event that was sent; whether there was one.
    fn forget_oldest_sent(&mut self) -> bool {
        if self.first >= self.sent {
            return false;
        }
        let Some(oldest) = self.events.pop_front() else { return false };
        self.sent_bytes -= oldest.bytes().min(self.sent_bytes);
        self.first += 1;
        true
    }

    /// Events before this one have been handed to a reader; one of more than `max` bytes is not
    /// kept, nor is what came before it: a client that has not read it cannot have all.
    fn mark_sent(&mut self, upto: u64, max: usize) {
        while self.sent < upto.min(self.end_number()) {
            let at = self.sent.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
            let bytes = at.and_then(|at| self.events.get(at)).map_or(0, Kept::bytes);
            self.unsent_bytes -= bytes.min(self.unsent_bytes);
            self.sent_bytes += bytes;
            self.sent += 1;
            while bytes > max && self.forget_oldest_sent() {}
        }
        while self.sent.saturating_sub(self.first) > REPLAY_EVENTS as u64 {
            self.forget_oldest_sent();
        }
    }

    fn next(&self, reader: u64, from: u64) -> Next<B> {
        if reader != self.reader {
            return Next::Over;
        }
        let mut at = from.max(self.first);
        while let Some(kept) =
            usize::try_from(at - self.first).ok().and_then(|i| self.events.get(i))
        {
            at += 1;
            if let Some(body) = &kept.body {
                return Next::Event(body.text.clone(), at);
            }
        }
        if self.is_ended || self.is_paused { Next::Over } else { Next::Nothing }
    }
}

/// The streams of one session. Number 0 belongs to no request.
#[derive(Debug)]
pub struct Replay<B> {
    /// In boxes, because a node of the map has room for eleven, and most sessions have two.
    rings: BTreeMap<u32, Box<Ring<B>>>,
    ended: VecDeque<u32>,
    next: u32,
    /// Bytes that may be kept without a reader.
    max: usize,
}

impl<B: Clone> Replay<B> {
    /// The streams of a session, with the one that belongs to no request.
    #[must_use]
    pub fn new() -> Self {
        Self::keeping(SESSION_BYTES)
    }

    /// The one stream of a request without a session: nobody can come back for it.
    #[must_use]
    pub fn of_one() -> Self {
        Self::keeping(0)
    }

    fn keeping(max: usize) -> Self {
        let rings = BTreeMap::from([(0, Box::default())]);
        Self { rings, ended: VecDeque::new(), next: 1, max }
    }

    /// A stream for the answers to one request.
    pub fn begin(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1).max(1);
        self.rings.insert(number, Box::default());
        number
    }

    /// The number that the next event of a stream gets.
    #[must_use]
    pub fn next_number(&self, stream: u32) -> u64 {
        self.rings.get(&stream).map_or(0, |ring| ring.end_number())
    }

    /// Bytes that are kept and no reader is waiting for.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.rings.values().map(|ring| ring.idle_bytes()).sum()
    }

    /// Takes an event. `note` takes the place of an answer that does not fit.
    pub fn send(
        &mut self,
        stream: u32,
        body: Option<Body<B>>,
        weight: Weight,
        note: impl FnOnce(&Id) -> Body<B>,
    ) -> Taken {
        let Some(ring) = self.rings.get(&stream).filter(|ring| !ring.is_ended) else {
            return Taken::LeftOut;
        };
        let is_slow = ring.unsent_bytes > UNSENT_BYTES;
        if weight == Weight::Notice && is_slow {
            return Taken::LeftOut;
        }
        let has_reader = ring.has_reader;
        let body = body.filter(|body| has_reader || self.make_room(body.bytes));
        let (body, taken) = match (body, &weight) {
            (Some(body), _) => (body, Taken::Kept),
            (None, Weight::Answer(id)) => (note(id), Taken::Gone),
            (None, Weight::Needed | Weight::Notice) => return Taken::LeftOut,
        };
        if let Some(ring) = self.rings.get_mut(&stream) {
            ring.push(body, weight);
        }
        taken
    }

    /// What a reader does next.
    #[must_use]
    pub fn next(&self, stream: u32, reader: u64, from: u64) -> Next<B> {
        self.rings.get(&stream).map_or(Next::Over, |ring| ring.next(reader, from))
    }

    /// Events before this one have been handed to a reader.
    pub fn mark_sent(&mut self, stream: u32, upto: u64) {
        if let Some(ring) = self.rings.get_mut(&stream) {
            ring.mark_sent(upto, self.max);
        }
        self.make_room(0);
    }

    /// Attaches a reader: its number, and where it begins.
    pub fn attach(&mut self, stream: u32, from: Option<u64>) -> (u64, u64) {
        let ring = self.rings.entry(stream).or_default();
        ring.reader += 1;
        ring.has_reader = true;
        ring.is_paused = false;
        (ring.reader, from.unwrap_or(ring.sent).max(ring.first))
    }

    /// A reader has gone. What it had not read is kept as far as it fits.
    pub fn detach(&mut self, stream: u32, reader: u64, note: impl Fn(&Id, u64) -> Body<B>) {
        let Some(ring) = self.rings.get_mut(&stream).filter(|ring| ring.reader == reader) else {
            return;
        };
        ring.has_reader = false;
        while !self.make_room(0) {
            let Some(ring) = self.rings.get_mut(&stream) else { return };
            let unsent =
                usize::try_from(ring.sent.saturating_sub(ring.first)).unwrap_or(usize::MAX);
            let first = ring.first;
            let largest = ring.events.iter_mut().enumerate().skip(unsent);
            let Some((at, kept)) = largest.max_by_key(|(_, kept)| kept.bytes()) else { return };
            let before = kept.bytes();
            if before == 0 {
                return;
            }
            kept.body = match &kept.weight {
                Weight::Answer(id) => Some(note(id, first + at as u64)),
                Weight::Needed | Weight::Notice => None,
            };
            let after = kept.bytes();
            ring.unsent_bytes = ring.unsent_bytes.saturating_sub(before).saturating_add(after);
            if after >= before {
                // Even the notes are too many: the oldest of them go.
                kept.body = None;
                ring.unsent_bytes -= after.min(ring.unsent_bytes);
            }
        }
    }

    /// Whether a reader is attached.
    #[must_use]
    pub fn has_reader(&self, stream: u32) -> bool {
        self.rings.get(&stream).is_some_and(|ring| ring.has_reader)
    }

    /// Whether something was sent on a stream, read or not.
    #[must_use]
    pub fn has_spoken(&self, stream: u32) -> bool {
        self.rings.get(&stream).is_some_and(|ring| ring.end_number() > 0)
    }

    /// Whether all that a stream has said is one event, which nobody has been handed, and it goes
    /// on.
    #[must_use]
    pub fn has_only_begun(&self, stream: u32) -> bool {
        self.rings.get(&stream).is_some_and(|ring| {
            let is_going_on = !ring.is_ended && !ring.is_paused;
            ring.end_number() == 1 && ring.sent == 0 && is_going_on
        })
    }

    /// Whether its client has gone and has no event to come back with.
    #[must_use]
    pub fn is_lost(&self, stream: u32) -> bool {
        self.rings.get(&stream).is_none_or(|ring| !ring.has_reader && ring.sent == 0)
    }

    /// Lets the reader of a stream go, who comes back for the rest.
    pub fn pause(&mut self, stream: u32) {
        if let Some(ring) = self.rings.get_mut(&stream) {
            ring.is_paused = true;
        }
    }

    /// Nothing more will be sent on a stream. It is remembered for a while; the number of the one
    /// that is forgotten for it.
    pub fn end(&mut self, stream: u32) -> Option<u32> {
        let ring = self.rings.get_mut(&stream)?;
        if std::mem::replace(&mut ring.is_ended, true) || stream == 0 {
            return None;
        }
        self.ended.push_back(stream);
        // One that is still being read is not forgotten.
        let idle = |number: &u32| !self.has_reader(*number);
        if self.ended.len() <= ENDED_KEPT {
            return None;
        }
        let at = self.ended.iter().position(idle)?;
        let oldest = self.ended.remove(at)?;
        self.rings.remove(&oldest);
        Some(oldest)
    }

    /// Where a client goes on that names the last event it saw.
    #[must_use]
    pub fn resume(&self, last_event: &str) -> Resumed {
        let parts = last_event.split_once('-');
        let parts = parts.and_then(|(stream, event)| {
            Some((stream.parse::<u32>().ok()?, event.parse::<u64>().ok()?.checked_add(1)?))
        });
        let Some((stream, event)) = parts else { return Resumed::Unknown };
        let Some(ring) = self.rings.get(&stream) else {
            let was_there = stream < self.next;
            return if was_there { Resumed::Gone } else { Resumed::Unknown };
        };
        if event > ring.end_number() {
            return Resumed::Unknown;
        }
        let is_answer = |kept: &Kept<B>| matches!(kept.weight, Weight::Answer(_));
        let is_whole = event >= ring.first || stream == 0 || !ring.is_ended;
        match is_whole || ring.events.iter().any(is_answer) {
            true => Resumed::At(stream, event.max(ring.first)),
            false => Resumed::Gone,
        }
    }

    /// Whether `more` bytes can be kept without a reader; what was sent makes room for them.
    fn make_room(&mut self, more: usize) -> bool {
        let (mut idle, mut sent) = (0, 0);
        for ring in self.rings.values() {
            idle += ring.idle_bytes();
            sent += ring.sent_bytes;
        }
        if (idle - sent).saturating_add(more) > self.max {
            // Nothing is forgotten for what would not fit even then.
            return false;
        }
        while idle.saturating_add(more) > self.max {
            let ended = self.ended.iter().copied();
            let order: Vec<u32> = ended.chain(self.rings.keys().copied()).collect();
            let forgotten = order.into_iter().any(|number| {
                self.rings.get_mut(&number).is_some_and(|ring| ring.forget_oldest_sent())
            });
            if !forgotten {
                return false;
            }
            idle = self.idle_bytes();
        }
        true
    }
}

impl<B: Clone> Default for Replay<B> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
