//! Streams of events to one client, each with a memory of its own: a client that lost its
//! connection asks for what followed the last event it saw.
//!
//! ```text
//!   messages ──▶ Stream (a ring, numbered) ──▶ the reader that is attached now ──▶ client
//! ```
//! Rules kept here:
//! - A message is on exactly one stream. Events of a stream are numbered; an id names stream and
//!   number, so it is unique in its session.
//! - Losing a reader loses nothing: the ring goes on. A new reader takes over from an old one.
//! - A server that lets its reader go for a while (2025-11-25) lets the client go as well, if that
//!   client knows that it has to come back: nobody holds a connection for nothing.
//! - Bounded: what was sent is kept for [`REPLAY_EVENTS`] events and [`REPLAY_BYTES`]; while more
//!   than [`UNSENT_BYTES`] wait for a slow reader, notifications are dropped and answers are not.
//!
//! Left to others: which stream a message belongs to (`client`), when a session ends (`hub`).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use super::door::STREAM_AHEAD;
use crate::task;

/// Events that were sent and can be sent again.
const REPLAY_EVENTS: usize = 256;
const REPLAY_BYTES: usize = 1024 * 1024;
/// Notifications are dropped while more than this waits for a reader.
const UNSENT_BYTES: usize = 1024 * 1024;
/// Ended streams that a session remembers.
const ENDED_KEPT: usize = 16;
/// A silent stream says that it lives: proxies and operating systems forget quiet connections.
const STILL_HERE: Duration = Duration::from_secs(15);
/// How long a client may wait before it comes back for the rest, in milliseconds.
const RETRY_MS: u32 = 1000;

/// All streams of one session. Number 0 is the one that belongs to no call.
#[derive(Debug)]
pub(crate) struct Streams {
    all: RefCell<BTreeMap<u32, Rc<Stream>>>,
    next: Cell<u32>,
    ended: RefCell<VecDeque<u32>>,
    has_priming: bool,
}

/// How much a message matters when a client does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Somebody waits for it.
    Needed,
    /// It may be left out.
    Notice,
}

impl Streams {
    /// The streams of a session whose client understands (or not) that a stream may end early.
    pub(crate) fn new(has_priming: bool) -> Self {
        let standing = Rc::new(Stream::new(0, false));
        Self {
            all: RefCell::new(BTreeMap::from([(0, standing)])),
            next: Cell::new(1),
            ended: RefCell::default(),
            has_priming,
        }
    }

    /// The stream that belongs to no call.
    pub(crate) fn standing(&self) -> Rc<Stream> {
        let all = self.all.borrow();
        Rc::clone(all.get(&0).expect("stream 0 is there as long as the session is"))
    }

    /// A stream for the answers to one request, and the events for its client.
    pub(crate) fn begin(&self) -> (Rc<Stream>, mpsc::Receiver<Bytes>) {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1).max(1));
        let stream = Rc::new(Stream::new(number, self.has_priming));
        self.all.borrow_mut().insert(number, Rc::clone(&stream));
        let events = stream.attach(0);
        (stream, events)
    }

    /// Nothing more will be sent on a stream. It is remembered for a while.
    pub(crate) fn end(&self, stream: &Stream) {
        stream.end();
        let mut ended = self.ended.borrow_mut();
        ended.extend(stream.number);
        if ended.len() > ENDED_KEPT
            && let Some(oldest) = ended.pop_front()
        {
            self.all.borrow_mut().remove(&oldest);
        }
    }

    /// The events that follow the one with this id; `None` if its stream is not known (any more).
    pub(crate) fn resume(&self, last_event: &str) -> Option<mpsc::Receiver<Bytes>> {
        let (stream, event) = last_event.split_once('-')?;
        let (stream, event): (u32, u64) = (stream.parse().ok()?, event.parse().ok()?);
        let stream = self.all.borrow().get(&stream).map(Rc::clone)?;
        let next = event.checked_add(1)?;
        stream.remembers(next).then(|| stream.attach(next))
    }

    /// Ends the stream that belongs to no call.
    pub(crate) fn end_standing(&self) {
        self.standing().end();
    }

    /// Ends every stream, at once.
    pub(crate) fn close(&self) {
        for stream in self.all.borrow().values() {
            stream.end();
        }
    }
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// `None`: it belongs to no session, and nobody can come back for the rest.
    number: Option<u32>,
    /// Whether its client knows that it may end early.
    has_priming: bool,
    ring: RefCell<Ring>,
    news: Notify,
    /// Something was sent, or a reader has gone.
    turned: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the first event in the ring.
    first: u64,
    /// Events before this one have been handed to a reader.
    sent: u64,
    unsent_bytes: usize,
    is_ended: bool,
    /// The reader that is attached is let go when it has read everything.
    is_paused: bool,
    /// Counts attachments: a reader whose number is not this one has been replaced.
    reader: u64,
    has_reader: bool,
}

enum Next {
    Event(Bytes),
    Nothing,
    Over,
}

impl Stream {
    /// A stream of the stateless era, and the events for its client.
    pub(crate) fn plain() -> (Rc<Self>, mpsc::Receiver<Bytes>) {
        let ring = RefCell::default();
        let (news, turned) = (Notify::new(), Notify::new());
        let stream = Rc::new(Self { number: None, has_priming: false, ring, news, turned });
        let events = stream.attach(0);
        (stream, events)
    }

    /// Waits until something was sent.
    pub(crate) async fn spoken(&self) {
        self.until(|ring| !ring.events.is_empty() || ring.first > 0).await;
    }

    /// Waits until its reader has gone.
    pub(crate) async fn abandoned(&self) {
        self.until(|ring| !ring.has_reader).await;
    }

    async fn until(&self, is_so: impl Fn(&Ring) -> bool) {
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            if is_so(&self.ring.borrow()) {
                return;
            }
            turned.await;
        }
    }

    fn new(number: u32, has_priming: bool) -> Self {
        let (ring, news, turned) = (RefCell::default(), Notify::new(), Notify::new());
        let stream = Self { number: Some(number), has_priming, ring, news, turned };
        if has_priming {
            let id = format!("id: {number}-0\nretry: {RETRY_MS}\ndata:\n\n");
            stream.ring.borrow_mut().push(id.into());
        }
        stream
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: &[u8], weight: Weight) {
        let mut ring = self.ring.borrow_mut();
        if ring.is_ended || (weight == Weight::Notice && ring.unsent_bytes > UNSENT_BYTES) {
            return;
        }
        let number = ring.first + ring.events.len() as u64;
        let event = event(self.number, number, message);
        ring.push(event);
        drop(ring);
        self.news.notify_one();
        self.turned.notify_waiters();
    }

    /// Whether a reader is attached.
    pub(crate) fn has_reader(&self) -> bool {
        self.ring.borrow().has_reader
    }

    /// Lets its reader go, who comes back for the rest, if the client knows of such things.
    pub(crate) fn pause(&self) {
        if self.has_priming {
            self.ring.borrow_mut().is_paused = true;
            self.news.notify_one();
        }
    }

    pub(super) fn end(&self) {
        self.ring.borrow_mut().is_ended = true;
        self.news.notify_one();
    }

    fn remembers(&self, event: u64) -> bool {
        let ring = self.ring.borrow();
        (ring.first..=ring.first + ring.events.len() as u64).contains(&event)
    }

    /// Attaches a reader, who begins with the event of this number (or the first one there is).
    pub(crate) fn attach(self: &Rc<Self>, from: u64) -> mpsc::Receiver<Bytes> {
        let (sender, events) = mpsc::channel(STREAM_AHEAD);
        let mut ring = self.ring.borrow_mut();
        ring.reader += 1;
        ring.has_reader = true;
        ring.is_paused = false;
        let (reader, from) = (ring.reader, from.max(ring.first));
        drop(ring);
        // The reader before this one must see that it is over.
        self.news.notify_waiters();
        let stream = Rc::clone(self);
        task::spawn("events for a client", async move {
            stream.feed(reader, from, sender).await;
            stream.ring.borrow_mut().detach(reader);
            stream.turned.notify_waiters();
        });
        events
    }

    /// Attaches a reader to what has not been sent to any.
    pub(crate) fn attach_unsent(self: &Rc<Self>) -> mpsc::Receiver<Bytes> {
        let sent = self.ring.borrow().sent;
        self.attach(sent)
    }

    async fn feed(&self, reader: u64, from: u64, sender: mpsc::Sender<Bytes>) {
        let mut at = from;
        loop {
            let next = self.ring.borrow_mut().next(reader, at);
            match next {
                Next::Event(event) => {
                    if sender.send(event).await.is_err() {
                        return;
                    }
                    at += 1;
                    self.ring.borrow_mut().mark_sent(at);
                }
                Next::Over => return,
                Next::Nothing => tokio::select! {
                    () = self.news.notified() => {}
                    () = sender.closed() => return,
                    () = tokio::time::sleep(STILL_HERE) => {
                        // A full buffer says that the reader is alive as well.
                        drop(sender.try_send(Bytes::from_static(b": still here\n\n")));
                    }
                },
            }
        }
    }
}

impl Ring {
    fn push(&mut self, event: Bytes) {
        self.bytes += event.len();
        self.unsent_bytes += event.len();
        self.events.push_back(event);
        self.forget_sent();
    }

    fn next(&self, reader: u64, at: u64) -> Next {
        if reader != self.reader {
            return Next::Over;
        }
        let event = at.checked_sub(self.first).and_then(|index| self.events.get(index as usize));
        match event {
            Some(event) => Next::Event(event.clone()),
            None if self.is_ended || self.is_paused => Next::Over,
            None => Next::Nothing,
        }
    }

    fn mark_sent(&mut self, upto: u64) {
        while self.sent < upto {
            let index = self.sent.checked_sub(self.first);
            let event = index.and_then(|index| self.events.get(index as usize));
            self.unsent_bytes -= event.map_or(0, Bytes::len).min(self.unsent_bytes);
            self.sent += 1;
        }
        self.forget_sent();
    }

    /// Drops the oldest of what was sent, past the bounds. What nobody ever read is dropped too
    /// where a stream has no reader and its ring is far too long.
    fn forget_sent(&mut self) {
        loop {
            let too_much = self.events.len() > REPLAY_EVENTS || self.bytes > REPLAY_BYTES;
            let is_spare = self.first < self.sent || self.events.len() > 4 * REPLAY_EVENTS;
            if !(too_much && is_spare) {
                return;
            }
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= oldest.len();
            if self.first >= self.sent {
                self.unsent_bytes -= oldest.len().min(self.unsent_bytes);
                self.sent = self.first + 1;
            }
            self.first += 1;
        }
    }

    fn detach(&mut self, reader: u64) {
        if reader == self.reader {
            self.has_reader = false;
        }
    }
}

/// One event. A message of several lines is sent as several: they are one again when read.
fn event(stream: Option<u32>, number: u64, message: &[u8]) -> Bytes {
    use std::io::Write as _;
    let mut event = Vec::with_capacity(message.len() + 48);
    event.extend_from_slice(b"event: message\n");
    if let Some(stream) = stream {
        writeln!(event, "id: {stream}-{number}").expect("a vector takes every write");
    }
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event.into()
}

#[cfg(test)]
#[path = "stream/tests.rs"]
mod tests;
