//! Two dialects between which requests and answers are converted.
//!
//! The client speaks one, the target the other. This is the one place that knows which
//! conversions exist; what it does not know is refused, never sent.

use bytes::Bytes;
use tidegate_core::wire_format::{WireFormat, WireFormats};

use super::api_error::ApiError;
use super::context::ReplyContext;
use super::fault::{ReplyFault, RequestFault};
use super::notes::Notes;
use super::reply::Reply;
use super::stream::{ReadStream, WriteStream};
use super::stream_converter::StreamConverter;
use super::target::TargetProfile;
use super::{bounds, chat, gemini, ids, instructions, messages, names, responses};
use crate::dialect::Dialect;
use crate::gemini::{GeminiMethod, path_of};

/// A client's dialect and a target's, both known to the converters and not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DialectPair {
    client: Dialect,
    target: Dialect,
    /// Whether the client wants a stream, where its body does not say so.
    is_stream: bool,
}

/// A request in the target's dialect.
#[derive(Clone, Debug)]
pub struct ConvertedRequest {
    /// The body to send.
    pub body: Bytes,
    /// What was lost or changed.
    pub notes: Notes,
    /// What the answer's conversion will need.
    pub context: ReplyContext,
    /// Whether it asks for a stream.
    pub is_stream: bool,
}

/// The dialect of a format.
#[must_use]
pub const fn dialect_of(format: WireFormat) -> Dialect {
    match format {
        WireFormat::Chat => Dialect::OpenAiChat,
        WireFormat::Responses => Dialect::OpenAiResponses,
        WireFormat::Messages => Dialect::AnthropicMessages,
        WireFormat::Gemini => Dialect::Gemini,
        WireFormat::OpenAiEmbeddings => Dialect::Json,
        WireFormat::MessagesCount => Dialect::AnthropicJson,
        WireFormat::GeminiEmbeddings | WireFormat::GeminiCount => Dialect::GeminiJson,
    }
}

/// The formats that requests of a dialect can be converted to.
#[must_use]
pub fn formats_from(client: Dialect) -> WireFormats {
    let is_known = |format: &WireFormat| DialectPair::new(client, dialect_of(*format)).is_some();
    WireFormat::ALL.into_iter().filter(is_known).collect()
}

impl DialectPair {
    /// The pair, if requests of `client` can be converted for `target`.
    #[must_use]
    pub const fn new(client: Dialect, target: Dialect) -> Option<Self> {
        let is_known = is_convertible(client) && is_convertible(target);
        if is_known && client as u8 != target as u8 {
            Some(Self { client, target, is_stream: false })
        } else {
            None
        }
    }

    /// The same pair for a request that wants a stream, or not. Gemini's bodies do not say it, its
    /// paths do; the bodies of other dialects decide for themselves.
    #[must_use]
    pub const fn streaming(self, is_stream: bool) -> Self {
        Self { is_stream, ..self }
    }

    /// The client's dialect.
    #[must_use]
    pub const fn client(self) -> Dialect {
        self.client
    }

    /// The target's dialect.
    #[must_use]
    pub const fn target(self) -> Dialect {
        self.target
    }

    /// How a response header names the pair: `openai-chat>anthropic`.
    #[must_use]
    pub fn label(self) -> String {
        format!("{}>{}", word(self.client), word(self.target))
    }

    /// Converts a request.
    ///
    /// # Errors
    /// The request is wrong, or the target's dialect cannot say it.
    pub fn request(
        self,
        body: &[u8],
        target: &TargetProfile<'_>,
        now_unix_s: u64,
    ) -> Result<ConvertedRequest, RequestFault> {
        let mut notes = Notes::default();
        let mut request = match self.client {
            Dialect::AnthropicMessages => messages::request_in::read_request(body, &mut notes)?,
            Dialect::OpenAiResponses => responses::request_in::read_request(body, &mut notes)?,
            Dialect::Gemini => gemini::request_in::read_request(body, self.is_stream, &mut notes)?,
            _ => chat::request_in::read_request(body, &mut notes)?,
        };
        bounds::check_carried(&request.other)?;
        if request.is_empty() {
            let field = match self.client {
                Dialect::OpenAiResponses => "input",
                Dialect::Gemini => "contents",
                _ => "messages",
            };
            return Err(RequestFault::invalid(field, "says nothing"));
        }
        let mut context = ReplyContext::of(&request, now_unix_s);
        instructions::fit(&mut request, &mut notes);
        context.renamed_tools = names::fit(&mut request, self.target, &mut notes);
        ids::fit(&mut request, self.target);
        let body = match self.target {
            Dialect::AnthropicMessages => {
                messages::request_out::write_request(&request, target, &mut notes)?
            }
            Dialect::OpenAiResponses => {
                responses::request_out::write_request(&request, target, &mut notes)?
            }
            Dialect::Gemini => gemini::request_out::write_request(&request, target, &mut notes)?,
            _ => chat::request_out::write_request(&request, target, &mut notes)?,
        };
        let is_stream = request.is_stream;
        Ok(ConvertedRequest { body: body.into(), notes, context, is_stream })
    }

    /// Where the target takes such requests: a path as the gateway's own API has it, and a query.
    #[must_use]
    pub fn target_path(self, model: &str, is_stream: bool) -> (String, Option<&'static str>) {
        let path = match self.target {
            Dialect::AnthropicMessages => "/v1/messages",
            Dialect::OpenAiResponses => "/v1/responses",
            Dialect::Gemini if is_stream => {
                let path = path_of(model, GeminiMethod::StreamGenerateContent);
                return (path, Some("alt=sse"));
            }
            Dialect::Gemini => return (path_of(model, GeminiMethod::GenerateContent), None),
            _ => "/v1/chat/completions",
        };
        (path.to_owned(), None)
    }

    /// Converts a whole answer.
    ///
    /// # Errors
    /// It is no answer of the target's dialect.
    pub fn reply(self, body: &[u8], context: &ReplyContext) -> Result<Bytes, ReplyFault> {
        let mut reply: Reply = match self.target {
            Dialect::AnthropicMessages => messages::reply_in::read_reply(body)?,
            Dialect::OpenAiResponses => responses::reply_in::read_reply(body)?,
            Dialect::Gemini => gemini::reply_in::read_reply(body)?,
            _ => chat::reply_in::read_reply(body)?,
        };
        bounds::check_reply(&reply.id, &reply.model, &reply.parts)?;
        context.restore(&mut reply.parts);
        Ok(match self.client {
            Dialect::AnthropicMessages => messages::reply_out::write_reply(&reply)?,
            Dialect::OpenAiResponses => responses::reply_out::write_reply(&reply, context),
            Dialect::Gemini => gemini::reply_out::write_reply(&reply),
            _ => chat::reply_out::write_reply(&reply, context),
        }
        .into())
    }

    /// Converts the body of an error answer.
    #[must_use]
    pub fn error(self, status: u16, body: &[u8]) -> Bytes {
        ApiError::of_body(status, body).to_body(self.client).into()
    }

    /// A converter for the stream of an answer; an event may be `max_event` bytes long.
    #[must_use]
    pub fn stream(self, context: &ReplyContext, max_event: usize) -> StreamConverter {
        let reader: Box<dyn ReadStream + Send> = match self.target {
            Dialect::AnthropicMessages => {
                Box::<messages::stream_in::MessagesStreamReader>::default()
            }
            Dialect::OpenAiResponses => {
                Box::<responses::stream_in::ResponsesStreamReader>::default()
            }
            Dialect::Gemini => Box::<gemini::stream_in::GeminiStreamReader>::default(),
            _ => Box::<chat::stream_in::ChatStreamReader>::default(),
        };
        let writer: Box<dyn WriteStream + Send> = match self.client {
            Dialect::AnthropicMessages => {
                Box::<messages::stream_out::MessagesStreamWriter>::default()
            }
            Dialect::OpenAiResponses => {
                Box::new(responses::stream_out::ResponsesStreamWriter::new(context.clone()))
            }
            Dialect::Gemini => Box::<gemini::stream_out::GeminiStreamWriter>::default(),
            _ => Box::new(chat::stream_out::ChatStreamWriter::new(context.clone())),
        };
        StreamConverter::new(reader, writer, context.clone(), max_event)
    }
}

/// Whether a dialect can be read into the form and written from it.
const fn is_convertible(dialect: Dialect) -> bool {
    matches!(
        dialect,
        Dialect::OpenAiChat
            | Dialect::AnthropicMessages
            | Dialect::OpenAiResponses
            | Dialect::Gemini
    )
}

/// The short name of a dialect.
const fn word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiChat => "openai-chat",
        Dialect::OpenAiCompletions => "openai-completions",
        Dialect::OpenAiResponses => "openai-responses",
        Dialect::AnthropicMessages | Dialect::AnthropicJson => "anthropic",
        Dialect::Gemini | Dialect::GeminiJson => "gemini",
        Dialect::Json => "json",
    }
}
