//! The file format of a recording: exact arrivals, and all that an exact replay needs of them.
//!
//! Moments are milliseconds of the timeline's clock. Beside a moment stands its number (`n`) where
//! the recorder gave one: of several things in one millisecond, the one with the lower number came
//! first.

use schemars::JsonSchema;
use serde::Deserialize;

/// What a gateway recorded.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::timeline) struct RecordingFile {
    /// The form of this part.
    pub(in crate::timeline) version: u32,
    /// The seed of the jitter on open times, in hexadecimal digits; absent: it is not known.
    pub(in crate::timeline) jitter_seed: Option<String>,
    /// The states at the beginning, of what was not closed.
    #[serde(default)]
    pub(in crate::timeline) start: Vec<StartFile>,
    /// Every request, in the order of arrival.
    pub(in crate::timeline) arrivals: Vec<ArrivalFile>,
    /// Every probe of a provider; absent: they are simulated.
    pub(in crate::timeline) probes: Option<Vec<ProbedFile>>,
    /// What operators did.
    #[serde(default)]
    pub(in crate::timeline) actions: Vec<ActionFile>,
}

/// A state at the beginning.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::timeline) struct StartFile {
    /// Whose.
    pub(in crate::timeline) backend: String,
    /// `open`, `half_open`, `off`, `window` or `excluded`.
    pub(in crate::timeline) state: String,
    /// Until when; absent: it does not end by itself.
    pub(in crate::timeline) until: Option<u64>,
}

/// A request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::timeline) struct ArrivalFile {
    /// Its name in the record.
    pub(in crate::timeline) id: String,
    /// When it began.
    pub(in crate::timeline) at: u64,
    /// Its route, or `direct:TARGET` where the client named a target.
    pub(in crate::timeline) route: String,
    /// The fingerprint of its session; absent: none.
    pub(in crate::timeline) session: Option<String>,
    /// The caller's name.
    #[serde(default)]
    pub(in crate::timeline) caller: String,
    /// Whether a stream was asked for.
    #[serde(default)]
    pub(in crate::timeline) stream: bool,
    /// How long the client would wait for the first byte.
    pub(in crate::timeline) patience: Option<u64>,
    /// How long the whole request might take.
    pub(in crate::timeline) deadline: Option<u64>,
    /// What it needed of a target.
    #[serde(default)]
    pub(in crate::timeline) needs: NeedsFile,
    /// Its attempts, in order.
    pub(in crate::timeline) attempts: Vec<AttemptFile>,
    /// Why it was over.
    pub(in crate::timeline) end: String,
    /// The status that its client saw.
    pub(in crate::timeline) status: u16,
    /// Tokens of its answer and its request, where the answer told.
    pub(in crate::timeline) tokens: Option<u64>,
}

/// What a request needs of a target.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::timeline) struct NeedsFile {
    /// It brought tool definitions.
    pub(in crate::timeline) tools: bool,
    /// It brought images.
    pub(in crate::timeline) vision: bool,
    /// It brought documents.
    pub(in crate::timeline) documents: bool,
    /// It wanted an answer that follows a JSON schema.
    pub(in crate::timeline) json_schema: bool,
    /// It asked for reasoning.
    pub(in crate::timeline) reasoning: bool,
    /// How long it was, in tokens, where that is known.
    pub(in crate::timeline) context: u64,
    /// The protocol it was written in.
    pub(in crate::timeline) protocol: Option<String>,
    /// The kind of request.
    pub(in crate::timeline) kind: Option<String>,
    /// The formats that it could be converted to, as a set of bits.
    pub(in crate::timeline) converts_to: u8,
}

/// One attempt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::timeline) struct AttemptFile {
    /// The backend.
    pub(in crate::timeline) backend: String,
    /// The number of its key, from 1.
    #[serde(default = "one")]
    pub(in crate::timeline) key: u16,
    /// When it was chosen, with its number.
    pub(in crate::timeline) at: u64,
    /// The number of the choice.
    #[serde(default)]
    pub(in crate::timeline) n: u64,
    /// The random draw of the choice, in hexadecimal digits.
    pub(in crate::timeline) draw: String,
    /// What stood against it.
    #[serde(default)]
    pub(in crate::timeline) rank: u8,
    /// What decided: `tactic`, `pin` or `next_key`.
    pub(in crate::timeline) by: String,
    /// What became of the session's pin.
    pub(in crate::timeline) pin: Option<String>,
    /// A half-open breaker admitted it.
    #[serde(default)]
    pub(in crate::timeline) trial: bool,
    /// It went past a breaker because nothing was available.
    #[serde(default)]
    pub(in crate::timeline) last_resort: bool,
    /// When its response head came, if it did.
    pub(in crate::timeline) head: Option<u64>,
    /// The number of that moment.
    #[serde(default)]
    pub(in crate::timeline) head_n: u64,
    /// When its answer was released to the client, if it was.
    pub(in crate::timeline) released: Option<u64>,
    /// The number of that moment.
    #[serde(default)]
    pub(in crate::timeline) released_n: u64,
    /// Why it was released then.
    pub(in crate::timeline) committed: Option<String>,
    /// From when it was sent to its first content.
    pub(in crate::timeline) first_content: Option<u64>,
    /// When it ended.
    pub(in crate::timeline) ended: u64,
    /// The number of that moment.
    #[serde(default)]
    pub(in crate::timeline) ended_n: u64,
    /// How it ended.
    pub(in crate::timeline) outcome: String,
    /// The HTTP status, if a response head came.
    pub(in crate::timeline) status: Option<u16>,
    /// The status under which the client may see it as an error.
    pub(in crate::timeline) error_status: Option<u16>,
    /// When the upstream said to come back, in milliseconds.
    pub(in crate::timeline) retry_after: Option<u64>,
    /// It was left for another target before it had ended.
    #[serde(default)]
    pub(in crate::timeline) left: bool,
}

fn one() -> u16 {
    1
}

/// A probe that ended.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::timeline) struct ProbedFile {
    /// When.
    pub(in crate::timeline) at: u64,
    /// The number of that moment.
    #[serde(default)]
    pub(in crate::timeline) n: u64,
    /// Which provider.
    pub(in crate::timeline) provider: String,
    /// The status that it answered with; absent: it did not.
    pub(in crate::timeline) status: Option<u16>,
}

/// What an operator did.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::timeline) struct ActionFile {
    /// When.
    pub(in crate::timeline) at: u64,
    /// `drain`, `hold`, `reset`, `resume` or `probe`.
    pub(in crate::timeline) deed: String,
    /// To which backend.
    pub(in crate::timeline) backend: String,
    /// Until when, of a drain or a hold.
    pub(in crate::timeline) until: Option<u64>,
}
