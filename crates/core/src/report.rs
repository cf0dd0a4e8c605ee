//! What an attempt, or a probe, does to health: the one door through which evidence enters.
//!
//! An attempt reports up to three times: its response head (the endpoint can be reached), its
//! first content (a trial has succeeded), its outcome. Each later report implies the earlier ones
//! that the outcome proves, so a caller that never streams reports the outcome alone.
//!
//! Rules kept here:
//! - The own breaker hears every outcome, the endpoint only of reachability: any head is a
//!   success, a transport failure without one is a failure, everything else is neutral.
//! - A probe of a server says as much as an attempt: its outcome sets windows and exclusions, and
//!   charges the breaker, by the same table. Rejected credentials stand until the next probe tells
//!   something else.
//! - Windows, exclusions, last error and last check are set also by an attempt whose breaker part
//!   is void: one of an old generation, on an ended lease, or a last resort.

use std::sync::Arc;

use crate::{
    backend::{Backend, Endpoint, TargetKey},
    breaker::{BreakerChange, Pass},
    cell::{Cell, Guarded},
    hint::Excluded,
    mark::{Exclusion, Mark, MarkReason},
    outcome::{Charge, MarkRule, Outcome, OutcomeKind},
    permit::Permit,
    tell::ExclusionNews,
    time::{Millis, Now},
    transition::{Change, Notes, Scope, Transition},
};

impl Permit {
    /// A response head arrived: the endpoint's part ends here.
    pub fn head(&mut self, now: Now, notes: &mut Notes) {
        self.has_head = true;
        if let (Some(pass), Some(endpoint)) = (self.endpoint.take(), &self.backend.endpoint) {
            reached(endpoint, now, pass, notes);
        }
    }

    /// The first content arrived, `took` after the request had been sent.
    pub fn content(&mut self, now: Now, took: Millis, notes: &mut Notes) {
        if self.has_content {
            return;
        }
        self.head(now, notes);
        self.has_content = true;
        self.time_to_content = Some(took);
        let backend = &self.backend;
        let (own, is_stream) = (self.own.as_mut(), self.is_stream);
        let change = backend.health.cell.with(|guarded| {
            guarded.latency.sample(now, took);
            guarded.usual.sample(is_stream, now, took);
            let change = own.and_then(|pass| guarded.breaker.content(now, pass));
            change.map(|change| breaker_change(now, change, guarded, None))
        });
        backend.record_breaker(now, change, notes);
    }

    /// The attempt ended. Ends the permit.
    pub fn report(mut self, now: Now, outcome: &Outcome, notes: &mut Notes) {
        self.report_reachability(now, outcome, notes);
        self.backend.set_marks(now, self.key, outcome, Millis::ZERO, notes);
        let is_charged = self.backend.is_charged(now, self.key, outcome);
        let (pass, backend) = (self.own.take(), &self.backend);
        if outcome.kind == OutcomeKind::Success {
            backend.health.contact.succeeded(now);
        }
        // An answer that was committed without content can break before its content.
        let is_broken = outcome.kind == OutcomeKind::Truncated && self.held.committed.is_none();
        let after_content = self.has_content || is_broken;
        let change = backend.health.cell.with(|guarded| {
            guarded.note(now, outcome);
            let breaker = &mut guarded.breaker;
            let pass = pass?;
            let change = match outcome.kind.policy().charge {
                Charge::Success => breaker.success(now, pass),
                Charge::Failure | Charge::FailureUnlessTimed if is_charged => {
                    breaker.failure(now, pass, after_content)
                }
                Charge::Failure | Charge::FailureUnlessTimed | Charge::Nothing => {
                    breaker.release(&pass);
                    None
                }
            };
            change.map(|change| breaker_change(now, change, guarded, Some(outcome)))
        });
        backend.record_breaker(now, change, notes);
    }

    fn report_reachability(&mut self, now: Now, outcome: &Outcome, notes: &mut Notes) {
        let had_head = matches!(outcome.kind, OutcomeKind::Success | OutcomeKind::Truncated);
        if had_head || outcome.status.is_some() {
            self.head(now, notes);
        }
        let (Some(pass), Some(endpoint)) = (self.endpoint.take(), &self.backend.endpoint) else {
            return;
        };
        let is_failure = outcome.kind == OutcomeKind::Transport;
        let change = endpoint.cell.with(|guarded| {
            if !is_failure {
                guarded.breaker.release(&pass);
                return None;
            }
            guarded.note(now, outcome);
            let change = guarded.breaker.failure(now, pass, false);
            change.map(|change| breaker_change(now, change, guarded, Some(outcome)))
        });
        endpoint.record_breaker(now, change, notes);
    }
}

/// Where an outcome leaves its mark.
enum MarkPlace<'a> {
    Window(&'a Mark),
    /// With its name in the fleet.
    Exclusion(&'a Exclusion, Option<Excluded>),
}

impl Backend {
    /// A 429 that does not say when is charged only when no other free key is left.
    fn is_charged(&self, now: Now, key: usize, outcome: &Outcome) -> bool {
        outcome.kind.policy().charge == Charge::Failure
            || (outcome.stated_retry_after().is_none()
                && !self.has_free_key(now, |other| other != key))
    }

    /// Sets what an outcome with a key leaves behind; rejected credentials stand for `at_least`.
    fn set_marks(
        &self,
        now: Now,
        key: usize,
        outcome: &Outcome,
        at_least: Millis,
        notes: &mut Notes,
    ) {
        let backend = self;
        let windows = &backend.windows;
        let key = &backend.keys[key];
        let rejected_for = windows.auth.max(at_least);
        let (mark, owner, scope, reason, span) = match outcome.kind.policy().mark {
            MarkRule::None if outcome.kind == OutcomeKind::Success => {
                return self.heal(now, key, notes);
            }
            MarkRule::None => return,
            MarkRule::WindowIfStated if !outcome.is_5xx() => return,
            MarkRule::WindowIfStated => {
                let Some(stated) = outcome.stated_retry_after() else { return };
                let mark = MarkPlace::Window(&key.window);
                (mark, &backend.id, Scope::Backend, MarkReason::RetryAfter, stated)
            }
            MarkRule::Window => {
                let span = outcome.stated_retry_after().unwrap_or(windows.rate_limit);
                let mark = MarkPlace::Window(&key.window);
                (mark, &backend.id, Scope::Backend, MarkReason::RateLimited, span)
            }
            MarkRule::KeyExhausted => {
                let mark = MarkPlace::Exclusion(&key.exclusion, backend.key_excluded(key));
                (mark, &key.key.id, Scope::Key, MarkReason::Exhausted, windows.exhausted)
            }
            // A 403 may be about the model: the key's other targets are not touched.
            MarkRule::KeyRejected if outcome.status == Some(403) => {
                let mark = MarkPlace::Exclusion(&key.refusal, backend.pair_excluded(key));
                (mark, &backend.id, Scope::Backend, MarkReason::AuthRejected, rejected_for)
            }
            MarkRule::KeyRejected => {
                let mark = MarkPlace::Exclusion(&key.exclusion, backend.key_excluded(key));
                (mark, &key.key.id, Scope::Key, MarkReason::AuthRejected, rejected_for)
            }
            MarkRule::ModelGone => {
                let mark =
                    MarkPlace::Exclusion(&backend.health.exclusion, backend.model_excluded());
                (mark, &backend.id, Scope::Backend, MarkReason::ModelGone, windows.model_gone)
            }
        };
        let until = now.after(span);
        // A window of no length stands at no moment: there is nothing to tell.
        if until <= now {
            return;
        }
        let is_set = match mark {
            MarkPlace::Window(mark) => {
                let is_set = mark.extend(until, reason);
                if is_set {
                    backend.tell_window(now, key, until, reason, notes);
                }
                is_set
            }
            MarkPlace::Exclusion(mark, of) => match mark.extend(until, reason) {
                None => false,
                Some(version) => {
                    let news = ExclusionNews { version, until: Some(until), reason };
                    backend.tell_exclusion(now, of, &news, notes);
                    true
                }
            },
        };
        if is_set {
            let is_of_pair = scope == Scope::Backend && reason != MarkReason::ModelGone;
            let key = is_of_pair.then(|| Arc::clone(&key.key.id));
            let change = Change::Marked { key, until, reason, status: outcome.status };
            notes.record(now, owner, scope, Some(change));
        }
    }

    /// A success heals the exclusions of its key, of its target and of the two together; a window
    /// it leaves.
    pub(crate) fn heal(&self, now: Now, key: &TargetKey, notes: &mut Notes) {
        self.heal_key(now, key, notes);
        let exclusion = &self.health.exclusion;
        self.heal_one(now, (exclusion, &self.id, Scope::Backend), Self::model_excluded, notes);
    }

    /// The same of one key, everywhere and here.
    pub(crate) fn heal_key(&self, now: Now, key: &TargetKey, notes: &mut Notes) {
        let (everywhere, here) = (&*key.exclusion, &*key.refusal);
        let name = |it: &Self| it.key_excluded(key);
        self.heal_one(now, (everywhere, &key.key.id, Scope::Key), name, notes);
        let name = |it: &Self| it.pair_excluded(key);
        self.heal_one(now, (here, &self.id, Scope::Backend), name, notes);
    }

    fn heal_one(
        &self,
        now: Now,
        (exclusion, owner, scope): (&Exclusion, &Arc<str>, Scope),
        name: impl FnOnce(&Self) -> Option<Excluded>,
        notes: &mut Notes,
    ) {
        let Some((ended, version)) = exclusion.heal(now) else { return };
        let reason = ended.reason;
        notes.record(now, owner, scope, Some(Change::Healed { reason }));
        self.tell_exclusion(
            now,
            name(self),
            &ExclusionNews { version, until: None, reason },
            notes,
        );
    }

    /// A probe of a server, which has one key, ended; the next one ends within `next_in`.
    pub(crate) fn server_probed(
        &self,
        now: Now,
        outcome: &Outcome,
        next_in: Millis,
        notes: &mut Notes,
    ) {
        // What stands already and goes on standing is no news.
        let key = &self.keys[0];
        let stood = [&*key.exclusion, &*key.refusal].iter().any(|it| it.active(now).is_some());
        let is_news = outcome.kind == OutcomeKind::Success || !stood;
        let mut discarded = Notes::default();
        let marks = if is_news { &mut *notes } else { &mut discarded };
        self.set_marks(now, 0, outcome, next_in, marks);
        // To other replicas it is: they do not know how long it goes on.
        notes.hints.append(&mut discarded.hints);
        let is_charged = self.is_charged(now, 0, outcome);
        let change = self.health.cell.with(|guarded| {
            guarded.note(now, outcome);
            let breaker = &mut guarded.breaker;
            let change = match outcome.kind.policy().charge {
                Charge::Success => breaker.probe_passed(now),
                Charge::Failure | Charge::FailureUnlessTimed if is_charged => {
                    breaker.probe_failed(now)
                }
                Charge::Failure | Charge::FailureUnlessTimed | Charge::Nothing => None,
            };
            change.map(|change| breaker_change(now, change, guarded, Some(outcome)))
        });
        self.record_breaker(now, change, notes);
    }

    fn record_breaker(&self, now: Now, news: Option<BreakerNews>, notes: &mut Notes) {
        let Some(news) = news else { return };
        if news.is_told {
            self.tell_opening(now, &news.change, notes);
        }
        notes.record(now, &self.id, Scope::Backend, Some(news.change));
    }
}

fn reached(endpoint: &Endpoint, now: Now, pass: Pass, notes: &mut Notes) {
    endpoint.contact.succeeded(now);
    // The common case changes nothing and takes no lock that a provider's targets share.
    if !pass.is_trial() && endpoint.cell.gate().is_spotless {
        return;
    }
    let change = endpoint.cell.with(|guarded| {
        guarded.last_check = Some(now);
        guarded.last_error = None;
        let change = guarded.breaker.success(now, pass);
        change.map(|change| breaker_change(now, change, guarded, None))
    });
    endpoint.record_breaker(now, change, notes);
}

impl Endpoint {
    pub(crate) fn probed(&self, now: Now, passed: bool, notes: &mut Notes) {
        self.record_breaker(now, probed(&self.cell, now, passed), notes);
    }

    fn record_breaker(&self, now: Now, news: Option<BreakerNews>, notes: &mut Notes) {
        let Some(news) = news else { return };
        if news.is_told {
            self.tell_opening(now, &news.change, notes);
        }
        notes.record(now, &self.id, Scope::Endpoint, Some(news.change));
    }
}

impl Backend {
    pub(crate) fn probed(&self, now: Now, passed: bool, notes: &mut Notes) {
        self.record_breaker(now, probed(&self.health.cell, now, passed), notes);
    }
}

fn probed(cell: &Cell, now: Now, passed: bool) -> Option<BreakerNews> {
    cell.with(|guarded| {
        guarded.note_probe(now, passed);
        let breaker = &mut guarded.breaker;
        let change = if passed { breaker.probe_passed(now) } else { breaker.probe_failed(now) };
        change.map(|change| breaker_change(now, change, guarded, None))
    })
}

/// A change of a breaker, and whether other replicas hear of it.
struct BreakerNews {
    change: Change,
    is_told: bool,
}

fn breaker_change(
    now: Now,
    change: BreakerChange,
    guarded: &Guarded,
    outcome: Option<&Outcome>,
) -> BreakerNews {
    if cfg!(debug_assertions) {
        guarded.breaker.check_invariants(now);
    }
    let change = Change::Breaker {
        breaker: change,
        generation: guarded.breaker.gate().generation,
        evidence: outcome.map(|outcome| outcome.kind),
        status: outcome.and_then(|outcome| outcome.status),
    };
    BreakerNews { change, is_told: guarded.breaker.is_told() }
}

impl Notes {
    pub(crate) fn record(
        &mut self,
        at: Now,
        whose: &Arc<str>,
        scope: Scope,
        change: Option<Change>,
    ) {
        if let Some(change) = change {
            let (backend, is_heard) = (Arc::clone(whose), false);
            self.transitions.push(Transition { at, backend, scope, change, is_heard });
        }
    }
}
