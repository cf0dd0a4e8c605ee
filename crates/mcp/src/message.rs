//! JSON-RPC messages as MCP uses them: read without copying, written without reading.
//!
//! Rules kept here:
//! - Only the envelope is read. `params`, `result` and `error` stay text; [`Params`] edits the few
//!   fields that a gateway owns.
//! - An [`Id`] comes back byte for byte.
//! - The envelope is read strictly (S42): what two readers might understand differently is a
//!   [`Fault`], and a fault carries the id where it could be read, so that the sender learns of it.
//! - A written message stands on one line.
//!
//! Which methods exist, and who gets a message, is the business of others.

mod batch;
mod id;
mod large;
mod params;
pub mod reserved;
mod version;
mod write;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use self::{
    batch::{BATCH_MAX, is_batch, parse_batch},
    id::Id,
    large::{LARGE, SetAside, put_back, set_aside},
    params::Params,
    version::{DEFAULT_VERSION, Version},
    write::{answer, error, error_object, made, notification, request, result},
};
use crate::raw::{Fields, Flaw, as_text};

/// The text was not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// It was JSON, but not a message.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is unknown.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method is known; what it was given is wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// The other side failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// What asked for was a resource that does not exist (until 2025-11-25).
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// The keys of an envelope.
const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
/// Bytes of a method's name: the longest known has 36.
const METHOD_MAX: usize = 256;

/// One message.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// It wants an answer.
    Request {
        /// Under which id.
        id: Id,
        /// What is asked.
        method: Cow<'a, str>,
        /// With what, if with anything: an object.
        params: Option<&'a RawValue>,
    },
    /// It wants none.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
        /// To what, if to anything: an object.
        params: Option<&'a RawValue>,
    },
    /// It answers a request.
    Answer {
        /// Which one; none only in an error about a message whose id could not be read.
        id: Option<Id>,
        /// The `result`, or the `error` ([`ErrorObject`]).
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

impl<'a> Message<'a> {
    /// Reads one message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let text = text_of(bytes)?;
        if is_batch(bytes) {
            return Err(Fault::invalid(
                None,
                "a batch of messages; only protocol version `2025-03-26` has them",
            ));
        }
        Self::read(Fields::parse(text, ENVELOPE).map_err(Fault::envelope)?)
    }

    /// Reads an envelope.
    fn read(fields: Fields<'a>) -> Result<Self, Fault> {
        let id = match fields.source("id") {
            None => None,
            Some(value) if value.get() == "null" => None,
            Some(value) => Some(Id::read(value).map_err(|problem| Fault::invalid(None, problem))?),
        };
        if fields.get("jsonrpc").and_then(as_text).as_deref() != Some("2.0") {
            return Err(Fault::invalid(id, "`jsonrpc` must be `\"2.0\"`"));
        }
        let is_answer = fields.get("result").is_some() || fields.get("error").is_some();
        match fields.source("method") {
            Some(_) if is_answer => {
                Err(Fault::invalid(id, "a message with `method` has no `result` and no `error`"))
            }
            Some(method) => Self::read_call(&fields, id, method),
            None if is_answer => Self::read_answer(&fields, id),
            None => Err(Fault::invalid(id, "a message needs `method`, `result` or `error`")),
        }
    }

    fn read_call(fields: &Fields<'a>, id: Option<Id>, method: &'a RawValue) -> Result<Self, Fault> {
        let Some(method) = method_name(method) else {
            return Err(Fault::invalid(id, "`method` must be a text of at most 256 bytes"));
        };
        let params = fields.source("params").filter(|params| params.get() != "null");
        if params.is_some_and(|params| !params.get().starts_with('{')) {
            let message = "`params` must be an object".to_owned();
            return Err(Fault { code: INVALID_PARAMS, message, id });
        }
        match (id, fields.get("id")) {
            (Some(id), _) => Ok(Self::Request { id, method, params }),
            (None, None) => Ok(Self::Notification { method, params }),
            (None, Some(_)) => {
                Err(Fault::invalid(None, "the `id` of a request must not be `null`"))
            }
        }
    }

    fn read_answer(fields: &Fields<'a>, id: Option<Id>) -> Result<Self, Fault> {
        // Some servers send both, one of them `null`.
        let is_null = |value: &&RawValue| value.get() == "null";
        let outcome = match (fields.source("result"), fields.source("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            (Some(result), Some(error)) if is_null(&error) => Ok(result),
            (Some(result), Some(error)) if is_null(&result) => Err(error),
            _ => return Err(Fault::invalid(id, "an answer has either `result` or `error`")),
        };
        if id.is_none() && outcome.is_ok() {
            return Err(Fault::invalid(None, "a result needs the `id` of its request"));
        }
        Ok(Self::Answer { id, outcome })
    }
}

/// The name of a method; none if it is no text or far too long.
fn method_name(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let name =
        if inner.contains('\\') { Cow::Owned(as_text(value)?) } else { Cow::Borrowed(inner) };
    (name.len() <= METHOD_MAX).then_some(name)
}

/// The text of a body.
fn text_of(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault {
        code: PARSE_ERROR,
        message: "not JSON: the text is not UTF-8".to_owned(),
        id: None,
    })
}

/// What is wrong with a message, as an answer to it can say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The code of JSON-RPC.
    pub code: i64,
    /// A lowercase fragment.
    pub message: String,
    /// The id of the message, if it could be read.
    pub id: Option<Id>,
}

impl Fault {
    /// Not a message.
    fn invalid(id: Option<Id>, message: impl Into<String>) -> Self {
        Self { code: INVALID_REQUEST, message: message.into(), id }
    }

    /// A request whose params are wrong.
    #[must_use]
    pub fn params(id: &Id, message: impl Into<String>) -> Self {
        Self { code: INVALID_PARAMS, message: message.into(), id: Some(id.clone()) }
    }

    /// An envelope that could not be taken apart.
    fn envelope(flaw: Flaw) -> Self {
        let code = if matches!(flaw, Flaw::NotJson(_)) { PARSE_ERROR } else { INVALID_REQUEST };
        Self { code, message: flaw.to_string(), id: None }
    }

    /// The answer that tells the sender.
    #[must_use]
    pub fn to_answer(&self) -> String {
        error(self.id.as_ref(), self.code, &self.message, None)
    }
}

/// The `error` of an answer, read leniently: whatever it is, it says that the request failed.
#[derive(Clone, Debug)]
pub struct ErrorObject<'a> {
    /// Its code; [`INTERNAL_ERROR`] if it has none.
    pub code: i64,
    /// What it says; empty if nothing.
    pub message: String,
    /// What else it says.
    pub data: Option<&'a RawValue>,
}

impl<'a> ErrorObject<'a> {
    /// Reads one.
    #[must_use]
    pub fn read(value: &'a RawValue) -> Self {
        let fields = Fields::of(value, &[]).unwrap_or_default();
        let code = fields.get("code").and_then(|code| serde_json::from_str(code.get()).ok());
        Self {
            code: code.unwrap_or(INTERNAL_ERROR),
            message: fields.text("message").unwrap_or_default(),
            data: fields.source("data"),
        }
    }
}

/// Reads the text of an `error`; none if it is no JSON.
#[must_use]
pub fn read_error(error: &[u8]) -> Option<ErrorObject<'_>> {
    serde_json::from_slice::<&RawValue>(error).ok().map(ErrorObject::read)
}

#[cfg(test)]
mod tests;
