//! A session's pin names a key too: a provider's prompt cache belongs to a key.

use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    settings::PinMode,
};

use crate::bed::{Bed, come_back, ok, status};

/// One target with three keys, and a fallback.
fn pool() -> Bed {
    Bed::of(&["a", "b"]).keys("k0 k1 k2", "a")
}

fn pinned_key(bed: &Bed, session: &str) -> Option<usize> {
    let route = bed.core.route("main").expect("every bed has it");
    bed.core.pinned_key(route, bed.now, "", session)
}

#[test]
fn a_session_keeps_its_key_while_others_take_turns() {
    let mut bed = pool();
    assert_eq!(bed.session("s", |_| ok()), ["a#0"]);
    assert_eq!(bed.session("t", |_| ok()), ["a#1"]);
    for _ in 0..5 {
        assert_eq!(bed.session("s", |_| ok()), ["a#0"]);
        assert_eq!(bed.session("t", |_| ok()), ["a#1"]);
    }
    assert_eq!(bed.session("", |_| ok()), ["a#2"], "a pinned key does not move the turn");
}

#[test]
fn a_key_that_is_not_free_hands_the_session_to_the_next_free_one() {
    let mut bed = pool();
    bed.session("s", |_| ok());
    bed.wait(1_000);
    let limited = |target: &str| if target == "a#0" { come_back(429, 5_000) } else { ok() };
    assert_eq!(bed.session("s", limited), ["a#0", "a#1"]);
    assert_eq!(pinned_key(&bed, "s"), Some(1));
    bed.wait(5_000);
    assert_eq!(bed.session("s", |_| ok()), ["a#1"], "it does not go back");
}

#[test]
fn a_key_excluded_meanwhile_moves_the_pin_without_a_new_lock_time() {
    let mut bed = pool();
    bed.session("s", |_| ok());
    let out = bed.session("t", |_| ok());
    assert_eq!(out, ["a#1"]);
    let mut plan = bed.begin("main", &tidegate_core::plan::RequestSpec::default());
    let third = bed.next_permit(&mut plan);
    assert_eq!(third.key(), 2);
    drop(third);
    let mut plan = bed.begin("main", &tidegate_core::plan::RequestSpec::default());
    let first = bed.next_permit(&mut plan);
    assert_eq!(first.key(), 0);
    plan.report(bed.now, first, &status(402), &mut bed.notes);
    bed.wait(60_000);
    assert_eq!(bed.session("s", |_| ok()), ["a#1"]);
    assert_eq!(pinned_key(&bed, "s"), Some(1));
    bed.wait(30 * 60_000 - 60_000);
    assert_eq!(bed.pinned("s").as_deref(), Some("a"), "at exactly its deadline it holds");
    bed.wait(1);
    assert_eq!(bed.pinned("s"), None, "the lock time is that of the first request");
}

#[test]
fn with_no_key_free_the_pin_keeps_its_key() {
    let mut bed = Bed::of(&["a"]).keys("k0 k1", "a");
    bed.session("s", |_| ok());
    assert_eq!(bed.session("s", |_| come_back(429, 9_000)), ["a#0", "a#1"]);
    assert_eq!(pinned_key(&bed, "s"), Some(1), "it was free when it was used");
    bed.session("s", |_| come_back(429, 9_000));
    assert_eq!(pinned_key(&bed, "s"), Some(1));
}

#[test]
fn a_reload_that_moves_keys_inside_the_pool_moves_no_session() {
    let mut bed = pool();
    bed.session("s", |_| ok());
    bed.reload(|settings| settings.backends[0].keys = vec![2, 1, 0]);
    assert_eq!(bed.session("s", |_| ok()), ["a#2"], "the same key at its new place");
}

#[test]
fn a_key_that_a_reload_removed_is_like_one_that_is_not_free() {
    let mut bed = pool();
    bed.session("s", |_| ok());
    bed.reload(|settings| settings.backends[0].keys = vec![1, 2]);
    let moved = bed.session("s", |_| ok());
    assert_eq!(bed.session("s", |_| ok()), moved);
    bed.reload(|settings| settings.backends[0].keys = vec![0, 1, 2]);
    assert_ne!(bed.session("s", |_| ok()), ["a#0"], "the pin has moved");
}

#[test]
fn a_pin_that_follows_the_answer_names_the_key_that_answered() {
    let mut bed = Bed::of(&["a b"]).keys("k0 k1", "b").route(|route| {
        route.pin = PinMode::Answered;
    });
    bed.pin("s", "a");
    let told = bed.session("s", |it| if it == "a" { status(500) } else { ok() });
    assert_eq!((bed.pinned("s").as_deref(), told.len()), (Some("b"), 2));
    let again = bed.session("s", |_| ok());
    assert_eq!(again, told[1..], "the key that answered");
}

#[test]
fn a_failure_that_is_not_about_the_key_leaves_the_pin_its_key() {
    let mut bed = pool();
    bed.session("s", |_| ok());
    let too_long = Outcome::error(OutcomeKind::TooLong, 400);
    for outcome in [status(500), status(404), too_long] {
        bed.session("s", |it| if it == "b" { ok() } else { outcome });
        assert_eq!(pinned_key(&bed, "s"), Some(0), "{outcome:?}");
    }
}

#[test]
fn no_fingerprint_is_ever_shown() {
    let settings = pool().settings;
    let shown = format!("{:?}", settings.keys);
    assert!(shown.contains("KeyFingerprint(..)"), "{shown}");
}
