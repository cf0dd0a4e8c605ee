//! Sessions of a fleet: pins that travel, and first picks that replicas agree on.

use std::collections::BTreeMap;

use tidegate_core::{
    hint::Heard,
    names::{HashKey, ReplicaId},
    settings::Tactic,
};

use crate::bed::{Bed, come_back, ok, status};

/// Another replica with the same settings; its draws and jitter are its own.
fn twin(bed: &Bed, replica: u128) -> Bed {
    let mut twin = Bed::of(&["x"]).with(|settings| *settings = bed.settings.clone());
    twin.reload(|settings| {
        settings.fleet.as_mut().expect("it is in a fleet").replica = ReplicaId(replica);
    });
    for _ in 0..replica {
        twin.request(|_| ok());
    }
    twin
}

#[test]
fn a_pin_travels_with_its_key() {
    let mut a = Bed::of(&["x", "y"]).keys("k1 k2 k3", "x").in_fleet(1);
    let mut b = twin(&a, 2);
    let first = a.session("s", |_| ok());
    assert_eq!(a.reaches(&mut b, 5), [Heard::Taken]);
    for _ in 0..5 {
        assert_eq!(b.session("s", |_| ok()), first);
    }
    assert_eq!(b.told(), [], "nothing moved");
}

#[test]
fn a_move_is_newer_than_what_it_moved_away_from() {
    let mut a = Bed::of(&["x", "y"]).in_fleet(1);
    let mut b = twin(&a, 2);
    a.session("s", |_| ok());
    let first = a.told();
    a.hit("x", come_back(429, 20_000));
    assert_eq!(a.session("s", |_| ok()), ["y"]);
    let moved = a.told();
    for hint in moved.iter().chain(&first) {
        b.hear(hint);
    }
    assert_eq!(b.pinned("s").as_deref(), Some("y"));
}

/// What a pin that has ended had come to says nothing about the lock that follows it: a replica
/// that has forgotten the old one begins at the first version again.
#[test]
fn a_new_lock_takes_the_place_of_one_that_has_ended_whatever_its_version_was() {
    let mut a = Bed::of(&["x", "y"]).in_fleet(2);
    let mut b = twin(&a, 1);
    a.session("s", |_| ok());
    a.hit("x", come_back(429, 5_000_000));
    assert_eq!(a.session("s", |_| ok()), ["y"], "the second version");
    a.reaches(&mut b, 0);
    for bed in [&mut a, &mut b] {
        bed.wait(30 * 60_000 + 1);
    }
    b.core.sweep(b.now);
    let locked = b.session("s", |_| ok());
    assert_eq!(b.reaches(&mut a, 5).last(), Some(&Heard::Taken));
    assert_eq!(a.pinned("s"), Some(locked[0].clone()));
    a.wait(29 * 60_000);
    assert_eq!(a.pinned("s"), Some(locked[0].clone()), "for as long as it was locked there");
}

#[test]
fn a_session_that_moved_down_is_not_drawn_up_for_a_minute_by_any_replica() {
    let mut a = Bed::of(&["x", "y"]).in_fleet(1);
    let mut b = twin(&a, 2);
    a.session("s", |_| ok());
    a.reaches(&mut b, 0);
    a.hit("x", come_back(429, 1_000));
    a.session("s", |_| ok());
    // The window is lost on its way: only the pin arrives.
    let moved = a.told().pop().expect("the pin moved");
    assert_eq!(b.hear(&moved), Heard::Taken);
    for bed in [&mut a, &mut b] {
        bed.wait(59_999);
        assert_eq!(bed.session("s", |_| ok()), ["y"], "x is healthy, but the pin stays");
        bed.wait(1);
        assert_eq!(bed.session("s", |_| ok()), ["x"]);
    }
}

#[test]
fn alone_a_session_is_drawn_up_as_soon_as_its_tier_is_back() {
    let mut bed = Bed::of(&["x", "y"]);
    bed.session("s", |_| ok());
    bed.hit("x", come_back(429, 1_000));
    assert_eq!(bed.session("s", |_| ok()), ["y"]);
    bed.wait(1_000);
    assert_eq!(bed.session("s", |_| ok()), ["x"]);
}

#[test]
fn replicas_agree_on_target_and_key_before_the_pin_has_travelled() {
    for tactic in [Tactic::Random, Tactic::Weighted] {
        let a = Bed::of(&["x y z"]).keys("k1 k2 k3", "x y z").route(|it| it.tactic = tactic);
        let mut a = a.in_fleet(1);
        let mut b = twin(&a, 2);
        let mut seen = BTreeMap::<String, u32>::new();
        for session in 0..300 {
            let session = format!("s{session}");
            let chosen = a.session(&session, |_| ok());
            assert_eq!(b.session(&session, |_| ok()), chosen, "{tactic:?}");
            *seen.entry(chosen[0].clone()).or_default() += 1;
        }
        assert_eq!(seen.len(), 9, "every target and key is used: {seen:?}");
        assert!(seen.values().all(|count| (10..=70).contains(count)), "{seen:?}");
    }
}

#[test]
fn first_picks_follow_the_weights_and_a_lost_target_moves_only_its_sessions() {
    let bed = Bed::of(&["x y z"]).route(|route| {
        route.tactic = Tactic::Weighted;
        route.tiers[0][0].weight = 6;
        route.tiers[0][1].weight = 3;
        route.tiers[0][2].weight = 0;
    });
    let mut bed = bed.in_fleet(1);
    let mut without = twin(&bed, 2);
    without.core.switch_off(
        without.now,
        "y",
        Some(tidegate_core::time::Now::NEVER),
        &mut without.notes,
    );
    let mut shares = BTreeMap::<String, u32>::new();
    for session in 0..900 {
        let session = format!("s{session}");
        let chosen = bed.session(&session, |_| ok());
        let other = without.session(&session, |_| ok());
        assert!(chosen == other || chosen == ["y"], "{chosen:?} became {other:?}");
        *shares.entry(chosen[0].clone()).or_default() += 1;
    }
    assert_eq!(shares.get("z"), None, "a weight of zero is for when no other is left");
    assert!((540..=660).contains(&shares["x"]), "{shares:?}");
}

#[test]
fn a_pin_is_found_while_the_secret_is_being_replaced() {
    let mut old = Bed::of(&["x y z"]).in_fleet(1);
    let chosen = old.session("s", |_| ok());
    let mut new = twin(&old, 2);
    new.reload(|settings| {
        let fleet = settings.fleet.as_mut().expect("it is in a fleet");
        fleet.hash_keys = vec![HashKey([1; 16]), HashKey([9; 16])];
    });
    assert_eq!(old.reaches(&mut new, 0), [Heard::Taken]);
    assert_eq!(new.session("s", |_| ok()), chosen);
    assert_eq!(new.told(), [], "it was not pinned anew");
}

#[test]
fn a_pin_to_a_key_that_is_not_here_is_ignored() {
    let mut a = Bed::of(&["x"]).keys("k1", "x").in_fleet(1);
    let mut b = Bed::of(&["x"]).keys("other", "x").in_fleet(2);
    a.session("s", |_| ok());
    assert_eq!(a.reaches(&mut b, 0), [Heard::Unknown]);
    assert_eq!(b.pinned("s"), None);
    b.hit("x", status(500));
}

/// BEHAVIOUR 4: only `weighted` looks at weights, and then in proportion.
#[test]
fn only_the_weighted_tactic_draws_lots_in_proportion_to_weights() {
    for (tactic, share) in [(Tactic::Weighted, 620..=720), (Tactic::Random, 400..=500)] {
        let bed = Bed::of(&["x y"]).route(|route| {
            route.tactic = tactic;
            (route.tiers[0][0].weight, route.tiers[0][1].weight) = (6, 2);
        });
        let mut bed = bed.in_fleet(1);
        let is_x = |bed: &mut Bed, it: u32| bed.session(&format!("s{it}"), |_| ok()) == ["x"];
        let count = (0..900).filter(|it| is_x(&mut bed, *it)).count();
        assert!(share.contains(&count), "{tactic:?}: {count} of 900");
    }
}
