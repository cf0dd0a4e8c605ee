//! The limit of last resorts: a burst for each target of a route, then a trickle.

use tidegate_core::{
    attempt::{Answer, End},
    choice::PinUse,
    explain::{Obstacle, Verdict},
    outcome::OutcomeKind,
    plan::RequestSpec,
    settings::LastResortSettings,
    time::{Millis, Now},
};

use crate::bed::{Bed, of_kind, ok, status};

/// Two targets in two tiers, and a limit for each of them.
fn limited(burst: u32, per_second: f64) -> Bed {
    Bed::of(&["a", "b"]).route(|route| {
        route.last_resort = LastResortSettings { burst, per_second };
        route.max_hops = 0;
    })
}

#[test]
fn a_burst_of_a_hundred_and_one_a_second_after_that() {
    let mut bed = Bed::of(&["a"]);
    bed.trip("a");
    let asked = |bed: &mut Bed, tries: usize| {
        (0..tries).filter(|_| !bed.request(|_| status(500)).visited.is_empty()).count()
    };
    assert_eq!(asked(&mut bed, 150), 100);
    bed.wait(999);
    assert_eq!(asked(&mut bed, 5), 0);
    bed.wait(1);
    assert_eq!(asked(&mut bed, 5), 1);
    bed.wait(10_000);
    assert_eq!(asked(&mut bed, 50), 10);
}

#[test]
fn over_the_limit_the_client_gets_a_503_without_attempts_and_a_re_entry() {
    let mut bed = limited(0, 0.0);
    bed.trip("a");
    bed.trip("b");
    bed.wait(10_000);
    let told = bed.request(|_| ok());
    assert_eq!((told.visited.len(), told.finish.end), (0, End::LastResortLimit));
    assert_eq!((told.finish.answer, told.finish.status), (Answer::NoHealthyBackend, 503));
    assert!(told.plan.is_retry_futile());
    assert_eq!(told.plan.re_entry(bed.now), Some(Now(30_000)));
    let phrases: Vec<_> = told.plan.obstacles(bed.now).flat_map(|(_, it)| it).collect();
    assert!(phrases.iter().any(|it| matches!(it, Obstacle::Breaker { .. })));
    assert!(phrases.contains(&Obstacle::LastResortLimit { free_from: Now::NEVER }));
}

#[test]
fn a_target_over_its_limit_is_skipped_for_the_next_one() {
    let mut bed = limited(2, 0.0);
    bed.trip("a");
    bed.trip("b");
    let visited: Vec<_> = (0..5).map(|_| bed.request(|_| status(500)).visited.concat()).collect();
    assert_eq!(visited, ["a", "a", "b", "b", ""]);
}

#[test]
fn skipping_goes_on_to_a_worse_rank() {
    let mut bed = limited(1, 0.0);
    bed.trip("a");
    bed.hit("b", status(402));
    bed.trip("b");
    assert_eq!(bed.request(|_| status(500)).visited, ["a"]);
    assert_eq!(bed.request(|_| status(500)).visited, ["b"], "an open and excluded one is left");
}

#[test]
fn attempts_at_an_excluded_target_are_limited_too() {
    let mut bed = limited(2, 0.0).with(|settings| {
        settings.routes[0].tiers.truncate(1);
        settings.backends[0].health.model_gone_window = Millis::minutes(60);
    });
    bed.hit("a", of_kind(OutcomeKind::ModelGone, 404));
    let gone = |_: &str| of_kind(OutcomeKind::ModelGone, 404);
    let counts: Vec<_> = (0..4).map(|_| bed.request(gone).visited.len()).collect();
    assert_eq!(counts, [1, 1, 0, 0]);
}

#[test]
fn attempts_inside_a_window_are_not_limited() {
    let mut bed = limited(0, 0.0).with(|settings| settings.routes[0].tiers.truncate(1));
    bed.hit("a", crate::bed::come_back(429, 60_000));
    for _ in 0..20 {
        assert_eq!(bed.request(|_| ok()).visited, ["a"]);
    }
}

#[test]
fn after_attempts_their_error_is_what_the_client_sees() {
    let mut bed = Bed::of(&["a", "b"]).route(|route| {
        route.last_resort = LastResortSettings { burst: 0, per_second: 0.0 };
    });
    bed.trip("b");
    let told = bed.request(|_| status(502));
    assert_eq!((told.visited.len(), told.finish.end), (1, End::LastResortLimit));
    assert_eq!((told.finish.answer, told.finish.status), (Answer::Attempt(0), 502));
}

#[test]
fn a_skipped_pin_is_kept() {
    let mut bed = limited(1, 0.0);
    bed.pin("s", "b");
    bed.trip("a");
    bed.trip("b");
    // Tier 0 is no better: both are open, and it is not in a promotion hold, so the pin is left.
    let ask = RequestSpec { session: "s", ..RequestSpec::default() };
    assert_eq!(bed.request_as(&ask, |_| status(500)).visited, ["a"]);
    assert_eq!(bed.pinned("s").as_deref(), Some("a"));
    let told = bed.request_as(&ask, |_| status(500));
    assert_eq!(told.visited, ["b"]);
    let used = told.plan.attempts().iter().next().map(|it| it.pin);
    assert_eq!(used, Some(PinUse::KeptOverLimit));
    assert_eq!(bed.pinned("s").as_deref(), Some("a"));
}

#[test]
fn each_route_and_each_target_has_a_limit_of_its_own_that_outlives_a_reload() {
    let mut bed = limited(1, 0.0);
    bed.trip("a");
    bed.trip("b");
    bed.hit("a", status(500));
    assert_eq!(bed.request(|_| status(500)).visited, ["a"], "the route `a` has its own");
    bed.reload(|_| ());
    assert_eq!(bed.request(|_| status(500)).visited, ["b"]);
    bed.reload(|settings| settings.routes[0].last_resort.burst = 2);
    assert_eq!(bed.request(|_| status(500)).visited, ["a"], "a changed limit starts anew");
}

#[test]
fn an_explanation_shows_the_limit_and_takes_no_token() {
    let mut bed = limited(1, 0.5);
    bed.trip("a");
    bed.trip("b");
    let route = std::sync::Arc::clone(bed.core.route("main").expect("every bed has it"));
    for _ in 0..5 {
        let told = bed.core.explain(&route, bed.now, &RequestSpec::default(), 0);
        assert_eq!(told.candidates[0].verdict, Verdict::Chosen { is_last_resort: true });
    }
    bed.request(|_| status(500));
    let told = bed.core.explain(&route, bed.now, &RequestSpec::default(), 0);
    let Verdict::Skipped(obstacles) = &told.candidates[0].verdict else { panic!("{told:?}") };
    assert!(obstacles.contains(&Obstacle::LastResortLimit { free_from: Now(2_000) }));
    assert_eq!(told.candidates[1].verdict, Verdict::Chosen { is_last_resort: true });
}

#[test]
fn a_limit_reached_costs_no_hop_of_the_budget() {
    let mut bed = Bed::of(&["a", "b", "c"]).route(|route| {
        route.last_resort = LastResortSettings { burst: 0, per_second: 0.0 };
        route.budget.floor = 1;
        route.budget.ratio = 0.0;
    });
    bed.trip("b");
    bed.trip("c");
    for _ in 0..2 {
        assert_eq!(bed.request(|_| status(404)).visited, ["a"]);
        assert_eq!(bed.request(|_| status(429)).finish.end, End::LastResortLimit);
        bed.core.reset(bed.now, "a", &mut bed.notes);
    }
}
