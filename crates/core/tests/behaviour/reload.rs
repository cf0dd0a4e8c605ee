//! Reload: what did not change keeps its health, windows, exclusions and pins (I12).

use tidegate_core::{
    breaker::State,
    settings::Tactic,
    time::{Millis, Now},
};

use crate::bed::{Bed, backend, come_back, ok, refused, status};

#[test]
fn what_did_not_change_keeps_health_windows_exclusions_and_pins() {
    let mut bed = Bed::of(&["a b c", "d"]).keys("k0", "c");
    bed.trip("a");
    bed.hit("b", come_back(429, 60_000));
    bed.hit("c", status(402));
    bed.pin("s", "d");
    let before = bed.core.snapshot(bed.now);
    bed.reload(|settings| settings.backends.push(backend("new")));
    let after = bed.core.snapshot(bed.now);
    assert_eq!(after.backends[..4], before.backends[..]);
    assert_eq!(after.keys, before.keys);
    assert_eq!(bed.pinned("s").as_deref(), Some("d"));
}

#[test]
fn a_backend_with_another_url_begins_anew() {
    let mut bed = Bed::of(&["a b"]);
    bed.trip("a");
    bed.trip("b");
    bed.hit("a", status(401));
    bed.reload(|settings| settings.backends[0].identity = "https://elsewhere.example".to_owned());
    assert!(bed.snap("a").healthy);
    assert_eq!(bed.state("b"), State::Open);
}

#[test]
fn a_target_whose_only_key_was_exchanged_begins_anew() {
    let mut bed = Bed::of(&["a"]).keys("k0", "a");
    bed.trip("a");
    bed.hit("a", status(401));
    bed.reload(|settings| settings.keys[0].identity = "env:OTHER".to_owned());
    assert!(bed.snap("a").healthy);
}

#[test]
fn a_key_added_to_a_pool_leaves_the_health_of_the_others() {
    let mut bed = Bed::of(&["a"]).keys("k0 k1", "a");
    bed.hit("a", status(401));
    bed.trip("a");
    bed.reload(|settings| {
        settings.keys.insert(
            0,
            tidegate_core::settings::KeySettings {
                id: "new".to_owned(),
                identity: "env:NEW".to_owned(),
                fingerprint: tidegate_core::settings::KeyFingerprint(99),
                fleet_names: Vec::new(),
            },
        );
        settings.backends[0].keys = vec![0, 1, 2];
    });
    assert_eq!(bed.state("a"), State::Open);
    let keys = bed.core.snapshot(bed.now).keys;
    assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ["k0"]);
}

#[test]
fn a_key_that_got_another_name_is_shown_by_the_new_one() {
    let mut bed = Bed::of(&["a"]).keys("k0", "a");
    bed.hit("a", status(402));
    bed.reload(|settings| settings.keys[0].id = "renamed".to_owned());
    let keys = bed.core.snapshot(bed.now).keys;
    assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ["renamed"]);
}

#[test]
fn an_endpoint_is_the_same_while_its_url_is() {
    let mut bed = Bed::of(&["a"]).endpoint("host", "a");
    for _ in 0..3 {
        bed.hit("a", refused());
    }
    bed.reload(|_| ());
    assert_eq!(bed.endpoint_snap("host").state, State::Open);
    bed.reload(|settings| settings.endpoints[0].identity = "https://moved.example".to_owned());
    assert_eq!(bed.endpoint_snap("host").state, State::Closed);
}

#[test]
fn changed_health_settings_apply_from_the_next_event() {
    let mut bed = Bed::of(&["a"]);
    bed.trip("a");
    bed.reload(|settings| {
        settings.backends[0].health.open_for = Millis::seconds(5);
        settings.backends[0].health.recovery_threshold = 1;
    });
    assert_eq!(bed.snap("a").deadline, Some(Now(30_000)), "a deadline stays");
    bed.wait(30_000);
    bed.hit("a", status(500));
    assert_eq!(bed.snap("a").deadline, Some(Now(35_000)));
    bed.wait(5_000);
    bed.hit("a", ok());
    assert_eq!(bed.state("a"), State::Closed);
}

#[test]
fn a_request_in_flight_reports_to_the_same_backend_or_to_nothing() {
    let mut bed = Bed::of(&["a b"]);
    let held: Vec<_> = (0..3).map(|_| bed.take("a")).collect();
    let gone: Vec<_> = (0..3).map(|_| bed.take("b")).collect();
    bed.reload(|settings| settings.backends[1].identity = "https://elsewhere.example".to_owned());
    for held in held.into_iter().chain(gone) {
        bed.report(held, status(500));
    }
    assert_eq!((bed.state("a"), bed.state("b")), (State::Open, State::Closed));
}

#[test]
fn a_trial_given_before_a_reload_still_holds_its_slot() {
    let mut bed = Bed::of(&["a"]);
    bed.trip("a");
    bed.wait(30_000);
    let trial = bed.trial("a");
    bed.reload(|_| ());
    assert!(bed.take("a").permit.is_last_resort());
    drop(trial);
    let _free_again = bed.trial("a");
}

#[test]
fn fewer_slots_than_are_taken_is_no_contradiction() {
    let mut bed = Bed::of(&["a"]).health(|it| it.trial_permits = 2);
    bed.trip("a");
    bed.wait(30_000);
    let trials = (bed.trial("a"), bed.trial("a"));
    bed.reload(|settings| settings.backends[0].health.trial_permits = 1);
    bed.core.check_invariants(bed.now);
    drop(trials.0);
    assert!(bed.take("a").permit.is_last_resort(), "one is still out, and one is the limit");
    drop(trials.1);
    let _one = bed.trial("a");
    bed.core.check_invariants(bed.now);
}

#[test]
fn the_budget_goes_on_counting() {
    let mut bed = Bed::of(&["a", "b", "c"]).route(|route| route.budget.floor = 1);
    bed.request(|_| come_back(429, 1));
    bed.wait(1);
    bed.reload(|_| ());
    assert_eq!(bed.request(|_| come_back(429, 1)).visited.len(), 2);
}

#[test]
fn cursors_go_on_where_they_stood() {
    let mut bed =
        Bed::of(&["a b c"]).keys("k0 k1", "b").route(|route| route.tactic = Tactic::RoundRobin);
    let mut visited = Vec::new();
    for _ in 0..6 {
        visited.extend(bed.request(|_| ok()).visited);
        bed.reload(|_| ());
    }
    assert_eq!(visited, ["a", "b#0", "c", "a", "b#1", "c"]);
}

#[test]
fn a_manual_switch_outlives_a_reload() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.core.switch_off(bed.now, "a", Some(Now::NEVER), &mut bed.notes);
    bed.reload(|_| ());
    assert_eq!(bed.request(|_| ok()).visited, ["b"]);
}

#[test]
fn a_pin_to_a_target_that_left_the_route_is_replaced() {
    let mut bed = Bed::of(&["a b"]);
    bed.pin("s", "b");
    bed.reload(|settings| settings.routes[0].tiers[0].truncate(1));
    assert_eq!(bed.session("s", |_| ok()), ["a"]);
    assert_eq!(bed.pinned("s").as_deref(), Some("a"));
}

/// BEHAVIOUR 2: the ratio is one of the latest samples, and I12: they outlive a reload.
#[test]
fn the_samples_of_the_ratio_outlive_a_reload_that_leaves_the_rule_on() {
    let mut bed = Bed::of(&["a"]).health(|it| it.failure_threshold = 1000);
    for _ in 0..10 {
        bed.hit("a", ok());
    }
    for _ in 0..9 {
        bed.hit("a", status(500));
    }
    bed.reload(|settings| settings.backends[0].health.failure_ratio = 0.4);
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Open, "ten of twenty");
}

#[test]
fn a_reload_switches_the_ratio_on_and_off() {
    let mut bed = Bed::of(&["a"]).health(|it| it.failure_threshold = 1000);
    let mut fail_after = |ratio: f64| {
        bed.reload(|settings| settings.backends[0].health.failure_ratio = ratio);
        for _ in 0..20 {
            assert_eq!(bed.state("a"), State::Closed, "{ratio}");
            bed.hit("a", status(500));
        }
        bed.state("a")
    };
    assert_eq!(fail_after(0.0), State::Closed);
    assert_eq!(fail_after(0.5), State::Open, "twenty samples since it was switched on");
}

#[test]
fn a_changed_budget_applies_after_a_reload() {
    let mut bed =
        Bed::of(&["a", "b", "c"]).route(|it| (it.budget.ratio, it.budget.floor) = (0.0, 0));
    assert_eq!(bed.request(|_| status(500)).visited, ["a", "b"], "the first hop is free");
    bed.reload(|settings| settings.routes[0].budget.floor = 1);
    assert_eq!(bed.request(|_| status(500)).visited, ["a", "b", "c"]);
}
