//! Key pools: windows per (target, key), exclusions per key, keys in turn.

use tidegate_core::{breaker::State, mark::MarkReason, rank::Rank, snapshot::Reason, time::Now};

use crate::bed::{Bed, come_back, ok, refused, status};

/// One target with three keys, and a fallback.
fn pool() -> Bed {
    Bed::of(&["a", "b"]).keys("k0 k1 k2", "a")
}

/// Reports `outcome` for one key of `a`, whatever the turn.
fn charge_key(bed: &mut Bed, key: usize, outcome: tidegate_core::outcome::Outcome) {
    let mut others = Vec::new();
    for _ in 0..9 {
        let held = bed.take("a");
        if held.permit.key() == key {
            bed.report(held, outcome);
            return;
        }
        others.push(held);
    }
    panic!("key {key} never had its turn");
}

#[test]
fn free_keys_are_used_in_turn() {
    let mut bed = pool();
    let keys: Vec<usize> = (0..6).map(|_| bed.take("a").permit.key()).collect();
    assert_eq!(keys, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_key_with_a_window_or_an_exclusion_is_passed_over() {
    for outcome in [come_back(429, 1_000), status(401), status(402)] {
        let mut bed = pool();
        charge_key(&mut bed, 1, outcome);
        let keys: Vec<usize> = (0..4).map(|_| bed.take("a").permit.key()).collect();
        assert!(!keys.contains(&1), "{keys:?}");
        assert_eq!(bed.snap("a").rank, Rank(0), "the target itself is free");
        assert!(bed.snap("a").healthy);
    }
}

#[test]
fn a_target_is_excluded_when_every_key_is() {
    let mut bed = pool();
    for key in 0..3 {
        assert!(bed.snap("a").healthy);
        charge_key(&mut bed, key, status(401));
    }
    let snap = bed.snap("a");
    assert_eq!((snap.healthy, snap.rank), (false, Rank(Rank::EXCLUDED)));
    assert_eq!(snap.reason, Some(Reason::Mark(MarkReason::AuthRejected)));
}

#[test]
fn a_target_is_inside_a_window_when_each_key_that_is_not_excluded_has_one() {
    let mut bed = pool();
    charge_key(&mut bed, 0, status(402));
    charge_key(&mut bed, 1, come_back(429, 9_000));
    assert_eq!(bed.snap("a").rank, Rank(0));
    charge_key(&mut bed, 2, come_back(429, 5_000));
    let snap = bed.snap("a");
    assert_eq!(snap.rank, Rank(Rank::WINDOW));
    assert_eq!(snap.deadline, Some(Now(5_000)), "the first key comes back then");
}

#[test]
fn the_window_of_an_excluded_key_does_not_bring_the_deadline_forward() {
    let mut bed = Bed::of(&["a"]).keys("k0 k1", "a");
    let (first, second, first_again) = (bed.take("a"), bed.take("a"), bed.take("a"));
    bed.report(first, come_back(429, 1_000));
    bed.report(first_again, status(402));
    bed.report(second, come_back(429, 30_000));
    assert_eq!(bed.snap("a").rank, Rank(Rank::WINDOW));
    assert_eq!(bed.snap("a").deadline, Some(Now(30_000)));
}

#[test]
fn with_all_keys_excluded_a_window_counts_only_if_each_has_one() {
    let mut bed = Bed::of(&["a"]).keys("k0 k1", "a");
    charge_key(&mut bed, 0, come_back(429, 9_000));
    charge_key(&mut bed, 1, status(402));
    assert_eq!(bed.snap("a").rank, Rank(Rank::WINDOW), "key 1 is excluded, key 0 has a window");
    let mut bed = Bed::of(&["a"]).keys("k0 k1", "a");
    let both = [bed.take("a"), bed.take("a")];
    charge_key(&mut bed, 0, come_back(429, 9_000));
    for held in both {
        bed.report(held, status(402));
    }
    assert_eq!(bed.snap("a").rank, Rank(Rank::EXCLUDED), "key 1 has no window");
}

#[test]
fn without_a_free_key_the_one_whose_re_entry_comes_first_is_used_once() {
    let mut bed = pool().route(|route| route.max_hops = 8);
    charge_key(&mut bed, 0, come_back(429, 9_000));
    charge_key(&mut bed, 1, come_back(429, 3_000));
    charge_key(&mut bed, 2, come_back(429, 6_000));
    for _ in 0..3 {
        bed.hit("b", status(500));
    }
    let told = bed.request(|_| come_back(429, 1));
    assert_eq!(told.visited, ["a#1", "b"]);
}

#[test]
fn after_key_trouble_the_next_free_key_is_tried_before_another_target() {
    for outcome in [come_back(429, 1_000), status(401), status(402)] {
        let mut bed = pool();
        let told = bed.request(|target| if target == "a#2" { ok() } else { outcome });
        assert_eq!(told.visited, ["a#0", "a#1", "a#2"]);
    }
}

#[test]
fn after_any_other_outcome_the_target_is_done() {
    for outcome in [status(500), status(503), refused()] {
        let mut bed = pool();
        let told = bed.request(|target| if target == "b" { ok() } else { outcome });
        assert_eq!(told.visited, ["a#0", "b"]);
    }
}

#[test]
fn another_key_after_a_failure_of_the_second_is_not_tried() {
    let mut bed = pool();
    let told = bed.request(|target| match target {
        "a#0" => status(401),
        "a#1" => status(500),
        _ => ok(),
    });
    assert_eq!(told.visited, ["a#0", "a#1", "b"]);
}

#[test]
fn each_key_is_an_attempt_with_a_permit_of_its_own() {
    let mut bed = pool();
    bed.trip("a");
    bed.wait(30_000);
    let told = bed.request(|target| if target == "a#2" { ok() } else { status(401) });
    let first_key = told.visited.first().cloned();
    assert!(first_key.is_some_and(|name| name.starts_with("a#")));
    assert!(told.plan.attempts().iter().all(|attempt| attempt.is_trial), "{:?}", told.visited);
}

#[test]
fn a_429_without_a_time_charges_only_when_no_other_free_key_is_left() {
    let mut bed = pool();
    bed.request(|target| if target == "b" { ok() } else { status(429) });
    let snap = bed.snap("a");
    assert_eq!(snap.consecutive_failures, 1, "three keys, one charge");
    assert_eq!(snap.rank, Rank(Rank::WINDOW));
}

#[test]
fn an_exclusion_is_the_key_s_and_a_window_the_target_s() {
    let mut bed = Bed::of(&["a", "b"]).keys("k0", "a b");
    bed.hit("a", come_back(429, 60_000));
    assert!(bed.snap("b").healthy, "a window belongs to (target, key)");
    bed.hit("a", status(401));
    assert!(!bed.snap("b").healthy, "an exclusion to the key");
    bed.hit("b", ok());
    assert_eq!(bed.core.snapshot(bed.now).keys, Vec::new(), "and any target's success heals it");
}

#[test]
fn a_403_excludes_the_key_at_this_target_only() {
    let mut bed = Bed::of(&["a", "b"]).keys("k0", "a b");
    bed.hit("a", status(403));
    let snap = bed.snap("a");
    assert_eq!((snap.healthy, snap.rank), (false, Rank(Rank::EXCLUDED)));
    assert_eq!(snap.reason, Some(Reason::Mark(MarkReason::AuthRejected)));
    assert_eq!(snap.deadline, Some(Now(30_000)));
    assert!(bed.snap("b").healthy, "it may be about the model");
    bed.hit("b", ok());
    assert!(!bed.snap("a").healthy, "the key's success elsewhere does not heal it");
    bed.hit("a", ok());
    assert!(bed.snap("a").healthy, "a success here does");
}

#[test]
fn a_401_excludes_the_key_everywhere_and_a_403_beside_it_stays() {
    let mut bed = Bed::of(&["a", "b"]).keys("k0", "a b");
    let (first, second) = (bed.take("a"), bed.take("a"));
    bed.report(first, status(401));
    bed.report(second, status(403));
    assert!(!bed.snap("b").healthy);
    bed.hit("b", ok());
    assert!(bed.snap("b").healthy);
    assert!(!bed.snap("a").healthy, "the 403 is about this target");
    bed.reload(|_| ());
    assert!(!bed.snap("a").healthy, "and outlives a reload");
    bed.core.reset(bed.now, "a", &mut bed.notes);
    assert!(bed.snap("a").healthy);
}

#[test]
fn after_a_403_the_next_key_of_the_target_is_tried() {
    let mut bed = pool();
    let told = bed.request(|target| if target == "a#1" { ok() } else { status(403) });
    assert_eq!(told.visited, ["a#0", "a#1"]);
}

#[test]
fn key_trouble_never_opens_a_breaker() {
    let mut bed = pool();
    for _ in 0..50 {
        bed.hit("a", status(401));
        bed.hit("a", status(402));
    }
    assert_eq!(bed.state("a"), State::Closed);
}
