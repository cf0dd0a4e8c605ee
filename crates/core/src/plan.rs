//! The failover plan of one request: a state machine without I/O.
//!
//! ```text
//!   begin ─▶ next ─▶ Attempt(permit) ─▶ [head] ─▶ [content] ─▶ report ─▶ next ─▶ … ─▶ Finish
//! ```
//! The shell carries bytes between `next` and `report`; everything it must decide in between is
//! decided here.
//!
//! Rules kept here:
//! - A (target, key) is visited at most once; attempts are at most `max_hops` + 1; nothing starts
//!   after the deadline (I7).
//! - No next attempt once content was released (I8).
//! - Before anything is released, the client's patience may end an attempt or the request
//!   (`plan/patience.rs`).
//! - The first hop, to a target of rank 0, is free; every other hop draws on the budget, asked
//!   before the pick (I19).
//! - A session's pin is set at the first attempt; it moves only for a recorded reason (I20). Its
//!   key moves to the next free one when it is not free, without a new lock time.
//! - Attempts past a breaker or an exclusion are limited for each target of the route (I26).
//! - A tier is read only when those before it cannot serve (`plan/reading.rs`).

mod patience;
mod reading;

pub use patience::PatienceVerdict;

use std::sync::Arc;

use patience::{Patience, Unsettled};

use crate::{
    attempt::{Attempt, AttemptLog, End, Finish},
    backend::Backend,
    choice::{ChoiceInput, PinUse, SelectedBy, Selection, lowest_rank, select},
    draw::mix,
    hint::Haste,
    holder,
    names::PinKey,
    obstacle::{Obstacle, obstacles},
    outcome::{GoOn, Outcome, OutcomeKind},
    permit::Permit,
    pins::{Pin, Pins},
    rank::Rank,
    read::Read,
    route::{Ability, Barred, Lots, Needs, Route},
    settings::{KeyFingerprint, OnAuthError, PinMode},
    time::{Millis, Now},
    transition::Notes,
    wire_format::{SentAs, WireFormat},
};

/// What a request asks for, besides its route.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestSpec<'a> {
    /// Who asks.
    pub caller: &'a str,
    /// The conversation it belongs to; empty = none.
    pub session: &'a str,
    /// What a target must be able to do.
    pub needs: Needs,
    /// Whether the answer is to be streamed.
    pub is_stream: bool,
    /// A limit on the whole request besides the route's deadline.
    pub within: Option<Millis>,
    /// How long the client waits for the first byte of an answer, if it says so.
    pub patience: Option<Millis>,
    /// The backend that holds this conversation's state, where the owner of the conversation knows
    /// it: a pin that no table keeps, no time ends and no lower-numbered tier draws away.
    pub stays_at: Option<&'a str>,
    /// The id of the state that it refers to (`needs.state`); empty = none.
    pub state_id: &'a str,
}

/// What to do next.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would cost an allocation per attempt")]
pub enum Step {
    /// Make this attempt and report how it ended.
    Attempt(Permit),
    /// The request is over.
    Finish(Finish),
}

/// The plan of one request.
#[derive(Debug)]
pub struct Plan {
    route: Arc<Route>,
    pins: Arc<Pins>,
    states: Arc<Pins>,
    session: Option<PinKey>,
    /// The key that the state belongs to which the request refers to, where known.
    held_key: Option<KeyFingerprint>,
    /// The candidate that holds the conversation's state.
    stays_at: Option<u16>,
    needs: Needs,
    is_stream: bool,
    /// Whether its answer is held beyond its first content, which is then reported late.
    is_held: bool,
    began: Now,
    /// When the budget counted it: at its first choice.
    counted_at: Now,
    deadline: Now,
    patience: Option<Patience>,
    unsettled: Vec<Unsettled>,
    log: AttemptLog,
    next_key_of: Option<u16>,
    end: Option<End>,
    /// Whether the budget has counted it.
    is_counted: bool,
}

impl Plan {
    pub(crate) fn new(
        route: Arc<Route>,
        (pins, states): (Arc<Pins>, Arc<Pins>),
        now: Now,
        spec: &RequestSpec<'_>,
        held_key: Option<KeyFingerprint>,
    ) -> Self {
        let has_affinity = route.affinity_ttl > Millis::ZERO && !spec.session.is_empty();
        if has_affinity {
            route.rename_pin(now, &pins, spec.caller, spec.session);
        }
        let session = has_affinity.then(|| route.pin_key(&pins, spec.caller, spec.session));
        let within = spec.within.map_or(route.deadline, |within| within.min(route.deadline));
        Self {
            session,
            held_key,
            stays_at: spec.stays_at.and_then(|id| route.position(id)),
            needs: spec.needs,
            is_stream: spec.is_stream,
            is_held: spec.is_stream && route.hold.is_on(),
            began: now,
            counted_at: now,
            deadline: now.after(within),
            patience: spec.patience.map(|patience| Patience::new(now, patience)),
            unsettled: Vec::new(),
            log: AttemptLog::default(),
            next_key_of: None,
            end: None,
            is_counted: false,
            route,
            pins,
            states,
        }
    }

    /// The next attempt, or the end. `draw` is a fresh random number.
    pub fn next(&mut self, now: Now, draw: u64, notes: &mut Notes) -> Step {
        // A permit that was dropped instead of reported ended like a cancellation.
        let was_dropped = self.log.iter().last().is_some_and(|it| it.outcome.is_none());
        let step = match self.end {
            Some(end) => Err(end),
            None if was_dropped => Err(End::Cancelled),
            None => self.choose(now, draw, notes),
        };
        match step {
            Ok(permit) => Step::Attempt(permit),
            Err(end) => {
                self.end = Some(end);
                Step::Finish(if self.route.is_kept_by_thread(&self.needs) {
                    self.log.finish_without_thread(end)
                } else {
                    self.log.finish(end)
                })
            }
        }
    }

    /// The attempt ended: health learns of it, and the plan whether the request goes on.
    pub fn report(&mut self, now: Now, permit: Permit, outcome: &Outcome, notes: &mut Notes) {
        let (has_content, is_released) = (permit.has_content(), permit.is_released());
        let (committed, is_resent) = (permit.committed(), permit.is_resent());
        permit.report(now, outcome, notes);
        if outcome.kind == OutcomeKind::Success {
            self.answered(now, notes);
        }
        let Some(attempt) = self.log.last_mut() else { return };
        attempt.outcome = Some(*outcome);
        attempt.ended_at = Some(now);
        attempt.has_content = has_content;
        attempt.committed = committed;
        attempt.is_resent = is_resent;
        let attempt = *attempt;
        self.end = self.end_after(now, outcome, is_released);
        self.next_key_of = outcome.kind.asks_next_key().then_some(attempt.candidate);
        if outcome.kind == OutcomeKind::Success && self.route.pin == PinMode::Answered {
            self.follow_answer(now, &attempt, notes);
        }
    }

    /// The attempt came to nothing, and health hears nothing of it: another request has reported
    /// the same event, or it says nothing about the backend. The request may go on.
    pub fn pass(&mut self, now: Now, permit: Permit, outcome: &Outcome) {
        drop(permit);
        let Some(attempt) = self.log.last_mut() else { return };
        attempt.outcome = Some(*outcome);
        attempt.ended_at = Some(now);
        self.next_key_of = None;
    }

    /// The route it walks.
    #[must_use]
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// Its attempts so far.
    #[must_use]
    pub fn attempts(&self) -> &AttemptLog {
        &self.log
    }

    /// When it began.
    #[must_use]
    pub fn began(&self) -> Now {
        self.began
    }

    /// The moment by which it must be over.
    #[must_use]
    pub fn deadline(&self) -> Now {
        self.deadline
    }

    /// Whether it is over: an answer may go to the client without asking `next`.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Whether a client that is told of a failure should not send the request again: attempts at
    /// two or more targets were made, or none because no target can be used. After attempts at a
    /// single target its own retries are as good as without a gateway.
    #[must_use]
    pub fn is_retry_futile(&self) -> bool {
        let number = |it: &Attempt| self.route.backend(it.candidate).number;
        match self.log.iter().next().map(number) {
            Some(first) => self.log.iter().any(|it| number(it) != first),
            None => matches!(self.end, Some(End::NothingLeft | End::LastResortLimit)),
        }
    }

    /// How the target of this permit gets the request.
    #[must_use]
    pub fn sent_as(&self, permit: &Permit) -> SentAs {
        self.needs.sent_as(&permit.backend.abilities).unwrap_or(SentAs::AsItCame)
    }

    /// The request turned out not to be convertible to this format: the attempt is not made, and
    /// no target that would need the format is asked. Nothing was sent, so nothing is learnt.
    pub fn decline(&mut self, permit: Permit, format: WireFormat) {
        drop(permit);
        self.log.pop();
        self.needs.converts_to = self.needs.converts_to.without(format);
    }

    /// What it needs, with the holder of the state that it refers to.
    #[must_use]
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The target of the attempt under way holds the state of this id from now on.
    pub fn keep_state(&self, now: Now, permit: &Permit, (caller, id): (&str, &str)) {
        let key = Some(permit.backend.keys[permit.key].key.fingerprint);
        holder::keep(&self.states, now, (caller, id), permit.backend.number, key);
    }

    /// When the first target of the route has nothing against it any more, if something stands
    /// against all of them: what an honest `Retry-After` says.
    #[must_use]
    pub fn re_entry(&self, now: Now) -> Option<Now> {
        let candidates = self.route.candidates.iter();
        let able = candidates.filter(|it| it.barred(now, &self.needs).is_none());
        able.map(|it| it.backend.clear_from(now)).min().filter(|moment| *moment > now)
    }

    fn choose(&mut self, now: Now, draw: u64, notes: &mut Notes) -> Result<Permit, End> {
        let pin = self.pin(now);
        let route = Arc::clone(&self.route);
        let mut input = ChoiceInput {
            tactic: route.tactic,
            draw,
            pin: pin.live.and_then(|pin| candidate_of(&route, pin)).or_else(|| self.stays()),
            next_key_of: self.next_key_of,
        };
        let mut reading = self.read(now, pin.live, [input.pin, input.next_key_of], notes);
        self.may_go_on(now, notes)?;
        while let Some(selection) = select(&notes.reads, &input, |tier| route.cursor(tier)) {
            let read = notes.reads[selection.index];
            let cursor = route.cursor(read.tier);
            if selection.by == SelectedBy::Tactic {
                route.move_cursor(&read);
            }
            let pinned_key = match selection.by {
                SelectedBy::Pin => pin.live.and_then(|pin| pin.key),
                SelectedBy::NextKey | SelectedBy::Tactic => None,
            };
            let pinned_key = self.held_key.filter(|_| self.log.is_empty()).or(pinned_key);
            let permit = self.admit(now, read.candidate, &selection, pinned_key);
            let bucket = &route.candidates[usize::from(read.candidate)].last_resorts;
            if permit.is_some() && read.is_limited && !bucket.take(now) {
                notes.reads[selection.index].is_over_limit = true;
                continue;
            }
            if let Some(permit) = permit {
                let used = pin.becomes(selection.pin);
                if self.log.is_empty() && used.is_replaced() {
                    let left = pin.live.filter(|_| used == PinUse::Declined);
                    let haste = self.haste_of_lock(&selection, &notes.reads);
                    self.pin_to(now, (read.candidate, permit.key), left, haste, notes);
                } else {
                    self.follow_key(now, &permit, notes);
                }
                self.log.push(Attempt {
                    candidate: read.candidate,
                    key: permit.key() as u16,
                    at: now,
                    input,
                    cursor,
                    rank: selection.rank,
                    by: selection.by,
                    pin: used,
                    is_trial: permit.is_trial(),
                    is_last_resort: permit.is_last_resort(),
                    outcome: None,
                    ended_at: None,
                    has_content: false,
                    committed: None,
                    is_resent: false,
                });
                return Ok(permit);
            }
            // Somebody else was faster: it counts as unavailable for the rest of this choice.
            let lost = &mut notes.reads[selection.index];
            lost.is_full = true;
            lost.is_limited = true;
            lost.rank = lost.rank.unavailable();
            input.draw = mix(input.draw);
            self.read_on(now, &mut reading, notes);
        }
        Err(End::LastResortLimit)
    }

    /// Deadline, hop limit, candidates, budget: in this order.
    fn may_go_on(&mut self, now: Now, notes: &Notes) -> Result<(), End> {
        let hop = self.log.len();
        if !std::mem::replace(&mut self.is_counted, true) {
            self.counted_at = now;
            self.route.budget.count_request(now);
        }
        if now.reached(self.deadline) {
            return Err(End::Deadline);
        }
        if self.is_out_of_patience(now) {
            return Err(End::OutOfPatience);
        }
        if hop > self.route.max_hops as usize {
            return Err(End::HopLimit);
        }
        if notes.reads.is_empty() {
            return Err(self.nothing(now));
        }
        if notes.reads.iter().all(|read| read.is_over_limit) {
            return Err(End::LastResortLimit);
        }
        let is_clear = || lowest_rank(&notes.reads).is_some_and(Rank::is_clear);
        let is_free = hop == 0 || (hop == 1 && is_clear());
        if !is_free && !self.route.budget.allow_hop(now, self.counted_at) {
            return Err(End::BudgetSpent);
        }
        Ok(())
    }

    fn nothing(&self, now: Now) -> End {
        if self.log.is_empty() && self.lacking(now).next().is_some() {
            return End::NothingAble;
        }
        if self.log.too_long().next().is_some() {
            return End::ClientFault;
        }
        End::NothingLeft
    }

    /// The members of the route that cannot do what the request needs, and all that each lacks.
    pub fn lacking(&self, now: Now) -> impl Iterator<Item = (&Arc<str>, Ability)> {
        let candidates = self.route.candidates.iter();
        candidates.flat_map(move |it| {
            let is_able = !matches!(it.barred(now, &self.needs), Some(Barred::Lacks(_)));
            let lacks = (!is_able).then(|| it.lacks(&self.needs)).into_iter().flatten();
            lacks.map(move |ability| (&it.backend.id, ability))
        })
    }

    /// What stands against each member of the route at `now`.
    pub fn obstacles(&self, now: Now) -> impl Iterator<Item = (&Arc<str>, Vec<Obstacle>)> {
        let candidates = self.route.candidates.iter();
        candidates.map(move |it| (&it.backend.id, obstacles(it, now, &self.needs)))
    }

    fn admit(
        &self,
        now: Now,
        candidate: u16,
        selection: &Selection,
        pinned: Option<KeyFingerprint>,
    ) -> Option<Permit> {
        let backend = self.route.backend(candidate);
        let may_use = |key| self.is_untried(candidate, key);
        let pinned = pinned.and_then(|it| backend.free_key(now, it, may_use));
        let key = pinned.or_else(|| match self.lots().filter(|_| backend.keys.len() > 1) {
            Some(lots) => backend.pick_key_by_lot(now, may_use, |key| lots.of(key.lot_name())),
            None => backend.pick_key(now, may_use),
        })?;
        let mut permit = if selection.rank.is_last_resort() {
            backend.last_resort(now, key)
        } else {
            let leases = &backend.leases;
            let is_early = self.is_stream && !self.is_held;
            let longest = if is_early { leases.first_content } else { leases.answer };
            backend.take(now, key, longest.min(self.deadline.since(now)))?
        };
        permit.is_stream = self.is_stream;
        permit.held.settings = self.route.hold;
        permit.held.limits = self.route.hold_limits;
        Some(permit)
    }

    fn end_after(&self, now: Now, outcome: &Outcome, is_released: bool) -> Option<End> {
        let surfaces = self.route.on_auth_error == OnAuthError::Surface;
        match outcome.kind.policy().go_on {
            GoOn::BeforeContent | GoOn::UnlessSurfaced | GoOn::ToLargerContext if is_released => {
                Some(End::Broken)
            }
            GoOn::UnlessSurfaced if surfaces => Some(End::AuthSurfaced),
            GoOn::BeforeContent | GoOn::UnlessSurfaced | GoOn::ToLargerContext => None,
            GoOn::No => Some(match outcome.kind {
                OutcomeKind::Success => End::Answered,
                OutcomeKind::Truncated => End::Broken,
                OutcomeKind::Cancelled if is_released => End::Cancelled,
                // Its time ended it: the client is still there, and gets an answer.
                OutcomeKind::Cancelled if now.reached(self.deadline) => End::Deadline,
                OutcomeKind::Cancelled if self.is_out_of_patience(now) => End::OutOfPatience,
                OutcomeKind::Cancelled => End::Cancelled,
                _ => End::ClientFault,
            }),
        }
    }

    /// The pin, as far as it matters: for the first attempt only.
    fn pin(&self, now: Now) -> PinFound {
        let found = self.session.filter(|_| self.log.is_empty()).and_then(|key| self.pins.get(key));
        match found {
            Some(pin) if pin.holds(now) => PinFound { live: Some(pin), has_expired: false },
            found => PinFound { live: None, has_expired: found.is_some() },
        }
    }

    /// Where the conversation's state is, for the first attempt.
    fn stays(&self) -> Option<u16> {
        self.stays_at.filter(|_| self.log.is_empty())
    }

    /// Pins the session to a candidate, for a full TTL; `left` is the pin that it moves away from.
    fn pin_to(
        &self,
        now: Now,
        (candidate, key): (u16, usize),
        left: Option<Pin>,
        haste: Haste,
        notes: &mut Notes,
    ) {
        let Some(session) = self.session else { return };
        let backend = self.route.backend(candidate);
        let key = Some(backend.keys[key].key.fingerprint);
        let mut pin = Pin::new(backend.number, key, now.after(self.route.affinity_ttl));
        let left = left.and_then(|pin| candidate_of(&self.route, pin));
        if let Some(left) = left.filter(|_| self.route.fleet.is_some()) {
            let tier = |candidate: u16| self.route.candidates[usize::from(candidate)].tier;
            // Replicas that see the target differently must not throw the session to and fro.
            if tier(left) < tier(candidate) {
                pin.stays_until = now.after(self.route.backend(left).promotion_hold);
            }
        }
        self.set_pin(now, session, backend, (pin, haste), notes);
    }

    fn set_pin(
        &self,
        now: Now,
        session: PinKey,
        backend: &Backend,
        (pin, haste): (Pin, Haste),
        notes: &mut Notes,
    ) {
        match &self.route.fleet {
            None => self.pins.set(now, session, pin),
            Some(fleet) => {
                let pin = self.pins.set_next(now, session, pin, fleet.replica);
                backend.tell_pin(now, session, (&pin, haste), notes);
            }
        }
    }

    /// How soon others should hear of a session's first lock. Where lots were drawn and nothing
    /// stood against any candidate, they choose the same without.
    fn haste_of_lock(&self, selection: &Selection, reads: &[Read]) -> Haste {
        let is_by_lot = selection.by == SelectedBy::Tactic && self.lots().is_some();
        match is_by_lot && reads.iter().all(|read| read.rank.is_clear()) {
            true => Haste::Leisurely,
            false => Haste::BeforeNextTurn,
        }
    }

    /// How a session draws at its first choice, where replicas are to agree on it.
    fn lots(&self) -> Option<Lots<'_>> {
        let session = self.session.filter(|_| self.log.is_empty())?;
        self.route.lots(session)
    }

    /// The pin's key moves to the free one that is used in its place, if its own is not free.
    fn follow_key(&self, now: Now, permit: &Permit, notes: &mut Notes) {
        let backend = &permit.backend;
        let used = &backend.keys[permit.key];
        if backend.keys.len() == 1 || !used.is_free(now) {
            return;
        }
        let Some(session) = self.session else { return };
        let Some(pin) = self.pins.get(session).filter(|it| it.holds(now)) else { return };
        let is_kept = |key| backend.free_key(now, key, |_| true).is_some();
        if pin.backend == backend.number && !pin.key.is_some_and(is_kept) {
            let key = Some(used.key.fingerprint);
            let moved = (Pin { key, ..pin }, Haste::AtOnce);
            self.set_pin(now, session, backend, moved, notes);
        }
    }

    /// `pin: answered`: the pin moves to the target whose success ended the request, if that is
    /// another and the pin was not kept for its own target's sake.
    fn follow_answer(&self, now: Now, answered: &Attempt, notes: &mut Notes) {
        let was_kept = self.log.iter().next().is_some_and(|it| it.pin.is_kept_unused());
        let backend = self.route.backend(answered.candidate);
        let pinned = self.session.and_then(|key| self.pins.get(key));
        if !was_kept && pinned.is_some_and(|pin| pin.backend != backend.number) {
            let to = (answered.candidate, usize::from(answered.key));
            self.pin_to(now, to, pinned, Haste::AtOnce, notes);
        }
    }
}

/// What the table holds for a session.
#[derive(Clone, Copy)]
struct PinFound {
    live: Option<Pin>,
    has_expired: bool,
}

impl PinFound {
    /// The choice sees only the route's candidates: a live pin to a target that left the route is
    /// declined, and of no pin only the table knows whether it has expired.
    fn becomes(self, used: PinUse) -> PinUse {
        match used {
            PinUse::None if self.live.is_some() => PinUse::Declined,
            PinUse::None if self.has_expired => PinUse::Expired,
            _ => used,
        }
    }
}

fn candidate_of(route: &Route, pin: Pin) -> Option<u16> {
    let position = route.candidates.iter().position(|it| it.backend.number == pin.backend);
    position.map(|index| index as u16)
}
