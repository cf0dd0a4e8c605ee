//! HTTP with server-sent events to a server: the transport of the first revision (2024-11-05).
//!
//! ```text
//!   GET url ──▶ event: endpoint (where to post) · event: message · event: message …
//!   POST endpoint ──▶ 202; the answer comes over the GET
//! ```
//! One GET stays open and carries everything the server says, answers too; every message of ours
//! is a POST to the address that the stream named first. The stream is the session: it cannot be
//! taken up again, and its end is the end of the conversation.
//!
//! - `endpoint`: which address a server may name. `posts`: messages of ours.
//! - What is shared with Streamable HTTP (connections, refusals, notices, the end) is its
//!   `HttpConversation`.
//!
//! Rules kept here:
//! - It is open when the server has named its address, within the time for a connect; until then
//!   nothing of a client's has been sent.
//! - Messages go to the configured origin only, and redirects are not followed: the configured
//!   headers are for nobody else.
//! - Dropping the transport closes the stream, which is how a server hears of the end.
//!
//! Left to others: what messages mean, which answer belongs to which request (the Hub),
//! when this transport is tried (the Hub).

use tidegate_net::upstream::Pool;
use tidegate_runtime::{clock::Clock, task};

mod endpoint;
mod posts;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::cause::{Cause, Delivery};
use tokio::time::timeout;

use self::posts::Posts;
use super::{
    beside::is_large,
    http::{
        HttpPlace,
        call::{self, BodyKind},
        conversation::{ConnectionUse, HttpConversation},
        failure,
        notices::Notices,
        reading::{self, EventStream, Resume},
    },
    transport::{ConnectionEvent, EventSender, Failure},
};

/// A conversation over one stream of events.
#[derive(Debug)]
pub(crate) struct SseTransport {
    talk: Rc<HttpConversation>,
    notices: Notices,
    posts: Rc<Posts>,
}

impl SseTransport {
    /// Begins to open: the stream is to be open, and the server to have said where messages go,
    /// within `connect_timeout`, which is told. Must be called on a thread that runs local tasks.
    pub(crate) fn open(
        place: Rc<HttpPlace>,
        pool: Rc<Pool>,
        clock: Clock,
        connect_timeout: Millis,
        events: EventSender,
    ) -> Self {
        let talk = Rc::new(HttpConversation::new(place, pool, clock, connect_timeout, events));
        let posts = Rc::new(Posts::default());
        let (own, waiting) = (Rc::clone(&talk), Rc::clone(&posts));
        talk.add_task(task::spawn_owned("mcp listening", async move {
            match opened(&own, connect_timeout).await {
                Ok(stream) => {
                    own.tell(ConnectionEvent::Opened).await;
                    listen(own, waiting, stream).await;
                }
                Err(failure) => own.tell(ConnectionEvent::OpenFailed(failure)).await,
            }
        }));
        Self { talk, notices: Notices::default(), posts }
    }

    /// Sends a request; the `id` member of `message` is `call`. The outcome comes as events.
    pub(crate) fn request(&self, call: u64, message: Bytes) {
        if self.talk.is_over() {
            return;
        }
        let (talk, posts) = (Rc::clone(&self.talk), Rc::clone(&self.posts));
        let before = self.notices.so_far();
        let task = task::spawn_owned("mcp call", async move {
            before.were_taken().await;
            let ended = posts.send(&talk, call, message).await;
            talk.call_ended(call, ended).await;
        });
        self.talk.add_call(call, task);
    }

    /// Sends a notification, or the answer to a request of the server's.
    pub(crate) fn notice(&self, message: Bytes) {
        self.notices.send(&self.talk, message);
    }

    /// `initialize` was answered with this protocol version: from here on it goes with every
    /// message, as it does from other clients of this transport.
    pub(crate) fn negotiated(&self, version: &str) {
        self.talk.agree(version);
    }

    /// Nobody waits for this request any more. An answer that still comes is a message like any
    /// other, and the owner knows its calls.
    pub(crate) fn forget(&self, call: u64) {
        self.talk.forget(call);
    }

    /// Ends the conversation: the stream is closed, and there is nothing else to say.
    pub(crate) fn close(self) {
        drop(self);
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.talk.end();
    }
}

/// Opens the stream, in time.
async fn opened(talk: &HttpConversation, within: Millis) -> Result<EventStream, Failure> {
    match timeout(Duration::from_millis(within.0), begin(talk)).await {
        // Whatever went wrong, no message of ours has been sent.
        Ok(begun) => begun.map_err(|it| Failure { delivery: Delivery::Not, ..it }),
        Err(_) => {
            let cause = Cause::TimedOut(within);
            Err(failure::plain(cause, Delivery::Not, OutcomeKind::Timeout))
        }
    }
}

/// Opens the stream and waits for the address that messages go to.
async fn begin(talk: &HttpConversation) -> Result<EventStream, Failure> {
    let get = || talk.request(Method::GET, Bytes::new(), None);
    let (head, mut body) = talk.send(ConnectionUse::Listening, get).await?.into_parts();
    if !head.status.is_success() {
        return Err(call::refusal(talk, &head, body, false).await.0);
    }
    if call::kind_of(&head.headers) != BodyKind::Events {
        return Err(failure::malformed());
    }
    body.expect_silence();
    let mut stream = EventStream::new(body, Resume::default(), talk.place.answer_max());
    let named = stream.next_of(b"endpoint").await?.ok_or_else(failure::broken)?;
    let Some(endpoint) = endpoint::resolve(&talk.place, &named) else {
        tracing::warn!("an mcp server wants messages sent to an address that is not its own");
        return Err(failure::malformed());
    };
    talk.post_to(endpoint);
    Ok(stream)
}

/// Tells what the stream says; its end ends the conversation.
async fn listen(talk: Rc<HttpConversation>, posts: Rc<Posts>, mut stream: EventStream) {
    let failure = loop {
        let bytes = match stream.next().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break failure::broken(),
            // One stream carries every answer: whose was too large cannot be known, nor where the
            // next one begins. A new connection serves the calls that may be sent again.
            Err(_) => break failure::broken(),
        };
        if is_large(&bytes) {
            let Ok(all) = reading::large(bytes).await else { continue };
            for received in all {
                received.answered().inspect(|&call| posts.answered(call));
                if let Some(event) = received.into_event(None) {
                    talk.tell(event).await;
                }
            }
            continue;
        }
        let Ok(messages) = reading::messages(bytes) else { continue };
        for bytes in messages {
            // What is no message cannot be routed, and there is no request to blame.
            if let Ok(answered) = reading::answered(&bytes) {
                answered.inspect(|&call| posts.answered(call));
                talk.tell(ConnectionEvent::Message { bytes, call: None }).await;
            }
        }
    };
    talk.lose(failure);
}
