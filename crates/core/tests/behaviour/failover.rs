//! Failover inside a request: hops, budget, deadline, and what the client sees.

use tidegate_core::{
    attempt::{Answer, End},
    outcome::{Outcome, OutcomeKind},
    plan::RequestSpec,
    settings::BudgetSettings,
    time::{Millis, Now},
};

use crate::bed::{Bed, come_back, ended, of_kind, ok, refused, status};

fn budget(window: u64, ratio: f64, floor: u32) -> BudgetSettings {
    BudgetSettings { window: Millis(window), ratio, floor }
}

/// How a request ends whose targets, one per tier, answer these one after the other.
fn finish(answers: &[Outcome]) -> tidegate_core::attempt::Finish {
    let tiers = ["a", "b", "c", "d", "e"];
    let mut answers_left = answers.iter();
    let mut bed = Bed::of(&tiers[..answers.len()]);
    bed.request(|_| *answers_left.next().expect("one per target")).finish
}

#[test]
fn each_target_is_visited_at_most_once() {
    let mut bed = Bed::of(&["a b", "c d"]);
    let mut visited = bed.request(|_| status(500)).visited;
    visited.sort();
    assert_eq!(visited, ["a", "b", "c", "d"]);
}

#[test]
fn a_target_listed_in_two_tiers_is_visited_once_too() {
    let mut bed = Bed::of(&["a", "b"]).route(|route| {
        let again = route.tiers[0][0];
        route.tiers.push(vec![again]);
    });
    assert_eq!(bed.request(|_| status(500)).visited, ["a", "b"]);
}

#[test]
fn hops_beyond_the_limit_are_not_made() {
    let tiers = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    let mut bed = Bed::of(&tiers);
    let told = bed.request(|_| status(500));
    assert_eq!((told.visited.len(), told.finish.end), (9, End::HopLimit));
    let mut none = Bed::of(&tiers).route(|route| route.max_hops = 0);
    let told = none.request(|_| status(500));
    assert_eq!((told.visited.len(), told.finish.end), (1, End::HopLimit));
}

#[test]
fn the_deadline_is_the_route_s_or_the_client_s_if_that_is_less() {
    for (within, expected) in
        [(None, 600_000), (Some(5_000), 5_000), (Some(u64::MAX), 600_000), (Some(0), 0)]
    {
        let mut bed = Bed::of(&["a"]);
        let ask = RequestSpec { within: within.map(Millis), ..RequestSpec::default() };
        assert_eq!(bed.begin("main", &ask).deadline(), Now(expected));
    }
}

#[test]
fn nothing_starts_at_or_after_the_deadline() {
    for (wait, expected) in [(4_999, true), (5_000, false)] {
        let mut bed = Bed::of(&["a", "b"]);
        let ask = RequestSpec { within: Some(Millis(5_000)), ..RequestSpec::default() };
        let mut plan = bed.begin("main", &ask);
        let permit = bed.next_permit(&mut plan);
        bed.wait(wait);
        plan.report(bed.now, permit, &status(500), &mut bed.notes);
        match bed.next(&mut plan) {
            tidegate_core::plan::Step::Attempt(_) => assert!(expected),
            tidegate_core::plan::Step::Finish(finish) => {
                assert!(!expected);
                assert_eq!((finish.end, finish.status), (End::Deadline, 500));
            }
        }
    }
}

#[test]
fn a_target_inside_its_window_or_an_open_one_is_still_used_when_nothing_better_is_left() {
    let mut bed = Bed::of(&["a", "b", "c"]);
    bed.trip("b");
    bed.hit("c", come_back(429, 60_000));
    assert_eq!(bed.request(|_| status(500)).visited, ["a", "c", "b"]);
}

#[test]
fn the_first_hop_to_a_clear_target_is_free_and_every_other_draws_on_the_budget() {
    let mut bed = Bed::of(&["a", "b", "c"]).route(|route| route.budget = budget(10_000, 0.0, 1));
    let told = bed.request(|_| status(500));
    assert_eq!(told.visited, ["a", "b", "c"]);
    let told = bed.request(|_| status(500));
    assert_eq!((told.visited, told.finish.end), (vec!["a".into(), "b".into()], End::BudgetSpent));
}

#[test]
fn a_first_hop_to_a_target_of_another_rank_draws_on_the_budget() {
    let mut bed = Bed::of(&["a", "b"]).route(|route| route.budget = budget(10_000, 0.0, 0));
    assert_eq!(bed.request(|_| come_back(429, 1)).visited, ["a", "b"]);
    bed.wait(1);
    bed.trip("b");
    let told = bed.request(|_| come_back(429, 1));
    assert_eq!((told.visited, told.finish.end), (vec!["a".into()], End::BudgetSpent));
    assert_eq!(told.finish.status, 429, "the client sees what was answered");
}

#[test]
fn a_first_attempt_is_no_hop_whatever_its_rank() {
    let mut bed = Bed::of(&["a"]).route(|route| route.budget = budget(10_000, 0.0, 0));
    bed.trip("a");
    assert_eq!(bed.request(|_| ok()).visited, ["a"]);
}

#[test]
fn the_budget_grows_with_requests_this_one_included() {
    let mut bed = Bed::of(&["a", "b", "c"]).route(|route| {
        route.budget = budget(10_000, 0.5, 0);
    });
    let calm = |_: &str| ok();
    let storm = |_: &str| come_back(429, 1);
    let visits = |bed: &mut Bed| {
        let visits = bed.request(storm).visited.len();
        bed.wait(1);
        visits
    };
    assert_eq!(visits(&mut bed), 2, "half a hop is none");
    assert_eq!(visits(&mut bed), 3, "two requests allow one");
    bed.request(calm);
    assert_eq!(visits(&mut bed), 3, "four requests allow two");
    assert_eq!(visits(&mut bed), 2);
}

#[test]
fn a_share_of_requests_is_allowed_to_the_last_hop_whatever_the_fraction() {
    let mut bed = Bed::of(&["a", "b", "c"]).route(|route| {
        route.budget = budget(10_000, 0.29, 0);
        route.affinity_ttl = Millis::ZERO;
    });
    for _ in 0..71 {
        bed.request(|_| ok());
    }
    let mut hops = 0;
    for _ in 0..29 {
        hops += bed.request(|_| come_back(429, 1)).visited.len() - 2;
        for target in ["a", "b", "c"] {
            bed.core.reset(bed.now, target, &mut bed.notes);
        }
    }
    assert_eq!(hops, 29, "of 100 requests");
}

#[test]
fn a_hop_exactly_ten_seconds_old_is_out_of_the_budget() {
    for (wait, expected) in [(9_999, 2), (10_000, 3)] {
        let mut bed =
            Bed::of(&["a", "b", "c"]).route(|route| route.budget = budget(10_000, 0.0, 1));
        bed.request(|_| come_back(429, 1));
        bed.wait(wait);
        assert_eq!(bed.request(|_| come_back(429, 1)).visited.len(), expected, "{wait}");
    }
}

#[test]
fn a_refused_hop_is_not_counted() {
    let mut bed = Bed::of(&["a", "b", "c"]).route(|route| route.budget = budget(10_000, 0.0, 1));
    bed.request(|_| come_back(429, 1));
    for _ in 0..50 {
        bed.wait(100);
        assert_eq!(bed.request(|_| come_back(429, 1)).visited.len(), 2);
    }
    bed.wait(5_000);
    assert_eq!(bed.request(|_| come_back(429, 1)).visited.len(), 3);
}

#[test]
fn the_client_sees_the_first_success() {
    let finish = finish(&[status(500), refused(), status(201)]);
    assert_eq!((finish.end, finish.answer), (End::Answered, Answer::Attempt(2)));
    assert_eq!(finish.status, 201);
}

#[test]
fn else_the_last_http_error_as_it_came() {
    let finish = finish(&[status(500), status(503), refused(), ended(OutcomeKind::Timeout)]);
    assert_eq!((finish.answer, finish.status), (Answer::Attempt(1), 503));
}

#[test]
fn our_own_keys_trouble_is_shown_only_if_there_is_no_other_error() {
    let rows: [(&[Outcome], usize, u16); 4] = [
        (&[status(500), status(401), status(402)], 0, 500),
        (&[status(401), status(402)], 1, 402),
        (&[status(402), refused(), status(403)], 2, 403),
        (&[status(401), status(429), refused()], 1, 429),
    ];
    for (answers, attempt, code) in rows {
        let finish = finish(answers);
        assert_eq!((finish.answer, finish.status), (Answer::Attempt(attempt), code), "{answers:?}");
    }
}

#[test]
fn a_redirect_or_an_error_inside_a_200_becomes_a_502() {
    for outcome in [status(302), status(307), of_kind(OutcomeKind::ServerError, 200)] {
        assert_eq!(finish(&[outcome]).status, 502, "{outcome:?}");
    }
}

#[test]
fn without_any_http_answer_it_is_a_503_of_our_own() {
    let finish = finish(&[refused(), ended(OutcomeKind::Timeout)]);
    assert_eq!((finish.end, finish.answer), (End::NothingLeft, Answer::NoHealthyBackend));
    assert_eq!(finish.status, 503);
}

#[test]
fn an_answer_that_broke_or_was_nothing_gives_no_error_to_show() {
    let broke = Outcome::broken(OutcomeKind::Transport, Some(200));
    let nothing = Outcome::broken(OutcomeKind::ServerError, Some(204));
    let after_an_error = finish(&[status(500), broke]);
    assert_eq!((after_an_error.answer, after_an_error.status), (Answer::Attempt(0), 500));
    let alone = finish(&[broke, nothing]);
    assert_eq!((alone.answer, alone.status), (Answer::NoHealthyBackend, 503));
}

#[test]
fn an_error_inside_a_200_is_shown_as_the_last_error() {
    let inside = of_kind(OutcomeKind::Overloaded, 200);
    let finish = finish(&[status(500), inside, refused()]);
    assert_eq!((finish.answer, finish.status), (Answer::Attempt(1), 502));
}

#[test]
fn a_client_is_told_not_to_retry_when_two_targets_failed_or_none_can_be_used() {
    let mut single = Bed::of(&["a"]).keys("k0 k1", "a");
    let told = single.request(|_| come_back(429, 1_000));
    assert_eq!(told.visited.len(), 2, "two keys of one target");
    assert!(!told.plan.is_retry_futile());

    let mut pair = Bed::of(&["a", "b"]);
    assert!(pair.request(|_| status(500)).plan.is_retry_futile());

    for target in ["a", "b"] {
        pair.core.switch_off(pair.now, target, Some(Now::NEVER), &mut pair.notes);
    }
    let told = pair.request(|_| ok());
    assert_eq!((told.visited.len(), told.finish.status), (0, 503));
    assert!(told.plan.is_retry_futile());
}

#[test]
fn a_client_fault_is_relayed_even_after_other_errors() {
    let finish = finish(&[status(500), status(404)]);
    assert_eq!((finish.end, finish.answer), (End::ClientFault, Answer::Attempt(1)));
    assert_eq!(finish.status, 404);
}

#[test]
fn a_broken_answer_stays_what_the_client_sees() {
    let finish = finish(&[of_kind(OutcomeKind::Truncated, 200)]);
    assert_eq!((finish.end, finish.answer), (End::Broken, Answer::Attempt(0)));
    assert_eq!(finish.status, 200);
}

#[test]
fn a_finished_plan_stays_finished() {
    let mut bed = Bed::of(&["a", "b"]);
    let mut told = bed.request(|_| status(400));
    for _ in 0..3 {
        match bed.next(&mut told.plan) {
            tidegate_core::plan::Step::Finish(again) => assert_eq!(again, told.finish),
            tidegate_core::plan::Step::Attempt(permit) => panic!("{permit:?}"),
        }
    }
}

#[test]
fn the_time_to_come_back_is_that_of_the_first_target_that_returns() {
    let mut bed = Bed::of(&["a", "b"]);
    let finished = bed.request(|name| come_back(429, if name == "a" { 60_000 } else { 5_000 }));
    assert_eq!(finished.plan.re_entry(bed.now), Some(Now(5_000)));
    bed.wait(5_000);
    assert_eq!(finished.plan.re_entry(bed.now), None, "one target can be asked again");
}
