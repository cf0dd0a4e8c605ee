//! Why a request has no answer, as its client is told.
//!
//! Rules kept here:
//! - What the gateway says in words of JSON-RPC is passed on as it is, under the client's id.
//! - Otherwise the words say what is wrong, where, and what to do. Whether the request may have
//!   been carried out is always told.
//! - Nothing of a key is ever in them.

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_mcp::{
    cause::{Cause, Delivery},
    message::{self, ErrorObject, INTERNAL_ERROR, Id},
    raw::Fields,
};

use crate::transport::Failure;

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) failure: Failure,
    /// What the gateway said; empty if nothing.
    said: Bytes,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self { failure, said: Bytes::new() }
    }
}

impl Trouble {
    /// A refusal with a body.
    pub(super) const fn refused(failure: Failure, said: Bytes) -> Self {
        Self { failure, said }
    }

    /// The session is gone, and the request was refused unread.
    pub(super) fn is_unread_loss(&self) -> bool {
        self.failure.is_session_loss && self.failure.delivery == Delivery::Not
    }

    /// Nobody was there, or not for long enough.
    pub(super) const fn is_absence(&self) -> bool {
        matches!(
            self.failure.cause,
            Cause::ConnectionRefused
                | Cause::ConnectionFailed
                | Cause::ConnectionBroken
                | Cause::TimedOut(_)
        )
    }

    /// The code of what the gateway told.
    pub(super) fn code(&self) -> Option<i64> {
        self.error().map(|error| ErrorObject::read(error).code)
    }

    /// Whoever refused it speaks MCP.
    pub(super) fn is_of_mcp(&self) -> bool {
        self.error().is_some()
    }

    /// The answer that tells the client.
    pub(super) fn to_answer(&self, id: &Id, url: &str) -> String {
        if let Some(error) = self.error() {
            return message::answer(id, Err(error));
        }
        message::error(Some(id), INTERNAL_ERROR, &self.words(url), None)
    }

    /// The error that the gateway told, if it did.
    fn error(&self) -> Option<&RawValue> {
        let text = std::str::from_utf8(&self.said).ok()?;
        Fields::parse(text, &[]).ok()?.source("error").filter(|it| it.get().starts_with('{'))
    }

    fn words(&self, url: &str) -> String {
        let Failure { cause, delivery, .. } = self.failure;
        match (cause, delivery) {
            (Cause::AuthRejected, _) => {
                format!("the gateway at `{url}` wants another key; set `TIDEGATE_KEY`")
            }
            (Cause::Status(status), Delivery::Not) => {
                format!("what answers at `{url}` is no MCP gateway: status {status}")
            }
            (Cause::Malformed, _) => {
                format!("what answers at `{url}` does not speak MCP; the result is unknown")
            }
            (cause, Delivery::Not) => format!(
                "gateway at `{url}` does not answer: {cause}; start it with `tidegate serve`"
            ),
            (cause, Delivery::Maybe) => {
                format!("gateway at `{url}` gave no answer: {cause}; the result is unknown")
            }
        }
    }
}
