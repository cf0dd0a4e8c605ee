//! What a client hears when a server could not answer: one sentence and one object, in the two
//! shapes the protocol has for errors.
//!
//! A tool call gets a *result* with `isError: true`, which models are shown; everything else gets
//! a JSON-RPC error with the same object as its data. Some clients check structured content against
//! a tool's output schema also when it tells of an error, and then show that it does not fit
//! instead of the sentence. So where there is such a schema, the object goes into `_meta`.

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::time::Millis;

use crate::{cause::Cause, raw::Fields};

/// JSON-RPC's internal error: the one code that clients of every era take for a server's fault.
const INTERNAL_ERROR: i64 = -32603;

/// A `result` that says that it comes from a new session of its server, which does not have the
/// state of the one before. One that is no plain object stays as it is.
#[must_use]
pub fn say_new(result: Bytes) -> Bytes {
    let text = std::str::from_utf8(&result).ok();
    text.and_then(of_new_session).map_or(result, Bytes::from)
}

fn of_new_session(result: &str) -> Option<String> {
    let mut fields = Fields::parse(result, &[]).ok()?;
    fields.edit("_meta", &[], |meta| meta.set_text("tidegate/session", "new")).ok()?;
    Some(fields.to_json())
}

/// Whether the call may have been carried out, and whether waiting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It was not, or doing it again is harmless.
    BackendUnavailable,
    /// It may have been, and nobody knows.
    ResultUnknown,
    /// It was not: a limit on what is under way at once was reached.
    Busy,
}

impl Code {
    /// The word in structured content, traces and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BackendUnavailable => "backend_unavailable",
            Self::ResultUnknown => "result_unknown",
            Self::Busy => "busy",
        }
    }
}

/// A server that could not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// Its name in the config.
    pub server: String,
    /// Why.
    pub cause: Cause,
    /// When asking again makes sense, if that is known.
    pub retry_after: Option<Millis>,
    /// Whether the call may have been carried out.
    pub code: Code,
}

impl Unavailable {
    /// The sentence: `backend "github" unavailable: connection refused`.
    #[must_use]
    pub fn message(&self) -> String {
        let unknown = match self.code {
            Code::BackendUnavailable | Code::Busy => "",
            Code::ResultUnknown => "; the result is unknown",
        };
        format!("backend \"{}\" unavailable: {}{unknown}", self.server, self.cause)
    }

    /// The object: code, backend, time to come back.
    #[must_use]
    pub fn structured(&self) -> Value {
        json!({
            "code": self.code.word(),
            "backend": self.server,
            "retry_after_ms": self.retry_after.map(|span| span.0),
        })
    }

    /// The `result` of a call to a tool that says what its own results look like.
    #[must_use]
    pub fn schema_tool_result(&self) -> Value {
        json!({
            "content": [{"type": "text", "text": self.message()}],
            "isError": true,
            "_meta": {"tidegate/unavailable": self.structured()},
        })
    }

    /// The `result` of a call to any other tool.
    #[must_use]
    pub fn tool_result(&self) -> Value {
        json!({
            "content": [{"type": "text", "text": self.message()}],
            "structuredContent": self.structured(),
            "isError": true,
        })
    }

    /// The `error` of any other request.
    #[must_use]
    pub fn rpc_error(&self) -> Value {
        json!({"code": INTERNAL_ERROR, "message": self.message(), "data": self.structured()})
    }
}

/// A caller that has as many calls under way as it may have: no server was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyCalls {
    /// When asking again makes sense.
    pub retry_after: Millis,
}

impl Default for TooManyCalls {
    /// Calls end all the time.
    fn default() -> Self {
        Self { retry_after: Millis::seconds(1) }
    }
}

impl TooManyCalls {
    const MESSAGE: &str = "busy: too many calls of this caller are under way; try again";

    fn structured(self) -> Value {
        let code = Code::Busy.word();
        json!({"code": code, "backend": null, "retry_after_ms": self.retry_after.0})
    }

    /// The `result` of a call to a tool that says what its own results look like.
    #[must_use]
    pub fn schema_tool_result(self) -> Value {
        json!({
            "content": [{"type": "text", "text": Self::MESSAGE}],
            "isError": true,
            "_meta": {"tidegate/unavailable": self.structured()},
        })
    }

    /// The `result` of a call to any other tool.
    #[must_use]
    pub fn tool_result(self) -> Value {
        json!({
            "content": [{"type": "text", "text": Self::MESSAGE}],
            "structuredContent": self.structured(),
            "isError": true,
        })
    }

    /// The `error` of any other request.
    #[must_use]
    pub fn rpc_error(self) -> Value {
        json!({"code": INTERNAL_ERROR, "message": Self::MESSAGE, "data": self.structured()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: Code, retry_after: Option<Millis>) -> Unavailable {
        let (server, cause) = ("github".to_owned(), Cause::ConnectionRefused);
        Unavailable { server, cause, retry_after, code }
    }

    #[test]
    fn the_first_result_of_a_new_session_says_so_beside_what_the_server_says() {
        let plain = of_new_session(r#"{"content":[]}"#);
        let expected = r#"{"content":[],"_meta":{"tidegate/session":"new"}}"#;
        assert_eq!(plain.as_deref(), Some(expected));
        let own = of_new_session(r#"{"_meta":{"x":1.0},"content":[]}"#);
        let expected = r#"{"_meta":{"x":1.0,"tidegate/session":"new"},"content":[]}"#;
        assert_eq!(own.as_deref(), Some(expected));
        assert_eq!(of_new_session("[]"), None);
    }

    #[test]
    fn a_tool_call_gets_a_result_that_names_the_server() {
        let result = refused(Code::BackendUnavailable, Some(Millis(1234))).tool_result();
        let expected = concat!(
            r#"{"content":[{"type":"text","text":"#,
            r#""backend \"github\" unavailable: connection refused"}],"#,
            r#""structuredContent":{"code":"backend_unavailable","backend":"github","#,
            r#""retry_after_ms":1234},"isError":true}"#
        );
        assert_eq!(result.to_string(), expected);
    }

    #[test]
    fn a_tool_with_an_output_schema_gets_no_structured_content_that_breaks_it() {
        let result = refused(Code::BackendUnavailable, None).schema_tool_result();
        let expected = concat!(
            r#"{"content":[{"type":"text","text":"#,
            r#""backend \"github\" unavailable: connection refused"}],"isError":true,"#,
            r#""_meta":{"tidegate/unavailable":{"code":"backend_unavailable","#,
            r#""backend":"github","retry_after_ms":null}}}"#
        );
        assert_eq!(result.to_string(), expected);
    }

    #[test]
    fn other_requests_get_an_error_with_the_same_sentence_and_object() {
        let error = refused(Code::ResultUnknown, None).rpc_error();
        let expected = concat!(
            r#"{"code":-32603,"message":"#,
            r#""backend \"github\" unavailable: connection refused; the result is unknown","#,
            r#""data":{"code":"result_unknown","backend":"github","retry_after_ms":null}}"#
        );
        assert_eq!(error.to_string(), expected);
    }
}
