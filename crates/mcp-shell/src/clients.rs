//! The requests of clients that wait for their answer, and the streams that clients read.
//!
//! Rules kept here:
//! - Only an event that has room on its way is taken from the Hub: what is taken counts as sent.
//! - A reader without room is fed again when it has some; its task ends with its entry.
//! - The head of a stream that has nothing to say yet waits for its first message, for [`HELD_FOR`]
//!   at most, so that both are written together, and with them the event that opens the stream.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use tidegate_core::time::{Millis, Now};
use tidegate_mcp::hub::{Hub, McpAnswer, McpAnswerBody, Pulled, ReaderId, RequestToken};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::{mpsc, mpsc::error::TrySendError, oneshot};

use super::{
    event_body::{BATCH_MAX, Batch, ClientNews, EventBody},
    handle::{AnswerEvents, Answered},
};

/// Most tools answer within it, and no client can tell.
const HELD_FOR: Millis = Millis(20);

/// What is sent to a client whose stream has been silent for long.
const KEEP_OPEN: Bytes = Bytes::from_static(b": still here\n\n");

/// Whoever waits on the other threads.
pub(crate) struct Clients {
    requests: BTreeMap<RequestToken, oneshot::Sender<Answered>>,
    probes: BTreeMap<RequestToken, oneshot::Sender<Option<bool>>>,
    readers: BTreeMap<ReaderId, Reader>,
    /// The readers whose answers wait for a first event, and until when; in order.
    held: VecDeque<(Now, ReaderId)>,
    news: mpsc::UnboundedSender<ClientNews>,
}

struct Reader {
    to: ReaderTarget,
    /// The task that waits for room.
    waiting: Option<Owned>,
}

/// Where the events of a reader go.
enum ReaderTarget {
    /// Nowhere yet: its request waits for a first message.
    Held { waiting: oneshot::Sender<Answered>, answer: McpAnswer },
    /// To the body that its client reads.
    Body(mpsc::Sender<Batch>),
}

impl Clients {
    /// Nobody yet; what is heard of their connections goes to `news`.
    pub(crate) fn new(news: mpsc::UnboundedSender<ClientNews>) -> Self {
        let (requests, probes) = (BTreeMap::new(), BTreeMap::new());
        Self { requests, probes, readers: BTreeMap::new(), held: VecDeque::new(), news }
    }

    /// A request waits for its answer.
    pub(crate) fn wait(&mut self, request: RequestToken, answer: oneshot::Sender<Answered>) {
        self.requests.insert(request, answer);
    }

    /// An operator waits for a probe.
    pub(crate) fn wait_for_probe(
        &mut self,
        token: RequestToken,
        answer: oneshot::Sender<Option<bool>>,
    ) {
        self.probes.insert(token, answer);
    }

    /// Answers a request. A client that has left does not hear it, and a stream that it would have
    /// read tells so when it is dropped.
    pub(crate) fn answer(&mut self, now: Now, request: RequestToken, answer: McpAnswer) {
        let Some(waiting) = self.requests.remove(&request) else {
            if let McpAnswerBody::Events(reader) = answer.body {
                drop(self.news.send(ClientNews::ReaderGone(reader)));
            }
            return;
        };
        let McpAnswerBody::Events(id) = answer.body else {
            drop(waiting.send(Answered { answer, events: None }));
            return;
        };
        let to = ReaderTarget::Held { waiting, answer };
        self.readers.insert(id, Reader { to, waiting: None });
        self.held.push_back((now.after(HELD_FOR), id));
    }

    /// When the next answer has waited for long enough.
    pub(crate) fn next_release(&mut self) -> Option<Now> {
        while let Some((until, id)) = self.held.front() {
            if self.readers.get(id).is_some_and(|it| matches!(it.to, ReaderTarget::Held { .. })) {
                return Some(*until);
            }
            self.held.pop_front();
        }
        None
    }

    /// Answers that have waited for long enough go without a first message.
    pub(crate) fn release_due(&mut self, hub: &mut Hub, now: Now) {
        while let Some(&(until, id)) = self.held.front()
            && now.reached(until)
        {
            self.held.pop_front();
            if self.open(hub, id) {
                self.feed(hub, id);
            }
        }
    }

    /// Tells an operator how a probe ended.
    pub(crate) fn answer_probe(&mut self, token: RequestToken, passed: Option<bool>) {
        if let Some(waiting) = self.probes.remove(&token) {
            // The operator may have left.
            let _ = waiting.send(passed);
        }
    }

    /// Hands what the Hub has for a reader to its client, as far as there is room.
    pub(crate) fn feed(&mut self, hub: &mut Hub, id: ReaderId) {
        let Some(Reader { to, .. }) = self.readers.get(&id) else { return };
        let is_held = matches!(to, ReaderTarget::Held { .. });
        if is_held && (!hub.has_message(id) || !self.open(hub, id)) {
            return;
        }
        let Some(reader) = self.readers.get_mut(&id) else { return };
        let ReaderTarget::Body(sender) = &reader.to else { return };
        let is_over = loop {
            match sender.try_reserve() {
                Ok(permit) => {
                    let (batch, may_follow) = pulled(hub, id);
                    let is_last = batch.is_last;
                    if !batch.events.is_empty() || is_last {
                        permit.send(batch);
                    }
                    match (is_last, may_follow) {
                        (true, _) => break true,
                        (false, true) => {}
                        (false, false) => return,
                    }
                }
                Err(TrySendError::Full(())) => break false,
                // Its body tells that it has gone.
                Err(TrySendError::Closed(())) => return,
            }
        };
        if is_over {
            self.readers.remove(&id);
        } else if reader.waiting.is_none() {
            let (sender, news) = (sender.clone(), self.news.clone());
            let waiting = task::spawn_owned("room for an mcp client", async move {
                if sender.reserve().await.is_ok() {
                    drop(news.send(ClientNews::Room(id)));
                }
            });
            reader.waiting = Some(waiting);
        }
    }

    /// A request that is held is answered with what there is; whether more may follow.
    fn open(&mut self, hub: &mut Hub, id: ReaderId) -> bool {
        let held = |reader: &Reader| matches!(reader.to, ReaderTarget::Held { .. });
        if !self.readers.get(&id).is_some_and(held) {
            return false;
        }
        let Some(Reader { to: ReaderTarget::Held { waiting, answer }, .. }) =
            self.readers.remove(&id)
        else {
            return false;
        };
        let (first, _) = pulled(hub, id);
        let is_over = first.is_last;
        let events = if is_over {
            AnswerEvents::All(first.events)
        } else {
            let (sender, body) = EventBody::new(id, first, self.news.clone());
            let to = ReaderTarget::Body(sender);
            self.readers.insert(id, Reader { to, waiting: None });
            AnswerEvents::Stream(body)
        };
        // It may have left, and its body tells so.
        drop(waiting.send(Answered { answer, events: Some(events) }));
        !is_over
    }

    /// A reader has room again.
    pub(crate) fn has_room(&mut self, hub: &mut Hub, id: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.waiting = None;
            self.feed(hub, id);
        }
    }

    /// Says to a client that its stream is still there. One that has events to read knows.
    pub(crate) fn keep_open(&self, id: ReaderId) {
        if let Some(Reader { to: ReaderTarget::Body(sender), .. }) = self.readers.get(&id) {
            let events = VecDeque::from([KEEP_OPEN]);
            drop(sender.try_send(Batch { events, is_last: false }));
        }
    }

    /// A client has left its stream.
    pub(crate) fn forget(&mut self, id: ReaderId) {
        self.readers.remove(&id);
    }
}

/// What the Hub has for a reader, as far as it goes into one batch; whether there may be more.
fn pulled(hub: &mut Hub, id: ReaderId) -> (Batch, bool) {
    let mut batch = Batch::default();
    while batch.events.len() < BATCH_MAX {
        match hub.pull(id) {
            Pulled::Event(event) => batch.events.push_back(event),
            Pulled::Nothing => return (batch, false),
            Pulled::Over => {
                batch.is_last = true;
                return (batch, false);
            }
        }
    }
    (batch, true)
}
