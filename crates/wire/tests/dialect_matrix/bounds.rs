//! A converter holds no more than its bound, whatever a provider sends and for however long.

use allocation_counter::measure;
use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;

use crate::drive::Exchange;
use crate::spoken::Spoken;

/// What a converter may hold where no limit has been reached: frames are 1 KiB here.
const SMALL: u64 = 256 * 1024;

/// Three times the limit of what is held back ([`tidegate_wire::convert::stream::HELD_LIMIT`]),
/// since a text that grows is copied.
const HELD: u64 = 3 * 1024 * 1024 + SMALL;

fn data(event: &Value) -> Bytes {
    let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {event}\n\n").into()
}

/// The most that was held, and whether the stream was given up, after so many frames.
fn peak(exchange: Exchange, first: &[Value], endless: &dyn Fn(u64) -> Value) -> (u64, bool) {
    let frames: Vec<Bytes> = (0..4096).map(|number| data(&endless(number))).collect();
    let begin: Vec<Bytes> = first.iter().map(data).collect();
    let pair = exchange.pair(true).expect("two dialects");
    let mut is_given_up = false;
    let info = measure(|| {
        let mut converter = pair.stream(&ReplyContext::default(), 1 << 20);
        let mut out = Vec::new();
        for frame in begin.into_iter().chain(frames) {
            out.clear();
            is_given_up = converter.feed(frame, &mut out).is_err();
            if is_given_up {
                break;
            }
        }
    });
    (info.bytes_max, is_given_up)
}

fn clients(upstream: Spoken) -> impl Iterator<Item = Exchange> {
    let others = Spoken::ALL.into_iter().filter(move |client| *client != upstream);
    others.map(move |client| Exchange { client, upstream })
}

fn chat_delta(delta: Value) -> Value {
    json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]})
}

#[test]
fn endless_text_holds_nothing_but_for_clients_of_responses() {
    let text = "x".repeat(1024);
    for exchange in clients(Spoken::Chat) {
        let (held, is_given_up) = peak(exchange, &[], &|_| chat_delta(json!({ "content": text })));
        assert!(!is_given_up);
        // Their last event repeats the answer: 4 MiB here, copied when it grows.
        let most = if exchange.client == Spoken::Responses { 12 * 1024 * 1024 } else { SMALL };
        assert!(held < most, "{exchange:?} held {held}");
    }
}

#[test]
fn calls_that_never_begin_or_never_end_are_given_up() {
    let text = "x".repeat(1024);
    for exchange in clients(Spoken::Chat) {
        let nameless =
            |_| chat_delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}));
        let (held, is_given_up) = peak(exchange, &[], &nameless);
        assert!(is_given_up && held < HELD, "{exchange:?} held {held}");
        let many = |number: u64| {
            chat_delta(json!({"tool_calls": [{"index": number, "id": format!("c{number}"),
                "function": {"name": "f", "arguments": "{"}}]}))
        };
        let (held, is_given_up) = peak(exchange, &[], &many);
        assert!(is_given_up && held < HELD, "{exchange:?} held {held}");
    }
}

#[test]
fn items_that_wait_for_an_open_call_are_given_up() {
    let first = json!({"type": "response.output_item.added", "output_index": 0,
        "item": {"type": "function_call", "call_id": "c", "name": "f"}});
    for exchange in clients(Spoken::Responses) {
        for text in ["x", &"x".repeat(1024)] {
            let waiting = |_| {
                json!({"type": "response.output_text.delta", "output_index": 1,
                    "content_index": 0, "delta": text})
            };
            let (held, is_given_up) = peak(exchange, std::slice::from_ref(&first), &waiting);
            assert!(held < HELD, "{exchange:?} held {held}");
            assert!(is_given_up || text.len() == 1, "{exchange:?}");
        }
    }
}

#[test]
fn an_endless_call_is_given_up_by_who_must_hold_it() {
    let text = "x".repeat(1024);
    let first = [
        json!({"type": "message_start", "message": {"id": "m", "model": "x"}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}),
    ];
    for exchange in clients(Spoken::Messages) {
        let delta = |_| {
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": text}})
        };
        let (held, _) = peak(exchange, &first, &delta);
        let most = match exchange.client {
            Spoken::Responses => 12 * 1024 * 1024,
            Spoken::Gemini => HELD,
            _ => SMALL,
        };
        assert!(held < most, "{exchange:?} held {held}");
    }
}

/// Calls that lie in each other are told one after the other, however deep they lie: the reader
/// must not need the stack for it, of which a thread has little.
#[test]
fn calls_that_lie_in_each_other_need_no_stack() {
    const CALLS: u64 = 1200;
    let added = |at: u64| {
        json!({"type": "response.output_item.added", "output_index": at,
            "item": {"type": "function_call", "call_id": format!("c{at}"), "name": "f"}})
    };
    let done = |at: u64| {
        json!({"type": "response.output_item.done", "output_index": at,
            "item": {"type": "function_call", "call_id": format!("c{at}"), "name": "f",
                "arguments": "{}"}})
    };
    let frames: Vec<Bytes> =
        (0..CALLS).map(added).chain((0..CALLS).rev().map(done)).map(|event| data(&event)).collect();
    for exchange in clients(Spoken::Responses) {
        let frames = frames.clone();
        let converted = std::thread::Builder::new().stack_size(128 * 1024).spawn(move || {
            let pair = exchange.pair(true).expect("two dialects");
            let mut converter = pair.stream(&ReplyContext::default(), 1 << 20);
            let mut out = Vec::new();
            for frame in frames {
                converter.feed(frame, &mut out).expect("within the limit");
            }
            String::from_utf8(out).expect("text")
        });
        let out = converted.expect("a thread").join().expect("no panic");
        for at in 0..CALLS {
            assert!(out.contains(&format!("\"c{at}\"")), "{exchange:?} lost call {at}");
        }
    }
}

#[test]
fn ids_and_names_of_a_provider_have_a_bound() {
    let long = "x".repeat(64 * 1024);
    let text = || chat_delta(json!({ "content": "x" }));
    for exchange in clients(Spoken::Chat) {
        for (key, is_long) in [("id", true), ("model", true), ("created", false)] {
            let mut first = text();
            first[key] = json!(long);
            let (_, is_given_up) = peak(exchange, &[first], &|_| text());
            assert_eq!(is_given_up, is_long, "{exchange:?} {key}");
        }
        for (id, name) in [(&*long, "f"), ("c", &long)] {
            let call = json!({"tool_calls": [{"index": 0, "id": id,
                "function": {"name": name, "arguments": "{}"}}]});
            let (_, is_given_up) = peak(exchange, &[chat_delta(call.clone())], &|_| text());
            assert!(is_given_up, "{exchange:?}");
            let whole = json!({"id": "c", "model": "m", "choices": [{"index": 0,
                "finish_reason": "tool_calls", "message": call}]});
            let pair = exchange.pair(false).expect("two dialects");
            let reply = pair.reply(whole.to_string().as_bytes(), &ReplyContext::default());
            assert!(reply.is_err(), "{exchange:?}: a whole answer is no different");
        }
    }
}
