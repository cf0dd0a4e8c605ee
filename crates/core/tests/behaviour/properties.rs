//! What holds for every history: replay, reload, extremes, and what a snapshot may show.
//!
//! Histories are drawn by proptest, which shrinks a failing one and prints it; nothing is kept on
//! disk, so a run depends on its seed alone (`PROPTEST_RNG_SEED`).

use proptest::prelude::*;
use tidegate_core::{
    choice::select,
    core::Core,
    explain::{CandidateVerdict, Verdict},
    outcome::{Outcome, OutcomeKind},
    plan::{PatienceVerdict, RequestSpec, Step},
    settings::{HealthSettings, PinMode, RouteSettings, Settings, Tactic},
    time::{Millis, Now},
    transition::Notes,
};

use crate::bed::{Bed, backend, of_kind, probed};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// A request on `main`, whose attempts end like this, one after the other.
    Request { session: Option<u8>, endings: Vec<Outcome> },
    /// Time passes.
    Wait(u64),
    /// A probe of the endpoint ended.
    Probe { passed: bool, heals: bool },
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let kinds = prop::sample::select(OutcomeKind::ALL.to_vec());
    let no_model_gone = kinds.prop_filter("a reload ends it", |it| *it != OutcomeKind::ModelGone);
    let status = prop::option::of(prop::sample::select(vec![200_u16, 302, 429, 500, 503]));
    let retry_after = prop::option::of((0..90_000_u64).prop_map(Millis));
    (no_model_gone, status, retry_after).prop_map(|(kind, status, retry_after)| Outcome {
        retry_after,
        ..status.map_or(Outcome::unanswered(kind), |status| Outcome::error(kind, status))
    })
}

pub(crate) fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let request = (prop::option::of(0..3_u8), prop::collection::vec(outcome(), 1..6))
        .prop_map(|(session, endings)| Deed::Request { session, endings });
    let wait = prop_oneof![Just(0), Just(1), 1..40_000_u64, Just(315_360_000_000)];
    let probe =
        (any::<bool>(), any::<bool>()).prop_map(|(passed, heals)| Deed::Probe { passed, heals });
    let deed = prop_oneof![6 => request, 3 => wait.prop_map(Deed::Wait), 1 => probe];
    prop::collection::vec(deed, 1..60)
}

pub(crate) fn tactic() -> impl Strategy<Value = Tactic> {
    use Tactic::*;
    prop::sample::select(vec![Random, RoundRobin, Weighted, LeastLatency, LeastBusy])
}

pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Two tiers, a shared endpoint, a pool of keys.
pub(crate) fn bed(tactic: Tactic) -> Bed {
    Bed::of(&["a b", "c d"]).endpoint("host", "a c").keys("k0 k1", "a b").route(|route| {
        route.tactic = tactic;
        route.pin = PinMode::Answered;
        route.budget.floor = 3;
    })
}

/// Does it; who was visited.
pub(crate) fn act(bed: &mut Bed, deed: &Deed) -> Vec<String> {
    match deed {
        Deed::Wait(ms) => bed.wait(*ms),
        Deed::Probe { passed, heals } => {
            bed.core.endpoint_probed(bed.now, "host", probed(*passed), *heals, &mut bed.notes);
        }
        Deed::Request { session, endings } => {
            let session = session.map_or_else(String::new, |it| it.to_string());
            let mut endings = endings.iter().cycle();
            let next = |_: &str| *endings.next().expect("a cycle does not end");
            return bed.session(&session, next);
        }
    }
    Vec::new()
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn reloading_the_same_settings_at_every_step_changes_nothing(
        tactic in tactic(), deeds in deeds(),
    ) {
        let (mut plain, mut reloaded) = (bed(tactic), bed(tactic));
        for deed in &deeds {
            prop_assert_eq!(act(&mut plain, deed), act(&mut reloaded, deed));
            reloaded.reload(|_| ());
            prop_assert_eq!(plain.core.snapshot(plain.now), reloaded.core.snapshot(plain.now));
            prop_assert_eq!(&plain.notes.transitions, &reloaded.notes.transitions);
        }
    }

    #[test]
    fn an_unrelated_change_keeps_the_rest(tactic in tactic(), deeds in deeds()) {
        let (mut plain, mut changed) = (bed(tactic), bed(tactic));
        for (step, deed) in deeds.iter().enumerate() {
            prop_assert_eq!(act(&mut plain, deed), act(&mut changed, deed));
            changed.reload(|settings| {
                settings.backends.truncate(4);
                if step % 2 == 0 {
                    settings.backends.push(backend(&format!("new{step}")));
                }
            });
            let after = changed.core.snapshot(changed.now);
            prop_assert_eq!(&after.backends[..4], &plain.core.snapshot(plain.now).backends[..]);
        }
    }

    #[test]
    fn a_choice_replays_from_its_record(tactic in tactic(), deeds in deeds()) {
        let mut bed = bed(tactic);
        for deed in &deeds {
            let Deed::Request { session, endings } = deed else {
                act(&mut bed, deed);
                continue;
            };
            let session = session.map_or_else(String::new, |it| it.to_string());
            let spec = RequestSpec { session: &session, ..RequestSpec::default() };
            let mut plan = bed.begin("main", &spec);
            let mut endings = endings.iter().cycle();
            while let Step::Attempt(permit) = bed.next(&mut plan) {
                let attempt = *plan.attempts().iter().last().expect("one was made");
                let reads = bed.notes.reads.clone();
                let again = select(&reads, &attempt.input, |_| attempt.cursor);
                let again = again.expect("something was chosen");
                prop_assert_eq!(reads[again.index].candidate, attempt.candidate);
                prop_assert_eq!((again.rank, again.by), (attempt.rank, attempt.by));
                let ending = endings.next().expect("a cycle does not end");
                plan.report(bed.now, permit, ending, &mut bed.notes);
            }
        }
    }

    #[test]
    fn a_choice_that_reads_few_tiers_is_the_one_that_reads_all(
        tactic in tactic(), deeds in deeds(), draws in any::<u64>(),
    ) {
        let mut bed = Bed::of(&["a b", "c d", "e"]).endpoint("host", "a c").route(|route| {
            route.tactic = tactic;
            route.budget.floor = 3;
        });
        let mut draw = draws;
        for deed in &deeds {
            let Deed::Request { session, endings } = deed else {
                act(&mut bed, deed);
                continue;
            };
            draw = tidegate_core::draw::mix(draw);
            let session = session.map_or_else(String::new, |it| it.to_string());
            let spec = RequestSpec { session: &session, ..RequestSpec::default() };
            // Explaining reads every tier, and takes nothing.
            let route = std::sync::Arc::clone(bed.core.route("main").expect("every bed has it"));
            let told = bed.core.explain(&route, bed.now, &spec, draw);
            let mut plan = bed.begin("main", &spec);
            let mut endings = endings.iter().cycle();
            let mut step = plan.next(bed.now, draw, &mut bed.notes);
            if let Step::Attempt(_) = &step {
                let attempt = *plan.attempts().iter().last().expect("one was made");
                let chosen = |it: &CandidateVerdict| matches!(it.verdict, Verdict::Chosen { .. });
                let expected = told.candidates.iter().position(chosen);
                // A race that was lost, which is drawn anew, is not foreseen.
                if attempt.input.draw == draw {
                    prop_assert_eq!(Some(usize::from(attempt.candidate)), expected);
                }
            }
            while let Step::Attempt(permit) = step {
                let ending = endings.next().expect("a cycle does not end");
                plan.report(bed.now, permit, ending, &mut bed.notes);
                step = bed.next(&mut plan);
            }
        }
    }

    #[test]
    fn a_report_of_an_old_generation_changes_no_breaker(
        before in deeds(), between in deeds(), outcome in outcome(),
    ) {
        let mut bed = Bed::of(&["a b"]);
        before.iter().for_each(|deed| drop(act(&mut bed, deed)));
        let generation = bed.snap("a").generation;
        let held = bed.take("a");
        between.iter().for_each(|deed| drop(act(&mut bed, deed)));
        let was_stale = bed.snap("a").generation != generation;
        let (state, failures) = (bed.state("a"), bed.snap("a").consecutive_failures);
        bed.report(held, outcome);
        if was_stale {
            let found = (bed.state("a"), bed.snap("a").consecutive_failures);
            prop_assert_eq!(found, (state, failures));
        }
    }

    #[test]
    fn no_settings_and_no_times_make_it_panic(
        health in wild_health(),
        (window, deadline, ttl, ratio) in (wild(), wild(), wild(), wild_float()),
        (within, hops, floor) in (wild(), wild_count(), wild_count()),
        steps in prop::collection::vec((wild(), outcome()), 1..30),
    ) {
        let mut bed = bed(Tactic::LeastLatency).health(|it| *it = health.clone()).route(|route| {
            route.budget.window = Millis(window);
            route.budget.ratio = ratio;
            route.budget.floor = floor;
            route.deadline = Millis(deadline);
            route.affinity_ttl = Millis(ttl);
            route.max_hops = hops;
        });
        for (now, outcome) in steps {
            bed.now = Now(now);
            let limit = Some(Millis(within));
            let ask = RequestSpec { session: "s", within: limit, ..RequestSpec::default() };
            bed.request_as(&ask, |_| outcome);
            bed.core.endpoint_probed(bed.now, "host", probed(now % 2 == 0), true, &mut bed.notes);
            let mut held = bed.begin("main", &ask);
            if let Step::Attempt(mut permit) = bed.next(&mut held) {
                permit.content(Now(now), Millis(now), &mut bed.notes);
            }
            let patience = Some(Millis(within));
            let streamed = RequestSpec { patience, is_stream: true, ..RequestSpec::default() };
            let mut held = bed.begin("main", &streamed);
            while let Step::Attempt(mut permit) = bed.next(&mut held) {
                permit.sent(bed.now);
                bed.now = held.wake_at(&permit).unwrap_or(bed.now).max(bed.now);
                match held.check_patience(bed.now, &mut permit, &mut bed.notes) {
                    PatienceVerdict::Leave => {
                        held.leave(bed.now, permit, &mut bed.notes);
                    }
                    _ => {
                        let outcome = held.abandoned(bed.now, &permit);
                        held.report(bed.now, permit, &outcome, &mut bed.notes);
                    }
                }
            }
            prop_assert_eq!(bed.core.snapshot(bed.now).backends.len(), 4);
            bed.core.sweep(bed.now);
            bed.reload(|_| ());
        }
    }

    #[test]
    fn no_reference_of_a_key_is_reachable_from_what_the_core_tells(
        tactic in tactic(), deeds in deeds(),
    ) {
        let mut bed = bed(tactic);
        for deed in &deeds {
            act(&mut bed, deed);
        }
        let route = bed.core.route("main").expect("every bed has it");
        let told = [
            serde_json::to_string(&bed.core.snapshot(bed.now)),
            serde_json::to_string(&bed.notes.transitions),
            serde_json::to_string(&bed.core.explain(route, bed.now, &RequestSpec::default(), 0)),
        ];
        for json in told {
            let json = json.expect("what the core tells can be written as JSON");
            prop_assert!(!json.contains("SECRET"), "{}", json);
        }
    }
}

/// The ends of the range and their neighbours.
fn wild() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 1, 2, 30_000, 1 << 40, u64::MAX / 2, u64::MAX - 1, u64::MAX])
}

fn wild_count() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 1, 2, 20, u32::MAX - 1, u32::MAX])
}

fn wild_float() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![0.0, -1.0, 0.5, 1.0, 1e308, f64::INFINITY, f64::NAN])
}

fn wild_health() -> impl Strategy<Value = HealthSettings> {
    let counts = prop::array::uniform4(wild_count());
    let spans = prop::array::uniform7(wild());
    let floats = prop::array::uniform3(wild_float());
    (counts, spans, floats).prop_map(|(counts, spans, floats)| HealthSettings {
        failure_threshold: counts[0],
        min_samples: counts[1],
        recovery_threshold: counts[2],
        trial_permits: counts[3],
        window: Millis(spans[0]),
        strike_memory: Millis(spans[1]),
        open_for: Millis(spans[2]),
        open_max: Millis(spans[3]),
        promotion_hold: Millis(spans[4]),
        rate_limit_window: Millis(spans[5]),
        auth_window: Millis(spans[6]),
        failure_ratio: floats[0],
        open_growth: floats[1],
        open_jitter: floats[2],
        ..HealthSettings::default()
    })
}

#[test]
fn a_core_without_anything_answers_too() {
    let core = Core::new(&Settings::default(), 0);
    assert!(core.route("main").is_none());
    assert!(core.snapshot(Now::NEVER).backends.is_empty());
    let empty = Settings {
        routes: vec![RouteSettings { name: "main".to_owned(), ..RouteSettings::default() }],
        ..Settings::default()
    };
    let core = core.reload(Now::NEVER, &empty);
    let route = core.route("main").expect("it was added");
    let mut plan = core.begin(route, Now::ZERO, &RequestSpec::default());
    let step = plan.next(Now::ZERO, 0, &mut Notes::default());
    assert!(matches!(step, Step::Finish(finish) if finish.status == 503));
}

#[test]
fn a_snapshot_survives_the_way_to_json_and_back() {
    let mut bed = bed(Tactic::Random);
    bed.hit("a", of_kind(OutcomeKind::RateLimited, 429));
    bed.trip("c");
    let snapshot = bed.core.snapshot(bed.now);
    let json = serde_json::to_string(&snapshot).expect("it can be written");
    let back: tidegate_core::snapshot::Snapshot = serde_json::from_str(&json).expect("and read");
    assert_eq!(back, snapshot);
}
