//! Damaged samples: nothing panics, what is sent is JSON, and whatever ends, ends legally.
//!
//! The seeds are the samples of all four dialects (`tests/dialects`), given to readers of every
//! dialect. `PROPTEST_CASES` asks for a longer run; `cargo xtask nightly` does.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;
use tidegate_wire::body::read;
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::head::RequestHead;

use crate::drive::{Exchange, StreamEnding};
use crate::spoken::{Spoken, parse};

/// This many cases, unless a longer run was asked for.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if is_asked { asked.cases } else { usual }, ..asked }
}

const REQUESTS: [&str; 12] = [
    "text",
    "system",
    "multi-turn",
    "image",
    "tool-call",
    "parallel-tools",
    "tool-result",
    "tool-choice",
    "thinking",
    "json-schema",
    "stop",
    "length",
];

const ANSWERS: [&str; 9] = [
    "text",
    "tool-call",
    "parallel-tools",
    "thinking",
    "json-schema",
    "stop",
    "length",
    "refusal",
    "broken",
];

/// A change to a text: bytes that are changed, dropped, doubled or cut off.
#[derive(Clone, Debug)]
struct Damage {
    at: Index,
    byte: u8,
    how: u8,
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let byte = prop_oneof![any::<u8>(), select(b"{}[]\",:\\ud8e0 -1.\n\r\x1f\xc3".to_vec())];
    let damage = (any::<Index>(), byte, 0..5_u8);
    prop::collection::vec(damage.prop_map(|(at, byte, how)| Damage { at, byte, how }), 0..5)
}

fn damaged(mut text: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for Damage { at, byte, how } in damages {
        if text.is_empty() {
            break;
        }
        let at = at.index(text.len());
        match how {
            0 => text[at] = *byte,
            1 => drop(text.remove(at)),
            2 => text.insert(at, *byte),
            3 => {
                let end = text.len().min(at + 40);
                let again = text[at..end].to_vec();
                text.splice(at..at, again);
            }
            _ => drop(text.drain(at..text.len().min(at + 40))),
        }
    }
    text
}

/// The same for JSON: a value somewhere becomes another one, so that the rest stays readable.
fn disturbed(value: &mut Value, damages: &[Damage]) {
    for Damage { at, byte, how } in damages {
        let count = places(value);
        let mut left = at.index(count.max(1));
        disturb(value, &mut left, *byte, *how);
    }
}

fn places(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(places).sum(),
        Value::Array(values) => values.iter().map(places).sum::<usize>(),
        _ => 0,
    }
}

fn disturb(value: &mut Value, left: &mut usize, byte: u8, how: u8) -> bool {
    if *left == 0 {
        *value = match how {
            0 => Value::Null,
            1 => Value::from(i64::from(byte) - 100),
            2 => Value::from(char::from(byte).to_string()),
            3 => Value::Array(vec![value.clone(), value.clone()]),
            _ => Value::Object([("type".to_owned(), value.clone())].into_iter().collect()),
        };
        return true;
    }
    *left -= 1;
    match value {
        Value::Object(map) => map.values_mut().any(|inner| disturb(inner, left, byte, how)),
        Value::Array(values) => values.iter_mut().any(|inner| disturb(inner, left, byte, how)),
        _ => false,
    }
}

fn exchanges() -> impl Iterator<Item = Exchange> {
    let with = |client| Spoken::ALL.into_iter().map(move |upstream| Exchange { client, upstream });
    Spoken::ALL.into_iter().flat_map(with)
}

fn check_request(body: &[u8]) {
    let _ = RequestHead::read(body);
    for exchange in exchanges().filter(|it| it.pair(false).is_some()) {
        for is_stream in [false, true] {
            let pair = exchange.pair(is_stream).expect("two dialects");
            let (model, host) = exchange.upstream.model();
            let target = tidegate_wire::convert::target::TargetProfile { model, host };
            if let Ok(sent) = pair.request(body, &target, 1) {
                assert!(parse(&sent.body).is_object());
            }
        }
    }
}

fn check_reply(body: &[u8]) {
    for exchange in exchanges() {
        let _ = read(exchange.upstream.dialect(), body);
        if let Ok(reply) = exchange.reply(body, &ReplyContext::default())
            && exchange.pair(false).is_some()
        {
            assert!(parse(&reply).is_object());
        }
        if exchange.pair(false).is_some() {
            for status in [200, 400, 429, 503] {
                assert!(parse(&exchange.error(status, body)).is_object());
            }
        }
    }
}

/// However damaged a stream is: if it ends for the client, then as the client's dialect wants.
fn check_stream(stream: &[u8], step: usize) {
    for exchange in exchanges() {
        let context = ReplyContext { includes_usage: true, ..ReplyContext::default() };
        let (released, ending) = exchange.stream(stream, &context, step);
        if exchange.pair(true).is_none() || ending == StreamEnding::Cut {
            continue;
        }
        let text = String::from_utf8(released.clone()).expect("converted streams are UTF-8");
        // Arguments that are no JSON are the provider's words and stay as they are.
        let is_legal = std::panic::catch_unwind(|| exchange.client.streamed(&released));
        if let Ok(Err(problem)) = is_legal {
            panic!("{exchange:?}: {problem}\n{text}");
        }
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn damaged_requests_never_panic(
        spoken in select(Spoken::ALL.to_vec()), name in select(REQUESTS.to_vec()),
        damages in damages(),
    ) {
        let sample = spoken.sample(&format!("{name}.request.json"));
        check_request(&damaged(sample.clone(), &damages));
        let mut value = parse(&sample);
        disturbed(&mut value, &damages);
        check_request(value.to_string().as_bytes());
    }

    #[test]
    fn damaged_answers_never_panic(
        spoken in select(Spoken::ALL.to_vec()), name in select(ANSWERS.to_vec()),
        damages in damages(),
    ) {
        let sample = spoken.sample(&format!("{name}.reply.json"));
        check_reply(&damaged(sample.clone(), &damages));
        let mut value = parse(&sample);
        disturbed(&mut value, &damages);
        check_reply(value.to_string().as_bytes());
    }

    #[test]
    fn damaged_streams_end_legally_or_not_at_all(
        spoken in select(Spoken::ALL.to_vec()), name in select(ANSWERS.to_vec()),
        damages in damages(), step in 1..900_usize,
    ) {
        let sample = spoken.sample(&format!("{name}.stream.sse"));
        check_stream(&damaged(sample.clone(), &damages), step);
        let mut out = Vec::new();
        for (at, frame) in crate::seen::frames(&sample).iter().enumerate() {
            if let Some(name) = &frame.name {
                out.extend_from_slice(format!("event: {name}\n").as_bytes());
            }
            let data = match frame.json() {
                Ok(mut value) if damages.iter().any(|damage| damage.at.index(8) == at % 8) => {
                    disturbed(&mut value, &damages);
                    value.to_string()
                }
                _ => frame.data.clone(),
            };
            out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
        }
        check_stream(&out, step);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_request(&bytes);
        check_reply(&bytes);
        for exchange in exchanges() {
            let _ = exchange.stream(&bytes, &ReplyContext::default(), 7);
        }
    }
}
