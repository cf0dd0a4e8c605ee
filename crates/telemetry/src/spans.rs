//! A decision as spans: one for the request, and one below it for each attempt.
//!
//! Names are those of OpenTelemetry's semantic conventions for HTTP, generative AI (`gen_ai.*`) and
//! MCP (`mcp.*`); what they do not name is under `tidegate.*`. The span of an attempt has the id
//! that its upstream request named in `traceparent`.
//!
//! Everything in a span is in the decision already: names of the config, words of closed sets,
//! numbers, and the model or tool that a client named (I13).

mod llm;
mod mcp;

use tidegate_core::{outcome::OutcomeKind, time::Now};
use tidegate_journal::{
    decision::Decision,
    trace_context::{TraceContext, attempt_span, request_span},
};
use tidegate_runtime::clock::Clock;

use crate::{
    attribute::{Value, attribute},
    protobuf::Message,
};

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that the gateway answered.
    Server = 2,
    /// A request that it made.
    Client = 3,
}

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanRecord {
    /// The trace.
    pub trace_id: u128,
    /// Its own id.
    pub id: u64,
    /// The span above it.
    pub parent: Option<u64>,
    /// Its name.
    pub name: String,
    /// What it is about.
    pub kind: SpanKind,
    /// When it began and ended, in milliseconds since 1970.
    pub unix_ms: (u64, u64),
    /// What it says.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, as a word.
    pub error: Option<String>,
}

/// The spans of a decision; none if its client does not want any.
#[must_use]
pub fn of(decision: &Decision, clock: Clock) -> Vec<SpanRecord> {
    let begun = TraceContext::begun_by(decision.id);
    let context = decision.traced.as_deref().unwrap_or(&begun);
    if !context.is_sampled {
        return Vec::new();
    }
    let frame = Frame { decision, clock, context };
    match &decision.mcp {
        Some(call) => mcp::spans(&frame, call),
        None => llm::spans(&frame),
    }
}

/// What all spans of a decision are made with.
struct Frame<'a> {
    decision: &'a Decision,
    clock: Clock,
    context: &'a TraceContext,
}

impl Frame<'_> {
    fn request(&self, name: String, attributes: Vec<(&'static str, Value)>) -> SpanRecord {
        let decision = self.decision;
        SpanRecord {
            trace_id: self.context.trace_id,
            id: request_span(decision.id),
            parent: self.context.parent,
            name,
            kind: SpanKind::Server,
            unix_ms: self.between(decision.at, decision.ended()),
            error: decision.verdict.failure.map(|it| it.word().to_owned()),
            attributes,
        }
    }

    fn attempt(
        &self,
        number: usize,
        name: String,
        (began, ended): (Now, Now),
        outcome: Option<OutcomeKind>,
        attributes: Vec<(&'static str, Value)>,
    ) -> SpanRecord {
        // That a client went away is no error of the target's.
        let is_error =
            |it: &OutcomeKind| !matches!(it, OutcomeKind::Success | OutcomeKind::Cancelled);
        SpanRecord {
            trace_id: self.context.trace_id,
            id: attempt_span(self.decision.id, number),
            parent: Some(request_span(self.decision.id)),
            name,
            kind: SpanKind::Client,
            unix_ms: self.between(began, ended),
            error: outcome.filter(is_error).map(|it| it.word().to_owned()),
            attributes,
        }
    }

    fn between(&self, began: Now, ended: Now) -> (u64, u64) {
        (self.clock.unix_ms_of(began), self.clock.unix_ms_of(ended))
    }

    /// What the record says of every request.
    fn common(&self) -> Vec<(&'static str, Value)> {
        let decision = self.decision;
        let mut attributes = vec![
            ("tidegate.request_id", Value::Text(decision.id.to_string())),
            ("tidegate.result", decision.verdict.result.word().into()),
        ];
        for (key, value) in
            [("tidegate.route", decision.route()), ("tidegate.caller", &decision.caller)]
        {
            if !value.is_empty() {
                attributes.push((key, value.into()));
            }
        }
        if let Some(session) = decision.session {
            attributes.push(("tidegate.session", Value::Text(session.to_string())));
        }
        attributes
    }
}

impl SpanRecord {
    /// `Span`.
    pub(crate) fn encoded(&self) -> Message {
        let mut span = Message::default();
        span.bytes(1, &self.trace_id.to_be_bytes());
        span.bytes(2, &self.id.to_be_bytes());
        if let Some(parent) = self.parent {
            span.bytes(4, &parent.to_be_bytes());
        }
        span.text(5, &self.name);
        span.number(6, self.kind as u64);
        span.fixed(7, nanos(self.unix_ms.0));
        span.fixed(8, nanos(self.unix_ms.1));
        for (key, value) in &self.attributes {
            attribute(&mut span, 9, key, value);
        }
        if let Some(error) = &self.error {
            attribute(&mut span, 9, "error.type", &error.as_str().into());
            let mut status = Message::default();
            status.number(3, STATUS_ERROR);
            span.message(15, &status);
        }
        span.fixed32(16, SAMPLED);
        span
    }
}

/// `Status` of a span that failed.
const STATUS_ERROR: u64 = 2;
/// The flags of a trace that is sampled.
const SAMPLED: u32 = 1;

/// Milliseconds as nanoseconds.
pub(crate) const fn nanos(unix_ms: u64) -> u64 {
    unix_ms.saturating_mul(1_000_000)
}
