//! Scopes: a target's own breaker and its endpoint's; MCP servers, which have no endpoint.

use tidegate_core::{
    breaker::State,
    outcome::OutcomeKind,
    snapshot::Reason,
    time::{Millis, Now},
    transition::Scope,
};

use crate::bed::{Bed, ended, of_kind, ok, refused, status};

/// Three targets behind one host.
fn one_host() -> Bed {
    Bed::of(&["a", "b", "c", "other"]).endpoint("host", "a b c")
}

/// The same, with the host dead for `open_for`.
fn dead_host() -> Bed {
    let mut bed = one_host();
    for target in ["a", "b", "c"] {
        bed.hit(target, refused());
    }
    bed
}

#[test]
fn one_dead_host_stops_all_its_targets_after_three_tries_in_all() {
    let mut bed = dead_host();
    for target in ["a", "b", "c"] {
        let snap = bed.snap(target);
        assert_eq!((snap.state, snap.healthy), (State::Open, false), "{target}");
        assert_eq!(snap.reason, Some(Reason::EndpointOpen));
        assert_eq!(snap.consecutive_failures, 1, "its own breaker heard of one");
    }
    let told = bed.request(|_| ok());
    assert_eq!(told.visited, ["other"]);
    let opened = bed.notes.transitions.iter().filter(|it| it.scope == Scope::Endpoint).count();
    assert_eq!(opened, 1);
}

#[test]
fn any_response_head_is_a_success_of_the_endpoint() {
    for code in [200, 301, 400, 401, 429, 500, 503] {
        let mut bed = one_host();
        for _ in 0..3 {
            bed.hit("a", refused());
            bed.hit("b", refused());
            bed.hit("c", status(code));
        }
        assert_eq!(bed.endpoint_snap("host").state, State::Closed, "{code}");
    }
}

#[test]
fn a_connection_lost_after_the_head_is_no_failure_of_the_endpoint() {
    let mut bed = one_host();
    for target in ["a", "b", "c", "a", "b", "c"] {
        let mut held = bed.take(target);
        held.permit.head(bed.now, &mut bed.notes);
        bed.report(held, refused());
    }
    assert_eq!(bed.endpoint_snap("host").state, State::Closed);
    assert_eq!(bed.endpoint_snap("host").consecutive_failures, 0);
}

#[test]
fn a_truncated_answer_proves_that_the_endpoint_was_reached() {
    let mut bed = one_host();
    bed.hit("a", refused());
    bed.hit("b", refused());
    bed.hit("c", ended(OutcomeKind::Truncated));
    assert_eq!(bed.endpoint_snap("host").consecutive_failures, 0);
}

#[test]
fn what_says_nothing_about_reachability_is_neutral() {
    use OutcomeKind::*;
    for kind in [Timeout, Cancelled, ServerError, ClientFault] {
        let mut bed = one_host();
        bed.hit("a", refused());
        bed.hit("b", refused());
        bed.hit("c", ended(kind));
        assert_eq!(bed.endpoint_snap("host").consecutive_failures, 2, "{}", kind.word());
        bed.hit("c", refused());
        assert_eq!(bed.endpoint_snap("host").state, State::Open, "{}", kind.word());
    }
}

#[test]
fn an_endpoint_has_the_streak_rule_only() {
    let mut bed = one_host();
    for round in 0..100 {
        bed.hit(["a", "b", "c"][round % 3], refused());
        bed.hit(["a", "b", "c"][(round + 1) % 3], status(200));
    }
    assert_eq!(bed.endpoint_snap("host").state, State::Closed);
}

#[test]
fn a_half_open_endpoint_admits_one_trial_of_all_its_targets() {
    let mut bed = dead_host();
    bed.wait(30_000);
    let trial = bed.trial("a");
    assert_eq!(bed.state("b"), State::HalfOpen);
    assert!(bed.take("b").permit.is_last_resort());
    drop(trial);
    let _now_free = bed.trial("b");
}

#[test]
fn the_endpoint_s_slot_is_free_at_the_response_head() {
    let mut bed = dead_host();
    bed.wait(30_000);
    let mut held = Vec::new();
    for target in ["a", "b", "c"] {
        let mut trial = bed.trial(target);
        trial.permit.head(bed.now, &mut bed.notes);
        held.push(trial);
    }
    assert_eq!(bed.endpoint_snap("host").state, State::Closed, "three heads closed it");
}

#[test]
fn an_endpoint_has_no_probation() {
    let mut bed = dead_host();
    bed.wait(30_000);
    let mut trial = bed.trial("a");
    trial.permit.head(bed.now, &mut bed.notes);
    bed.report(trial, refused());
    let snap = bed.endpoint_snap("host");
    assert_eq!((snap.state, snap.consecutive_failures), (State::HalfOpen, 0));
}

#[test]
fn a_trial_of_the_endpoint_that_is_refused_re_opens_it() {
    let mut bed = dead_host();
    bed.wait(30_000);
    let trial = bed.trial("a");
    bed.report(trial, refused());
    assert_eq!(bed.endpoint_snap("host").state, State::Open);
    assert_eq!(bed.endpoint_snap("host").deadline, Some(Now(60_000)));
}

#[test]
fn an_attempt_takes_the_permits_of_both_breakers_or_of_neither() {
    let mut bed = one_host().health(|it| it.recovery_threshold = 1);
    bed.trip("a");
    for target in ["b", "c", "b"] {
        bed.hit(target, refused());
    }
    bed.wait(30_000);
    let blocks_the_endpoint = bed.trial("b");
    assert!(bed.take("a").permit.is_last_resort());
    drop(blocks_the_endpoint);
    let trial = bed.trial("a");
    bed.report(trial, ok());
    assert_eq!(bed.state("a"), State::Closed, "its own slot had not been lost");
}

#[test]
fn one_word_shows_the_worse_of_the_two_states() {
    let mut bed = dead_host();
    bed.wait(30_000);
    bed.trip("other");
    assert_eq!(bed.state("a"), State::HalfOpen);
    let mut own_open = one_host();
    own_open.trip("a");
    assert_eq!((own_open.state("a"), own_open.state("b")), (State::Open, State::Closed));
}

#[test]
fn a_last_resort_tells_the_endpoint_s_breaker_nothing() {
    let mut bed = Bed::of(&["a"]).endpoint("host", "a");
    for _ in 0..3 {
        bed.hit("a", refused());
    }
    bed.hit("a", ok());
    bed.hit("a", refused());
    let snap = bed.endpoint_snap("host");
    assert_eq!((snap.state, snap.deadline), (State::Open, Some(Now(30_000))));
}

#[test]
fn an_open_endpoint_without_end_lets_nobody_pass() {
    let mut bed = one_host().health(|it| {
        it.open_for = Millis(u64::MAX);
        it.open_max = Millis(u64::MAX);
    });
    for target in ["a", "b", "c"] {
        bed.hit(target, refused());
    }
    assert_eq!(bed.state("a"), State::Open);
    assert!(bed.take("a").permit.is_last_resort());
}

#[test]
fn a_server_is_a_backend_without_endpoint_and_keys() {
    let mut bed = Bed::of(&["mcp:github mcp:search"]);
    for _ in 0..3 {
        bed.hit("mcp:github", refused());
    }
    assert_eq!(bed.state("mcp:github"), State::Open);
    assert_eq!(bed.request(|_| ok()).visited, ["mcp:search"]);
    assert!(bed.core.snapshot(bed.now).endpoints.is_empty());
    bed.hit("mcp:search", of_kind(OutcomeKind::AuthRejected, 401));
    assert_eq!(bed.snap("mcp:search").deadline, Some(Now(30_000)), "auth rejected excludes it");
}
