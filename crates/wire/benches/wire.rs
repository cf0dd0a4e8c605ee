//! What the hot path pays for reading: request heads, stream frames, and their classes.
//!
//! Figures come as time per call; bytes per second stand beside them.

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use tidegate_wire::dialect::Dialect;
use tidegate_wire::head::RequestHead;
use tidegate_wire::splice::{EncodedName, Spliced};
use tidegate_wire::sse::Splitter;
use tidegate_wire::watch::Watch;

fn main() {
    divan::main();
}

/// A chat of about this many bytes, in messages of `message` bytes with a line break every 80.
fn chat(bytes: usize, message: usize) -> Bytes {
    let line = "The quick brown fox jumps over the lazy dog, and the tide comes in again.\\n";
    let text = line.repeat(message / line.len() + 1);
    let one = format!(r#"{{"role":"user","content":"{text}"}}"#);
    let all = vec![one.as_str(); bytes / one.len() + 1].join(",");
    let body = format!(
        r#"{{"model":"fast","temperature":0.7,"max_tokens":1024,"stream":true,"messages":[{all}]}}"#
    );
    body.into()
}

#[divan::bench(args = [(2 << 10, 600), (1 << 20, 600), (1 << 20, 100_000)])]
fn head(bencher: Bencher<'_, '_>, (bytes, message): (usize, usize)) {
    let body = chat(bytes, message);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| RequestHead::read(black_box(&body)).is_ok());
}

/// An image of a megabyte: one string without a break.
#[divan::bench]
fn head_of_an_image(bencher: Bencher<'_, '_>) {
    let data = "A".repeat(1 << 20);
    let body = format!(r#"{{"model":"m","messages":[{{"content":[{{"data":"{data}"}}]}}]}}"#);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| RequestHead::read(black_box(body.as_bytes())).is_ok());
}

#[divan::bench]
fn head_and_splice(bencher: Bencher<'_, '_>) {
    let body = chat(2 << 10, 600);
    let name = EncodedName::new("llama-3.1-8b-instant");
    bencher.bench_local(|| {
        let head = RequestHead::read(black_box(&body)).expect("a readable body");
        Spliced::new(&body, &head, &name)
    });
}

/// Sixty chat chunks and `[DONE]`.
fn stream() -> Bytes {
    let chunk = concat!(
        r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","#,
        r#""created":1700000000,"model":"llama-3.1-8b-instant","system_fingerprint":"fp_0","#,
        r#""choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"#,
        r#""finish_reason":null}],"usage":null}"#,
        "\n\n"
    );
    [chunk.repeat(60).as_str(), "data: [DONE]\n\n"].concat().into()
}

/// Splits only, in chunks of this many bytes.
#[divan::bench(args = [1 << 20, 8_192, 263, 100])]
fn split_60_frames(bencher: Bencher<'_, '_>, step: usize) {
    let stream = stream();
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut splitter = Splitter::new(1 << 24);
        let mut frames = 0;
        for chunk in chunks(&stream, step) {
            splitter.feed(chunk);
            while splitter.next().expect("short events").is_some() {
                frames += 1;
            }
            black_box(splitter.take_run());
        }
        frames
    });
}

/// Splits and follows, as the server does.
#[divan::bench(args = [1 << 20, 263])]
fn watch_60_frames(bencher: Bencher<'_, '_>, step: usize) {
    let stream = stream();
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut splitter = Splitter::new(1 << 24);
        let mut watch = Watch::new(Dialect::OpenAiChat);
        for chunk in chunks(&stream, step) {
            splitter.feed(chunk);
            while let Some(frame) = splitter.next().expect("short events") {
                watch.see(&frame);
            }
            black_box(splitter.take_run());
        }
        assert!(watch.may_end());
    });
}

fn chunks(stream: &Bytes, step: usize) -> impl Iterator<Item = Bytes> {
    let starts = (0..stream.len()).step_by(step);
    starts.map(move |start| stream.slice(start..stream.len().min(start + step)))
}
