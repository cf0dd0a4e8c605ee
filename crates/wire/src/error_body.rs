//! What the gateway itself says when it cannot give an answer, in the client's dialect.
//!
//! Clients parse errors by the shape their SDK knows, and raise a typed error by the status. So
//! each error has one row of [`OwnErrorKind::row`] and three shapes: OpenAI's, Anthropic's and
//! Google's.
//! After the status is out the same error is told as an event of the stream.
//!
//! Rules:
//! - An error names targets, outcome words, statuses and times, never a host, address or key: its
//!   inputs are typed and have no place for them.
//! - The event that tells of a break is followed by nothing: no success terminator.
//! - `attempts` is there, also when empty, on `no_healthy_backend` and on no other error.

use bytes::Bytes;
use serde::Serialize;
use tidegate_core::outcome::OutcomeKind;
use tidegate_core::time::Millis;

use crate::dialect::Dialect;
use crate::error_fields::ErrorFields;

/// What went wrong, as the gateway sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnErrorKind {
    /// No attempt got an HTTP answer, or there was nothing to try.
    NoHealthyBackend,
    /// The name means no route and no target.
    ModelNotFound,
    /// The body cannot be read, or says something twice.
    InvalidRequest,
    /// No target of the route can do what the request needs.
    MissingAbility,
    /// The thread that the request continues is with no target that can answer.
    ThreadNotFound,
    /// The caller's key is missing or wrong.
    InvalidApiKey,
    /// The caller's key does not open this route, or the browser's origin is not allowed.
    PermissionDenied,
    /// There is no such endpoint.
    NotFound,
    /// The endpoint is known, and not built.
    NotImplemented,
    /// The endpoint exists, but not for this method.
    MethodNotAllowed,
    /// The body is too long.
    BodyTooLarge,
    /// The body is no JSON, or is encoded in a way that is not understood.
    UnsupportedMediaType,
    /// The caller sent its body too slowly.
    Timeout,
    /// The request's deadline, or the end of its client's patience, came before an answer.
    OutOfTime,
    /// An upstream answered with what cannot be relayed, such as a redirect.
    BadGateway,
    /// The answer broke after a part of it was released.
    StreamBroken,
    /// The request has passed this gateway before.
    LoopDetected,
    /// A fault of the gateway.
    Internal,
}

/// One row of the table: how a kind is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnErrorRow {
    /// The HTTP status.
    pub status: u16,
    /// `error.code` for OpenAI's clients.
    pub code: &'static str,
    /// `error.type` for OpenAI's clients.
    pub openai_type: &'static str,
    /// `error.type` for Anthropic's clients.
    pub anthropic_type: &'static str,
}

impl OwnErrorKind {
    /// The table.
    #[must_use]
    pub const fn row(self) -> OwnErrorRow {
        const INVALID: &str = "invalid_request_error";
        let (status, code, openai_type, anthropic_type) = match self {
            Self::NoHealthyBackend => {
                let word = "no_healthy_backend";
                (503, word, word, word)
            }
            Self::ModelNotFound => (404, "model_not_found", INVALID, "not_found_error"),
            Self::InvalidRequest => (400, "invalid_request", INVALID, INVALID),
            Self::MissingAbility => (400, "missing_ability", INVALID, INVALID),
            Self::ThreadNotFound => (404, "thread_not_found", INVALID, "not_found_error"),
            Self::InvalidApiKey => (401, "invalid_api_key", INVALID, "authentication_error"),
            Self::PermissionDenied => (403, "permission_denied", INVALID, "permission_error"),
            Self::NotFound => (404, "not_found", INVALID, "not_found_error"),
            Self::NotImplemented => (501, "not_implemented", INVALID, INVALID),
            Self::MethodNotAllowed => (405, "method_not_allowed", INVALID, INVALID),
            Self::BodyTooLarge => (413, "request_too_large", INVALID, "request_too_large"),
            Self::UnsupportedMediaType => (415, "unsupported_media_type", INVALID, INVALID),
            Self::Timeout => (408, "timeout", "timeout_error", "timeout_error"),
            Self::OutOfTime => (504, "timeout", "timeout", "timeout"),
            Self::BadGateway => (502, "bad_gateway", "server_error", "api_error"),
            Self::StreamBroken => (502, "stream_broken", "server_error", "api_error"),
            Self::LoopDetected => (508, "loop_detected", "server_error", "api_error"),
            Self::Internal => (500, "internal_error", "server_error", "api_error"),
        };
        OwnErrorRow { status, code, openai_type, anthropic_type }
    }
}

/// One attempt, as an error tells of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AttemptLine<'a> {
    /// `provider/model`.
    pub target: &'a str,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// How long it took.
    pub ms: Millis,
    /// A fixed phrase, such as `connection refused`.
    pub detail: &'static str,
}

/// An error of the gateway's own.
#[derive(Clone, Copy, Debug)]
pub struct OwnError<'a> {
    /// What went wrong.
    pub kind: OwnErrorKind,
    /// The sentence for the reader.
    pub message: &'a str,
    /// The field of the request that is at fault, if one is.
    pub param: Option<&'a str>,
    /// What was tried; shown on `no_healthy_backend` and `timeout` only.
    pub attempts: &'a [AttemptLine<'a>],
    /// The request's id.
    pub request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct OpenAiBody<'a> {
    error: OpenAiError<'a>,
}

#[derive(Serialize)]
struct OpenAiError<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<&'a [AttemptLine<'a>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

/// The Responses API tells errors of a stream on the top level; its SDKs raise one that also has
/// the object under `error`.
#[derive(Serialize)]
struct ResponsesEvent<'a> {
    r#type: &'static str,
    sequence_number: u64,
    code: &'static str,
    message: &'a str,
    param: Option<&'a str>,
    error: OpenAiError<'a>,
}

#[derive(Serialize)]
struct AnthropicBody<'a> {
    r#type: &'static str,
    error: AnthropicError<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct AnthropicError<'a> {
    r#type: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<AnthropicDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<&'a [AttemptLine<'a>]>,
}

#[derive(Serialize)]
struct AnthropicDetails {
    error_code: &'static str,
}

#[derive(Serialize)]
struct GoogleBody<'a> {
    error: GoogleError<'a>,
}

#[derive(Serialize)]
struct GoogleError<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<&'a [AttemptLine<'a>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

/// Google's word for a status, which its SDKs show and compare.
const fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        429 => "RESOURCE_EXHAUSTED",
        500 | 508 => "INTERNAL",
        501 => "UNIMPLEMENTED",
        502 | 503 => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    }
}

impl<'a> OwnError<'a> {
    /// An error with a message and nothing else.
    #[must_use]
    pub const fn new(kind: OwnErrorKind, message: &'a str) -> Self {
        Self { kind, message, param: None, attempts: &[], request_id: None }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.kind.row().status
    }

    /// The body of an answer in `dialect`.
    #[must_use]
    pub fn body(&self, dialect: Dialect) -> Bytes {
        match dialect {
            Dialect::AnthropicMessages | Dialect::AnthropicJson => json(&self.anthropic()),
            Dialect::Gemini | Dialect::GeminiJson => json(&self.google()),
            Dialect::OpenAiChat
            | Dialect::OpenAiCompletions
            | Dialect::OpenAiResponses
            | Dialect::Json => json(&self.openai()),
        }
        .into()
    }

    /// The event that ends a stream of `dialect`, as one frame. Those of the Responses API are
    /// numbered: its clients refuse one without.
    #[must_use]
    pub fn event(&self, dialect: Dialect, sequence_number: u64) -> Bytes {
        let (name, data) = match dialect {
            Dialect::AnthropicMessages | Dialect::AnthropicJson => {
                ("event: error\n", json(&self.anthropic()))
            }
            Dialect::OpenAiResponses => ("event: error\n", json(&self.responses(sequence_number))),
            Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::Json => {
                ("", json(&self.openai()))
            }
            Dialect::Gemini | Dialect::GeminiJson => ("", json(&self.google())),
        };
        [name.as_bytes(), b"data: ", &data, b"\n\n"].concat().into()
    }

    fn attempts(&self) -> Option<&'a [AttemptLine<'a>]> {
        let is_shown =
            matches!(self.kind, OwnErrorKind::NoHealthyBackend | OwnErrorKind::OutOfTime);
        is_shown.then_some(self.attempts)
    }

    fn openai(&self) -> OpenAiBody<'a> {
        let row = self.kind.row();
        OpenAiBody {
            error: OpenAiError {
                message: self.message,
                r#type: row.openai_type,
                param: self.param,
                code: row.code,
                attempts: self.attempts(),
                request_id: self.request_id,
            },
        }
    }

    fn responses(&self, sequence_number: u64) -> ResponsesEvent<'a> {
        let OpenAiBody { error } = self.openai();
        let (code, message, param) = (error.code, error.message, error.param);
        ResponsesEvent { r#type: "error", sequence_number, code, message, param, error }
    }

    fn google(&self) -> GoogleBody<'a> {
        let code = self.status();
        GoogleBody {
            error: GoogleError {
                code,
                message: self.message,
                status: google_status(code),
                attempts: self.attempts(),
                request_id: self.request_id,
            },
        }
    }

    fn anthropic(&self) -> AnthropicBody<'a> {
        let error = AnthropicError {
            r#type: self.kind.row().anthropic_type,
            message: self.message,
            // By this code Anthropic's SDKs know that they must send the whole conversation.
            details: (self.kind == OwnErrorKind::ThreadNotFound)
                .then_some(AnthropicDetails { error_code: self.kind.row().code }),
            attempts: self.attempts(),
        };
        AnthropicBody { r#type: "error", error, request_id: self.request_id }
    }
}

/// An error event of an upstream's as the body of an answer: as it came where it has the shape of
/// one, else its words in that shape.
#[must_use]
pub fn body_of_event(dialect: Dialect, data: &[u8]) -> Bytes {
    let value: Option<serde_json::Value> = serde_json::from_slice(data).ok();
    if value.is_some_and(|it| it["error"].is_object()) {
        return Bytes::copy_from_slice(data);
    }
    let fields = ErrorFields::read(data);
    let raw = String::from_utf8_lossy(data);
    let message = fields.message.as_deref().unwrap_or(&raw);
    OwnError::new(OwnErrorKind::BadGateway, message).body(dialect)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs of text and numbers always serialise")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &Bytes, expected: &str) {
        assert_eq!(String::from_utf8_lossy(bytes), expected);
    }

    const ATTEMPTS: [AttemptLine<'_>; 2] = [
        AttemptLine {
            target: "groq/llama",
            outcome: OutcomeKind::Transport,
            status: None,
            ms: Millis(12),
            detail: "connection refused",
        },
        AttemptLine {
            target: "b/m",
            outcome: OutcomeKind::Timeout,
            status: Some(200),
            ms: Millis(5),
            detail: "no content in time",
        },
    ];

    #[test]
    fn no_healthy_backend_lists_the_attempts_in_both_shapes() {
        let kind = OwnErrorKind::NoHealthyBackend;
        let error = OwnError { attempts: &ATTEMPTS, ..OwnError::new(kind, "say \"no\"") };
        let attempts = concat!(
            r#""attempts":[{"target":"groq/llama","outcome":"transport","status":null,"ms":12,"#,
            r#""detail":"connection refused"},{"target":"b/m","outcome":"timeout","status":200,"#,
            r#""ms":5,"detail":"no content in time"}]"#
        );
        let word = r#""no_healthy_backend""#;
        let said = r#""message":"say \"no\"""#;
        let openai = format!(
            r#"{{"error":{{{said},"type":{word},"param":null,"code":{word},{attempts}}}}}"#
        );
        check(&error.body(Dialect::OpenAiChat), &openai);
        let anthropic =
            format!(r#"{{"type":"error","error":{{"type":{word},{said},{attempts}}}}}"#);
        check(&error.body(Dialect::AnthropicMessages), &anthropic);
        assert_eq!(error.status(), 503);
    }

    #[test]
    fn nothing_tried_is_an_empty_list_and_other_errors_have_none() {
        let none = OwnError::new(OwnErrorKind::NoHealthyBackend, "x").body(Dialect::Json);
        assert!(String::from_utf8_lossy(&none).contains(r#""attempts":[]"#));
        let kind = OwnErrorKind::ModelNotFound;
        let gone =
            OwnError { param: Some("model"), request_id: Some("r1"), ..OwnError::new(kind, "x") };
        let openai = concat!(
            r#"{"error":{"message":"x","type":"invalid_request_error","param":"model","#,
            r#""code":"model_not_found","request_id":"r1"}}"#
        );
        check(&gone.body(Dialect::OpenAiResponses), openai);
        let anthropic = concat!(
            r#"{"type":"error","error":{"type":"not_found_error","message":"x"},"#,
            r#""request_id":"r1"}"#
        );
        check(&gone.body(Dialect::AnthropicJson), anthropic);
    }

    #[test]
    fn googles_clients_get_its_code_and_its_word() {
        let error = OwnError::new(OwnErrorKind::NotImplemented, "x").body(Dialect::Gemini);
        check(&error, r#"{"error":{"code":501,"message":"x","status":"UNIMPLEMENTED"}}"#);
        let error = OwnError::new(OwnErrorKind::InvalidApiKey, "x").body(Dialect::Gemini);
        check(&error, r#"{"error":{"code":401,"message":"x","status":"UNAUTHENTICATED"}}"#);
    }

    #[test]
    fn a_break_is_told_as_one_event_that_its_own_dialect_takes_for_an_error() {
        use crate::{dialect::EventClass, frame::Extent, sse::Splitter};
        let error = OwnError::new(OwnErrorKind::StreamBroken, "line\nbreak");
        for dialect in [
            Dialect::OpenAiChat,
            Dialect::OpenAiCompletions,
            Dialect::OpenAiResponses,
            Dialect::AnthropicMessages,
            Dialect::Json,
        ] {
            let mut splitter = Splitter::new(10_000);
            splitter.feed(error.event(dialect, 7));
            let frame = splitter.next().expect("a short event").expect("one frame");
            assert_eq!(frame.extent, Extent::Whole);
            assert_eq!(dialect.class(&frame), EventClass::Error, "{dialect:?}");
            assert!(splitter.next().expect("a short event").is_none(), "{dialect:?}");
        }
        let anthropic = concat!(
            "event: error\ndata: {\"type\":\"error\",\"error\":{",
            "\"type\":\"api_error\",\"message\":\"line\\nbreak\"}}\n\n"
        );
        check(&error.event(Dialect::AnthropicMessages, 7), anthropic);
        let responses = error.event(Dialect::OpenAiResponses, 7);
        let start = b"event: error\ndata: {\"type\":\"error\",\"sequence_number\":7,";
        assert!(responses.starts_with(start), "{responses:?}");
    }

    #[test]
    fn an_error_event_becomes_the_body_of_an_answer() {
        let chat = r#"{"error":{"message":"no","code":7}}"#;
        check(&body_of_event(Dialect::OpenAiChat, chat.as_bytes()), chat);
        let message = |data: &str| {
            let body = body_of_event(Dialect::OpenAiResponses, data.as_bytes());
            let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            value["error"]["message"].as_str().map(str::to_owned)
        };
        let no = Some("no".to_owned());
        assert_eq!(message(r#"{"type":"error","code":"c","message":"no"}"#), no);
        let failed = r#"{"type":"response.failed","response":{"error":{"message":"no"}}}"#;
        assert_eq!(message(failed), no);
        assert_eq!(message("no"), no);
    }
}
