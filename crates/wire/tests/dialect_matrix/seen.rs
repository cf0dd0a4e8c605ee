//! What a client sees of an answer, and the frames of a stream.

use serde_json::Value;

/// What a client sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) refusal: String,
    pub(crate) calls: Vec<SeenCall>,
    /// In the words of the client's dialect.
    pub(crate) stop: String,
    pub(crate) usage: Option<SeenUsage>,
    /// The word for the kind of the error, and its message.
    pub(crate) error: Option<(String, String)>,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SeenCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// Tokens, each as the dialect counts them when it counts everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenUsage {
    /// All input.
    pub(crate) input: u64,
    pub(crate) cached: u64,
    /// All output.
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct SeenFrame {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl SeenFrame {
    /// Its data as JSON.
    pub(crate) fn json(&self) -> Result<Value, String> {
        serde_json::from_str(&self.data).map_err(|error| format!("{error}: {}", self.data))
    }
}

/// Takes a stream apart, as the standard of server-sent events says it.
pub(crate) fn frames(stream: &[u8]) -> Vec<SeenFrame> {
    let text = String::from_utf8(stream.to_vec()).expect("a stream is UTF-8");
    let text = text.replace("\r\n", "\n");
    let mut frames = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut frame = SeenFrame { name: None, data: String::new() };
        for line in block.lines() {
            if let Some(name) = line.strip_prefix("event:") {
                frame.name = Some(name.trim().to_owned());
            } else if let Some(data) = line.strip_prefix("data:") {
                frame.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        frames.push(frame);
    }
    frames
}

/// A count; what is absent is none.
pub(crate) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Fails with this sentence unless it holds.
pub(crate) fn must(holds: bool, sentence: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(sentence.to_owned()) }
}
