//! Streams of events to clients: a client that lost its connection asks for what followed the last
//! event it saw.
//!
//! ```text
//!   messages ──▶ stream (numbered) ──▶ the reader that is attached now ──▶ client
//! ```
//! Rules kept here:
//! - A message is on exactly one stream. An event's id names stream and number, so it is unique in
//!   its session.
//! - A new reader takes over from an old one.
//! - A server that lets its reader go for a while (2025-11-25) lets the client go as well, if that
//!   client knows that it has to come back: nobody holds a connection for nothing.
//! - The bytes of an event count as its caller's until the last copy of it is gone.
//! - A silent stream says that it lives: proxies and operating systems forget quiet connections.
//!
//! What is kept, and for how long, is decided in [`crate::replay`].

use std::collections::BTreeMap;
use std::io::Write as _;

use bytes::Bytes;
use memchr::memchr2;
use tidegate_core::time::{Millis, Now};

use super::calls::Made;
use super::effect::{Effect, McpAnswer, Metric};
use super::event::RequestToken;
use super::ids::{CallId, ClientId, ReaderId, StreamId};
use super::lean::take_out;
use super::record::FIRST_EPOCH;
use super::retained::Account;
use super::schedule::Task;
use super::{Hub, Pulled};
use crate::{
    message::{self, INTERNAL_ERROR, Id},
    replay::{Body, Next, Replay, Resumed, Taken, Weight},
};

/// After this much silence a stream says that it lives.
const STILL_HERE: Millis = Millis::seconds(15);
/// How long a client may wait before it comes back for the rest, in milliseconds.
const RETRY_MS: u32 = 1000;
/// The stream that belongs to no call.
const STANDING: u32 = 0;

/// One stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamRef {
    /// Of a session, by its number.
    Session(ClientId, u32),
    /// Of one request without a session.
    Plain(StreamId),
}

/// What ids of a stream's events begin with, and the stream's number.
type StreamName<'a> = (&'a str, u32);

/// Streams that share what is kept: those of a session, or the one of a request.
pub(super) struct Streams {
    replay: Replay<Bytes>,
    account: Account,
    /// Whether the client understands that a stream may end early.
    has_priming: bool,
    /// What ids of events begin with: those of an owner before are none of this one's.
    prefix: String,
    /// The readers that are attached, by the number of their stream.
    pub(super) readers: BTreeMap<u32, ReaderId>,
}

/// One client connection that reads a stream.
pub(super) struct StreamReader {
    stream: StreamRef,
    /// Its number among those of the stream.
    number: u64,
    /// The event it reads next.
    at: u64,
    /// When it was last told something.
    told_at: Now,
    /// Whether the shell knows of it.
    is_announced: bool,
}

impl Streams {
    /// The streams of a session.
    pub(super) fn new(has_priming: bool, account: Account, epoch: u64) -> Self {
        let prefix = if epoch > FIRST_EPOCH { format!("{epoch}.") } else { String::new() };
        Self { replay: Replay::new(), account, has_priming, prefix, readers: BTreeMap::new() }
    }

    /// The one stream of a request without a session.
    pub(super) fn plain(account: Account) -> Self {
        let replay = Replay::of_one();
        let prefix = String::new();
        Self { replay, account, has_priming: false, prefix, readers: BTreeMap::new() }
    }

    /// Whether the client reads the stream that belongs to no call.
    pub(super) fn is_heard(&self) -> bool {
        self.replay.has_reader(STANDING)
    }

    /// Takes an event; whether it was an answer that is gone.
    fn put(
        &mut self,
        number: u32,
        weight: Weight,
        event: impl FnOnce(u64) -> Vec<u8>,
        is_resumable: bool,
    ) -> bool {
        let at = self.replay.next_number(number);
        let event = event(at);
        let bytes = event.len();
        let body = self.account.hold(event).map(|text| Body { text, bytes });
        let name = is_resumable.then_some((&*self.prefix, number));
        let note = |id: &Id| note(name, at, id);
        self.replay.send(number, body, weight, note) == Taken::Gone
    }
}

impl Hub {
    fn streams(&mut self, stream: StreamRef) -> Option<(&mut Streams, u32)> {
        match stream {
            StreamRef::Session(client, number) => {
                Some((&mut self.clients.get_mut(client)?.streams, number))
            }
            StreamRef::Plain(id) => Some((self.plain_streams.get_mut(id)?, STANDING)),
        }
    }

    /// The stream of a client that belongs to no call.
    pub(super) fn standing(client: ClientId) -> StreamRef {
        StreamRef::Session(client, STANDING)
    }

    /// A stream for the answers to one request of a session, and its first reader.
    pub(super) fn begin_stream(
        &mut self,
        now: Now,
        client: ClientId,
    ) -> Option<(StreamRef, ReaderId)> {
        let streams = &mut self.clients.get_mut(client)?.streams;
        let number = streams.replay.begin();
        let has_priming = streams.has_priming;
        let stream = StreamRef::Session(client, number);
        let reader = self.attach(now, stream, Some(0))?;
        if has_priming {
            let prefix = &self.clients.get(client)?.streams.prefix;
            let prime = format!("id: {prefix}{number}-0\nretry: {RETRY_MS}\ndata:\n\n");
            let streams = &mut self.clients.get_mut(client)?.streams;
            streams.put(number, Weight::Needed, |_| prime.into_bytes(), true);
        }
        Some((stream, reader))
    }

    /// The stream of one request without a session, of a caller with this account.
    pub(super) fn plain_stream(&mut self, account: Account) -> StreamRef {
        StreamRef::Plain(self.plain_streams.insert(Streams::plain(account)))
    }

    /// Attaches a reader, who begins with the event of this number (or the first one there is), or
    /// with what has not been sent to any.
    pub(super) fn attach(
        &mut self,
        now: Now,
        stream: StreamRef,
        from: Option<u64>,
    ) -> Option<ReaderId> {
        let (streams, number) = self.streams(stream)?;
        let (reader, at) = streams.replay.attach(number, from);
        let id = self.readers.insert(StreamReader {
            stream,
            number: reader,
            at,
            told_at: now,
            is_announced: false,
        });
        let (streams, number) = self.streams(stream)?;
        // The reader before this one must see that it is over.
        let before = streams.readers.insert(number, id);
        self.fed.extend(before);
        self.fed.push(id);
        self.schedule.arm(Task::Silence(id), now.after(STILL_HERE));
        Some(id)
    }

    /// A request is answered with what its reader pulls.
    pub(super) fn answer_events(&mut self, request: RequestToken, id: ReaderId) {
        if let Some(reader) = self.readers.get_mut(id) {
            reader.is_announced = true;
        }
        self.out.push(Effect::Answer { request, answer: McpAnswer::events(id) });
        self.fed.push(id);
    }

    /// Whoever has something to read is fed.
    pub(super) fn feed(&mut self) {
        let mut fed = std::mem::take(&mut self.fed);
        fed.sort_unstable();
        fed.dedup();
        for reader in fed.drain(..) {
            if self.readers.get(reader).is_some_and(|it| it.is_announced) {
                self.out.push(Effect::Feed { reader });
            }
        }
        self.fed = fed;
    }

    /// The reader of a session's events after the one with this id; none if there was no such
    /// stream, an error if what followed is not kept any more.
    pub(super) fn resume(
        &mut self,
        now: Now,
        client: ClientId,
        last_event: &str,
    ) -> Option<Result<ReaderId, ()>> {
        let streams = &self.clients.get(client)?.streams;
        let last_event = last_event.strip_prefix(&*streams.prefix)?;
        match streams.replay.resume(last_event) {
            Resumed::At(number, event) => {
                self.attach(now, StreamRef::Session(client, number), Some(event)).map(Ok)
            }
            Resumed::Gone => Some(Err(())),
            Resumed::Unknown => None,
        }
    }

    /// Sends a message on a stream.
    pub(super) fn send_event(&mut self, stream: StreamRef, message: &[u8], weight: Weight) {
        self.send_written(stream, weight, |number, at| event(number, at, message));
    }

    /// Sends an event that is written once its stream and number are known.
    fn send_written(
        &mut self,
        stream: StreamRef,
        weight: Weight,
        event: impl FnOnce(Option<StreamName<'_>>, u64) -> Vec<u8>,
    ) {
        let is_resumable = matches!(stream, StreamRef::Session(..));
        let Some((streams, number)) = self.streams(stream) else { return };
        // Nothing is allocated for the first owner of a session.
        let prefix = streams.prefix.clone();
        let name = is_resumable.then_some((&*prefix, number));
        let write = |at| event(name, at);
        let is_gone = streams.put(number, weight, write, is_resumable);
        let reader = streams.readers.get(&number).copied();
        if is_gone {
            self.out.push(Effect::Count(Metric::Refused("answer")));
        }
        self.fed.extend(reader);
    }

    /// Sends a request's answer on a stream.
    pub(super) fn send_answer(&mut self, stream: StreamRef, id: &Id, message: &[u8]) {
        self.send_event(stream, message, Weight::Answer(id.clone()));
    }

    /// Sends a request's answer, whose `result` or `error` is text already, on a stream. It may be
    /// large, so it is copied once.
    pub(super) fn send_made(&mut self, stream: StreamRef, id: &Id, made: &Made) {
        let part = made.as_ref().unwrap_or_else(|error| error);
        if memchr2(b'\n', b'\r', part.as_bytes()).is_some() {
            return self.send_answer(stream, id, message::made(id, made).as_bytes());
        }
        let key = if made.is_ok() { "result" } else { "error" };
        let before = [r#"{"jsonrpc":"2.0","id":"#, id.as_json(), ",\"", key, "\":"].concat();
        self.send_written(stream, Weight::Answer(id.clone()), |stream, at| {
            event_of(stream, at, &[before.as_bytes(), part.as_bytes(), b"}"])
        });
    }

    /// Nothing more will be sent on a stream. It is remembered for a while.
    pub(super) fn end_stream(&mut self, stream: StreamRef) {
        let Some((streams, number)) = self.streams(stream) else { return };
        streams.replay.end(number);
        let reader = streams.readers.get(&number).copied();
        match reader {
            Some(reader) => self.fed.push(reader),
            None => self.forget_plain(stream),
        }
    }

    /// Ends every stream of a session.
    pub(super) fn end_streams(&mut self, client: ClientId) {
        let Some(kept) = self.clients.get_mut(client) else { return };
        let numbers: Vec<u32> = kept.streams.readers.keys().copied().collect();
        for number in numbers {
            self.end_stream(StreamRef::Session(client, number));
        }
    }

    /// Lets the reader of a call's stream go, who comes back for the rest, if the client knows of
    /// such things.
    pub(super) fn pause_stream_of(&mut self, call: CallId) {
        let Some(stream) = self.calls.get(call).map(|it| it.stream) else { return };
        let Some((streams, number)) = self.streams(stream) else { return };
        if streams.has_priming {
            streams.replay.pause(number);
            let reader = streams.readers.get(&number).copied();
            self.fed.extend(reader);
        }
    }

    /// Whether there is something for a reader: a message, or the end. The event that only opens a
    /// stream is none: it may wait a moment for a message.
    pub fn has_message(&mut self, id: ReaderId) -> bool {
        let Some(reader) = self.readers.get(id) else { return true };
        let (stream, number, at) = (reader.stream, reader.number, reader.at);
        let Some((streams, stream)) = self.streams(stream) else { return true };
        let is_primed = streams.has_priming && stream != STANDING;
        if is_primed && streams.replay.has_only_begun(stream) {
            return false;
        }
        streams.replay.next(stream, number, at) != Next::Nothing
    }

    /// The next event for a reader, which counts as sent from here on.
    pub fn pull(&mut self, id: ReaderId) -> Pulled {
        let Some(reader) = self.readers.get(id) else { return Pulled::Over };
        let (stream, number, at, told_at) =
            (reader.stream, reader.number, reader.at, reader.told_at);
        let next = match self.streams(stream) {
            Some((streams, stream)) => streams.replay.next(stream, number, at),
            None => Next::Over,
        };
        match next {
            Next::Event(event, then) => {
                if let Some((streams, stream)) = self.streams(stream) {
                    streams.replay.mark_sent(stream, then);
                }
                let told_at = told_at.max(self.now);
                if let Some(reader) = self.readers.get_mut(id) {
                    (reader.at, reader.told_at) = (then, told_at);
                }
                Pulled::Event(event)
            }
            Next::Nothing => Pulled::Nothing,
            Next::Over => {
                self.detach(id);
                Pulled::Over
            }
        }
    }

    /// A reader has gone; the stream that it read.
    pub(super) fn detach(&mut self, id: ReaderId) -> Option<StreamRef> {
        let StreamReader { stream, number: reader, .. } = self.readers.remove(id)?;
        self.schedule.disarm(Task::Silence(id));
        let is_resumable = matches!(stream, StreamRef::Session(..));
        let gone = std::cell::Cell::new(0);
        if let Some((streams, number)) = self.streams(stream) {
            if streams.readers.get(&number) == Some(&id) {
                take_out(&mut streams.readers, &number);
            }
            let name = is_resumable.then_some((&*streams.prefix, number));
            streams.replay.detach(number, reader, |id, at| {
                gone.set(gone.get() + 1);
                note(name, at, id)
            });
        }
        for _ in 0..gone.get() {
            self.out.push(Effect::Count(Metric::Refused("answer")));
        }
        match stream {
            StreamRef::Plain(_) => self.forget_plain(stream),
            StreamRef::Session(client, _) => self.reader_left(client),
        }
        Some(stream)
    }

    /// Whether something was sent on a stream, read or not.
    pub(super) fn has_spoken(&mut self, stream: StreamRef) -> bool {
        self.streams(stream).is_some_and(|(streams, number)| streams.replay.has_spoken(number))
    }

    /// Whether the client of a stream has gone and has no event to come back with.
    pub(super) fn is_stream_lost(&mut self, stream: StreamRef) -> bool {
        self.streams(stream).is_none_or(|(streams, number)| streams.replay.is_lost(number))
    }

    /// A stream without a session that nobody reads and nothing will be sent on is forgotten.
    fn forget_plain(&mut self, stream: StreamRef) {
        if let StreamRef::Plain(id) = stream {
            self.plain_streams.remove(id);
        }
    }

    /// Looks whether a stream has been silent for too long.
    pub(super) fn run_silence(&mut self, now: Now, id: ReaderId) {
        let Some(reader) = self.readers.get_mut(id) else { return };
        if now.reached(reader.told_at.after(STILL_HERE)) {
            reader.told_at = now;
            if reader.is_announced {
                self.out.push(Effect::KeepOpen { reader: id });
            }
        }
        let at = reader.told_at.after(STILL_HERE);
        self.schedule.arm(Task::Silence(id), at);
    }
}

/// What takes the place of an answer that is gone.
fn note(stream: Option<StreamName<'_>>, number: u64, id: &Id) -> Body<Bytes> {
    let message = "the answer is gone: nobody read it in time, and too much of it would have had \
                   to be kept; call again";
    let data = r#"{"code":"answer_gone"}"#;
    let message = message::error(Some(id), INTERNAL_ERROR, message, Some(data));
    let text = Bytes::from(event(stream, number, message.as_bytes()));
    Body { bytes: text.len(), text }
}

/// One event. A message of several lines is sent as several: they are one again when read.
fn event(stream: Option<StreamName<'_>>, number: u64, message: &[u8]) -> Vec<u8> {
    let mut event = event_head(stream, number, message.len());
    let mut rest = message;
    loop {
        let end = memchr2(b'\n', b'\r', rest);
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        event.push(b'\n');
        let Some(end) = end else { break };
        rest = &rest[end + 1..];
    }
    event.push(b'\n');
    event
}

/// One event with a message of one line, which comes in parts.
fn event_of(stream: Option<StreamName<'_>>, number: u64, parts: &[&[u8]]) -> Vec<u8> {
    let mut event = event_head(stream, number, parts.iter().map(|part| part.len()).sum());
    event.extend_from_slice(b"data: ");
    parts.iter().for_each(|part| event.extend_from_slice(part));
    event.extend_from_slice(b"\n\n");
    event
}

/// The beginning of an event, with room for a message of this size.
fn event_head(stream: Option<StreamName<'_>>, number: u64, size: usize) -> Vec<u8> {
    /// The names of fields, and a usual id.
    const AROUND: usize = 64;
    let mut event = Vec::with_capacity(size + AROUND);
    event.extend_from_slice(b"event: message\n");
    if let Some((prefix, stream)) = stream {
        writeln!(event, "id: {prefix}{stream}-{number}").expect("a vector takes every write");
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_in_parts_reads_as_the_same_event_in_one_piece() {
        let parts: &[&[u8]] = &[br#"{"id":1,"result":"#, br#""text""#, b"}"];
        let whole = parts.concat();
        for stream in [None, Some(("2.", 7))] {
            assert_eq!(event_of(stream, 3, parts), event(stream, 3, &whole));
        }
        let lines = String::from_utf8(event(Some(("", 7)), 3, b"a\r\nb")).expect("text");
        assert_eq!(lines, "event: message\nid: 7-3\ndata: a\ndata: \ndata: b\n\n");
    }
}
