//! Streamable HTTP to a server, in both eras: with a session (2025-03-26 to 2025-11-25), and
//! without (2026-07-28), where a request carries headers of its own and nothing follows it.
//!
//! Every request of ours is a POST of its own, on a kept connection; its answer comes as JSON or
//! on a stream of events, where the server may say other things first. What a server says of its
//! own accord comes over one GET that stays open.
//!
//! - `place`: where the server is, from the config.
//! - `conversation`: the session and the calls under way, and how they end.
//! - `call`: one request and its answer. `notices`: what gets no answer. `listening`: the GET.
//! - `reading`: bodies, events, messages. `failure`: what a refusal means.
//!
//! The transport before this one (`super::sse`) uses most of these.
//!
//! Left to others: what messages mean, deadlines and replay (the owner), health (the core).

use tidegate_net::upstream::Pool;
use tidegate_runtime::{clock::Clock, task};

pub(crate) mod call;
pub(crate) mod conversation;
pub(crate) mod failure;
mod listening;
pub(crate) mod notices;
mod place;
pub(crate) mod reading;
#[cfg(test)]
pub(crate) mod tests;

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use tidegate_core::time::Millis;
use tidegate_mcp::hub::ResumedUpstream;
use tokio::time::timeout;

pub(crate) use self::place::HttpPlace;
use self::{
    conversation::{ConnectionUse, HttpConversation},
    notices::Notices,
};
use super::transport::EventSender;

/// How long the end of a session may take: nobody waits for it but the way out.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// A conversation over HTTP.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    talk: Rc<HttpConversation>,
    notices: Notices,
}

impl HttpTransport {
    /// Begins a conversation; nothing is sent yet. `connect_timeout` limits each connection's
    /// making. Must be called on a thread that runs local tasks.
    pub(crate) fn open(
        place: Rc<HttpPlace>,
        pool: Rc<Pool>,
        clock: Clock,
        connect_timeout: Millis,
        events: EventSender,
    ) -> Self {
        let talk = Rc::new(HttpConversation::new(place, pool, clock, connect_timeout, events));
        Self { talk, notices: Notices::default() }
    }

    /// Sends a request; the `id` member of `message` is `call`. The outcome comes as events.
    /// `heads` are the headers that repeat what it says, in the stateless era.
    pub(crate) fn request(&self, call: u64, message: Bytes, heads: Option<HeaderMap>) {
        if self.talk.is_over() {
            return;
        }
        let talk = Rc::clone(&self.talk);
        let before = self.notices.so_far();
        let task = task::spawn_owned("mcp call", async move {
            before.were_taken().await;
            let ended = call::run(&talk, call, message, heads).await;
            talk.call_ended(call, ended).await;
        });
        self.talk.add_call(call, task);
    }

    /// Sends a notification, or the answer to a request of the server's.
    pub(crate) fn notice(&self, message: Bytes) {
        self.notices.send(&self.talk, message);
    }

    /// `initialize` was answered with this protocol version: from here on it goes with every
    /// request, and the server may speak of its own accord.
    pub(crate) fn negotiated(&self, version: &str) {
        self.talk.agree(version);
        let listening = listening::run(Rc::clone(&self.talk), self.notices.first());
        self.talk.add_task(task::spawn_owned("mcp listening", listening));
    }

    /// Goes on in a session that somebody else began: nobody greets the server again.
    pub(crate) fn resume(&self, resumed: &ResumedUpstream) {
        self.talk.go_on_in(resumed);
        self.negotiated(&resumed.version);
    }

    /// What the tasks of this conversation share, for requests under ids that are not ours.
    pub(crate) fn talk(&self) -> &Rc<HttpConversation> {
        &self.talk
    }

    /// The notices that were sent so far.
    pub(crate) fn so_far(&self) -> notices::Before {
        self.notices.so_far()
    }

    /// Nobody waits for this request any more: its stream is closed.
    pub(crate) fn forget(&self, call: u64) {
        self.talk.forget(call);
    }

    /// Ends the conversation, and tells the server so if there is a session.
    pub(crate) async fn close(self) {
        let is_over = self.talk.refusal().is_some();
        self.talk.end();
        if is_over || !self.talk.has_session() {
            return;
        }
        let delete = || self.talk.request(Method::DELETE, Bytes::new(), None);
        let deleted = async {
            // A server may not want to hear of it (405), or not hear it at all.
            if let Ok(response) = self.talk.send(ConnectionUse::Calls, delete).await {
                call::discard(&self.talk, response).await;
            }
        };
        drop(timeout(CLOSE_WITHIN, deleted).await);
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.talk.end();
    }
}
