//! What happens, told: transitions and refusals, each as a log line, a count and a journal record.
//!
//! The core says what changed as data, once; here it becomes words. What every line says is worked
//! out in `describe`, a pure function, so that log and metric cannot disagree.
//!
//! Rules kept here:
//! - A warning is for what leaves fewer places to serve from: an opened breaker, an excluded key or
//!   target. Windows, recoveries and what an operator did are plain news. A failing probe that
//!   keeps an open breaker open is told at `debug`: nothing changed for anybody.
//! - No addresses, no keys: a key is told by its place in the pool, as in `anthropic#2` (S1).

use std::sync::{Arc, PoisonError};

use tidegate_core::{
    breaker::{BreakerChange, CloseCause, OpenCause, State},
    mark::MarkReason,
    outcome::OutcomeKind,
    time::Now,
    transition::{Change, Scope, Transition},
};
use tidegate_journal::event::{EventBody, MoveRecord, SecurityRecord, TransitionRecord};

use crate::{
    gateway::Gateway,
    log::{self, Refused, TRANSITION, rfc3339},
    metrics::ChangeLabels,
    status::{explained, first_choices},
};

/// Renders transitions, in their order.
pub fn transitions(gateway: &Gateway, transitions: &[Transition]) {
    for transition in transitions {
        let told = describe(&transition.change);
        let backend = &*transition.backend;
        gateway.metrics.transition(ChangeLabels {
            backend,
            from: told.from,
            to: told.to,
            reason: told.reason,
        });
        let until = told.until.filter(|until| *until != Now::NEVER);
        let until = until.map(|until| rfc3339(gateway.clock.unix_ms_of(until)));
        let weight =
            if is_repetition(transition, transitions) { Weight::Detail } else { told.weight };
        let mut told = Told { weight, ..told };
        if transition.is_heard {
            told.detail.push_str(" (told by another replica)");
        }
        log_transition(transition, &told, until.as_deref());
        let record = EventBody::Transition(Arc::new(record(transition, told)));
        gateway.journal.event(transition.at, record);
    }
    moved_traffic(gateway, transitions);
}

/// A change of state as the journal keeps it.
fn record(transition: &Transition, told: Told) -> TransitionRecord {
    let (generation, evidence, status, key) = match &transition.change {
        Change::Breaker { generation, evidence, status, .. } => {
            (Some(*generation), *evidence, *status, None)
        }
        Change::Marked { key, status, .. } => (None, None, *status, key.clone()),
        Change::Healed { .. } | Change::Suspected { .. } => (None, None, None, None),
    };
    TransitionRecord {
        at: transition.at,
        backend: Arc::clone(&transition.backend),
        scope: scope_word(transition.scope),
        from: told.from,
        to: told.to,
        reason: told.reason,
        detail: told.detail,
        until: told.until,
        weight: told.weight.word(),
        generation,
        evidence,
        status,
        key,
        is_breaker: matches!(transition.change, Change::Breaker { .. }),
    }
}

/// A request was refused for the sake of security: a line and a record, unless there were many of
/// the kind just now.
pub fn refused(gateway: &Gateway, refused: &Refused<'_>) {
    let now = gateway.now();
    let Some(repeated) = log::refused(&gateway.line_limit, now, refused) else { return };
    let record = SecurityRecord {
        at: now,
        event: refused.event,
        caller: refused.caller.to_owned(),
        path: log::path_class(refused.path),
        route: refused.route.to_owned(),
        request_id: refused.request_id.to_owned(),
        repeated,
    };
    gateway.journal.event(now, EventBody::Security(Arc::new(record)));
}

/// Whether another line of the same moment says the same: a probe that closes an endpoint may
/// close all its targets, and what stands for a provider's other models is not in the config.
fn is_repetition(transition: &Transition, all: &[Transition]) -> bool {
    let Some((provider, model)) = transition.backend.split_once('/') else { return false };
    let (Scope::Backend, Change::Breaker { breaker, .. }) = (transition.scope, &transition.change)
    else {
        return false;
    };
    let is_same = |it: &Transition| match &it.change {
        Change::Breaker { breaker: other, .. } => {
            let (one, other) = (describe_breaker(breaker, ""), describe_breaker(other, ""));
            it.scope == Scope::Endpoint
                && &*it.backend == provider
                && (one.from, one.to) == (other.from, other.to)
        }
        Change::Marked { .. } | Change::Healed { .. } | Change::Suspected { .. } => false,
    };
    model == "*" || all.iter().any(is_same)
}

/// A line for every route whose requests go elsewhere since these changes.
fn moved_traffic(gateway: &Gateway, transitions: &[Transition]) {
    let live = gateway.live.load();
    let now = gateway.now();
    let concerns = |target: &String| {
        let provider = target.split_once('/').map_or("", |(provider, _)| provider);
        let is_it = |id: &str| {
            id == target || id == provider || id.split_once('#').is_some_and(|it| it.0 == provider)
        };
        transitions.iter().any(|it| is_it(&it.backend))
    };
    for (name, file) in &live.file.routes {
        if !file.tiers.iter().flatten().any(concerns) {
            continue;
        }
        let Some(explained) = explained(&live, name, now) else { continue };
        let to: Vec<String> = first_choices(&explained).into_iter().map(str::to_owned).collect();
        let mut known = gateway.first_choices.lock().unwrap_or_else(PoisonError::into_inner);
        let is_used = |target: &&String| {
            !live.unconfigured.contains(target.split_once('/').map_or("", |it| it.0))
        };
        let at_first =
            || file.tiers.first().into_iter().flatten().filter(is_used).cloned().collect();
        let from = known.insert(name.clone(), to.clone()).unwrap_or_else(at_first);
        drop(known);
        if from != to {
            let (was, is) = (listed(&from), listed(&to));
            tracing::info!(route = name.as_str(), from = was, to = is, "traffic moved");
            let record = MoveRecord { at: now, route: name.clone(), from, to };
            gateway.journal.event(now, EventBody::Moved(Arc::new(record)));
        }
    }
}

fn listed(targets: &[String]) -> String {
    if targets.is_empty() { "nothing".to_owned() } else { targets.join(", ") }
}

/// How much a change matters to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Degraded,
    News,
    Detail,
}

impl Weight {
    const fn word(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::News => "news",
            Self::Detail => "detail",
        }
    }
}

/// A change in words.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    weight: Weight,
    from: &'static str,
    to: &'static str,
    reason: &'static str,
    /// For people: the reason with its evidence.
    detail: String,
    until: Option<Now>,
}

macro_rules! tell {
    ($level:ident, $transition:expr, $told:expr, $until:expr) => {
        tracing::$level!(
            target: TRANSITION,
            backend = &*$transition.backend,
            scope = scope_word($transition.scope),
            from = $told.from,
            to = $told.to,
            reason = $told.reason,
            detail = $told.detail.as_str(),
            until = $until,
            "a backend changed state"
        )
    };
}

fn log_transition(transition: &Transition, told: &Told, until: Option<&str>) {
    match told.weight {
        Weight::Degraded => tell!(warn, transition, told, until),
        Weight::News => tell!(info, transition, told, until),
        Weight::Detail => tell!(debug, transition, told, until),
    }
}

const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Backend => "backend",
        Scope::Endpoint => "endpoint",
        Scope::Key => "key",
    }
}

fn describe(change: &Change) -> Told {
    match change {
        Change::Breaker { breaker, evidence, status, .. } => {
            describe_breaker(breaker, &evidence_words(*evidence, *status))
        }
        Change::Marked { key, until, reason, status } => {
            let key = key.as_ref().map(|key| format!(" (key {key})")).unwrap_or_default();
            let is_news = matches!(
                reason,
                MarkReason::RateLimited | MarkReason::RetryAfter | MarkReason::Manual
            );
            Told {
                weight: if is_news { Weight::News } else { Weight::Degraded },
                from: USABLE,
                to: mark_state(*reason),
                reason: reason.word(),
                detail: format!("{}{key}", mark_words(*reason, *status)),
                until: Some(*until),
            }
        }
        Change::Suspected { until } => Told {
            weight: Weight::News,
            from: USABLE,
            to: "suspected",
            reason: "opened_elsewhere",
            detail: "another replica's breaker opened: the next failure opens this one".to_owned(),
            until: Some(*until),
        },
        Change::Healed { reason } => Told {
            weight: Weight::News,
            from: mark_state(*reason),
            to: USABLE,
            reason: reason.word(),
            detail: match reason {
                MarkReason::Manual => "switched on by an operator".to_owned(),
                _ => "healed before its time".to_owned(),
            },
            until: None,
        },
    }
}

/// The state of a key or target that nothing stands against.
const USABLE: &str = "usable";

const fn mark_state(reason: MarkReason) -> &'static str {
    match reason {
        MarkReason::RateLimited | MarkReason::RetryAfter => "window",
        MarkReason::AuthRejected | MarkReason::Exhausted | MarkReason::ModelGone => "excluded",
        MarkReason::Manual => "off",
    }
}

/// What stands against a key or target, for people.
pub fn mark_words(reason: MarkReason, status: Option<u16>) -> String {
    let words = match reason {
        MarkReason::RateLimited => "rate limited",
        MarkReason::RetryAfter => "asked us to come back later",
        MarkReason::AuthRejected => "our key was rejected",
        MarkReason::Exhausted => "quota or credit used up",
        MarkReason::ModelGone => "the model does not exist",
        MarkReason::Manual => return "switched off by an operator".to_owned(),
    };
    status.map_or_else(|| words.to_owned(), |status| format!("{status} {words}"))
}

fn describe_breaker(change: &BreakerChange, evidence: &str) -> Told {
    match change {
        BreakerChange::Opened { from, until, cause, .. } => {
            let (reason, detail) = open_words(cause, evidence);
            Told {
                weight: Weight::Degraded,
                from: from.word(),
                to: State::Open.word(),
                reason,
                detail,
                until: Some(*until),
            }
        }
        BreakerChange::Closed { from, cause } => {
            let (reason, detail) = match cause {
                CloseCause::TrialsPassed(count) => {
                    ("trials_passed", format!("{count} of {count} trials passed"))
                }
                CloseCause::ProbePassed(_) => ("probe_passed", "a probe passed".to_owned()),
                CloseCause::Reset => ("reset", "reset by an operator".to_owned()),
            };
            Told {
                weight: Weight::News,
                from: from.word(),
                to: State::Closed.word(),
                reason,
                detail,
                until: None,
            }
        }
        BreakerChange::Extended { until } => Told {
            weight: Weight::Detail,
            from: State::Open.word(),
            to: State::Open.word(),
            reason: "probe_failed",
            detail: "a probe failed".to_owned(),
            until: Some(*until),
        },
    }
}

fn open_words(cause: &OpenCause, evidence: &str) -> (&'static str, String) {
    match cause {
        OpenCause::ConsecutiveFailures(count) => {
            ("consecutive_failures", format!("{count} × {evidence} in a row"))
        }
        OpenCause::BrokenAnswers(count) => {
            ("broken_answers", format!("{count} answers in a row broke"))
        }
        OpenCause::FailureRatio { failed, samples } => {
            ("failure_ratio", format!("{failed} of {samples} attempts failed, last {evidence}"))
        }
        OpenCause::TrialFailed => ("trial_failed", format!("a trial failed: {evidence}")),
        OpenCause::ProbeFailed => ("probe_failed", "a probe failed".to_owned()),
        OpenCause::Held => ("held", "an operator holds it open".to_owned()),
        OpenCause::Suspected(count) => {
            let what = format!("{count} in a row, after another replica's breaker opened");
            ("suspected", format!("{what}: {evidence}"))
        }
    }
}

/// `529 overloaded`; the last failure stands for a streak, which is mostly of one kind.
fn evidence_words(evidence: Option<OutcomeKind>, status: Option<u16>) -> String {
    let words = evidence.map_or("probe failed", OutcomeKind::word).replace('_', " ");
    status.map_or_else(|| words.clone(), |status| format!("{status} {words}"))
}

#[cfg(test)]
mod tests;
