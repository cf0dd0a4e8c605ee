//! Conversion of Gemini's and of OpenAI's Responses API: what each direction keeps, what it
//! rewrites, what it refuses, and that no bytes and no split of bytes can upset it.

mod bad_input;
mod pairs;
mod properties;
mod replies;
mod requests;
mod streams;

use bytes::Bytes;
use serde_json::Value;
use tidegate_wire::convert::stream::{ReadStream, StreamEvent, WriteStream};
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::sse::Splitter;

/// A target with this model.
fn target(model: &str) -> TargetProfile<'_> {
    TargetProfile { model, host: "example.test" }
}

/// Reads JSON that a writer made.
fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).expect("a writer's JSON")
}

/// Everything that a reader tells of a stream that comes in these pieces and then ends.
fn events_of(reader: &mut dyn ReadStream, pieces: &[&[u8]]) -> Option<Vec<StreamEvent>> {
    let mut splitter = Splitter::new(1 << 20);
    let mut events = Vec::new();
    for piece in pieces {
        splitter.feed(Bytes::copy_from_slice(piece));
        while let Some(frame) = splitter.next().expect("a short event") {
            reader.read(&frame, &mut events).ok()?;
        }
    }
    if let Some(frame) = splitter.finish() {
        reader.read(&frame, &mut events).ok()?;
    }
    reader.finish(&mut events);
    Some(events)
}

/// What a writer makes of events.
fn stream_of(writer: &mut dyn WriteStream, events: Vec<StreamEvent>) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        writer.write(event, &mut out);
    }
    out
}

/// The data of every event of a stream.
fn data_of(stream: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(stream.to_vec()).expect("text");
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}
