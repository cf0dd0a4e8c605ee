//! The cells: what each case expects, and whether it holds.
//!
//! A cell is checked from both sides. The provider's reader says what it was asked, and that is
//! what the client asked, apart from what [`asked_there`] names. The client's reader says what it
//! sees of the provider's own sample, and that is what [`seen_here`] says.

use tidegate_wire::body::{BodyKind, read};
use tidegate_wire::convert::context::ReplyContext;

use crate::asked::{Asked, Choice};
use crate::drive::{Exchange, StreamEnding};
use crate::seen::{Seen, SeenCall, SeenUsage};
use crate::spoken::{Spoken, parse};

/// A row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) title: &'static str,
    /// The sample of the request.
    request: &'static str,
    /// The sample of the answer.
    answer: &'static str,
    kind: CaseKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseKind {
    Answer,
    /// All four choices are asked for, one after the other.
    Choice,
    Error,
    Broken,
    Cut,
}

const fn answer(title: &'static str, request: &'static str, answer: &'static str) -> Case {
    Case { title, request, answer, kind: CaseKind::Answer }
}

const fn fails(title: &'static str, kind: CaseKind) -> Case {
    Case { title, request: "text", answer: "text", kind }
}

pub(crate) const CASES: [Case; 16] = [
    answer("text", "text", "text"),
    answer("system", "system", "text"),
    answer("multi-turn", "multi-turn", "text"),
    answer("image", "image", "text"),
    answer("tool call", "tool-call", "tool-call"),
    answer("parallel tools", "parallel-tools", "parallel-tools"),
    answer("tool result", "tool-result", "text"),
    Case {
        title: "tool choice",
        request: "tool-choice",
        answer: "tool-call",
        kind: CaseKind::Choice,
    },
    answer("thinking", "thinking", "thinking"),
    answer("JSON schema", "json-schema", "json-schema"),
    answer("stop", "stop", "stop"),
    answer("length cut", "length", "length"),
    answer("refusal", "text", "refusal"),
    fails("upstream error", CaseKind::Error),
    fails("error mid-stream", CaseKind::Broken),
    fails("cut stream", CaseKind::Cut),
];

/// What a cell of the page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Everything arrives; the notes say what was lost or rewritten.
    Works(Vec<String>),
    /// The client's dialect has no way to ask for it.
    Impossible(&'static str),
    /// The answer is not used: the next target is asked.
    NextTarget,
    /// The client gets an error of its dialect.
    ErrorShown,
    /// The client gets an error event of its dialect, and no terminator.
    ErrorEvent,
}

const TEXT: &str = "High water in Kiel is at 06:12, about 0.3 m. Naïve guess: ≈ 🌊";
const THOUGHT: &str = "Low water was at noon, so high water is about six hours earlier.";
const REFUSAL: &str = "I'm sorry, but I can't help with that.";

/// Checks a cell and says what it is.
pub(crate) fn check(case: Case, exchange: Exchange, is_stream: bool) -> Mark {
    match case.kind {
        CaseKind::Answer if case.title == "stop" && exchange.client == Spoken::Responses => {
            Mark::Impossible("the Responses API has no stop sequences")
        }
        CaseKind::Answer => {
            let sample = exchange.client.request(case.request, is_stream);
            let (notes, context) = check_request(exchange, &sample, is_stream);
            check_answer(case.answer, exchange, &context, is_stream);
            Mark::Works(notes)
        }
        CaseKind::Choice => {
            let mut all = Vec::new();
            let mut context = ReplyContext::default();
            for choice in choices() {
                let mut sample = exchange.client.request(case.request, is_stream);
                choose(exchange.client, &choice, &mut sample);
                assert_eq!(exchange.client.asked(&sample).choice, Some(choice));
                let (notes, found) = check_request(exchange, &sample, is_stream);
                context = found;
                all.extend(notes);
            }
            check_answer(case.answer, exchange, &context, is_stream);
            Mark::Works(all)
        }
        CaseKind::Error => {
            let body = exchange.error(429, &exchange.upstream.sample("error.429.json"));
            let (_, message) = native_error(exchange.upstream, "error.429.json");
            let word = match exchange.client {
                Spoken::Gemini => "RESOURCE_EXHAUSTED",
                // Between OpenAI and itself nothing is translated.
                client if client == exchange.upstream && client != Spoken::Messages => "requests",
                _ => "rate_limit_error",
            };
            assert_eq!(exchange.client.error(&body), Some((word.to_owned(), message)));
            Mark::ErrorShown
        }
        CaseKind::Broken if is_stream => check_broken(exchange),
        CaseKind::Broken => {
            let body = exchange.upstream.sample("broken.reply.json");
            assert_eq!(read(exchange.upstream.dialect(), &body).kind, BodyKind::Error);
            Mark::NextTarget
        }
        CaseKind::Cut if is_stream => check_cut(exchange),
        CaseKind::Cut => {
            let body = exchange.upstream.sample("text.reply.json");
            let half = &body[..body.len() / 2];
            assert!(matches!(read(exchange.upstream.dialect(), half).kind, BodyKind::Nothing(_)));
            if exchange.pair(false).is_some() {
                assert!(exchange.reply(half, &ReplyContext::default()).is_err());
            }
            Mark::NextTarget
        }
    }
}

/// The provider is asked what the client asks.
fn check_request(
    exchange: Exchange,
    sample: &serde_json::Value,
    is_stream: bool,
) -> (Vec<String>, ReplyContext) {
    let sent = exchange.request(sample.to_string().as_bytes(), is_stream).expect("it converts");
    let received = parse(&sent.body);
    let expected = asked_there(exchange, exchange.client.asked(sample));
    assert_eq!(exchange.upstream.asked(&received), expected, "{exchange:?}");
    let asks_by_body = exchange.upstream != Spoken::Gemini && is_stream;
    assert_eq!(received["stream"] == true, asks_by_body, "{exchange:?}");
    (sent.notes, sent.context)
}

/// What of a request does not reach the provider, each with a note.
fn asked_there(exchange: Exchange, mut asked: Asked) -> Asked {
    if exchange.client == exchange.upstream {
        return asked;
    }
    if exchange.upstream == Spoken::Responses {
        asked.stop.clear();
    }
    // More than one call at a time is what every provider does unless told otherwise.
    let is_silent = matches!(exchange.upstream, Spoken::Messages | Spoken::Gemini);
    if is_silent && asked.parallel == Some(true) {
        asked.parallel = None;
    }
    // Where the client must say `auto` to say anything, it is said.
    if asked.choice.is_none() && asked.parallel == Some(false) {
        asked.choice = Some(Choice::Auto);
    }
    asked
}

fn choices() -> [Choice; 4] {
    [Choice::Auto, Choice::Never, Choice::Any, Choice::Named("get_tide".to_owned())]
}

/// Writes a choice into a request.
fn choose(spoken: Spoken, choice: &Choice, body: &mut serde_json::Value) {
    use serde_json::json;
    let (key, value) = match (spoken, choice) {
        (_, Choice::Named(_)) => return,
        (Spoken::Messages, Choice::Auto) => ("tool_choice", json!({"type": "auto"})),
        (Spoken::Messages, Choice::Never) => ("tool_choice", json!({"type": "none"})),
        (Spoken::Messages, Choice::Any) => ("tool_choice", json!({"type": "any"})),
        (Spoken::Gemini, choice) => {
            let mode = match choice {
                Choice::Never => "NONE",
                Choice::Any => "ANY",
                _ => "AUTO",
            };
            ("toolConfig", json!({"functionCallingConfig": {"mode": mode}}))
        }
        (_, Choice::Auto) => ("tool_choice", json!("auto")),
        (_, Choice::Never) => ("tool_choice", json!("none")),
        (_, Choice::Any) => ("tool_choice", json!("required")),
    };
    body[key] = value;
}

/// The client sees what the provider says.
fn check_answer(answer: &str, exchange: Exchange, context: &ReplyContext, is_stream: bool) {
    let mut seen = if is_stream {
        let stream = exchange.upstream.sample(&format!("{answer}.stream.sse"));
        let (released, ending) = exchange.stream(&stream, context, usize::MAX);
        assert_eq!(ending, StreamEnding::Whole, "{exchange:?}");
        if exchange.client == exchange.upstream {
            assert_eq!(released, stream, "the same dialect passes byte by byte");
        }
        exchange.client.streamed(&released)
    } else {
        let body = exchange.upstream.sample(&format!("{answer}.reply.json"));
        exchange.client.seen(&exchange.reply(&body, context).expect("an answer"))
    }
    .unwrap_or_else(|problem| panic!("{answer} {exchange:?} stream {is_stream}: {problem}"));
    let mut expected = seen_here(answer, exchange);
    check_ids(&mut seen, &mut expected);
    assert_eq!(seen, expected, "{answer} {exchange:?} stream {is_stream}");
}

/// Ids are the provider's own; where it gives none each call has one of its own.
fn check_ids(seen: &mut Seen, expected: &mut Seen) {
    let mut known: Vec<&str> = Vec::new();
    for (call, expected) in seen.calls.iter().zip(&mut expected.calls) {
        assert!(!known.contains(&call.id.as_str()), "two calls have the id `{}`", call.id);
        known.push(&call.id);
        if expected.id.is_empty() {
            expected.id.clone_from(&call.id);
        }
    }
}

/// What a client sees of a provider's sample.
fn seen_here(answer: &str, exchange: Exchange) -> Seen {
    let Exchange { client, upstream } = exchange;
    let mut seen = Seen { text: TEXT.to_owned(), ..Seen::default() };
    let mut usage = SeenUsage { input: 20, cached: 8, output: 10, reasoning: 0 };
    let is_native = client == upstream;
    // In the order of the table: Chat, Responses, Messages, Gemini.
    let words = |words: [&str; 4]| {
        let at = Spoken::ALL.iter().position(|one| *one == client).expect("one of the four");
        words[at].to_owned()
    };
    seen.stop = words(["stop", "completed", "end_turn", "STOP"]);
    match answer {
        "tool-call" | "parallel-tools" => {
            seen.text.clear();
            seen.stop = words(["tool_calls", "completed", "tool_use", "STOP"]);
            seen.calls = calls(upstream);
            if answer == "tool-call" {
                seen.calls.truncate(1);
                if upstream == Spoken::Gemini {
                    seen.calls[0].id.clear();
                }
            }
        }
        "thinking" => {
            THOUGHT.clone_into(&mut seen.thinking);
            usage.reasoning = 4;
        }
        "json-schema" => "{\"place\":\"Kiel\",\"metres\":3}".clone_into(&mut seen.text),
        "stop" => {
            "one two ".clone_into(&mut seen.text);
            // Only Anthropic says that it was a stop sequence, and only its clients can be told.
            if is_native && client == Spoken::Messages {
                "stop_sequence".clone_into(&mut seen.stop);
            }
        }
        "length" => {
            "one two three".clone_into(&mut seen.text);
            seen.stop =
                words(["length", "incomplete: max_output_tokens", "max_tokens", "MAX_TOKENS"]);
        }
        "refusal" => {
            seen.text.clear();
            let has_words = matches!(upstream, Spoken::Chat | Spoken::Responses);
            if has_words {
                seen.stop = words(["stop", "completed", "refusal", "SAFETY"]);
                let place = match client {
                    Spoken::Messages => &mut seen.text,
                    _ => &mut seen.refusal,
                };
                REFUSAL.clone_into(place);
            } else {
                let filter = "incomplete: content_filter";
                seen.stop = words(["content_filter", filter, "refusal", "SAFETY"]);
            }
            if upstream == Spoken::Gemini {
                usage.output = 0;
                if is_native {
                    "blocked: PROHIBITED_CONTENT".clone_into(&mut seen.stop);
                }
            }
        }
        _ => {}
    }
    seen.usage = Some(usage);
    seen
}

fn calls(upstream: Spoken) -> Vec<SeenCall> {
    let (tide, wind) = match upstream {
        Spoken::Chat | Spoken::Responses => ("call_12xyz", "call_67abc"),
        Spoken::Messages => ("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "toolu_02Wind"),
        Spoken::Gemini => ("gp737npz", "gp737nq0"),
    };
    let call = |id: &str, name: &str, arguments: &str| SeenCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: parse(arguments.as_bytes()),
    };
    let kiel = r#"{"place":"Kiel","options":{"unit":"metre","days":[1,2]}}"#;
    let aalborg = r#"{"place":"Aalborg","range":{"from":{"hour":6},"to":{"hour":18}}}"#;
    vec![call(tide, "get_tide", kiel), call(wind, "get_wind", aalborg)]
}

fn native_error(upstream: Spoken, sample: &str) -> (String, String) {
    upstream.error(&upstream.sample(sample)).expect("an error")
}

/// The provider's error event becomes the client's, after what came before it.
fn check_broken(exchange: Exchange) -> Mark {
    let stream = exchange.upstream.sample("broken.stream.sse");
    let (released, ending) = exchange.stream(&stream, &ReplyContext::default(), usize::MAX);
    assert_eq!(ending, StreamEnding::Failed, "{exchange:?}");
    let seen = exchange.client.streamed(&released).expect("a legal stream that fails");
    assert_eq!(seen.text, "High water in Kiel is at 06:12, about 0.3 m", "{exchange:?}");
    let is_busy = matches!(exchange.upstream, Spoken::Messages | Spoken::Gemini);
    let word = match (exchange.client, is_busy) {
        (Spoken::Messages, true) => "overloaded_error",
        (Spoken::Messages, false) => "api_error",
        (Spoken::Gemini, true) => "UNAVAILABLE",
        (Spoken::Gemini, false) => "INTERNAL",
        (Spoken::Chat | Spoken::Responses, _) => "server_error",
    };
    let (_, message) = native_error(exchange.upstream, "broken.reply.json");
    assert_eq!(seen.error, Some((word.to_owned(), message)), "{exchange:?}");
    Mark::ErrorEvent
}

/// A stream that breaks off has no end for the client either.
fn check_cut(exchange: Exchange) -> Mark {
    let stream = exchange.upstream.sample("text.stream.sse");
    let context = ReplyContext::default();
    let (whole, _) = exchange.stream(&stream, &context, usize::MAX);
    // The last event of Chat is a formality: without it the stream is whole all the same.
    let last = match exchange.upstream {
        Spoken::Chat => find(&stream, b"\"finish_reason\":\"stop\""),
        Spoken::Responses => find(&stream, b"event: response.completed"),
        Spoken::Messages => find(&stream, b"event: message_stop"),
        Spoken::Gemini => find(&stream, b"\"finishReason\""),
    };
    // Every boundary between events, and a few dozen places inside of them.
    let is_boundary = |end: &usize| stream[..*end].ends_with(b"\n\n") || end.is_multiple_of(61);
    for end in (0..last).filter(is_boundary) {
        let (released, ending) = exchange.stream(&stream[..end], &context, usize::MAX);
        assert_eq!(ending, StreamEnding::Cut, "{exchange:?} after {end} bytes");
        assert!(whole.starts_with(&released), "{exchange:?} after {end} bytes");
    }
    Mark::ErrorEvent
}

fn find(text: &[u8], mark: &[u8]) -> usize {
    text.windows(mark.len()).position(|window| window == mark).expect("the mark is there")
}
