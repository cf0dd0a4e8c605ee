//! What the auditor checks of a choice: limits, reads, gates, budget, pin.

use std::sync::Arc;

use tidegate_core::{
    attempt::Attempt,
    breaker::State,
    choice::{PinUse, SelectedBy},
    plan::Plan,
    read::Read,
    settings::Tactic,
    time::Now,
};

use super::Auditor;

/// A choice as seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// When it was made.
    pub now: Now,
    /// The plan that made it; its latest attempt is the one in question.
    pub plan: &'a Plan,
    /// What was read for it.
    pub reads: &'a [Read],
    /// The session's live pin before the choice.
    pub pin_before: Option<&'a Arc<str>>,
    /// The session's live pin after it.
    pub pin_after: Option<&'a Arc<str>>,
}

impl Chosen<'_> {
    pub(super) fn attempt(&self) -> &Attempt {
        self.plan.attempts().iter().last().expect("a plan that gave an attempt has logged it")
    }
}

/// A half-open backend that had this many chances in a row and got no trial is starved. Under
/// chance alone, with ten peers, that happens once in 10^21 runs.
const CHANCES_MAX: u32 = 500;

impl Auditor {
    /// I7 and I8.
    pub(super) fn check_limits(&mut self, chosen: &Chosen<'_>, attempt: &Attempt) {
        let (now, log) = (chosen.now, chosen.plan.attempts());
        let count = log.len();
        if count > self.max_attempts {
            let most = self.max_attempts;
            self.violate("I7", now, || format!("{count} attempts, the most is {most}"));
        }
        if now.reached(chosen.plan.deadline()) {
            self.violate("I7", now, || "an attempt began after the deadline".to_owned());
        }
        if count == 1 {
            return;
        }
        let earlier = || log.iter().take(count - 1);
        let is_same = |it: &&Attempt| (it.candidate, it.key) == (attempt.candidate, attempt.key);
        if earlier().any(|it| is_same(&it)) {
            let candidate = attempt.candidate;
            self.violate("I7", now, || format!("candidate {candidate} was tried twice"));
        }
        if earlier().any(|it| it.has_content || it.committed.is_some()) {
            self.violate("I8", now, || "an attempt after an answer was committed".to_owned());
        }
    }

    /// I3, I17: what was read is what the transitions told, and no slot is missing.
    pub(super) fn check_reads(&mut self, chosen: &Chosen<'_>) {
        let now = chosen.now;
        for read in chosen.reads {
            let backend = self.backend_of(chosen.plan, read.candidate);
            let shadow = &self.shadows[backend];
            if read.state != shadow.state(now) || read.generation != shadow.generation {
                let (id, told) = (shadow.id.clone(), shadow.state(now).word());
                let found = read.state.word();
                self.violate("I17", now, || format!("`{id}` is {found}, but was told {told}"));
            }
            let shadow = &self.shadows[backend];
            if read.in_flight != shadow.in_flight {
                let (id, books, found) = (shadow.id.clone(), shadow.in_flight, read.in_flight);
                self.violate("I3", now, || {
                    format!("`{id}` has {found} in flight, by the books {books}")
                });
            }
            let is_full = std::iter::once(backend)
                .chain(self.endpoints[backend])
                .any(|index| self.shadows[index].is_full(now));
            if read.is_full && !is_full {
                let id = self.shadows[backend].id.clone();
                self.violate("I3", now, || format!("`{id}` has no free slot, but none is taken"));
            }
        }
    }

    /// I6: past an open breaker goes only a recorded last resort, past a half-open one a trial.
    pub(super) fn check_gate(&mut self, now: Now, attempt: &Attempt, backend: usize) {
        let own = self.shadows[backend].state(now);
        let endpoint = self.endpoints[backend].map(|index| self.shadows[index].state(now));
        let worse = endpoint.map_or(own, |endpoint| own.max(endpoint));
        let is_right = match worse {
            State::Open => attempt.is_last_resort && attempt.rank.is_last_resort(),
            State::HalfOpen => attempt.is_trial || attempt.is_last_resort,
            State::Closed => !attempt.is_trial && !attempt.is_last_resort,
        };
        if !is_right {
            let (id, state) = (self.shadows[backend].id.clone(), worse.word());
            self.violate("I6", now, || format!("`{id}` got a request while {state}"));
        }
    }

    /// I19: a hop that is not free leaves the budget's window within its limit.
    pub(super) fn check_budget(&mut self, chosen: &Chosen<'_>, attempt: &Attempt) {
        let hop = chosen.plan.attempts().len() - 1;
        let is_free = hop == 0 || (hop == 1 && attempt.rank.is_clear());
        if is_free {
            return;
        }
        let now = chosen.now;
        self.hops.add(now);
        let is_old = now.since(chosen.plan.began()) >= self.budget.window;
        let requests = self.requests.count(now) + usize::from(is_old);
        let allowed = self.budget.ratio * requests as f64 + f64::from(self.budget.floor);
        let hops = self.hops.count(now);
        if hops as f64 > allowed {
            self.violate("I19", now, || format!("{hops} hops in the window, {allowed:.1} allowed"));
        }
    }

    /// I26: a target gets no more attempts past its breaker or exclusion than the limit allows.
    pub(super) fn check_last_resort(
        &mut self,
        chosen: &Chosen<'_>,
        attempt: &Attempt,
        backend: usize,
    ) {
        let now = chosen.now;
        let mut reads = chosen.reads.iter();
        let is_limited = reads.any(|it| it.candidate == attempt.candidate && it.is_limited);
        if is_limited && !self.tokens[backend].take(now) {
            let id = self.shadows[backend].id.clone();
            self.violate("I26", now, || format!("`{id}` got too many last resorts"));
        }
    }

    /// I20: a pin is followed, kept or replaced as the attempt says, and for what was read.
    pub(super) fn check_pin(&mut self, chosen: &Chosen<'_>, attempt: &Attempt) {
        let (before, after) = (chosen.pin_before, chosen.pin_after);
        let target = chosen.plan.route().backend(attempt.candidate).id();
        let is_first = chosen.plan.attempts().len() == 1;
        let is_right = match (is_first, attempt.pin) {
            (false, _) => before == after,
            (true, PinUse::Honoured) => before == after && before == Some(target),
            (true, PinUse::KeptWhileFull | PinUse::KeptOverLimit) => {
                before == after && before.is_some()
            }
            (true, PinUse::Declined) => {
                after == Some(target) && before.is_none_or(|pin| is_passed_over(chosen, pin))
            }
            (true, PinUse::None | PinUse::Expired) => {
                before.is_none() && (after.is_none() || after == Some(target))
            }
        };
        if !is_right {
            let (said, target) = (attempt.pin, target.clone());
            let (before, after) = (before.cloned(), after.cloned());
            self.violate("I20", chosen.now, || {
                format!("pin {before:?} became {after:?} at `{target}` ({said:?})")
            });
        }
    }

    /// I18: a half-open backend that could be picked is picked before long.
    pub(super) fn check_starvation(&mut self, chosen: &Chosen<'_>, attempt: &Attempt) {
        let is_fair = matches!(self.tactic, Tactic::Random | Tactic::RoundRobin);
        if attempt.by != SelectedBy::Tactic || !is_fair {
            return;
        }
        let tier = chosen.reads.iter().find(|it| it.candidate == attempt.candidate);
        let Some(tier) = tier.map(|it| it.tier) else { return };
        for read in chosen.reads {
            let could = read.state == State::HalfOpen && read.rank.is_clear() && read.tier == tier;
            if !could || read.candidate == attempt.candidate {
                continue;
            }
            let backend = self.backend_of(chosen.plan, read.candidate);
            let shadow = &mut self.shadows[backend];
            shadow.chances += 1;
            if shadow.chances == CHANCES_MAX {
                let id = shadow.id.clone();
                self.violate("I18", chosen.now, || {
                    format!("`{id}` was passed over {CHANCES_MAX} times while half-open")
                });
            }
        }
    }
}

/// Whether the reads give a reason to leave a pin: its target is out of the running, something
/// stands against it, or a better tier is there and not in its promotion hold.
fn is_passed_over(chosen: &Chosen<'_>, pin: &Arc<str>) -> bool {
    let id = |read: &Read| chosen.plan.route().backend(read.candidate).id();
    let Some(pinned) = chosen.reads.iter().find(|read| id(read) == pin) else { return true };
    let best = chosen.reads.iter().map(|read| read.rank).min();
    let is_drawn_up = chosen
        .reads
        .iter()
        .any(|read| Some(read.rank) == best && read.tier < pinned.tier && !read.is_held);
    Some(pinned.rank) != best || is_drawn_up
}
