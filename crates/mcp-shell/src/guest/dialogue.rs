//! Requests to a gateway, one after the other, and what it says meanwhile.
//!
//! Rules kept here:
//! - Every request ends: answered, unanswered, or given up when its time is over, which the gateway
//!   is told.
//! - Nothing is declared: whoever asks this client for something but `ping` is refused.

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::{
    cause::{Cause, Delivery},
    message::{self, Id, METHOD_NOT_FOUND, Message, Params},
};
use tokio::time::timeout;

use super::OnNotice;
use crate::{
    http::HttpTransport,
    transport::{ConnectionEvent, Events, Failure, LargeAnswer},
};

/// What a request came to.
#[derive(Debug)]
pub(super) enum Reply {
    /// The text of its `result`.
    Result(Bytes),
    /// The text of its `error`.
    Error(Bytes),
    /// There is no answer.
    Failed(Failure),
}

/// A session with a gateway.
pub(super) struct Dialogue {
    transport: HttpTransport,
    events: Events,
    told: OnNotice,
    next: u64,
}

impl Dialogue {
    pub(super) fn new(transport: HttpTransport, events: Events, told: OnNotice) -> Self {
        Self { transport, events, told, next: 1 }
    }

    /// The gateway has answered `initialize` with this version.
    pub(super) fn initialised(&self, version: &str) {
        self.transport.negotiated(version);
        self.tell(message::notification("notifications/initialized", None));
    }

    /// Calls a tool, and asks for progress. `params` are those of `tools/call`, without their
    /// closing brace.
    pub(super) async fn call(&mut self, params: &str, within: Millis) -> Reply {
        let token = self.next;
        let params = format!(r#"{params},"_meta":{{"progressToken":{token}}}}}"#);
        self.ask("tools/call", Some(&params), within).await
    }

    /// Asks, and waits for the answer.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: Option<&str>,
        within: Millis,
    ) -> Reply {
        let call = self.next;
        self.next += 1;
        let message = message::request(&Id::number(call), method, params);
        self.transport.request(call, message.into(), None);
        match timeout(Duration::from_millis(within.0), self.answer(call)).await {
            Ok(reply) => reply,
            Err(_) => {
                let params = format!(r#"{{"requestId":{call},"reason":"nobody waits any more"}}"#);
                self.tell(message::notification("notifications/cancelled", Some(&params)));
                self.transport.forget(call);
                let late = Failure::of(Cause::TimedOut(within), OutcomeKind::Timeout);
                Reply::Failed(Failure { delivery: Delivery::Maybe, ..late })
            }
        }
    }

    /// Ends the session in good order.
    pub(super) async fn close(self) {
        self.transport.close().await;
    }

    async fn answer(&mut self, expected: u64) -> Reply {
        loop {
            match self.events.recv().await {
                Some(
                    ConnectionEvent::Message { bytes, .. }
                    | ConnectionEvent::LargeAnswer(LargeAnswer { bytes, .. }),
                ) => {
                    if let Some(reply) = self.hear(&bytes, expected) {
                        return reply;
                    }
                }
                Some(ConnectionEvent::Unanswered { call, failure }) if call == expected => {
                    return Reply::Failed(failure);
                }
                Some(ConnectionEvent::Closed { failure, .. }) => return Reply::Failed(failure),
                Some(_) => {}
                None => {
                    let broken = Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport);
                    return Reply::Failed(Failure { delivery: Delivery::Maybe, ..broken });
                }
            }
        }
    }

    /// The answer to the request under way, if a message is that.
    fn hear(&self, bytes: &Bytes, expected: u64) -> Option<Reply> {
        // The transport has read it already: what is no message has ended its request.
        let part = |value: &RawValue| bytes.slice_ref(value.get().as_bytes());
        match Message::parse(bytes).ok()? {
            Message::Answer { id, outcome } => {
                id.filter(|id| id.as_number() == Some(expected))?;
                Some(match outcome {
                    Ok(result) => Reply::Result(part(result)),
                    Err(error) => Reply::Error(part(error)),
                })
            }
            Message::Request { id, method, .. } => {
                self.tell(match &*method {
                    "ping" => message::result(&id, "{}"),
                    _ => {
                        let message = "this client can be asked for nothing";
                        message::error(Some(&id), METHOD_NOT_FOUND, message, None)
                    }
                });
                None
            }
            Message::Notification { method, params } => {
                if let Some(line) = line_of(&method, params) {
                    (self.told)(&line);
                }
                None
            }
        }
    }

    fn tell(&self, message: String) {
        self.transport.notice(message.into());
    }
}

/// What a person wants to see of a notification.
fn line_of(method: &str, params: Option<&RawValue>) -> Option<String> {
    let params = Params::parse(params).ok()?;
    match method {
        "notifications/progress" => progress_line(&params),
        "notifications/message" => params.get("data").map(|data| {
            let level = params.text("level").unwrap_or_default();
            let data = params.text("data").unwrap_or_else(|| data.get().to_owned());
            format!("{level}: {data}")
        }),
        _ => None,
    }
}

/// `3/10 unpacking`.
fn progress_line(params: &Params<'_>) -> Option<String> {
    let progress = params.get("progress")?.get();
    let total = params.get("total").map(|total| format!("/{}", total.get())).unwrap_or_default();
    let message = params.text("message").map(|it| format!(" {it}")).unwrap_or_default();
    Some(format!("{progress}{total}{message}"))
}
