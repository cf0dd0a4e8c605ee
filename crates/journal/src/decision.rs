//! The record of one request or MCP call: plan, choices, attempts, what was released, the end.
//!
//! A decision is data. Log lines, metrics, events, the audit line, the row in the history file and
//! `explain` are made from it, each when it is needed.
//!
//! Rules kept here:
//! - No body, no header, no key, no address: names of the config, words of closed sets, numbers
//!   (I13). What a client chose is bounded: the model's name is cut, a session is a fingerprint.
//! - A decision is made once, at the end of its request, and never changed.

use std::sync::Arc;

use tidegate_core::{
    attempt::{AttemptLog, End},
    outcome::OutcomeKind,
    route::{Needs, Route},
    time::{Millis, Now},
};

use crate::{
    choice_trace::ChoiceTrace,
    moments::AttemptMoments,
    request_id::{RequestId, SessionFingerprint},
    result::{ClientVerdict, RequestResult},
    trace_context::TraceContext,
};

/// How much of a name that a client chose is kept.
const NAME_MAX: usize = 128;

/// One attempt, as a client may be told of it: classes and names, never addresses (S61).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The backend's id.
    pub backend: Arc<str>,
    /// The target as a client knows it.
    pub target: String,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// The HTTP status, if a response head came.
    pub status: Option<u16>,
    /// How long it took.
    pub took: Millis,
    /// A fixed phrase.
    pub detail: &'static str,
    /// From its start to its first content, if it got there.
    pub first_content: Option<Millis>,
    /// Whether metrics know of it: one that was left may have to wait for its outcome.
    pub is_counted: bool,
    /// The order of its moments among those of other requests.
    pub moments: AttemptMoments,
}

/// What a plan was made from.
#[derive(Clone, Debug)]
pub struct PlanRecord {
    /// The route with its candidates.
    pub route: Arc<Route>,
    /// What the request needed.
    pub needs: Needs,
    /// How long the whole request might take.
    pub deadline: Millis,
    /// How long its client would wait, if it said so.
    pub patience: Option<Millis>,
}

impl PlanRecord {
    /// The route's name in metrics and records: `direct` where a client named a target.
    #[must_use]
    pub fn label(&self) -> &str {
        let name: &str = self.route.name();
        if name.starts_with("direct\n") { "direct" } else { name }
    }
}

/// What changed when a request was converted for the target of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionRecord {
    /// The number of the attempt.
    pub attempt: usize,
    /// From which dialect to which, as in `openai-chat>anthropic`.
    pub pair: String,
    /// Each field that did not cross as it was.
    pub notes: Vec<ConversionNote>,
}

/// One field that did not cross as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionNote {
    /// `dropped`, `clamped` or `rewritten`.
    pub change: &'static str,
    /// The field's name or path, never its value.
    pub field: String,
    /// Why, as a fixed phrase.
    pub why: &'static str,
}

/// What an answer said of its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Of the request.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
    /// Of the request, from the provider's cache.
    pub cached: u64,
}

/// The error that the gateway itself answered with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAnswer {
    /// Its code, such as `no_healthy_backend`.
    pub code: &'static str,
    /// What it said; names of the config and fixed phrases only.
    pub message: Option<Box<str>>,
    /// When the client may come back, if it was told.
    pub retry_after: Option<Millis>,
    /// What the client was told about trying again by itself.
    pub should_retry: Option<bool>,
}

/// What an MCP call is besides its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpRecord {
    /// The server or group as clients know it, with the prefix `mcp:`.
    pub route: Arc<str>,
    /// The method, such as `tools/call`.
    pub method: &'static str,
    /// The tool, prompt or kind of resource, as the client named it; cut.
    pub tool: Option<Box<str>>,
    /// The code of the error, such as `backend_unavailable`.
    pub error_code: Option<&'static str>,
    /// Why no server answered, as a fixed phrase.
    pub cause: Option<Box<str>>,
    /// The attempts.
    pub attempts: Vec<McpAttempt>,
}

/// One attempt of an MCP call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpAttempt {
    /// The server's id, with the prefix `mcp:`.
    pub backend: Arc<str>,
    /// What the core was told; none if it was told nothing.
    pub outcome: Option<OutcomeKind>,
    /// Why it gave no answer, as a fixed phrase.
    pub cause: Option<Box<str>>,
    /// When it began, and how long it took.
    pub began: Now,
    /// How long it took.
    pub took: Millis,
    /// How often the request was sent.
    pub times_sent: u32,
}

/// The record of one request.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Its name, which its client was told.
    pub id: RequestId,
    /// When it began.
    pub at: Now,
    /// How long it took, to the last byte of its answer.
    pub took: Millis,
    /// Who asked; empty where no keys are configured.
    pub caller: Arc<str>,
    /// The conversation.
    pub session: Option<SessionFingerprint>,
    /// The endpoint, as a class of paths.
    pub path: &'static str,
    /// The model asked for, where it is not the route's own name; cut.
    pub model: Option<Box<str>>,
    /// Whether a stream was asked for.
    pub is_stream: bool,
    /// The status that the client saw; 499 if it had gone.
    pub status: u16,
    /// Why it was over; none if it never had a plan.
    pub end: Option<End>,
    /// How its client fared.
    pub verdict: ClientVerdict,
    /// The plan, if it got that far.
    pub plan: Option<PlanRecord>,
    /// How each attempt was chosen and how it ended.
    pub log: AttemptLog,
    /// The same attempts, as their client may be told.
    pub records: Vec<AttemptRecord>,
    /// What each choice read.
    pub trace: ChoiceTrace,
    /// What conversions changed.
    pub conversions: Vec<ConversionRecord>,
    /// What the answer said of its usage.
    pub tokens: Option<TokenCounts>,
    /// When the answer was committed to the client.
    pub released_at: Option<Now>,
    /// The error of the gateway's own, if that was the answer.
    pub own_answer: Option<Box<OwnAnswer>>,
    /// The part that only MCP calls have.
    pub mcp: Option<Box<McpRecord>>,
    /// The trace that its client named, where traces are exported.
    pub traced: Option<Box<TraceContext>>,
}

impl Decision {
    /// A request that was refused before it had a plan.
    #[must_use]
    pub fn refused(id: RequestId, at: Now, took: Millis, status: u16, code: &'static str) -> Self {
        let own_answer = OwnAnswer { code, ..OwnAnswer::default() };
        Self {
            id,
            at,
            took,
            caller: "".into(),
            session: None,
            path: "",
            model: None,
            is_stream: false,
            status,
            end: None,
            verdict: ClientVerdict::of(status, None),
            plan: None,
            log: AttemptLog::default(),
            records: Vec::new(),
            trace: ChoiceTrace::default(),
            conversions: Vec::new(),
            tokens: None,
            released_at: None,
            own_answer: Some(Box::new(own_answer)),
            mcp: None,
            traced: None,
        }
    }

    /// When it ended.
    #[must_use]
    pub fn ended(&self) -> Now {
        self.at.after(self.took)
    }

    /// The route's name in metrics and records; empty if it was not routed.
    #[must_use]
    pub fn route(&self) -> &str {
        match (&self.mcp, &self.plan) {
            (Some(mcp), _) => &mcp.route,
            (None, Some(plan)) => plan.label(),
            (None, None) => "",
        }
    }

    /// Attempts beyond the first.
    #[must_use]
    pub fn hops(&self) -> usize {
        let attempts = self.mcp.as_ref().map_or(self.records.len(), |it| it.attempts.len());
        attempts.saturating_sub(1)
    }

    /// Whether an attempt was made although something stood against its target.
    #[must_use]
    pub fn is_relaxed(&self) -> bool {
        self.log.iter().any(|it| !it.rank.is_clear())
    }

    /// Whether an operator would want to see it without asking: anything but a plain answer of the
    /// first choice.
    #[must_use]
    pub fn is_notable(&self) -> bool {
        self.verdict.result != RequestResult::Ok
            || self.hops() > 0
            || self.is_relaxed()
            || self.log.iter().next().is_some_and(|it| is_move(it.pin))
            || self.conversions.iter().any(|it| !it.notes.is_empty())
            || self.mcp.as_ref().is_some_and(|it| it.error_code.is_some())
    }

    /// The attempt whose answer the client saw: its number.
    #[must_use]
    pub fn answered_by(&self) -> Option<usize> {
        let is_success = |it: &&AttemptRecord| it.outcome == OutcomeKind::Success;
        self.records.last().filter(is_success).map(|_| self.records.len() - 1)
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let text = |it: &Option<Box<str>>| it.as_ref().map_or(0, |it| it.len());
        let records = self.records.iter().map(|it| size_of::<AttemptRecord>() + it.target.len());
        let note = |it: &ConversionNote| size_of::<ConversionNote>() + it.field.len();
        let conversions = self.conversions.iter().map(|it| {
            size_of::<ConversionRecord>() + it.pair.len() + it.notes.iter().map(note).sum::<usize>()
        });
        let own = self.own_answer.as_ref().map_or(0, |it| 64 + text(&it.message));
        let mcp = self.mcp.as_ref().map_or(0, |it| {
            let attempt = |it: &McpAttempt| size_of::<McpAttempt>() + text(&it.cause);
            size_of::<McpRecord>()
                + text(&it.tool)
                + text(&it.cause)
                + it.attempts.iter().map(attempt).sum::<usize>()
        });
        let traced = self.traced.as_ref().map_or(0, |_| size_of::<TraceContext>());
        let later_attempts = self.log.len().saturating_sub(1);
        size_of::<Self>()
            + text(&self.model)
            + later_attempts * size_of::<tidegate_core::attempt::Attempt>()
            + records.sum::<usize>()
            + self.trace.heap_bytes()
            + conversions.sum::<usize>()
            + own
            + mcp
            + traced
    }
}

/// Whether a session got another pin than it had.
fn is_move(pin: tidegate_core::choice::PinUse) -> bool {
    use tidegate_core::choice::PinUse;
    matches!(pin, PinUse::Declined | PinUse::Expired)
}

/// A name that a client chose, as far as a record keeps it.
#[must_use]
pub fn cut_name(name: &str) -> Box<str> {
    let end = name.floor_char_boundary(NAME_MAX);
    name[..end].into()
}
