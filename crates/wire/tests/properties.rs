//! Properties of the readers over hostile input, each against a second opinion.
//!
//! - A request head is read exactly when `serde_json` reads the body, apart from what is refused on
//!   purpose and from halves of surrogate pairs, and both agree on model and stream.
//! - A stream gives the same frames however it is cut, and loses no byte.
//! - What is released of a stream, and how it ends, does not depend on how it is cut; nothing that
//!   follows its end is released.
//! - A spliced body differs from the original in its model alone.

use bytes::Bytes;
use proptest::prelude::*;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use tidegate_wire::dialect::Dialect;
use tidegate_wire::events::{EventReader, Step};
use tidegate_wire::head::RequestHead;
use tidegate_wire::json::What;
use tidegate_wire::splice::{EncodedName, Spliced};
use tidegate_wire::sse::{PART_LIMIT, Splitter};

/// This many cases, unless a longer run was asked for.
fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if is_asked { asked.cases } else { usual }, ..asked }
}

fn json_text() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        "[a-z]{0,20}",
        Just("model".to_owned()),
        Just("stream".to_owned()),
        Just("image".to_owned()),
        r#"(\\n|\\u00e9|\\ud83d\\ude00|\\"|é|😀|.){0,12}"#,
    ];
    let quoted = string.prop_map(|text| format!("\"{text}\""));
    let number = "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?";
    let leaf = prop_oneof![
        quoted.clone(),
        number,
        prop_oneof![Just("true"), Just("false"), Just("null")].prop_map(str::to_owned),
    ];
    let value = leaf.prop_recursive(5, 40, 5, move |inner| {
        let key = prop_oneof![
            4 => quoted.clone(),
            1 => Just("\"model\"".to_owned()),
            1 => Just("\"mod\\u0065l\"".to_owned()),
            1 => Just("\"stream\"".to_owned()),
            1 => Just("\"metadata\"".to_owned()),
            1 => Just("\"messages\"".to_owned()),
            1 => Just("\"type\"".to_owned()),
        ];
        let space = "[ \n\t\r]{0,2}";
        let member = (key, space, inner.clone()).prop_map(|(k, s, v)| format!("{k}{s}:{s}{v}{s}"));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec(member, 0..6).prop_map(|all| format!("{{{}}}", all.join(", "))),
        ]
    });
    value.prop_map(|text| if text.starts_with('{') { text } else { format!("{{\"x\":{text}}}") })
}

/// A text with a few bytes changed, dropped or doubled.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let bytes =
        prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:\\ud8e0 -1.\x1f\xc3".to_vec()),];
    let damage = (any::<prop::sample::Index>(), bytes, 0..3_u8);
    (json_text(), prop::collection::vec(damage, 0..4)).prop_map(|(text, damages)| {
        let mut body = text.into_bytes();
        for (index, byte, how) in damages {
            let at = index.index(body.len().max(1)).min(body.len().saturating_sub(1));
            match how {
                0 if !body.is_empty() => body[at] = byte,
                1 if !body.is_empty() => drop(body.remove(at)),
                _ => body.insert(at, byte),
            }
        }
        body
    })
}

/// How often a body has a key at its top level.
struct Count<'a>(&'a str);

impl<'de> Visitor<'de> for Count<'_> {
    type Value = usize;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            count += usize::from(key == self.0);
        }
        Ok(count)
    }
}

fn times(body: &[u8], key: &str) -> usize {
    let mut reader = serde_json::Deserializer::from_slice(body);
    reader.deserialize_map(Count(key)).unwrap_or(0)
}

fn check_head(body: &[u8]) -> Result<(), TestCaseError> {
    let head = RequestHead::read(body);
    let value = serde_json::from_slice::<Value>(body);
    match (&head, &value) {
        (Ok(head), Ok(Value::Object(object))) => {
            let model = head.model.as_ref().map(|model| &*model.name);
            let expected = object.get("model").map(|it| it.as_str().unwrap_or_default());
            prop_assert_eq!(model, expected);
            let is_stream = object.get("stream") == Some(&Value::Bool(true));
            prop_assert_eq!(head.is_stream, is_stream);
        }
        (Err(fault), Ok(value)) => match fault.what {
            What::GivenTwice(key) => prop_assert!(times(body, key) > 1),
            What::WrongType { key: "model", .. } => {
                let is_model = value["model"].is_string() || value["model"].is_null();
                prop_assert!(!is_model || times(body, "model") > 1);
            }
            What::WrongType { key, .. } => {
                prop_assert!(
                    !(value[key].is_boolean() || value[key].is_null()) || times(body, key) > 1
                );
            }
            What::NotAnObject => prop_assert!(!value.is_object()),
            _ => prop_assert!(false, "refused with {fault}, but serde_json takes it"),
        },
        (Ok(_), other) => {
            // `serde_json` wants whole pairs; the other half may be missing or be something else.
            let escape = [&b"\\ud"[..], b"\\uD"];
            let has_half = body.windows(3).any(|part| escape.contains(&part));
            prop_assert!(has_half, "taken, but serde_json says {other:?}");
        }
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

fn stream_text() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let line = prop_oneof![
        Just(""),
        Just("data: {\"a\":1}"),
        Just("data:x"),
        Just("data"),
        Just("event: ping"),
        Just(": comment"),
        Just("id: 1"),
        Just("retry: 10"),
        Just("garbage"),
        Just("\u{feff}data: b"),
    ];
    let lines = prop::collection::vec((line, end), 0..30);
    lines
        .prop_map(|all| all.iter().flat_map(|(line, end)| [*line, *end]).collect::<String>().into())
}

type Told = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, String);

/// The frames of a stream in these chunks, and the bytes handed out.
fn split(chunks: &[&[u8]]) -> (Vec<Told>, Vec<u8>) {
    let mut splitter = Splitter::new(1 << 20);
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    let told = |frame: tidegate_wire::frame::Frame<'_>| {
        let data = frame.data().map(|data| data.into_owned());
        let name = frame.name.map(<[u8]>::to_vec);
        (frame.raw.to_vec(), name, data, format!("{:?}", frame.extent))
    };
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk));
        while let Some(frame) = splitter.next().expect("short events") {
            frames.push(told(frame));
        }
        bytes.extend(splitter.take_run().concat());
    }
    frames.extend(splitter.finish().map(told));
    bytes.extend(splitter.take_run().concat());
    (frames, bytes)
}

fn cut_at<'a>(stream: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    places.sort_unstable();
    let mut chunks = Vec::new();
    let mut start = 0;
    for place in places {
        chunks.push(&stream[start..place]);
        start = place;
    }
    chunks.push(&stream[start..]);
    chunks
}

/// A stream of chat made of sound and broken events, in any order.
fn chat_stream() -> impl Strategy<Value = Vec<u8>> {
    let event = prop_oneof![
        6 => Just("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}"),
        2 => Just("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}"),
        2 => Just("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"),
        1 => Just(": ping"),
        1 => Just(""),
        1 => Just("data: [DONE]"),
        1 => Just("data: {\"error\":{\"message\":\"no\"}}"),
        1 => Just("data: {\"choices\":[{\"delta"),
    ];
    let end = prop_oneof![Just("\n\n"), Just("\r\n\r\n"), Just("\r\r"), Just("\n\r\n")];
    (prop::collection::vec((event, end), 0..12), any::<bool>()).prop_map(|(all, is_cut)| {
        let mut stream: String = all.iter().flat_map(|(event, end)| [*event, *end]).collect();
        let cut = if is_cut { stream.len().min(3) } else { 0 };
        stream.truncate(stream.len() - cut);
        stream.into()
    })
}

/// What a client gets of a stream in these chunks, and how it ended: as the server does it, the
/// long events after the first content in parts.
fn released(chunks: &[&[u8]]) -> (Vec<u8>, String) {
    let mut reader = EventReader::new(Dialect::OpenAiChat, 1 << 20);
    let mut bytes = Vec::new();
    for chunk in chunks {
        reader.feed(Bytes::copy_from_slice(chunk));
        while let Some(step) = reader.next_event() {
            match step {
                Step::Quiet => {}
                Step::Content => reader.commit(),
                end => {
                    bytes.extend(reader.take().concat());
                    return (bytes, format!("{end:?}"));
                }
            }
        }
        bytes.extend(reader.take().concat());
    }
    let is_whole = reader.finish();
    if is_whole {
        bytes.extend(reader.take().concat());
        bytes.extend(reader.closing());
    }
    (bytes, format!("closed, {is_whole}"))
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn what_is_released_does_not_depend_on_the_chunks(
        stream in chat_stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let whole = released(&[&stream]);
        prop_assert_eq!(&released(&cut_at(&stream, &cuts)), &whole);
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&released(&single), &whole);
    }

    #[test]
    fn nothing_that_follows_an_end_or_cannot_be_read_is_released(stream in chat_stream()) {
        let (bytes, how) = released(&[&stream]);
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.split(['\n', '\r']).filter_map(|line| line.strip_prefix("data: "));
        let data: Vec<&str> = lines.collect();
        let is_end = |data: &&&str| **data == "[DONE]" || data.contains("error");
        prop_assert!(data.iter().filter(is_end).count() <= 1, "{}", text);
        prop_assert!(data.iter().position(|it| is_end(&it)).is_none_or(|at| at + 1 == data.len()));
        let is_whole = how == "Complete" || how == "closed, true";
        prop_assert_eq!(data.last() == Some(&"[DONE]"), is_whole, "{}", text);
        let is_json = |it: &&str| serde_json::from_str::<Value>(it).is_ok() || *it == "[DONE]";
        prop_assert!(data.iter().all(is_json), "{}", text);
    }

    #[test]
    fn a_head_is_read_exactly_when_the_body_is_json(body in damaged()) {
        check_head(&body)?;
    }

    #[test]
    fn a_head_of_any_bytes_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..64)) {
        check_head(&body)?;
    }

    #[test]
    fn a_spliced_body_differs_in_its_model_alone(body in json_text(), name in ".{0,12}") {
        let bytes = Bytes::from(body);
        if let Ok(head) = RequestHead::read(&bytes) {
            let whole = Spliced::new(&bytes, &head, &EncodedName::new(&name)).pieces.concat();
            // Not read by `serde_json` if it has half of a surrogate pair.
            if let Ok(mut expected) = serde_json::from_slice::<Value>(&bytes) {
                expected["model"] = Value::from(name);
                let found: Value = serde_json::from_slice(&whole).expect("a spliced body is JSON");
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn frames_do_not_depend_on_the_chunks(
        stream in stream_text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (frames, bytes) = split(&[&stream]);
        prop_assert_eq!(&bytes, &stream);
        let raws: Vec<u8> = frames.iter().flat_map(|frame| frame.0.clone()).collect();
        prop_assert_eq!(&raws, &stream);
        prop_assert_eq!(split(&cut_at(&stream, &cuts)), (frames.clone(), bytes.clone()));
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(split(&single), (frames, bytes));
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_committed_stream_with_long_events_loses_no_byte_and_holds_little(
        lens in prop::collection::vec(prop_oneof![0..100_usize, 60_000..200_000_usize], 1..6),
        end in prop_oneof![Just("\n\n"), Just("\r\n\r\n"), Just("\r\r")],
        step in prop_oneof![Just(1_000_usize), Just(16_384), Just(100_001)],
    ) {
        let stream: Vec<u8> = lens
            .iter()
            .flat_map(|&len| ["data: ", &"a".repeat(len), end].concat().into_bytes())
            .collect();
        let mut splitter = Splitter::new(1 << 20);
        splitter.commit();
        let mut bytes = Vec::new();
        for chunk in stream.chunks(step) {
            splitter.feed(Bytes::copy_from_slice(chunk));
            while splitter.next().expect("events below the limit").is_some() {}
            bytes.extend(splitter.take_run().concat());
            prop_assert!(splitter.held() <= PART_LIMIT);
        }
        splitter.finish();
        bytes.extend(splitter.take_run().concat());
        prop_assert!(bytes == stream);
    }
}
