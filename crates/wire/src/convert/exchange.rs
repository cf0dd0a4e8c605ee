//! One request and its answer between dialects, whatever the request asks for: generated text,
//! embeddings or a count of tokens.
//!
//! It is what the data plane and `explain` use. Which format a target gets is the core's decision;
//! which formats a path can be converted to is said here ([`formats_for`]).

use bytes::Bytes;
use tidegate_core::wire_format::{WireFormat, WireFormats};

use super::api_error::ApiError;
use super::context::ReplyContext;
use super::count;
use super::embeddings::{EmbeddingRequest, gemini, openai};
use super::fault::{ReplyFault, RequestFault};
use super::notes::Notes;
use super::pair::{DialectPair, dialect_of, formats_from};
use super::stream_converter::StreamConverter;
use super::target::TargetProfile;
use crate::dialect::Dialect;
use crate::gemini::{GeminiCall, GeminiMethod, path_of};

/// A request as its target gets it.
#[derive(Clone, Debug)]
pub struct ConvertedCall {
    /// From which dialect to which, as in `openai-chat>anthropic`.
    pub pair: String,
    /// The body to send.
    pub body: Bytes,
    /// What was lost or changed.
    pub notes: Notes,
    /// Where the target takes it: a path as the gateway's own API has it.
    pub path: String,
    /// And with which query.
    pub query: Option<&'static str>,
    /// The way back of the answer.
    pub answer: AnswerConverter,
}

/// Converts the answer to a converted request.
#[derive(Clone, Debug)]
pub struct AnswerConverter {
    client: Dialect,
    target: Dialect,
    kind: AnswerKind,
}

#[derive(Clone, Debug)]
enum AnswerKind {
    Generation(DialectPair, Box<ReplyContext>),
    /// From Gemini to OpenAI, under this model's name.
    EmbeddingsToOpenAi(EmbeddingRequest, String),
    EmbeddingsToGemini(EmbeddingRequest),
    CountToAnthropic,
    CountToGemini,
}

/// The formats that requests for a path can be converted to.
#[must_use]
pub fn formats_for(path: &str) -> WireFormats {
    let none = WireFormats::default();
    let method = GeminiCall::of_path(path).map(|call| call.method);
    match (path, method) {
        ("/v1/embeddings", _) => none.with(WireFormat::GeminiEmbeddings),
        ("/v1/messages/count_tokens", _) => none.with(WireFormat::GeminiCount),
        (_, Some(GeminiMethod::EmbedContent | GeminiMethod::BatchEmbedContents)) => {
            none.with(WireFormat::OpenAiEmbeddings)
        }
        (_, Some(GeminiMethod::CountTokens)) => none.with(WireFormat::MessagesCount),
        _ => formats_from(Dialect::of_path(path)),
    }
}

/// Converts a request for a path to a format.
///
/// # Errors
/// The request is wrong, or the format cannot say it.
pub fn convert(
    path: &str,
    body: &[u8],
    format: WireFormat,
    target: &TargetProfile<'_>,
    now_unix_s: u64,
) -> Result<ConvertedCall, RequestFault> {
    let client = Dialect::of_path(path);
    let method = GeminiCall::of_path(path).map(|call| call.method);
    let mut notes = Notes::default();
    let model = target.model;
    let (pair, body, path, kind) = match format {
        WireFormat::GeminiEmbeddings => {
            let request = openai::read_request(body)?;
            let body = gemini::write_request(&request, model, &mut notes);
            let kind = AnswerKind::EmbeddingsToOpenAi(request, model.to_owned());
            let path = path_of(model, GeminiMethod::BatchEmbedContents);
            ("openai-embeddings>gemini-embeddings", body.into(), path, kind)
        }
        WireFormat::OpenAiEmbeddings => {
            let is_single = method == Some(GeminiMethod::EmbedContent);
            let request = gemini::read_request(body, is_single)?;
            let body = openai::write_request(&request, model, &mut notes);
            let kind = AnswerKind::EmbeddingsToGemini(request);
            let path = "/v1/embeddings".to_owned();
            ("gemini-embeddings>openai-embeddings", body.into(), path, kind)
        }
        WireFormat::GeminiCount => {
            let body = count::for_gemini(body, target, &mut notes)?;
            let path = path_of(model, GeminiMethod::CountTokens);
            ("anthropic-count>gemini-count", body, path, AnswerKind::CountToAnthropic)
        }
        WireFormat::MessagesCount => {
            let body = count::for_anthropic(body, target, &mut notes)?;
            let path = "/v1/messages/count_tokens".to_owned();
            ("gemini-count>anthropic-count", body, path, AnswerKind::CountToGemini)
        }
        WireFormat::Chat | WireFormat::Responses | WireFormat::Messages | WireFormat::Gemini => {
            let is_stream = method == Some(GeminiMethod::StreamGenerateContent);
            return generation(client, is_stream, body, format, target, now_unix_s);
        }
    };
    let answer = AnswerConverter { client, target: dialect_of(format), kind };
    Ok(ConvertedCall { pair: pair.to_owned(), body, notes, path, query: None, answer })
}

fn generation(
    client: Dialect,
    is_stream: bool,
    body: &[u8],
    format: WireFormat,
    target: &TargetProfile<'_>,
    now_unix_s: u64,
) -> Result<ConvertedCall, RequestFault> {
    let pair = DialectPair::new(client, dialect_of(format))
        .ok_or_else(|| RequestFault::impossible("this request"))?
        .streaming(is_stream);
    let converted = pair.request(body, target, now_unix_s)?;
    let (path, query) = pair.target_path(target.model, converted.is_stream);
    let kind = AnswerKind::Generation(pair, Box::new(converted.context));
    Ok(ConvertedCall {
        pair: pair.label(),
        body: converted.body,
        notes: converted.notes,
        path,
        query,
        answer: AnswerConverter { client, target: pair.target(), kind },
    })
}

impl AnswerConverter {
    /// The dialect that the target answers in.
    #[must_use]
    pub const fn target(&self) -> Dialect {
        self.target
    }

    /// Converts a whole answer.
    ///
    /// # Errors
    /// It is no answer of the target's dialect.
    pub fn reply(&self, body: &[u8]) -> Result<Bytes, ReplyFault> {
        match &self.kind {
            AnswerKind::Generation(pair, context) => pair.reply(body, context),
            AnswerKind::EmbeddingsToOpenAi(request, model) => {
                let reply = gemini::read_reply(body)?;
                Ok(openai::write_reply(&reply, request, model).into())
            }
            AnswerKind::EmbeddingsToGemini(request) => {
                Ok(gemini::write_reply(&openai::read_reply(body)?, request).into())
            }
            AnswerKind::CountToAnthropic => count::from_gemini(body),
            AnswerKind::CountToGemini => count::from_anthropic(body),
        }
    }

    /// Converts the body of an error answer.
    #[must_use]
    pub fn error(&self, status: u16, body: &[u8]) -> Bytes {
        ApiError::of_body(status, body).to_body(self.client).into()
    }

    /// A converter for the stream of an answer, where such answers come as streams; an event may be
    /// `max_event` bytes long.
    #[must_use]
    pub fn stream(&self, max_event: usize) -> Option<StreamConverter> {
        match &self.kind {
            AnswerKind::Generation(pair, context) => Some(pair.stream(context, max_event)),
            AnswerKind::EmbeddingsToOpenAi(..)
            | AnswerKind::EmbeddingsToGemini(_)
            | AnswerKind::CountToAnthropic
            | AnswerKind::CountToGemini => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TARGET: TargetProfile<'_> = TargetProfile { model: "m", host: "" };

    fn call(path: &str, body: &Value, format: WireFormat) -> (ConvertedCall, Value) {
        let call = convert(path, body.to_string().as_bytes(), format, &TARGET, 0);
        let call = call.expect("it can be converted");
        let sent = serde_json::from_slice(&call.body).expect("JSON");
        (call, sent)
    }

    fn reply(call: &ConvertedCall, body: &Value) -> Value {
        let reply = call.answer.reply(body.to_string().as_bytes()).expect("an answer");
        serde_json::from_slice(&reply).expect("JSON")
    }

    #[test]
    fn gemini_counts_for_a_client_of_anthropics() {
        let body = json!({"model": "r", "system": "be brief", "messages": [
            {"role": "user", "content": "hi"}], "tools": [
            {"name": "f", "input_schema": {"type": "object", "properties": {}}}]});
        let (call, sent) = call("/v1/messages/count_tokens", &body, WireFormat::GeminiCount);
        let request = &sent["generateContentRequest"];
        assert_eq!(call.path, "/v1beta/models/m:countTokens");
        assert_eq!(request["model"], "models/m");
        assert_eq!(request["contents"][0]["parts"][0]["text"], "hi");
        assert_eq!(request["systemInstruction"]["parts"][0]["text"], "be brief");
        assert_eq!(request["tools"][0]["functionDeclarations"][0]["name"], "f");
        assert_eq!(request.get("generationConfig"), None, "nothing is generated");
        assert_eq!(reply(&call, &json!({"totalTokens": 12})), json!({"input_tokens": 12}));
        assert_eq!(reply(&call, &json!({})), json!({"input_tokens": 0}));
        assert!(call.answer.reply(br#"{"totalTokens":"x"}"#).is_err());
        assert!(call.answer.stream(9).is_none());
    }

    #[test]
    fn anthropic_counts_for_a_client_of_geminis() {
        let contents = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
        let plain = json!({ "contents": contents });
        let nested = json!({"generateContentRequest": {"model": "models/r", "contents": contents,
            "generationConfig": {"temperature": 1}, "systemInstruction": {"parts": [
            {"text": "be brief"}]}}});
        for (body, has_system) in [(plain, false), (nested, true)] {
            let path = "/v1beta/models/r:countTokens";
            let (call, sent) = call(path, &body, WireFormat::MessagesCount);
            assert_eq!(call.path, "/v1/messages/count_tokens");
            let keys: Vec<&String> = sent.as_object().expect("an object").keys().collect();
            assert!(keys.iter().all(|key| ["model", "messages", "system"].contains(&key.as_str())));
            assert_eq!(sent.get("system").is_some(), has_system, "{sent}");
            assert_eq!(sent["model"], "m");
            assert_eq!(reply(&call, &json!({"input_tokens": 7})), json!({"totalTokens": 7}));
        }
    }

    #[test]
    fn every_path_knows_the_formats_of_its_own_kind_only() {
        let has = |path: &str, format| formats_for(path).has(format);
        assert!(has("/v1/embeddings", WireFormat::GeminiEmbeddings));
        assert!(!has("/v1/embeddings", WireFormat::Chat));
        assert!(has("/v1beta/models/m:embedContent", WireFormat::OpenAiEmbeddings));
        assert!(has("/v1beta/models/m:countTokens", WireFormat::MessagesCount));
        assert!(has("/v1/chat/completions", WireFormat::Messages));
        assert!(!has("/v1/chat/completions", WireFormat::GeminiCount));
        assert!(formats_for("/v1/moderations").is_empty());
    }

    #[test]
    fn errors_come_in_the_clients_dialect() {
        let body = json!({"model": "r", "messages": [{"role": "user", "content": "hi"}]});
        let (call, _) = call("/v1/messages/count_tokens", &body, WireFormat::GeminiCount);
        let error = br#"{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}"#;
        let shown: Value = serde_json::from_slice(&call.answer.error(400, error)).expect("JSON");
        assert_eq!((&shown["type"], &shown["error"]["message"]), (&json!("error"), &json!("no")));
    }
}
