//! Every interleaving of two threads that share a backend, up to a bound on preemptions.
//!
//! Empty unless built for it, which swaps the core's locks and atomics for loom's:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p tidegate-core --test loom --release
//! ```
#![cfg(loom)]

use std::sync::Arc;

use tidegate_core::{
    breaker::State,
    core::Core,
    mark::MarkReason,
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    plan::{Plan, RequestSpec, Step},
    rank::Rank,
    read::Read,
    settings::{
        Abilities, BackendSettings, BudgetSettings, EndpointSettings, HealthSettings,
        MemberSettings, Membership, RouteSettings, Settings,
    },
    time::{Millis, Now},
    transition::{Change, Notes},
};

const OPEN_MS: u64 = 1_000;
const HALF_OPEN: Now = Now(OPEN_MS);

/// Runs every interleaving.
fn every_interleaving(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(check);
}

/// The first failure opens, the first success closes.
fn health(trial_permits: u32) -> HealthSettings {
    HealthSettings {
        failure_threshold: 1,
        failure_ratio: 0.0,
        recovery_threshold: 1,
        open_for: Millis(OPEN_MS),
        trial_permits,
        ..HealthSettings::default()
    }
}

fn backend(id: &str, endpoint: Option<usize>, health: HealthSettings) -> BackendSettings {
    BackendSettings {
        id: id.to_owned(),
        identity: id.to_owned(),
        endpoint,
        keys: Vec::new(),
        health,
        first_content_within: Millis::seconds(120),
        answer_within: Millis::seconds(120),
        abilities: Abilities::default(),
        fleet_names: Vec::new(),
    }
}

/// A route to one backend.
fn route(name: &str, backend: usize) -> RouteSettings {
    RouteSettings {
        name: name.to_owned(),
        tiers: vec![vec![MemberSettings { backend, weight: 1, membership: Membership::Active }]],
        // Few buckets: every one is an atomic that loom keeps track of.
        budget: BudgetSettings { window: Millis(1), ratio: 0.2, floor: 100 },
        ..RouteSettings::default()
    }
}

/// One backend behind one route.
fn one_backend(trial_permits: u32) -> Arc<Core> {
    let settings = Settings {
        backends: vec![backend("a", None, health(trial_permits))],
        routes: vec![route("main", 0)],
        max_pins: 1,
        ..Settings::default()
    };
    Arc::new(Core::new(&settings, 7))
}

/// Two targets of one endpoint, each behind a route of its own name. The endpoint's breaker, and
/// that of `main`, are opened at the start of time.
fn unreachable_endpoint() -> Arc<Core> {
    let endpoint = EndpointSettings {
        id: "p".to_owned(),
        identity: "p".to_owned(),
        health: health(1),
        fleet_names: Vec::new(),
    };
    let settings = Settings {
        endpoints: vec![endpoint],
        backends: vec![backend("a", Some(0), health(1)), backend("b", Some(0), health(1))],
        routes: vec![route("main", 0), route("other", 1)],
        max_pins: 1,
        ..Settings::default()
    };
    let core = Arc::new(Core::new(&settings, 7));
    let (mut plan, permit) = take(&core, Now::ZERO).0;
    let refused = Outcome::unanswered(OutcomeKind::Transport);
    plan.report(Now::ZERO, permit, &refused, &mut Notes::default());
    core
}

/// The same, with its breaker opened at the start of time.
fn opened(trial_permits: u32) -> Arc<Core> {
    let core = one_backend(trial_permits);
    report(take(&core, Now::ZERO).0, Now::ZERO, 500);
    core
}

/// An attempt, and what the choice read.
fn take(core: &Core, now: Now) -> ((Plan, Permit), Read) {
    take_on(core, "main", now)
}

fn take_on(core: &Core, route: &str, now: Now) -> ((Plan, Permit), Read) {
    let route = core.route(route).expect("a listed route");
    let mut notes = Notes::default();
    let mut plan = core.begin(route, now, &RequestSpec::default());
    match plan.next(now, 1, &mut notes) {
        Step::Attempt(permit) => ((plan, permit), notes.reads[0]),
        Step::Finish(finish) => panic!("one target is always left to try: {finish:?}"),
    }
}

fn report((mut plan, permit): (Plan, Permit), now: Now, status: u16) {
    plan.report(now, permit, &Outcome::answered(status), &mut Notes::default());
}

fn state(core: &Core, now: Now) -> State {
    core.snapshot(now).backends[0].state
}

/// How many trials can be had at once.
fn free_slots(core: &Core, now: Now) -> usize {
    let held: Vec<_> = (0..4).map(|_| take(core, now).0).collect();
    held.iter().filter(|(_, permit)| permit.is_trial()).count()
}

#[test]
fn a_reader_sees_an_opening_breaker_before_or_after_but_never_between() {
    every_interleaving(|| {
        let core = one_backend(1);
        let failing = take(&core, Now::ZERO).0;
        let reader = {
            let core = Arc::clone(&core);
            loom::thread::spawn(move || take(&core, Now::ZERO).1)
        };
        report(failing, Now::ZERO, 500);
        let read = reader.join().expect("it does not panic");
        let seen = (read.state, read.generation, read.rank.0);
        // It may also have read it closed and then found no permit: the record says so.
        let lost_the_race = (State::Closed, 0, 2);
        let expected = [(State::Closed, 0, 0), lost_the_race, (State::Open, 1, 2)];
        assert!(expected.contains(&seen), "{seen:?}");
    });
}

#[test]
fn a_reader_sees_a_closing_breaker_before_or_after_but_never_between() {
    every_interleaving(|| {
        let core = opened(1);
        let trial = take(&core, HALF_OPEN).0;
        let reader = {
            let core = Arc::clone(&core);
            loom::thread::spawn(move || take(&core, HALF_OPEN).1)
        };
        report(trial, HALF_OPEN, 200);
        let read = reader.join().expect("it does not panic");
        let seen = (read.state, read.rank.0, read.is_held);
        let (before, after) = ((State::HalfOpen, 2, false), (State::Closed, 0, true));
        assert!([before, after].contains(&seen), "{seen:?}");
    });
}

#[test]
fn of_two_threads_that_race_for_one_slot_exactly_one_gets_it() {
    every_interleaving(|| {
        let core = opened(1);
        let other = {
            let core = Arc::clone(&core);
            loom::thread::spawn(move || take(&core, HALF_OPEN).0)
        };
        let mine = take(&core, HALF_OPEN).0;
        let theirs = other.join().expect("it does not panic");
        assert_ne!(mine.1.is_trial(), theirs.1.is_trial());
        assert_ne!(mine.1.is_last_resort(), theirs.1.is_last_resort());
        drop((mine, theirs));
        assert_eq!(free_slots(&core, HALF_OPEN), 1);
    });
}

#[test]
fn a_report_that_races_with_a_take_loses_neither_the_slot_nor_the_verdict() {
    for (status, expected) in [(200, State::Closed), (500, State::Open), (400, State::HalfOpen)] {
        every_interleaving(move || {
            let core = opened(1);
            let trial = take(&core, HALF_OPEN).0;
            let other = {
                let core = Arc::clone(&core);
                loom::thread::spawn(move || take(&core, HALF_OPEN).0)
            };
            report(trial, HALF_OPEN, status);
            let taken = other.join().expect("it does not panic");
            assert_eq!(state(&core, HALF_OPEN), expected);
            drop(taken);
            core.check_invariants(HALF_OPEN);
            if expected != State::Closed {
                assert_eq!(free_slots(&core, Now(2 * OPEN_MS)), 1);
            }
        });
    }
}

#[test]
fn a_drop_that_races_with_a_report_elsewhere_gives_its_slot_back() {
    for (status, expected) in [(500, State::Open), (400, State::HalfOpen)] {
        every_interleaving(move || {
            let core = opened(2);
            let (dropped, reported) = (take(&core, HALF_OPEN).0, take(&core, HALF_OPEN).0);
            assert!(dropped.1.is_trial() && reported.1.is_trial());
            let other = loom::thread::spawn(move || drop(dropped));
            report(reported, HALF_OPEN, status);
            other.join().expect("it does not panic");
            assert_eq!(state(&core, HALF_OPEN), expected);
            assert_eq!(core.snapshot(HALF_OPEN).backends[0].in_flight, 0);
            assert_eq!(free_slots(&core, Now(2 * OPEN_MS)), 2);
        });
    }
}

#[test]
fn an_exclusion_set_while_another_is_healed_is_not_lost() {
    every_interleaving(|| {
        let core = one_backend(1);
        report(take(&core, Now::ZERO).0, Now::ZERO, 401);
        let (good, bad) = (take(&core, Now::ZERO).0, take(&core, Now::ZERO).0);
        let healing = loom::thread::spawn(move || {
            let (mut plan, permit) = good;
            let mut notes = Notes::default();
            plan.report(Now(1), permit, &Outcome::answered(200), &mut notes);
            notes.transitions
        });
        report(bad, Now(1), 402);
        let told = healing.join().expect("no panic");
        let reason = MarkReason::Exhausted;
        let was_healed = told.iter().any(|it| it.change == Change::Healed { reason });
        let is_excluded = core.snapshot(Now(1)).backends[0].rank.0 & Rank::EXCLUDED != 0;
        assert!(was_healed || is_excluded, "{told:?}");
    });
}

#[test]
fn of_two_targets_that_race_for_their_endpoints_slot_the_loser_keeps_no_slot_of_its_own() {
    every_interleaving(|| {
        let core = unreachable_endpoint();
        let other = {
            let core = Arc::clone(&core);
            loom::thread::spawn(move || take_on(&core, "other", HALF_OPEN).0)
        };
        let mine = take(&core, HALF_OPEN).0;
        let theirs = other.join().expect("it does not panic");
        assert_ne!(mine.1.is_trial(), theirs.1.is_trial(), "one slot, one trial");
        // Whoever lost holds nothing: the winner's end is enough for both to be tried again.
        let (winner, loser) = if mine.1.is_trial() { (mine, theirs) } else { (theirs, mine) };
        assert!(loser.1.is_last_resort());
        drop(winner);
        assert!(take(&core, HALF_OPEN).0.1.is_trial());
        drop(loser);
    });
}

#[test]
fn an_endpoint_that_is_reached_while_a_neighbour_asks_lets_both_pass_in_the_end() {
    every_interleaving(|| {
        let core = unreachable_endpoint();
        let (plan, mut permit) = take(&core, HALF_OPEN).0;
        assert!(permit.is_trial());
        let other = {
            let core = Arc::clone(&core);
            loom::thread::spawn(move || drop(take_on(&core, "other", HALF_OPEN)))
        };
        permit.head(HALF_OPEN, &mut Notes::default());
        other.join().expect("it does not panic");
        assert_eq!(core.snapshot(HALF_OPEN).endpoints[0].state, State::Closed);
        drop((plan, permit));
        assert!(!take_on(&core, "other", HALF_OPEN).0.1.is_last_resort());
    });
}

#[test]
fn of_two_windows_set_at_once_the_longer_stands() {
    every_interleaving(|| {
        let core = one_backend(1);
        let (short, long) = (take(&core, Now::ZERO).0, take(&core, Now::ZERO).0);
        let limited = |held: (Plan, Permit), seconds: u64| {
            let (mut plan, permit) = held;
            let retry_after = Some(Millis::seconds(seconds));
            let outcome = Outcome { retry_after, ..Outcome::answered(429) };
            plan.report(Now::ZERO, permit, &outcome, &mut Notes::default());
        };
        let other = loom::thread::spawn(move || limited(short, 5));
        limited(long, 9);
        other.join().expect("it does not panic");
        assert_eq!(core.snapshot(Now::ZERO).backends[0].deadline, Some(Now(9_000)));
    });
}

#[test]
fn a_mark_that_is_set_while_an_earlier_one_is_cleared_stands_or_was_told_to_be_cleared() {
    every_interleaving(|| {
        let core = one_backend(1);
        core.switch_off(Now::ZERO, "a", Some(Now(50)), &mut Notes::default());
        let clearing = {
            let core = Arc::clone(&core);
            loom::thread::spawn(move || {
                let mut notes = Notes::default();
                core.switch_off(Now(1), "a", None, &mut notes);
                notes.transitions.len()
            })
        };
        core.switch_off(Now(1), "a", Some(Now(100)), &mut Notes::default());
        let cleared = clearing.join().expect("it does not panic");
        let standing = core.snapshot(Now(1)).backends[0].switched_off.map(|it| it.until);
        assert!(standing == Some(Now(100)) || (standing.is_none() && cleared == 1));
    });
}
