//! Hearing: the one door through which the evidence of other replicas enters.
//!
//! | heard | effect |
//! |---|---|
//! | a window | the later end counts |
//! | an exclusion | the higher version counts, then the later end |
//! | a drain, a hold | the higher version counts, then the writer; the same for as long |
//! | a reset | the same, once |
//! | an opening | suspicion: the next failure opens, and the next probe comes soon |
//! | a pin | the higher version counts, then the writer |
//!
//! Rules kept here:
//! - Except for what operators do, nothing that is heard opens or closes a breaker or takes the
//!   last candidate of a request away (I22).
//! - Every rule takes a maximum: the order of hints, and how often each comes, does not matter.
//! - What is heard is cut to what this replica could have set itself, from when it was told:
//!   neither a late nor a second hearing extends anything.
//! - What is unknown here, or not shared, is ignored. Nothing that was heard is told again.

use std::sync::Arc;

use crate::{
    backend::{Backend, TargetKey},
    core::Core,
    draw::{below, mix},
    hint::{
        ACTION_MAX, BreakerOf, EVENT_LIFE, Excluded, Fact, Heard, Hint, Lasts, OperatorAction,
        Stamp,
    },
    mark::{Exclusion, HeardExclusion, MarkReason, MergedExclusion},
    names::{Fingerprint, PinKey},
    outcome::RETRY_AFTER_MAX,
    pins::Pin,
    sync::lock,
    time::{Millis, Now},
    transition::{Change, Notes, Scope, Transition},
};

/// A suspicion brings the next probe forward to a random moment of so much time.
const PROBE_WITHIN: Millis = Millis::seconds(1);

/// When a hint was told, by this replica's clock.
#[derive(Clone, Copy)]
struct Told {
    now: Now,
    age: Millis,
    /// The start of this replica's time, for what was told before it.
    at: Now,
}

impl Told {
    /// The end of something that had this much time left when it was told, and can have no more
    /// than `longest`.
    fn end(self, remaining: Millis, longest: Millis) -> Now {
        self.now.after(Millis(remaining.min(longest).0.saturating_sub(self.age.0)))
    }
}

impl Core {
    /// Another replica told something.
    pub fn hear(&self, now: Now, hint: &Hint, notes: &mut Notes) -> Heard {
        let Some(fleet) = &self.fleet else { return Heard::Unknown };
        if hint.stamp.writer == fleet.replica {
            return Heard::Own;
        }
        let told = Told { now, age: hint.age, at: Now(now.0.saturating_sub(hint.age.0)) };
        let heard_from = notes.transitions.len();
        let heard = match hint.fact {
            Fact::Window { backend, key, remaining, reason } => {
                self.hear_window(told, (backend, key), remaining, reason, notes)
            }
            Fact::Exclusion { of, remaining, reason } => {
                self.hear_exclusion(told, of, (hint.stamp.version, remaining), reason, notes)
            }
            Fact::Action { backend, action, lasts } => {
                let act = |it: &Arc<Backend>, notes: &mut Notes| {
                    it.hear_action(told, hint.stamp, action, lasts, notes)
                };
                self.each(backend, notes, act)
            }
            Fact::Reset { .. } if hint.age > EVENT_LIFE => Heard::Late,
            Fact::Reset { backend } => {
                let reset =
                    |it: &Arc<Backend>, notes: &mut Notes| it.hear_reset(told, hint.stamp, notes);
                self.each(backend, notes, reset)
            }
            Fact::Opened { of, remaining, .. } => self.hear_opening(told, of, remaining, notes),
            Fact::Pin { session, backend, key, remaining, stays } => {
                self.hear_pin(told, (session, hint.stamp), (backend, key), (remaining, stays))
            }
        };
        for transition in &mut notes.transitions[heard_from..] {
            transition.is_heard = true;
        }
        heard
    }

    /// What is done to every backend of a name: the same url and model may stand in a config twice.
    fn each(
        &self,
        name: Fingerprint,
        notes: &mut Notes,
        hear: impl Fn(&Arc<Backend>, &mut Notes) -> Heard,
    ) -> Heard {
        let known = self.backends.iter().filter(|it| it.fleet.has(name));
        known.map(|it| hear(it, notes)).min().unwrap_or(Heard::Unknown)
    }

    fn hear_window(
        &self,
        told: Told,
        (backend, key): (Fingerprint, Fingerprint),
        remaining: Millis,
        reason: MarkReason,
        notes: &mut Notes,
    ) -> Heard {
        let mut heard = Heard::Unknown;
        for backend in self.backends.iter().filter(|it| it.fleet.has(backend)) {
            let until = told.end(remaining, backend.windows.rate_limit.max(RETRY_AFTER_MAX));
            for key in backend.keys.iter().filter(|it| it.key.fleet.has(key)) {
                heard = heard.min(backend.take_window(told, key, (until, reason), notes));
            }
        }
        heard
    }

    fn hear_exclusion(
        &self,
        told: Told,
        of: Excluded,
        (version, remaining): (u64, Option<Millis>),
        reason: MarkReason,
        notes: &mut Notes,
    ) -> Heard {
        let mut heard = Heard::Unknown;
        for backend in &self.backends {
            let windows = &backend.windows;
            let longest = match reason {
                MarkReason::Exhausted => windows.exhausted,
                MarkReason::ModelGone => windows.model_gone,
                MarkReason::AuthRejected
                | MarkReason::RateLimited
                | MarkReason::RetryAfter
                | MarkReason::Manual => windows.auth,
            };
            let until = remaining.map(|remaining| told.end(remaining, longest));
            let exclusion = HeardExclusion { version, until, reason };
            let keys = backend.keys.iter();
            match of {
                Excluded::Model(name) if backend.fleet.has(name) => {
                    let place = (&backend.health.exclusion, &backend.id, Scope::Backend, None);
                    heard = heard.min(take_exclusion(told.now, place, &exclusion, notes));
                }
                Excluded::Key(name) => {
                    for key in keys.filter(|it| it.key.fleet.has(name)) {
                        let place = (&*key.exclusion, &key.key.id, Scope::Key, None);
                        heard = heard.min(take_exclusion(told.now, place, &exclusion, notes));
                    }
                }
                Excluded::Pair { backend: name, key } if backend.fleet.has(name) => {
                    for key in keys.filter(|it| it.key.fleet.has(key)) {
                        let id = Some(&key.key.id);
                        let place = (&*key.refusal, &backend.id, Scope::Backend, id);
                        heard = heard.min(take_exclusion(told.now, place, &exclusion, notes));
                    }
                }
                Excluded::Model(_) | Excluded::Pair { .. } => {}
            }
        }
        heard
    }

    fn hear_opening(
        &self,
        told: Told,
        of: BreakerOf,
        remaining: Millis,
        notes: &mut Notes,
    ) -> Heard {
        let now = told.now;
        let mut heard = Heard::Unknown;
        let mut suspect = |cell: &crate::cell::Cell, id: &Arc<str>, scope| {
            let until = cell.with(|guarded| {
                let until = told.end(remaining, guarded.breaker.longest_open());
                guarded.breaker.suspect(now, told.at, until).then_some(until)
            });
            let change = until.map(|until| Change::Suspected { until });
            let is_late = now.reached(told.end(remaining, Millis(u64::MAX)));
            heard = heard.min(match (&change, is_late) {
                (Some(_), _) => Heard::Taken,
                (None, true) => Heard::Late,
                (None, false) => Heard::Known,
            });
            notes.record(now, id, scope, change);
            until.is_some()
        };
        match of {
            BreakerOf::Backend(name) => {
                for backend in self.backends.iter().filter(|it| it.fleet.has(name)) {
                    if suspect(&backend.health.cell, &backend.id, Scope::Backend) {
                        backend.contact().hasten(now, self.soon(now, &backend.id));
                    }
                }
            }
            BreakerOf::Endpoint(name) => {
                for endpoint in &self.endpoints {
                    if lock(&endpoint.fleet).has(name)
                        && suspect(&endpoint.cell, &endpoint.id, Scope::Endpoint)
                    {
                        endpoint.contact.hasten(now, self.soon(now, &endpoint.id));
                    }
                }
            }
        }
        heard
    }

    /// A random moment of the next second: replicas must not probe in step.
    fn soon(&self, now: Now, id: &str) -> Now {
        now.after(Millis(below(mix(self.seed_of(id) ^ now.0), PROBE_WITHIN.0)))
    }

    fn hear_pin(
        &self,
        told: Told,
        (session, stamp): (PinKey, Stamp),
        (backend, key): (Fingerprint, Fingerprint),
        (remaining, stays): (Millis, Millis),
    ) -> Heard {
        let Some(fleet) = &self.fleet else { return Heard::Unknown };
        let is_of =
            |name: &str| fleet.hash_keys.iter().any(|it| it.route_tag(name) == session.tag());
        let route = self.routes.iter().find(|it| is_of(&it.name));
        let Some(route) = route.filter(|it| it.affinity_ttl > Millis::ZERO) else {
            return Heard::Unknown;
        };
        let key_of =
            |it: &Backend| it.keys.iter().find(|it| it.key.fleet.has(key)).map(fingerprint);
        let named = route.candidates.iter().filter(|it| it.backend.fleet.has(backend));
        let Some((target, key)) = named.filter_map(|it| Some((it, key_of(&it.backend)?))).next()
        else {
            return Heard::Unknown;
        };
        let lower = route.candidates.iter().filter(|it| it.tier < target.tier);
        let longest = lower.map(|it| it.backend.promotion_hold).max().unwrap_or_default();
        let until = told.end(remaining, route.affinity_ttl);
        let stays_until = if stays > Millis::ZERO { told.end(stays, longest) } else { Now::ZERO };
        let pin = Pin { backend: target.backend.number, key: Some(key), until, stamp, stays_until };
        match self.pins.merge(told.now, session, pin) {
            true if pin.holds(told.now) => Heard::Taken,
            true => Heard::Late,
            false => Heard::Known,
        }
    }
}

fn fingerprint(key: &TargetKey) -> crate::settings::KeyFingerprint {
    key.key.fingerprint
}

/// An exclusion, whose it is, and which key it is about where that is not all.
type ExclusionPlace<'a> = (&'a Exclusion, &'a Arc<str>, Scope, Option<&'a Arc<str>>);

fn take_exclusion(
    now: Now,
    (exclusion, owner, scope, key): ExclusionPlace<'_>,
    heard: &HeardExclusion,
    notes: &mut Notes,
) -> Heard {
    let change = match exclusion.merge(now, heard) {
        MergedExclusion::Same => return Heard::Known,
        MergedExclusion::Healed(ended) => Change::Healed { reason: ended.reason },
        MergedExclusion::Set(it) => {
            let key = key.map(Arc::clone);
            Change::Marked { key, until: it.until, reason: it.reason, status: None }
        }
    };
    // A key that several targets share is one thing.
    let is_told = |it: &Transition| (it.at, it.scope, &it.backend) == (now, scope, owner);
    if !notes.transitions.last().is_some_and(is_told) {
        notes.record(now, owner, scope, Some(change));
    }
    Heard::Taken
}

impl Backend {
    fn take_window(
        &self,
        told: Told,
        key: &TargetKey,
        (until, reason): (Now, MarkReason),
        notes: &mut Notes,
    ) -> Heard {
        let reset_at = lock(&self.health.actions).reset_at;
        if told.now.reached(until) {
            return Heard::Late;
        }
        // A reset ended what was known before.
        let is_overtaken = reset_at.is_some_and(|reset| told.at <= reset);
        if is_overtaken || !key.window.extend(until, reason) {
            return Heard::Known;
        }
        let id = Some(Arc::clone(&key.key.id));
        let change = Change::Marked { key: id, until, reason, status: None };
        notes.record(told.now, &self.id, Scope::Backend, Some(change));
        Heard::Taken
    }

    fn hear_action(
        &self,
        told: Told,
        stamp: Stamp,
        action: OperatorAction,
        lasts: Lasts,
        notes: &mut Notes,
    ) -> Heard {
        let now = told.now;
        let mut actions = lock(&self.health.actions);
        let seen = match action {
            OperatorAction::Drain => &mut actions.drain,
            OperatorAction::Hold => &mut actions.hold,
        };
        if stamp <= *seen {
            return Heard::Known;
        }
        *seen = stamp;
        let until = match lasts {
            Lasts::For(remaining) => {
                Some(told.end(remaining, ACTION_MAX)).filter(|it| !now.reached(*it))
            }
            Lasts::UntilEnded => Some(Now::NEVER),
            Lasts::Ended => None,
        };
        let change = match (action, until) {
            (OperatorAction::Drain, Some(until)) => {
                let reason = MarkReason::Manual;
                self.health.off.replace(until, reason);
                Some(Change::Marked { key: None, until, reason, status: None })
            }
            (OperatorAction::Drain, None) => {
                self.health.off.clear(now).map(|it| Change::Healed { reason: it.reason })
            }
            (OperatorAction::Hold, Some(until)) => Some(self.hold_open(now, until)),
            // Only a reset ends a hold before its time.
            (OperatorAction::Hold, None) if lasts == Lasts::Ended => {
                let is_held = self.health.cell.with(|guarded| guarded.breaker.is_held(now));
                if is_held { self.close_by_hand(now) } else { None }
            }
            (OperatorAction::Hold, None) => None,
        };
        notes.record(now, &self.id, Scope::Backend, change);
        Heard::Taken
    }

    fn hear_reset(&self, told: Told, stamp: Stamp, notes: &mut Notes) -> Heard {
        let mut actions = lock(&self.health.actions);
        if stamp <= actions.reset {
            return Heard::Known;
        }
        actions.reset = stamp;
        // Whoever reset it tells of the exclusions that ended: it is not told again.
        let hints = notes.hints.len();
        self.reset(told.now, told.at, actions, notes);
        notes.hints.truncate(hints);
        Heard::Taken
    }
}
