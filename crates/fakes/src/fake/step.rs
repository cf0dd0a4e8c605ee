//! One thing a fake does with one call.
//!
//! A step is flat on purpose: a word (`do`) and the numbers it needs, as in the simulator's
//! timelines, so that JSON written by hand in any language stays short. Numbers that a word does
//! not use are ignored.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use tidegate_config::duration::Duration as WrittenDuration;

/// An answer is rendered whole before it is played, so its length has a bound.
pub(super) const MAX_TOKENS: u32 = 20_000;

/// What a fake does with one call. `Step::default()` is a plain good answer without any wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    /// What it does.
    #[serde(rename = "do")]
    pub act: Act,
    /// In `steps`: for how many calls (1).
    pub times: Option<u32>,
    /// In `phases`: from when on, counted from when the script was set.
    #[serde(deserialize_with = "duration")]
    pub at: Duration,
    /// Until the response head.
    #[serde(deserialize_with = "duration")]
    pub latency: Duration,
    /// From the events that open a stream to its first token.
    #[serde(deserialize_with = "duration")]
    pub first_token: Duration,
    /// Between two tokens, comments, pings or drips.
    #[serde(deserialize_with = "duration")]
    pub token_gap: Duration,
    /// How many tokens the answer has, exactly; absent: as many as its text has words.
    pub tokens: Option<u32>,
    /// The fault comes after so many tokens. Absent, with `error_event`: in the place of the first
    /// event; with the others: 0, that is after the events that open the stream.
    pub after: Option<u32>,
    /// With `status` (500), `redirect` (302), `error_body` (200).
    pub status: Option<u16>,
    /// The `retry-after` header, word for word; no sense is asked of it.
    pub retry_after: Option<String>,
    /// The `retry-after-ms` header, word for word.
    pub retry_after_ms: Option<String>,
    /// Further headers of the answer, word for word.
    pub headers: BTreeMap<String, String>,
    /// With `status`, `error_body`: what the body says.
    pub body: ErrorText,
    /// With `status`, `error_body`: the body, word for word, instead of `body`.
    pub text: Option<String>,
    /// With `huge_event`: its size in bytes (1 MiB); with `drip`: bytes at a time (1).
    pub size: Option<u64>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Answers.
    #[default]
    Ok,
    /// Answers with an error status.
    Status,
    /// Sends elsewhere.
    Redirect,
    /// Closes the connection instead of answering.
    Close,
    /// Resets the connection instead of answering (over TCP; elsewhere the same as `close`).
    Reset,
    /// Answers with bytes that are not HTTP.
    NotHttp,
    /// Takes the request and says nothing.
    Hang,
    /// Sends the head of a good answer and says nothing more.
    Silence,
    /// Sends the head of a good answer, then comments (no stream: blank lines) for ever.
    CommentsOnly,
    /// Sends the head and opening of a good answer, then events without content for ever.
    PingsOnly,
    /// Breaks off in the middle of an event, the connection with it.
    Cut,
    /// Ends in good order, but without the rest and without a terminator.
    Truncate,
    /// Falls silent.
    Stall,
    /// Sends the dialect's error event and ends; without a stream the same as `error_body`.
    ErrorEvent,
    /// Answers 200 with an error as the body.
    ErrorBody,
    /// Sends an event that is not JSON, and ends.
    Malformed,
    /// Sends everything but the terminator.
    NoTerminator,
    /// Sends the terminator twice.
    DuplicateTerminator,
    /// Sends another token after the terminator.
    LateToken,
    /// Sends one huge token, in one event without a newline, and then the rest.
    HugeEvent,
    /// Answers a few bytes at a time.
    Drip,
}

/// What the body of an error says, in the dialect's shape unless noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorText {
    /// What fits the status.
    #[default]
    Json,
    /// A web page of a proxy in between.
    Html,
    /// Nothing.
    Empty,
    /// Garbage that claims to be gzip.
    GzipGarbage,
    /// JSON that ends too early.
    HalfJson,
    /// The quota is used up.
    Quota,
    /// There is no credit left.
    Billing,
    /// The model does not exist.
    ModelGone,
    /// The prompt is too long.
    ContextLength,
    /// The content is not wanted.
    ContentFilter,
}

impl Step {
    /// A good answer at once.
    #[must_use]
    pub fn ok() -> Self {
        Self::default()
    }

    /// This act, with everything else at its default.
    #[must_use]
    pub fn of(act: Act) -> Self {
        Self { act, ..Self::default() }
    }

    /// An error status with the body that fits it.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { act: Act::Status, status: Some(status), ..Self::default() }
    }

    /// A fault after so many tokens.
    #[must_use]
    pub fn after(act: Act, tokens: u32) -> Self {
        Self { act, after: Some(tokens), ..Self::default() }
    }

    /// A `retry-after` header, word for word.
    #[must_use]
    pub fn with_retry_after(mut self, text: &str) -> Self {
        self.retry_after = Some(text.to_owned());
        self
    }

    /// A wait before the response head.
    #[must_use]
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Exactly so many tokens, this far apart.
    #[must_use]
    pub fn with_tokens(mut self, tokens: u32, gap: Duration) -> Self {
        self.tokens = Some(tokens);
        self.token_gap = gap;
        self
    }

    /// For so many calls, in `steps`.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// From this moment on, in `phases`.
    #[must_use]
    pub fn at(mut self, at: Duration) -> Self {
        self.at = at;
        self
    }

    /// What cannot be sent as HTTP, in words.
    pub(super) fn complaint(&self) -> Option<String> {
        if let Some(status) = self.status.filter(|status| !(200..=599).contains(status)) {
            return Some(format!("`{status}` is no final status: write one from 200 to 599"));
        }
        if self.tokens.max(self.after).is_some_and(|tokens| tokens > MAX_TOKENS) {
            return Some(format!("an answer has at most {MAX_TOKENS} tokens"));
        }
        let waits = [("retry-after", &self.retry_after), ("retry-after-ms", &self.retry_after_ms)];
        let waits = waits.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let further = self.headers.iter().map(|(name, value)| (name.as_str(), value));
        let mut bad = waits.chain(further).filter(|(name, value)| {
            http::HeaderName::try_from(*name).is_err()
                || http::HeaderValue::try_from(*value).is_err()
        });
        bad.next().map(|(name, _)| format!("`{name}` cannot be sent as a header with this value"))
    }
}

/// Durations as all files of the project write them: `250ms`, `2s`.
pub(super) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let written = WrittenDuration::parse(&text).map_err(de::Error::custom)?;
    Ok(Duration::from_millis(written.millis().0))
}
