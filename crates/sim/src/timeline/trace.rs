//! The trace: transitions, and requests that hopped or failed, as lines of text or JSON.

use std::sync::Arc;

use serde::Serialize;
use tidegate_config::duration::written;
use tidegate_core::{
    attempt::{End, Finish},
    breaker::{BreakerChange, CloseCause},
    plan::Plan,
    time::{Millis, Now},
    transition::{Change, Scope, Transition},
};

use super::{engine::why, painter::View};

/// More lines than this nobody reads; the bound keeps memory from growing with time.
const ENTRIES_MAX: usize = 200_000;

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TraceEntry {
    /// The replica where it happened, from 1, in a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    replica: Option<u32>,
    #[serde(flatten)]
    event: TraceEvent,
}

/// What a line of a trace tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum TraceEvent {
    /// A backend changed.
    Transition(Transition),
    /// A request hopped or failed.
    Request(RequestEntry),
}

/// A request that hopped or failed, at the moment it was over.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct RequestEntry {
    at: Now,
    began: Now,
    session: String,
    attempts: Vec<AttemptEntry>,
    end: End,
    status: u16,
    /// The key that the session is pinned to afterwards, where targets have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<KeyPin>,
}

/// A session's pin, down to the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct KeyPin {
    pub(super) backend: Arc<str>,
    /// The key's number in the target's pool, from 1.
    pub(super) key: usize,
}

/// One of its attempts.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct AttemptEntry {
    backend: Arc<str>,
    /// The key's number in the target's pool, from 1, where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u16>,
    at: Now,
    ms: u64,
    outcome: &'static str,
    status: Option<u16>,
    is_trial: bool,
    is_last_resort: bool,
}

/// Collects the trace of a span of time.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    span: Option<View>,
    /// Whether a line says at which replica.
    is_fleet: bool,
    pub(super) entries: Vec<TraceEntry>,
}

impl Tracer {
    pub(super) fn new(span: Option<View>, is_fleet: bool) -> Self {
        Self { span, is_fleet, entries: Vec::new() }
    }

    fn add(&mut self, replica: u32, event: TraceEvent) {
        let replica = self.is_fleet.then_some(replica + 1);
        self.entries.push(TraceEntry { replica, event });
    }

    pub(super) fn wants(&self, now: Now) -> bool {
        self.span.is_some_and(|view| (view.from..=view.to).contains(&now))
            && self.entries.len() < ENTRIES_MAX
    }

    pub(super) fn transition(&mut self, replica: u32, transition: Transition) {
        if self.wants(transition.at) {
            self.add(replica, TraceEvent::Transition(transition));
        }
    }

    pub(super) fn request(
        &mut self,
        now: Now,
        (session, replica): (&str, u32),
        plan: &Plan,
        finish: &Finish,
        pin: Option<KeyPin>,
    ) {
        let backend = |candidate: u16| plan.route().backend(candidate);
        let attempt = |it: &tidegate_core::attempt::Attempt| AttemptEntry {
            backend: Arc::clone(backend(it.candidate).id()),
            key: (backend(it.candidate).key_count() > 1).then(|| it.key.saturating_add(1)),
            at: it.at,
            ms: it.ended_at.unwrap_or(now).since(it.at).0,
            outcome: it.outcome.map_or("", |outcome| outcome.kind.word()),
            status: it.outcome.and_then(|outcome| outcome.status),
            is_trial: it.is_trial,
            is_last_resort: it.is_last_resort,
        };
        let request = RequestEntry {
            at: now,
            began: plan.began(),
            session: session.to_owned(),
            attempts: plan.attempts().iter().map(attempt).collect(),
            end: finish.end,
            status: finish.status,
            pin,
        };
        self.add(replica, TraceEvent::Request(request));
    }
}

impl TraceEntry {
    /// One line for people.
    pub(super) fn line(&self, is_ascii: bool) -> String {
        let line = match &self.event {
            TraceEvent::Transition(it) => transition_line(it, is_ascii),
            TraceEvent::Request(it) => it.line(is_ascii),
        };
        self.replica.map_or(line.clone(), |replica| format!("r{replica:<3} {line}"))
    }
}

impl RequestEntry {
    fn line(&self, is_ascii: bool) -> String {
        let arrow = if is_ascii { "->" } else { "→" };
        let attempts: Vec<String> = self.attempts.iter().map(AttemptEntry::words).collect();
        let attempts = attempts.join(&format!(" {arrow} "));
        let session = if self.session.is_empty() { "-" } else { &self.session };
        let pin = self.pin.as_ref().map(|it| format!("  pin={}#{}", it.backend, it.key));
        let (at, status, pin) = (moment(self.at), self.status, pin.unwrap_or_default());
        format!("{at:>10}  {session:<6} {attempts} {arrow} client={status}{pin}")
    }
}

impl AttemptEntry {
    fn words(&self) -> String {
        let kind = match (self.is_last_resort, self.is_trial) {
            (true, _) => " last resort",
            (false, true) => " trial",
            (false, false) => "",
        };
        let status = self.status.map(|status| format!(" {status}")).unwrap_or_default();
        let took = written(Millis(self.ms));
        let key = self.key.map(|key| format!("#{key}")).unwrap_or_default();
        format!("{}{key}{kind} {}{status} {took}", self.backend, self.outcome)
    }
}

fn transition_line(it: &Transition, is_ascii: bool) -> String {
    let arrow = if is_ascii { "->" } else { "→" };
    let what = match &it.change {
        Change::Breaker { breaker, .. } => match breaker {
            BreakerChange::Opened { from, until, .. } => {
                let (from, why) = (from.word(), why(it));
                format!("{from} {arrow} open: {why}; half-open at {}", moment(*until))
            }
            BreakerChange::Closed { from, cause } => {
                let cause = match cause {
                    CloseCause::TrialsPassed(count) => format!("{count} trials passed"),
                    CloseCause::ProbePassed(count) => format!("{count} passed, the last a probe"),
                    CloseCause::Reset => "reset".to_owned(),
                };
                format!("{} {arrow} closed: {cause}", from.word())
            }
            BreakerChange::Extended { until } => {
                format!("stays open: probe failed; half-open at {}", moment(*until))
            }
        },
        Change::Marked { until, reason, .. } => {
            format!("{} until {}", reason.word(), moment(*until))
        }
        Change::Healed { reason } => format!("{} healed by a success", reason.word()),
        Change::Suspected { until } => {
            format!("suspected until {}: it opened elsewhere", moment(*until))
        }
    };
    let scope = match it.scope {
        Scope::Backend => "",
        Scope::Endpoint => " (endpoint)",
        Scope::Key => " (key)",
    };
    format!("{:>10}  {}{scope}  {what}", moment(it.at), it.backend)
}

/// A moment as files write durations.
pub(super) fn moment(at: Now) -> String {
    written(Millis(at.0))
}
