//! What must hold for any bytes: the checks behind the fuzz targets and behind the test that runs
//! them over the committed seeds (`crates/wire/tests/fuzzed.rs`).
//!
//! - Nothing panics.
//! - However a stream is cut into pieces, the same comes out.
//! - What is sent on is JSON, and no larger than its input allows.
//! - A converted stream ends once: with a terminator, with an error event, or not at all, which the
//!   gateway then says with an error event of its own.

use bytes::Bytes;
use serde_json::Value;
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::history::without_foreign_thinking;
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::dialect::Dialect;
use tidegate_wire::events::{EventReader, Step};
use tidegate_wire::gemini::GeminiCall;
use tidegate_wire::head::RequestHead;
use tidegate_wire::splice::{EncodedName, Spliced};
use tidegate_wire::sse::Splitter;

/// As long as an event may be here; a longer one is given up.
const MAX_EVENT: usize = 1 << 16;

/// Streams up to this length are cut at every byte, longer ones in steps of a few sizes.
const EVERY_CUT: usize = 192;

const DIALECTS: [(Dialect, &str); 4] = [
    (Dialect::OpenAiChat, "gpt-5.1"),
    (Dialect::OpenAiResponses, "gpt-5.1"),
    (Dialect::AnthropicMessages, "claude-sonnet-4-5"),
    (Dialect::Gemini, "gemini-3-pro-preview"),
];

fn pairs() -> impl Iterator<Item = (DialectPair, &'static str)> {
    let with = |client: Dialect| {
        DIALECTS.into_iter().filter_map(move |(target, model)| {
            DialectPair::new(client, target).map(|pair| (pair, model))
        })
    };
    DIALECTS.into_iter().flat_map(move |(client, _)| with(client))
}

/// Ways to cut bytes into pieces: every place in two if they are few, and steps of some sizes.
fn cuts(data: &[u8]) -> Vec<Vec<Bytes>> {
    let whole = Bytes::copy_from_slice(data);
    let mut ways: Vec<Vec<Bytes>> = [1, 3, 64]
        .iter()
        .map(|step| {
            let starts = (0..data.len()).step_by(*step);
            starts.map(|at| whole.slice(at..data.len().min(at + step))).collect()
        })
        .collect();
    if data.len() <= EVERY_CUT {
        ways.extend((1..data.len()).map(|at| vec![whole.slice(..at), whole.slice(at..)]));
    }
    ways
}

/// Server-sent events: the same frames however the bytes come.
pub fn sse(data: &[u8]) {
    let whole = frames(&[Bytes::copy_from_slice(data)]);
    for pieces in cuts(data) {
        assert_eq!(frames(&pieces), whole);
    }
}

/// The data of all events, and whether one was too long.
fn frames(pieces: &[Bytes]) -> (Vec<Option<Vec<u8>>>, bool) {
    let mut splitter = Splitter::new(MAX_EVENT);
    let mut found = Vec::new();
    for piece in pieces {
        splitter.feed(piece.clone());
        loop {
            match splitter.next() {
                Ok(Some(frame)) => found.push(frame.data().map(|data| data.to_vec())),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
        drop(splitter.take_run());
    }
    found.extend(splitter.finish().map(|frame| frame.data().map(|data| data.to_vec())));
    (found, false)
}

/// The head of a request: what is read can be spliced, and says the new name afterwards.
pub fn head(data: &[u8]) {
    let call = GeminiCall::of_path("/v1beta/models/flash:generateContent");
    if let Some(call) = call {
        let _ = RequestHead::read_gemini(data, &call);
    }
    for (dialect, model) in DIALECTS {
        let _ = without_foreign_thinking(dialect, model, data);
    }
    let Ok(head) = RequestHead::read(data) else { return };
    let body = Bytes::copy_from_slice(data);
    let spliced = Spliced::new(&body, &head, &EncodedName::new("another"));
    let joined: Vec<u8> = spliced.pieces.concat();
    assert!(joined.len() <= data.len() + 64);
    if head.model.is_some() {
        let again = RequestHead::read(&joined).expect("a spliced head is read again");
        assert_eq!(again.model.map(|model| model.name.to_string()).as_deref(), Some("another"));
    }
}

/// A request in every dialect's reader and every other one's writer.
pub fn request(data: &[u8]) {
    for (pair, model) in pairs() {
        let target = TargetProfile { model, host: "" };
        for is_stream in [false, true] {
            if let Ok(sent) = pair.streaming(is_stream).request(data, &target, 1) {
                assert_object(&sent.body);
                assert_bounded(sent.body.len(), data.len());
            }
        }
    }
}

/// A whole answer, and an error, in every reader and every other one's writer.
pub fn reply(data: &[u8]) {
    let context = ReplyContext::default();
    for (pair, _) in pairs() {
        if let Ok(sent) = pair.reply(data, &context) {
            assert_object(&sent);
            assert_bounded(sent.len(), data.len());
        }
        let error = pair.error(503, data);
        assert_object(&error);
        assert_bounded(error.len(), data.len());
    }
}

/// A stream in every reader and every other one's writer.
pub fn stream(data: &[u8]) {
    for (pair, _) in pairs() {
        let whole = converted(pair, &[Bytes::copy_from_slice(data)]);
        assert_bounded(whole.0.len(), data.len());
        for pieces in cuts(data) {
            assert_eq!(converted(pair, &pieces), whole, "{}", pair.label());
        }
        assert_one_end(pair.client(), &whole.0);
    }
}

/// What comes out of a converter, and whether it was content to the end.
fn converted(pair: DialectPair, pieces: &[Bytes]) -> (Vec<u8>, bool) {
    let context = ReplyContext { includes_usage: true, ..ReplyContext::default() };
    let mut converter = pair.stream(&context, MAX_EVENT);
    let mut out = Vec::new();
    for piece in pieces {
        if converter.feed(piece.clone(), &mut out).is_err() {
            return (out, false);
        }
    }
    let is_good = converter.finish(&mut out).is_ok();
    (out, is_good)
}

/// At most one end, and nothing after it.
fn assert_one_end(client: Dialect, out: &[u8]) {
    let mut reader = EventReader::new(client, 1 << 26);
    reader.feed(Bytes::copy_from_slice(out));
    let mut is_over = false;
    while let Some(step) = reader.next_event() {
        match step {
            // Chat's usage and Gemini's last chunk may follow what already ends the answer.
            Step::Quiet => {}
            Step::Content => assert!(!is_over, "content after the end"),
            Step::Complete | Step::Failed(_) => {
                assert!(!is_over, "two ends");
                is_over = true;
            }
            Step::Malformed | Step::TooLong => panic!("a converter wrote no event"),
        }
    }
}

fn assert_object(body: &[u8]) {
    assert!(serde_json::from_slice::<Value>(body).is_ok_and(|value| value.is_object()));
}

/// A small event may become a large one, and text that is quoted twice grows; nothing multiplies.
fn assert_bounded(out: usize, input: usize) {
    assert!(out <= input * 64 + (1 << 16), "{out} bytes of {input}");
}
