//! Large arguments of a call, kept out of the MCP thread's way until the call is sent.
//!
//! Rules kept here:
//! - A large body is read on a thread of its own kind: neither the MCP thread nor a worker, which
//!   both serve other clients. At most [`AT_ONCE`] at a time, because processors are everybody's.
//! - One copy is made, when the call is sent.
//!
//! Left to others: what is set aside, and how it comes back ([`tidegate_mcp::message::set_aside`]).

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;
use tidegate_mcp::message::{LARGE, SetAside, put_back, set_aside};
use tokio::sync::Semaphore;

use super::{
    door::{Answer, refusal},
    hub::random_id,
};

/// Large bodies that are read at a time.
const AT_ONCE: usize = 2;

/// Arguments that were set aside.
#[derive(Clone, Debug)]
pub(crate) struct Large {
    token: String,
    arguments: Bytes,
}

impl Large {
    /// The message of a call with its arguments in their place.
    pub(crate) fn put_back(&self, message: &str) -> String {
        put_back(message, &self.token, self.text())
    }

    /// Params with the arguments in their place, for who looks into them.
    pub(crate) fn restore(&self, params: Option<&RawValue>) -> Option<Box<RawValue>> {
        RawValue::from_string(self.put_back(params?.get())).ok()
    }

    /// The arguments, for who looks into them.
    pub(crate) fn value(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.text().to_owned()).ok()
    }

    fn text(&self) -> &str {
        // It was a part of a message that has been read.
        std::str::from_utf8(&self.arguments).unwrap_or_default()
    }
}

/// Reads large bodies.
#[derive(Clone, Debug)]
pub(crate) struct LargeReader(Arc<Semaphore>);

impl Default for LargeReader {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl LargeReader {
    /// The body as the MCP thread is to see it, and what was set aside of it.
    pub(crate) async fn read(&self, body: Bytes) -> Result<(Bytes, Option<Large>), Answer> {
        if body.len() <= LARGE {
            return Ok((body, None));
        }
        let broken = || {
            let message = "the request could not be read";
            Answer::json(StatusCode::INTERNAL_SERVER_ERROR, refusal(message))
        };
        let _turn = self.0.acquire().await.map_err(|_| broken())?;
        let read = tokio::task::spawn_blocking(move || {
            let token = format!("tidegate.aside.{}", random_id()?);
            Some(match set_aside(&body, &token) {
                Ok(Some(SetAside { message, arguments })) => {
                    let arguments = body.slice_ref(arguments.as_bytes());
                    Ok((Bytes::from(message), Some(Large { token, arguments })))
                }
                Ok(None) => Ok((body, None)),
                Err(fault) => Err(Answer::json(StatusCode::BAD_REQUEST, fault.to_answer())),
            })
        });
        read.await.ok().flatten().unwrap_or_else(|| Err(broken()))
    }
}
