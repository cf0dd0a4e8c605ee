//! What a conversion costs: a chat of 4 KiB, its answer, and each event of a stream, between every
//! two dialects; and what the same dialect pays for the question whether it needs one.
//!
//! Times come from divan. Where other programs disturb them, instructions can be counted: with
//! `once KIND PAIR` the binary makes a hundred conversions inside of [`counted`], which callgrind
//! is told to count (`docs/performance.md` has the command).

use bytes::Bytes;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::history::without_foreign_thinking;
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::dialect::Dialect;

const SPOKEN: [(&str, Dialect, &str); 4] = [
    ("chat", Dialect::OpenAiChat, "gpt-4.1"),
    ("responses", Dialect::OpenAiResponses, "gpt-4.1"),
    ("messages", Dialect::AnthropicMessages, "claude-sonnet-4-5"),
    ("gemini", Dialect::Gemini, "gemini-2.5-flash"),
];

/// How many events of content a stream has.
const EVENTS: usize = 60;

/// How often a conversion is made when its instructions are counted.
const TIMES: usize = 100;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "once", kind, pair] => once(kind, pair),
        _ => divan::main(),
    }
}

fn once(kind: &str, pair: &str) {
    let work = Work::new(pair);
    match kind {
        "request" => counted(|| work.request()),
        "reply" => counted(|| work.reply()),
        "stream" => counted(|| work.stream()),
        _ => counted(|| work.same_dialect()),
    }
}

/// What callgrind counts.
#[inline(never)]
fn counted<T>(work: impl Fn() -> T) {
    for _ in 0..TIMES {
        black_box(work());
    }
}

/// A client, a target, and what goes between them.
struct Work {
    pair: Option<DialectPair>,
    client: Dialect,
    model: &'static str,
    request: Bytes,
    reply: Bytes,
    stream: Vec<Bytes>,
    context: ReplyContext,
}

impl Work {
    /// `chat>messages`.
    fn new(label: &str) -> Self {
        let (client, target) = label.split_once('>').unwrap_or((label, label));
        let find = |name: &str| {
            *SPOKEN.iter().find(|spoken| spoken.0 == name).expect("one of the four dialects")
        };
        let ((_, client, _), (_, target, model)) = (find(client), find(target));
        let request = in_dialect(client, chat());
        Self {
            pair: DialectPair::new(client, target),
            client,
            model,
            request,
            reply: reply_of(target),
            stream: stream_of(target),
            context: ReplyContext { includes_usage: true, ..ReplyContext::default() },
        }
    }

    fn request(&self) -> usize {
        let target = TargetProfile { model: self.model, host: "" };
        let pair = self.pair.expect("two dialects");
        pair.request(black_box(&self.request), &target, 1).expect("a request").body.len()
    }

    fn reply(&self) -> usize {
        let pair = self.pair.expect("two dialects");
        pair.reply(black_box(&self.reply), &self.context).expect("an answer").len()
    }

    fn stream(&self) -> usize {
        let mut converter = self.pair.expect("two dialects").stream(&self.context, 1 << 20);
        let mut out = Vec::new();
        let mut length = 0;
        for event in &self.stream {
            converter.feed(black_box(event.clone()), &mut out).expect("a good stream");
            length += out.len();
            out.clear();
        }
        converter.finish(&mut out).expect("a good stream");
        length + out.len()
    }

    /// What a request pays that stays as it is.
    fn same_dialect(&self) -> bool {
        without_foreign_thinking(self.client, self.model, black_box(&self.request)).is_none()
    }
}

/// A conversation of 4 KiB with a system prompt, two tools and a call in its history.
fn chat() -> Value {
    let text = |length: usize| {
        "The tide comes in again, and \"all\" boats leave the harbour.\n".repeat(length / 62 + 1)
    };
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "description": text(60),
            "parameters": {"type": "object", "required": ["place"], "properties": {
                "place": {"type": "string", "description": "A harbour"},
                "unit": {"type": "string", "enum": ["metre", "foot"]}}}}})
    };
    json!({"model": "fast", "max_tokens": 1024, "temperature": 0.7, "messages": [
        {"role": "system", "content": text(600)},
        {"role": "user", "content": text(700)},
        {"role": "assistant", "content": text(700)},
        {"role": "user", "content": text(300)},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": "get_tide", "arguments": "{\"place\":\"Kiel\"}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": text(200)},
        {"role": "user", "content": text(200)}],
        "tools": [tool("get_tide"), tool("get_wind")]})
}

fn in_dialect(dialect: Dialect, chat: Value) -> Bytes {
    let body = Bytes::from(chat.to_string());
    let Some(pair) = DialectPair::new(Dialect::OpenAiChat, dialect) else { return body };
    let model = SPOKEN.iter().find(|spoken| spoken.1 == dialect).map_or("", |spoken| spoken.2);
    pair.request(&body, &TargetProfile { model, host: "" }, 1).expect("a request").body
}

/// An answer of 4 KiB.
fn reply_of(dialect: Dialect) -> Bytes {
    let text = "The tide comes in again, and \"all\" boats leave the harbour.\n".repeat(66);
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
            "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 800, "total_tokens": 1700}});
    let body = Bytes::from(body.to_string());
    match DialectPair::new(dialect, Dialect::OpenAiChat) {
        None => body,
        Some(pair) => pair.reply(&body, &ReplyContext::default()).expect("an answer"),
    }
}

/// A stream in the frames of a provider: as many events of one word, and what is around them.
fn stream_of(dialect: Dialect) -> Vec<Bytes> {
    let chunk = |delta: Value, reason: Value| {
        let chunk = json!({"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk",
            "created": 1_700_000_000, "model": "m", "choices": [
                {"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]});
        Bytes::from(format!("data: {chunk}\n\n"))
    };
    let mut frames = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    frames.extend((0..EVENTS).map(|_| chunk(json!({"content": " word"}), Value::Null)));
    frames.push(chunk(json!({}), json!("stop")));
    frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
    let Some(pair) = DialectPair::new(dialect, Dialect::OpenAiChat) else { return frames };
    let mut converter = pair.stream(&ReplyContext::default(), 1 << 20);
    let mut out = Vec::new();
    let mut converted = Vec::new();
    for frame in frames {
        converter.feed(frame, &mut out).expect("a good stream");
        converted.push(Bytes::from(std::mem::take(&mut out)));
    }
    converter.finish(&mut out).expect("a good stream");
    converted.push(out.into());
    converted
}

const PAIRS: [&str; 12] = [
    "chat>responses",
    "chat>messages",
    "chat>gemini",
    "responses>chat",
    "responses>messages",
    "responses>gemini",
    "messages>chat",
    "messages>responses",
    "messages>gemini",
    "gemini>chat",
    "gemini>responses",
    "gemini>messages",
];

#[divan::bench(args = PAIRS)]
fn request(bencher: Bencher<'_, '_>, pair: &str) {
    let work = Work::new(pair);
    bencher.bench_local(|| work.request());
}

#[divan::bench(args = PAIRS)]
fn reply(bencher: Bencher<'_, '_>, pair: &str) {
    let work = Work::new(pair);
    bencher.bench_local(|| work.reply());
}

#[divan::bench(args = PAIRS)]
fn stream(bencher: Bencher<'_, '_>, pair: &str) {
    let work = Work::new(pair);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| work.stream());
}

#[divan::bench(args = ["chat", "responses", "messages", "gemini"])]
fn same_dialect(bencher: Bencher<'_, '_>, dialect: &str) {
    let work = Work::new(dialect);
    bencher.bench_local(|| work.same_dialect());
}
