//! Every pair of the four dialects: a request in the middle of a tool loop, an answer and a stream
//! say the same on both sides.

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::fault::{ReplyFault, RequestFault};
use tidegate_wire::convert::notes::Notes;
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::part::{Content, Part, ToolCall};
use tidegate_wire::convert::reply::{Reply, StopReason, TokenUsage};
use tidegate_wire::convert::request::{GenerationRequest, ToolChoice};
use tidegate_wire::convert::stream::{ReadStream, StreamEvent, WriteStream};
use tidegate_wire::convert::{chat, gemini, messages, responses};
use tidegate_wire::dialect::Dialect;

use crate::{events_of, stream_of, target};

const ALL: [Dialect; 4] =
    [Dialect::OpenAiChat, Dialect::AnthropicMessages, Dialect::OpenAiResponses, Dialect::Gemini];

fn pairs() -> impl Iterator<Item = DialectPair> {
    let pair = |client| ALL.into_iter().filter_map(move |it| DialectPair::new(client, it));
    ALL.into_iter().flat_map(pair)
}

#[test]
fn every_pair_of_two_is_known() {
    assert_eq!(pairs().count(), 12);
}

/// The same conversation in each dialect.
fn request_in(dialect: Dialect) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    match dialect {
        Dialect::OpenAiChat => json!({"model": "x", "max_tokens": 64, "temperature": 0.5,
            "messages": [{"role": "system", "content": "be brief"},
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "content": "I look", "tool_calls": [
                    {"id": "c1", "type": "function",
                        "function": {"name": "see", "arguments": "{\"city\":\"Kiel\"}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "rain"}],
            "tools": [{"type": "function", "function": {"name": "see", "description": "looks",
                "parameters": schema}}],
            "tool_choice": "required"}),
        Dialect::AnthropicMessages => json!({"model": "x", "max_tokens": 64, "temperature": 0.5,
            "system": "be brief",
            "messages": [{"role": "user", "content": "weather?"},
                {"role": "assistant", "content": [{"type": "text", "text": "I look"},
                    {"type": "tool_use", "id": "c1", "name": "see", "input": {"city": "Kiel"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "rain"}]}],
            "tools": [{"name": "see", "description": "looks", "input_schema": schema}],
            "tool_choice": {"type": "any"}}),
        Dialect::OpenAiResponses => json!({"model": "x", "max_output_tokens": 64,
            "temperature": 0.5, "instructions": "be brief",
            "input": [{"role": "user", "content": "weather?"},
                {"role": "assistant", "content": "I look"},
                {"type": "function_call", "call_id": "c1", "name": "see",
                    "arguments": "{\"city\":\"Kiel\"}"},
                {"type": "function_call_output", "call_id": "c1", "output": "rain"}],
            "tools": [{"type": "function", "name": "see", "description": "looks",
                "parameters": schema}],
            "tool_choice": "required"}),
        _ => json!({"systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [{"role": "user", "parts": [{"text": "weather?"}]},
                {"role": "model", "parts": [{"text": "I look"},
                    {"functionCall": {"id": "c1", "name": "see", "args": {"city": "Kiel"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "see",
                    "response": {"result": "rain"}}}]}],
            "tools": [{"functionDeclarations": [{"name": "see", "description": "looks",
                "parametersJsonSchema": schema}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            "generationConfig": {"maxOutputTokens": 64, "temperature": 0.5}}),
    }
}

fn read(dialect: Dialect, body: &[u8]) -> Result<GenerationRequest, RequestFault> {
    let mut notes = Notes::default();
    match dialect {
        Dialect::OpenAiChat => chat::request_in::read_request(body, &mut notes),
        Dialect::AnthropicMessages => messages::request_in::read_request(body, &mut notes),
        Dialect::OpenAiResponses => responses::request_in::read_request(body, &mut notes),
        _ => gemini::request_in::read_request(body, false, &mut notes),
    }
}

/// What every dialect can say of a request, without how it says it.
fn essence(request: &GenerationRequest) -> Vec<String> {
    let part = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::ToolCall(call) => {
            format!("{} {} {:?}", call.id, call.name, call.arguments_object())
        }
        Content::ToolResult(result) => format!("{} {:?}", result.call_id, result.content),
        other => format!("{other:?}"),
    };
    let mut lines: Vec<String> = request.system.iter().map(part).collect();
    for message in &request.messages {
        lines.push(format!("{:?}", message.role));
        lines.extend(message.parts.iter().map(part));
    }
    for tool in &request.tools {
        lines.push(format!("{} {:?} {:?}", tool.name, tool.description, tool.input));
    }
    lines.push(format!("{:?} {:?}", request.tool_choice, request.sampling));
    lines
}

#[test]
fn a_tool_loop_says_the_same_in_every_pair() {
    for pair in pairs() {
        let native = read(pair.client(), request_in(pair.client()).to_string().as_bytes());
        let native = native.expect("a native request");
        assert_eq!(native.tool_choice, Some(ToolChoice::Required));
        let body = request_in(pair.client()).to_string();
        let sent = pair.request(body.as_bytes(), &target("some-model"), 1).expect("a request");
        let received = read(pair.target(), &sent.body).expect("a request of the target's");
        assert_eq!(essence(&received), essence(&native), "{}", pair.label());
        assert_eq!(sent.notes.as_slice(), [], "{}", pair.label());
    }
}

#[test]
fn a_stream_is_asked_for_where_the_client_asks_for_one() {
    for pair in pairs() {
        let mut body = request_in(pair.client());
        if pair.client() != Dialect::Gemini {
            body["stream"] = json!(true);
        }
        let pair = pair.streaming(true);
        let sent = pair.request(body.to_string().as_bytes(), &target("some-model"), 1);
        let sent: Value = serde_json::from_slice(&sent.expect("a request").body).expect("JSON");
        // Gemini's path says it.
        let expected = if pair.target() == Dialect::Gemini { Value::Null } else { json!(true) };
        assert_eq!(sent["stream"], expected, "{}", pair.label());
    }
}

fn reply() -> Reply {
    let call = |id: &str, city: &str| {
        Part::new(Content::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "see".to_owned(),
            arguments: json!({ "city": city }).to_string(),
            seal: None,
            is_free_text: false,
        }))
    };
    Reply {
        id: "r1".to_owned(),
        model: "m1".to_owned(),
        created_unix_s: None,
        parts: vec![Part::text("I look"), call("c1", "Kiel"), call("c2", "Bonn")],
        stop: StopReason::ToolUse,
        usage: Some(TokenUsage { input: 9, cached: 4, cache_written: 0, output: 7, reasoning: 0 }),
        logprobs: Vec::new(),
    }
}

fn written(dialect: Dialect, reply: &Reply) -> Vec<u8> {
    let context = ReplyContext { created_unix_s: 1, ..ReplyContext::default() };
    match dialect {
        Dialect::OpenAiChat => chat::reply_out::write_reply(reply, &context),
        Dialect::AnthropicMessages => {
            messages::reply_out::write_reply(reply).expect("arguments in JSON")
        }
        Dialect::OpenAiResponses => responses::reply_out::write_reply(reply, &context),
        _ => gemini::reply_out::write_reply(reply),
    }
}

fn read_reply(dialect: Dialect, body: &[u8]) -> Result<Reply, ReplyFault> {
    let reply = match dialect {
        Dialect::OpenAiChat => chat::reply_in::read_reply(body),
        Dialect::AnthropicMessages => messages::reply_in::read_reply(body),
        Dialect::OpenAiResponses => responses::reply_in::read_reply(body),
        _ => gemini::reply_in::read_reply(body),
    };
    reply.map(|reply| Reply { created_unix_s: None, ..reply })
}

#[test]
fn an_answer_says_the_same_in_every_pair() {
    for pair in pairs() {
        let native = written(pair.target(), &reply());
        let context = ReplyContext { created_unix_s: 1, ..ReplyContext::default() };
        let shown = pair.reply(&native, &context).expect("an answer");
        assert_eq!(read_reply(pair.client(), &shown), Ok(reply()), "{}", pair.label());
    }
}

fn reader(dialect: Dialect) -> Box<dyn ReadStream> {
    match dialect {
        Dialect::OpenAiChat => Box::<chat::stream_in::ChatStreamReader>::default(),
        Dialect::AnthropicMessages => Box::<messages::stream_in::MessagesStreamReader>::default(),
        Dialect::OpenAiResponses => Box::<responses::stream_in::ResponsesStreamReader>::default(),
        _ => Box::<gemini::stream_in::GeminiStreamReader>::default(),
    }
}

fn writer(dialect: Dialect, context: &ReplyContext) -> Box<dyn WriteStream> {
    match dialect {
        Dialect::OpenAiChat => Box::new(chat::stream_out::ChatStreamWriter::new(context.clone())),
        Dialect::AnthropicMessages => Box::<messages::stream_out::MessagesStreamWriter>::default(),
        Dialect::OpenAiResponses => {
            Box::new(responses::stream_out::ResponsesStreamWriter::new(context.clone()))
        }
        _ => Box::<gemini::stream_out::GeminiStreamWriter>::default(),
    }
}

fn stream() -> Vec<StreamEvent> {
    let start = StreamEvent::Start { id: "r1".into(), model: "m1".into(), created_unix_s: Some(1) };
    let call = |id: &str| StreamEvent::ToolCallStart {
        id: id.into(),
        name: "see".into(),
        seal: None,
        is_free_text: false,
    };
    let delta = |text: &str| StreamEvent::ToolCallDelta(text.into());
    vec![
        start,
        StreamEvent::Text("I ".into()),
        StreamEvent::Text("look".into()),
        call("c1"),
        delta("{\"city\":"),
        delta("\"Kiel\"}"),
        StreamEvent::ToolCallEnd,
        call("c2"),
        delta("{}"),
        StreamEvent::ToolCallEnd,
        StreamEvent::Usage(TokenUsage { input: 9, output: 7, ..TokenUsage::default() }),
        StreamEvent::Stop(StopReason::ToolUse),
        StreamEvent::End,
    ]
}

/// Text, calls with their arguments, stop reason and usage of a stream.
fn told(events: &[StreamEvent]) -> (String, Vec<(String, String)>, Option<StopReason>, TokenUsage) {
    let (mut text, mut calls, mut stop) = (String::new(), Vec::new(), None);
    let mut usage = TokenUsage::default();
    for event in events {
        match event {
            StreamEvent::Text(more) => text.push_str(more),
            StreamEvent::ToolCallStart { id, .. } => calls.push((id.clone(), String::new())),
            StreamEvent::ToolCallDelta(more) => {
                calls.last_mut().expect("a call").1.push_str(more);
            }
            StreamEvent::Stop(reason) => stop = Some(reason.clone()),
            StreamEvent::Usage(later) => usage.update(*later),
            _ => {}
        }
    }
    (text, calls, stop, usage)
}

#[test]
fn a_stream_says_the_same_in_every_pair_whole_byte_by_byte_and_cut() {
    let context = ReplyContext { includes_usage: true, ..ReplyContext::default() };
    for pair in pairs() {
        let native = stream_of(&mut *writer(pair.target(), &context), stream());
        let mut whole = Vec::new();
        let mut converter = pair.stream(&context, 1 << 20);
        converter.feed(Bytes::from(native.clone()), &mut whole).expect("a stream");
        converter.finish(&mut whole).expect("a stream");
        let events = events_of(&mut *reader(pair.client()), &[&whole]).expect("a stream");
        assert_eq!(told(&events), told(&stream()), "{}", pair.label());
        assert_eq!(events.last(), Some(&StreamEvent::End), "{}", pair.label());
        let mut bytewise = Vec::new();
        let mut converter = pair.stream(&context, 1 << 20);
        for byte in &native {
            converter.feed(Bytes::copy_from_slice(&[*byte]), &mut bytewise).expect("a stream");
        }
        converter.finish(&mut bytewise).expect("a stream");
        assert!(bytewise == whole, "{}", pair.label());
        let mut cut = Vec::new();
        let mut converter = pair.stream(&context, 1 << 20);
        let half = Bytes::copy_from_slice(&native[..native.len() / 2]);
        converter.feed(half, &mut cut).expect("half a stream");
        let _ = converter.finish(&mut cut);
        let events = events_of(&mut *reader(pair.client()), &[&cut]).unwrap_or_default();
        assert!(!events.contains(&StreamEvent::End), "{}: a cut is no end", pair.label());
    }
}
