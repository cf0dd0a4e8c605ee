//! Streams of events to one client: a client that lost its connection asks for what followed the
//! last event it saw.
//!
//! ```text
//!   messages ──▶ Stream (numbered) ──▶ the reader that is attached now ──▶ client
//! ```
//! Rules kept here:
//! - A message is on exactly one stream. An event's id names stream and number, so it is unique in
//!   its session.
//! - A new reader takes over from an old one.
//! - A server that lets its reader go for a while (2025-11-25) lets the client go as well, if that
//!   client knows that it has to come back: nobody holds a connection for nothing.
//! - The bytes of an event count as its caller's until the last copy of it is gone, wherever it is
//!   on its way ([`Account`]).
//!
//! Left to others: what is kept and for how long ([`tidegate_mcp::replay`]), which stream a message
//! belongs to (`client`), when a session ends (`hub`).

mod account;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_mcp::{
    message::{self, INTERNAL_ERROR, Id},
    replay::{Body, Next, Replay, Resumed, Taken},
};
use tidegate_runtime::task;
use tokio::sync::{Notify, mpsc};

pub(crate) use self::account::{Account, Retained};
use super::door::STREAM_AHEAD;

/// A silent stream says that it lives: proxies and operating systems forget quiet connections.
const STILL_HERE: Duration = Duration::from_secs(15);
/// How long a client may wait before it comes back for the rest, in milliseconds.
const RETRY_MS: u32 = 1000;
/// The stream that belongs to no call.
const STANDING: u32 = 0;

/// How much a message matters when a client does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Somebody waits for it.
    Needed,
    /// It may be left out.
    Notice,
}

/// All streams of one session.
#[derive(Debug)]
pub(crate) struct Streams {
    shared: Shared,
    all: RefCell<BTreeMap<u32, Rc<Stream>>>,
    has_priming: bool,
}

/// What the streams of a session have in common.
#[derive(Clone, Debug)]
struct Shared {
    replay: Rc<RefCell<Replay<Bytes>>>,
    account: Account,
}

/// What a client asks for is not kept any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Streams {
    /// The streams of a session whose client understands (or not) that a stream may end early.
    pub(crate) fn new(has_priming: bool, account: Account) -> Self {
        let shared = Shared { replay: Rc::default(), account };
        let standing = Rc::new(Stream::new(STANDING, true, false, shared.clone()));
        Self { shared, all: RefCell::new(BTreeMap::from([(STANDING, standing)])), has_priming }
    }

    /// The stream that belongs to no call.
    pub(crate) fn standing(&self) -> Rc<Stream> {
        let all = self.all.borrow();
        Rc::clone(all.get(&STANDING).expect("stream 0 is there as long as the session is"))
    }

    /// A stream for the answers to one request, and the events for its client.
    pub(crate) fn begin(&self) -> (Rc<Stream>, mpsc::Receiver<Bytes>) {
        let number = self.shared.replay.borrow_mut().begin();
        let stream = Rc::new(Stream::new(number, true, self.has_priming, self.shared.clone()));
        self.all.borrow_mut().insert(number, Rc::clone(&stream));
        let events = stream.attach(Some(0));
        if self.has_priming {
            let prime = format!("id: {number}-0\nretry: {RETRY_MS}\ndata:\n\n");
            stream.put(|_| prime.into_bytes(), tidegate_mcp::replay::Weight::Needed);
        }
        (stream, events)
    }

    /// Nothing more will be sent on a stream. It is remembered for a while.
    pub(crate) fn end(&self, stream: &Stream) {
        let forgotten = stream.end();
        if let Some(forgotten) = forgotten {
            self.all.borrow_mut().remove(&forgotten);
        }
    }

    /// The events that follow the one with this id; `None` if there was no such stream.
    pub(crate) fn resume(&self, last_event: &str) -> Option<Result<mpsc::Receiver<Bytes>, Gone>> {
        let resumed = self.shared.replay.borrow().resume(last_event);
        match resumed {
            Resumed::At(stream, event) => {
                let stream = self.all.borrow().get(&stream).map(Rc::clone)?;
                Some(Ok(stream.attach(Some(event))))
            }
            Resumed::Gone => Some(Err(Gone)),
            Resumed::Unknown => None,
        }
    }

    /// Ends the stream that belongs to no call.
    pub(crate) fn end_standing(&self) {
        self.standing().end();
    }

    /// Ends every stream, at once.
    pub(crate) fn close(&self) {
        let all: Vec<_> = self.all.borrow().values().map(Rc::clone).collect();
        for stream in all {
            // The session goes with all of them.
            let _ = stream.end();
        }
    }
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    number: u32,
    /// Whether its client can come back for the rest.
    is_resumable: bool,
    /// Whether its client knows that it may end early.
    has_priming: bool,
    shared: Shared,
    news: Notify,
    /// Something was sent, or a reader has gone.
    turned: Notify,
}

impl Stream {
    fn new(number: u32, is_resumable: bool, has_priming: bool, shared: Shared) -> Self {
        let (news, turned) = (Notify::new(), Notify::new());
        Self { number, is_resumable, has_priming, shared, news, turned }
    }

    /// A stream of the stateless era, and the events for its client.
    pub(crate) fn plain(account: Account) -> (Rc<Self>, mpsc::Receiver<Bytes>) {
        let shared = Shared { replay: Rc::new(RefCell::new(Replay::of_one())), account };
        let stream = Rc::new(Self::new(STANDING, false, false, shared));
        let events = stream.attach(Some(0));
        (stream, events)
    }

    /// Waits until something was sent.
    pub(crate) async fn spoken(&self) {
        self.until(|replay| replay.has_spoken(self.number)).await;
    }

    /// Waits until its reader has gone.
    pub(crate) async fn abandoned(&self) {
        self.until(|replay| !replay.has_reader(self.number)).await;
    }

    /// Waits until its client has gone and cannot come back, because it has seen no event.
    pub(crate) async fn lost(&self) {
        self.until(|replay| replay.is_lost(self.number)).await;
    }

    async fn until(&self, is_so: impl Fn(&Replay<Bytes>) -> bool) {
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            if is_so(&self.shared.replay.borrow()) {
                return;
            }
            turned.await;
        }
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: &[u8], weight: Weight) {
        let weight = match weight {
            Weight::Needed => tidegate_mcp::replay::Weight::Needed,
            Weight::Notice => tidegate_mcp::replay::Weight::Notice,
        };
        self.put(|number| self.event(number, message), weight);
    }

    /// Sends the answer to a request.
    pub(crate) fn answer(&self, id: &Id, message: &[u8]) {
        let weight = tidegate_mcp::replay::Weight::Answer(id.clone());
        self.put(|number| self.event(number, message), weight);
    }

    fn put(&self, event: impl FnOnce(u64) -> Vec<u8>, weight: tidegate_mcp::replay::Weight) {
        let mut replay = self.shared.replay.borrow_mut();
        let number = replay.next_number(self.number);
        let event = event(number);
        let bytes = event.len();
        let body = self.shared.account.hold(event).map(|text| Body { text, bytes });
        let note = |id: &Id| self.note(id, number);
        if replay.send(self.number, body, weight, note) == Taken::Gone {
            self.shared.account.count_gone();
        }
        drop(replay);
        self.news.notify_one();
        self.turned.notify_waiters();
    }

    /// What takes the place of an answer that is gone.
    fn note(&self, id: &Id, number: u64) -> Body<Bytes> {
        let message = "the answer is gone: nobody read it in time, and too much of it would have \
                       had to be kept; call again";
        let data = r#"{"code":"answer_gone"}"#;
        let message = message::error(Some(id), INTERNAL_ERROR, message, Some(data));
        let text = Bytes::from(self.event(number, message.as_bytes()));
        Body { bytes: text.len(), text }
    }

    fn event(&self, number: u64, message: &[u8]) -> Vec<u8> {
        event(self.is_resumable.then_some(self.number), number, message)
    }

    /// Whether a reader is attached.
    pub(crate) fn has_reader(&self) -> bool {
        self.shared.replay.borrow().has_reader(self.number)
    }

    /// Lets its reader go, who comes back for the rest, if the client knows of such things.
    pub(crate) fn pause(&self) {
        if self.has_priming {
            self.shared.replay.borrow_mut().pause(self.number);
            self.news.notify_one();
        }
    }

    /// Nothing more will be sent; the number of a stream that is forgotten for it.
    pub(super) fn end(&self) -> Option<u32> {
        let forgotten = self.shared.replay.borrow_mut().end(self.number);
        self.news.notify_one();
        forgotten
    }

    /// Attaches a reader, who begins with the event of this number (or the first one there is), or
    /// with what has not been sent to any.
    fn attach(self: &Rc<Self>, from: Option<u64>) -> mpsc::Receiver<Bytes> {
        let (sender, events) = mpsc::channel(STREAM_AHEAD);
        let (reader, from) = self.shared.replay.borrow_mut().attach(self.number, from);
        // The reader before this one must see that it is over.
        self.news.notify_waiters();
        let stream = Rc::clone(self);
        task::spawn("events for a client", async move {
            stream.feed(reader, from, sender).await;
            let note = |id: &Id, number: u64| {
                stream.shared.account.count_gone();
                stream.note(id, number)
            };
            stream.shared.replay.borrow_mut().detach(stream.number, reader, note);
            stream.turned.notify_waiters();
        });
        events
    }

    /// Attaches a reader to what has not been sent to any.
    pub(crate) fn attach_unsent(self: &Rc<Self>) -> mpsc::Receiver<Bytes> {
        self.attach(None)
    }

    async fn feed(&self, reader: u64, from: u64, sender: mpsc::Sender<Bytes>) {
        let mut at = from;
        loop {
            let next = self.shared.replay.borrow().next(self.number, reader, at);
            match next {
                Next::Event(event, then) => {
                    if sender.send(event).await.is_err() {
                        return;
                    }
                    at = then;
                    self.shared.replay.borrow_mut().mark_sent(self.number, at);
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

/// One event. A message of several lines is sent as several: they are one again when read.
fn event(stream: Option<u32>, number: u64, message: &[u8]) -> Vec<u8> {
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
    event
}

#[cfg(test)]
#[path = "stream/tests.rs"]
mod tests;
