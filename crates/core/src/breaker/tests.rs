//! Every reachable state of a breaker and the passes it gave, checked one by one.
//!
//! A breadth-first walk over the real [`Breaker`] with small settings. States are told apart by
//! what their future can depend on: moments as distances from now, cut off where they stop to
//! matter, generations as "current or not", slots by their place. Time and the counters may then
//! grow for ever and the walk still ends, so it has no depth bound: what holds here holds after
//! any sequence of events.
//!
//! Proved for every state: slots taken are within the limit (I3); a stale report changes nothing
//! (I4); a deadline never moves earlier (I11); no trial is lost, even with owners that vanish and
//! probes that always fail (I18); and trials that succeed close it within a bound (I18). With
//! suspicion among the events besides: hearing it opens and closes nothing (I22), and an opening
//! that it hastened is told only when the replica's own strikes bear it out (I25).

use std::collections::{BTreeMap, VecDeque};

use super::*;

/// Passes held at once: one more than the slots, so that a stale one meets a fresh one.
const PASSES_MAX: usize = 3;
const LEASE: Millis = Millis(2);
/// Longer than every lease, open period and turn of these settings together.
const LONG_MS: u64 = 40;

fn settings(trial_permits: u32) -> HealthSettings {
    HealthSettings {
        failure_threshold: 2,
        failure_ratio: 0.0,
        strike_memory: Millis(2),
        open_for: Millis(1),
        open_growth: 2.0,
        open_max: Millis(2),
        recovery_threshold: 2,
        trial_permits,
        promotion_hold: Millis(1),
        ..HealthSettings::default()
    }
}

#[derive(Clone, Debug)]
struct World {
    now: Now,
    breaker: Breaker,
    passes: Vec<Pass>,
    /// Whether other replicas tell of their breakers.
    is_in_fleet: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Tick,
    Take,
    Content(usize),
    Success(usize),
    Failure {
        pass: usize,
        after_content: bool,
    },
    Release(usize),
    /// The owner is gone without a word.
    Vanish(usize),
    ProbePassed,
    ProbeFailed,
    /// Another replica tells that its breaker is open.
    Suspect,
}

impl World {
    fn events(&self) -> Vec<Event> {
        let mut events = vec![Event::Tick, Event::ProbePassed, Event::ProbeFailed];
        // Suspicion doubles the states several times over; one pass less makes up for it.
        if self.passes.len() < PASSES_MAX - usize::from(self.is_in_fleet) {
            events.push(Event::Take);
        }
        if self.is_in_fleet {
            events.push(Event::Suspect);
        }
        for pass in 0..self.passes.len() {
            let after_content = self.passes[pass].has_content;
            events.extend([
                Event::Content(pass),
                Event::Success(pass),
                Event::Failure { pass, after_content },
                Event::Release(pass),
                Event::Vanish(pass),
            ]);
        }
        events
    }

    fn after(&self, event: Event) -> Self {
        let mut next = self.clone();
        let (now, breaker) = (next.now, &mut next.breaker);
        match event {
            Event::Tick => next.now = now.after(Millis(1)),
            Event::Take => next.passes.extend(breaker.take(now, now.after(LEASE))),
            Event::Content(pass) => {
                breaker.content(now, &mut next.passes[pass]);
            }
            Event::Success(pass) => {
                breaker.success(now, next.passes.remove(pass));
            }
            Event::Failure { pass, after_content } => {
                breaker.failure(now, next.passes.remove(pass), after_content);
            }
            Event::Release(pass) => breaker.release(&next.passes.remove(pass)),
            Event::Vanish(pass) => {
                next.passes.remove(pass);
            }
            Event::ProbePassed => {
                breaker.probe_passed(now);
            }
            Event::ProbeFailed => {
                breaker.probe_failed(now);
            }
            Event::Suspect => {
                breaker.suspect(now, now, now.after(Millis(2)));
            }
        }
        next
    }

    /// All that the future can depend on.
    fn essence(&self) -> Vec<u64> {
        let breaker = &self.breaker;
        let ahead = |moment: Now| moment.since(self.now).0;
        let mut words = vec![u64::from(breaker.trial_successes)];
        words.push(u64::from(breaker.consecutive_failures.min(2)));
        match breaker.phase {
            Phase::Closed => words.push(0),
            Phase::Open(Opening { since, until, period, reopens, held_until, hastened }) => {
                let turn_over = breaker.settings.open_max.0 + period.0;
                let age = self.now.since(since).0.min(turn_over);
                words.extend([1, age, ahead(until), period.0, u64::from(reopens.min(1))]);
                words.extend([ahead(held_until), hastened.map_or(9, u64::from)]);
            }
        }
        words.extend(breaker.suspicion.essence(self.now));
        let hold = breaker.settings.promotion_hold.0;
        words.push(breaker.closed_since.map_or(hold, |since| self.now.since(since).0.min(hold)));
        let memory = breaker.settings.strike_memory.0;
        for streak in [&breaker.before_content, &breaker.after_content] {
            let ages = streak.moments().map(|strike| self.now.since(strike).0.min(memory));
            words.push(u64::MAX);
            words.extend(ages);
        }
        let held: Vec<(SlotNumber, Now)> = breaker.slots.holders().collect();
        words.push(u64::MAX);
        words.extend(held.iter().map(|(_, end)| ahead(*end)));
        let mut passes: Vec<[u64; 4]> = self
            .passes
            .iter()
            .map(|pass| {
                let place = |slot| held.iter().position(|(number, _)| *number == slot);
                let slot =
                    pass.slot.map_or(0, |slot| place(slot).map_or(1, |place| place as u64 + 2));
                let is_current = pass.generation == breaker.generation;
                [u64::from(is_current), ahead(pass.lease_end), slot, u64::from(pass.has_content)]
            })
            .collect();
        passes.sort_unstable();
        words.push(u64::MAX);
        words.extend(passes.into_iter().flatten());
        words
    }

    /// What must hold in every state.
    fn check(&self) -> Result<(), &'static str> {
        self.breaker.check_invariants(self.now);
        let mut later = self.breaker.clone();
        let long_after = self.now.after(Millis(LONG_MS));
        later.take(long_after, long_after.after(LEASE)).ok_or("a trial is lost for good")?;
        let gets_its_trial = (1..LONG_MS).any(|ms| {
            let mut world = self.clone();
            for passed in 1..=ms {
                world.now = self.now.after(Millis(passed));
                world.breaker.probe_failed(world.now);
            }
            world.breaker.take(world.now, world.now.after(LEASE)).is_some()
        });
        gets_its_trial.then_some(()).ok_or("failing probes keep traffic out for good")?;
        let mut healing = self.clone();
        for _ in 0..LONG_MS {
            healing = healing.after(Event::Tick);
            let now = healing.now;
            if let Some(pass) = healing.breaker.take(now, now.after(LEASE)) {
                healing.breaker.success(now, pass);
            }
        }
        let is_closed = healing.breaker.state(healing.now) == State::Closed;
        is_closed.then_some(()).ok_or("successes do not close it")
    }

    /// What must hold for every step from here.
    fn check_step(&self, event: Event, next: &Self) -> Result<(), &'static str> {
        let before = self.breaker.state(self.now);
        if before == State::Open
            && let (Some(old), Some(new)) = (self.breaker.deadline(), next.breaker.deadline())
            && new < old
        {
            return Err("I11: a deadline moved earlier");
        }
        if let Event::Take = event
            && (next.passes.len() > self.passes.len()) != self.breaker.gate().is_free(self.now)
        {
            return Err("the gate and the breaker disagree");
        }
        let reported = match event {
            Event::Content(pass) | Event::Success(pass) | Event::Failure { pass, .. } => pass,
            Event::Tick | Event::Take | Event::Release(_) | Event::Vanish(_) => return Ok(()),
            Event::ProbePassed | Event::ProbeFailed => return self.check_hastening(next),
            Event::Suspect => {
                let gate = |world: &Self| Gate { is_spotless: true, ..world.breaker.gate() };
                let is_same = gate(self) == gate(next);
                return is_same.then_some(()).ok_or("I22: suspicion changed the gate");
            }
        };
        self.check_hastening(next)?;
        let pass = &self.passes[reported];
        let is_late = !pass.has_content && self.now.reached(pass.lease_end);
        if pass.generation == self.breaker.generation && !is_late {
            return Ok(());
        }
        let mut expected = self.breaker.clone();
        if !matches!(event, Event::Content(_)) {
            // An ended lease holds no slot; forgetting its holder is no change.
            expected.release(pass);
        }
        let same_slots = self.breaker.slots_taken(self.now) == next.breaker.slots_taken(self.now);
        (expected == next.breaker && same_slots).then_some(()).ok_or("I4: a stale report counted")
    }
}

impl World {
    /// I25: what opens with fewer strikes than the threshold, for suspicion, is not told.
    fn check_hastening(&self, next: &Self) -> Result<(), &'static str> {
        let has_opened = next.breaker.generation > self.breaker.generation;
        let threshold = next.breaker.settings.failure_threshold;
        let was_closed = self.breaker.phase == Phase::Closed;
        let strikes = next.breaker.consecutive_failures;
        let is_wrong = has_opened && was_closed && strikes < threshold && next.breaker.is_told();
        // A trial on probation that fails re-opens a breaker by itself.
        let is_by_trial = self.passes.iter().any(Pass::is_trial);
        (!is_wrong || is_by_trial).then_some(()).ok_or("I25: a hastened opening is told")
    }
}

/// The events that led to a state, for the message of a failed proof.
fn story(came_from: &[(usize, Option<Event>)], mut state: usize) -> Vec<Event> {
    let mut story = Vec::new();
    while let (before, Some(event)) = came_from[state] {
        story.push(event);
        state = before;
    }
    story.reverse();
    story
}

fn walk(trial_permits: u32, is_in_fleet: bool) -> usize {
    let breaker = Breaker::new(settings(trial_permits), 0);
    let start = World { now: Now(1), breaker, passes: vec![], is_in_fleet };
    let mut numbers = BTreeMap::from([(start.essence(), 0)]);
    let mut came_from = vec![(0, None)];
    let mut waiting = VecDeque::from([(0, start)]);
    while let Some((number, world)) = waiting.pop_front() {
        if let Err(broken) = world.check() {
            panic!("{broken}: {:?}\n{world:#?}", story(&came_from, number));
        }
        for event in world.events() {
            let next = world.after(event);
            if let Err(broken) = world.check_step(event, &next) {
                panic!("{broken}: {:?} then {event:?}", story(&came_from, number));
            }
            let fresh = came_from.len();
            if *numbers.entry(next.essence()).or_insert(fresh) == fresh {
                came_from.push((number, Some(event)));
                waiting.push_back((fresh, next));
            }
        }
    }
    came_from.len()
}

#[test]
fn with_one_slot_no_state_loses_a_trial_or_heeds_a_stale_report() {
    let states = walk(1, false);
    assert!(states > 1_000, "only {states} states were reached");
}

#[test]
fn with_two_slots_no_state_loses_a_trial_or_heeds_a_stale_report() {
    let states = walk(2, false);
    assert!(states > 1_000, "only {states} states were reached");
}

#[test]
fn suspicion_opens_nothing_and_what_it_hastens_is_not_told() {
    let states = walk(1, true);
    assert!(states > 1_000, "only {states} states were reached");
}
