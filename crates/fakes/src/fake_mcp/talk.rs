//! One conversation of a fake MCP server: what was agreed, its requests to the client, and its
//! streams.
//!
//! A stream is a numbered list of messages that a wire may be attached to, now or later: that is
//! all there is to resuming. Stream 0 belongs to no request (GET over HTTP, everything over
//! stdio).
//!
//! Rules kept here:
//! - An event's id is `stream-number`, so it is unique in the conversation and says where to go
//!   on.
//! - A client that asks for stream 0 without an id gets what is said from then on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

/// Messages of one stream kept for resuming.
const KEPT: usize = 1000;

/// Streams that are over and can still be resumed.
const KEPT_STREAMS: usize = 100;

/// Ids of the client's remembered, to notice one that is used twice.
const KEPT_IDS: usize = 10_000;

/// The revision without sessions.
pub(super) const STATELESS: &str = "2026-07-28";

/// What a stream tells the wire it is attached to.
#[derive(Debug)]
pub(super) enum Out {
    /// An empty event with an id.
    Prime(String),
    /// A message, and its event id.
    Message(String, String),
    /// The connection breaks.
    Cut,
}

pub(super) type Outs = mpsc::UnboundedReceiver<Out>;

/// A conversation.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) id: String,
    pub(super) version: String,
    state: Mutex<TalkState>,
}

#[derive(Debug, Default)]
struct TalkState {
    is_introduced: bool,
    level: Option<String>,
    watched: BTreeSet<String>,
    counts: BTreeMap<String, u64>,
    /// Ids the client has used.
    used: BTreeSet<String>,
    /// Requests of the client's under way, and how each is cancelled.
    under_way: BTreeMap<String, Arc<Notify>>,
    asked: u64,
    /// Requests of ours that the client has not answered.
    waiting: BTreeMap<String, oneshot::Sender<Value>>,
    streams: BTreeMap<u64, Stream>,
    opened: u64,
}

#[derive(Debug, Default)]
struct Stream {
    kept: VecDeque<(u64, String)>,
    said: u64,
    wire: Option<mpsc::UnboundedSender<Out>>,
    is_over: bool,
}

impl Talk {
    /// A conversation that begins with this `initialize` and this revision.
    pub(super) fn new(id: String, version: &str) -> Self {
        let mut state = TalkState::default();
        state.streams.insert(0, Stream::default());
        Self { id, version: version.to_owned(), state: Mutex::new(state) }
    }

    /// A request of the stateless era is a conversation of its own, with the level of log messages
    /// that it asks for.
    pub(super) fn of_request(level: Option<&str>) -> Self {
        let talk = Self::new(String::new(), STATELESS);
        talk.introduce();
        if let Some(level) = level {
            talk.set_level(level);
        }
        talk
    }

    /// Whether it is one request of the stateless era.
    pub(super) fn is_stateless(&self) -> bool {
        self.version == STATELESS
    }

    /// Opens a stream for one request.
    pub(super) fn open(&self) -> u64 {
        let mut state = self.state();
        state.opened += 1;
        let number = state.opened;
        state.streams.insert(number, Stream::default());
        number
    }

    /// Attaches a wire to a stream, after this message of it (none: from now on); a stream that
    /// is over and has nothing more to say ends at once. None if there is no such stream.
    pub(super) fn attach(&self, stream: u64, after: Option<u64>, primes: bool) -> Option<Outs> {
        let mut state = self.state();
        let it = state.streams.get_mut(&stream)?;
        let (wire, outs) = mpsc::unbounded_channel();
        if primes && after.is_none() {
            it.said += 1;
            drop(wire.send(Out::Prime(format!("{stream}-{}", it.said))));
        }
        let after = after.unwrap_or(it.said);
        for (number, text) in it.kept.iter().filter(|(number, _)| *number > after) {
            drop(wire.send(Out::Message(format!("{stream}-{number}"), text.clone())));
        }
        it.wire = (!it.is_over).then_some(wire);
        Some(outs)
    }

    /// Attaches a wire that others share to a stream, from now on.
    pub(super) fn attach_to(&self, stream: u64, wire: &mpsc::UnboundedSender<Out>) {
        if let Some(it) = self.state().streams.get_mut(&stream) {
            it.wire = Some(wire.clone());
        }
    }

    /// Says something on a stream.
    pub(super) fn say(&self, stream: u64, text: &str) {
        let mut state = self.state();
        let Some(it) = state.streams.get_mut(&stream) else { return };
        it.said += 1;
        let number = it.said;
        it.kept.push_back((number, text.to_owned()));
        if it.kept.len() > KEPT {
            it.kept.pop_front();
        }
        if let Some(wire) = &it.wire {
            // A wire that is gone hears nothing; the message stays for one that resumes.
            drop(wire.send(Out::Message(format!("{stream}-{number}"), text.to_owned())));
        }
    }

    /// Says something on the stream that belongs to no request.
    pub(super) fn tell(&self, text: &str) {
        self.say(0, text);
    }

    /// Closes the wire of a stream in good order; the stream goes on.
    pub(super) fn detach(&self, stream: u64) {
        if let Some(it) = self.state().streams.get_mut(&stream) {
            it.wire = None;
        }
    }

    /// Breaks the wire of a stream.
    pub(super) fn cut(&self, stream: u64) {
        if let Some(wire) = self.state().streams.get_mut(&stream).and_then(|it| it.wire.take()) {
            drop(wire.send(Out::Cut));
        }
    }

    /// Breaks the wires of all streams.
    pub(super) fn cut_all(&self) {
        for wire in self.state().streams.values_mut().filter_map(|it| it.wire.take()) {
            drop(wire.send(Out::Cut));
        }
    }

    /// A stream has said all. Stream 0 never has.
    pub(super) fn finish(&self, stream: u64) {
        if stream == 0 {
            return;
        }
        let mut state = self.state();
        if let Some(it) = state.streams.get_mut(&stream) {
            it.is_over = true;
            it.wire = None;
        }
        if state.streams.len() > KEPT_STREAMS {
            let oldest = state.streams.iter().find(|(_, it)| it.is_over).map(|(number, _)| *number);
            oldest.and_then(|number| state.streams.remove(&number));
        }
    }

    /// Asks the client, on a stream, and waits for its answer (the whole message).
    pub(super) async fn ask(&self, stream: u64, method: &str, params: Value) -> Value {
        let (tell, told) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.asked += 1;
            let id = format!("ask-{}", state.asked);
            state.waiting.insert(json!(id).to_string(), tell);
            id
        };
        let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            request["params"] = params;
        }
        self.say(stream, &request.to_string());
        told.await.unwrap_or_default()
    }

    /// The client's answer to a request of ours; whether there was such a request.
    pub(super) fn heard(&self, answer: Value) -> bool {
        let waiting = self.state().waiting.remove(&answer["id"].to_string());
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    /// A request of the client's begins; none if it has used the id before. (Clients that share
    /// a conversation choose their ids each for itself.)
    pub(super) fn begin(&self, id: &Value) -> Option<Arc<Notify>> {
        let mut state = self.state();
        if state.used.len() >= KEPT_IDS {
            state.used.clear();
        }
        let is_new = state.used.insert(id.to_string()) || self.id.is_empty();
        let cancel = Arc::new(Notify::new());
        state.under_way.insert(id.to_string(), Arc::clone(&cancel));
        is_new.then_some(cancel)
    }

    pub(super) fn end(&self, id: &Value) {
        self.state().under_way.remove(&id.to_string());
    }

    /// Cancels a request of the client's; whether it was under way.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let cancel = self.state().under_way.remove(&id.to_string());
        cancel.is_some_and(|cancel| {
            cancel.notify_one();
            true
        })
    }

    /// The client has said that it is ready.
    pub(super) fn introduce(&self) {
        self.state().is_introduced = true;
    }

    pub(super) fn is_introduced(&self) -> bool {
        self.state().is_introduced
    }

    pub(super) fn set_level(&self, level: &str) {
        self.state().level = Some(level.to_owned());
    }

    pub(super) fn level(&self) -> Option<String> {
        self.state().level.clone()
    }

    pub(super) fn watch(&self, uri: &str) {
        self.state().watched.insert(uri.to_owned());
    }

    pub(super) fn unwatch(&self, uri: &str) {
        self.state().watched.remove(uri);
    }

    pub(super) fn watches(&self, uri: &str) -> bool {
        self.state().watched.contains(uri)
    }

    /// McpCounts a call of a tool in this conversation.
    pub(super) fn count(&self, tool: &str) -> u64 {
        let mut state = self.state();
        let count = state.counts.entry(tool.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn state(&self) -> MutexGuard<'_, TalkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(mut outs: Outs) -> Vec<String> {
        let mut texts = Vec::new();
        while let Ok(out) = outs.try_recv() {
            texts.push(match out {
                Out::Prime(id) => format!("prime {id}"),
                Out::Message(id, text) => format!("{id} {text}"),
                Out::Cut => "cut".to_owned(),
            });
        }
        texts
    }

    #[test]
    fn a_stream_is_resumed_after_the_event_that_was_seen_last() {
        let talk = Talk::new("s".to_owned(), "2025-11-25");
        let stream = talk.open();
        let first = talk.attach(stream, None, true).expect("it was opened");
        talk.say(stream, "a");
        talk.detach(stream);
        talk.say(stream, "b");
        talk.finish(stream);
        assert_eq!(texts(first), ["prime 1-1", "1-2 a"]);
        let again = talk.attach(stream, Some(1), true).expect("it is kept");
        assert_eq!(texts(again), ["1-2 a", "1-3 b"]);
        let rest = talk.attach(stream, Some(2), true).expect("it is kept");
        assert_eq!(texts(rest), ["1-3 b"]);
        assert!(talk.attach(7, None, true).is_none());
    }
}
