//! Affinity: when a pin is set, honoured, kept, moved, and when it ends.

use tidegate_core::{
    choice::PinUse, outcome::OutcomeKind, plan::RequestSpec, settings::PinMode, time::Millis,
};

use crate::bed::{Bed, Told, come_back, ok, refused, status};

const TTL: u64 = 30 * 60_000;

/// What became of the pin at the first attempt.
fn pin_use(told: &Told) -> PinUse {
    told.plan.attempts().iter().next().expect("an attempt was made").pin
}

fn ask(session: &str) -> RequestSpec<'_> {
    RequestSpec { session, ..RequestSpec::default() }
}

/// `main` = a, then b; a has just closed again, the session is pinned to b.
fn recovered() -> Bed {
    let mut bed = Bed::of(&["a", "b"]);
    bed.trip("a");
    bed.pin("s", "b");
    bed.wait(30_000);
    for _ in 0..3 {
        bed.hit("a", ok());
    }
    bed
}

#[test]
fn a_session_sticks_to_the_target_selected_first() {
    let mut bed = Bed::of(&["a b c d"]);
    let first = bed.session("s", |_| ok());
    for _ in 0..50 {
        assert_eq!(bed.session("s", |_| ok()), first);
    }
}

#[test]
fn a_pin_holds_at_exactly_its_deadline_and_use_does_not_extend_it() {
    let mut bed = Bed::of(&["a b"]);
    bed.session("s", |_| ok());
    let first = bed.pinned("s");
    bed.wait(TTL / 2);
    bed.session("s", |_| ok());
    bed.wait(TTL / 2);
    assert_eq!(bed.pinned("s"), first);
    assert_eq!(pin_use(&bed.request_as(&ask("s"), |_| ok())), PinUse::Honoured);
    bed.wait(1);
    assert_eq!(bed.pinned("s"), None);
    assert_eq!(pin_use(&bed.request_as(&ask("s"), |_| ok())), PinUse::Expired);
    bed.wait(TTL);
    assert!(bed.pinned("s").is_some(), "it was locked again for a full ttl");
}

#[test]
fn route_caller_and_session_each_pin_apart() {
    let mut bed = Bed::of(&["a b"]);
    bed.request_as(&RequestSpec { caller: "one", session: "s", ..RequestSpec::default() }, |_| {
        ok()
    });
    let route = bed.core.route("main").expect("every bed has it");
    assert!(bed.core.pinned(route, bed.now, "one", "s").is_some());
    assert!(bed.core.pinned(route, bed.now, "two", "s").is_none());
    assert!(bed.core.pinned(route, bed.now, "one", "t").is_none());
    let other = bed.core.route("a").expect("every target has one");
    assert!(bed.core.pinned(other, bed.now, "one", "s").is_none());
}

#[test]
fn no_session_or_a_ttl_of_zero_pins_nothing() {
    let mut bed = Bed::of(&["a b"]);
    bed.request(|_| ok());
    assert_eq!(bed.core.pin_count(), 0);
    let mut off = Bed::of(&["a b"]).route(|route| route.affinity_ttl = Millis::ZERO);
    off.session("s", |_| ok());
    assert_eq!(off.core.pin_count(), 0);
}

#[test]
fn a_pin_in_the_lowest_tier_is_honoured_always() {
    let mut bed = Bed::of(&["a b c"]);
    bed.pin("s", "c");
    assert_eq!(bed.session("s", |_| ok()), ["c"]);
}

#[test]
fn a_pin_to_a_higher_tier_is_declined_and_replaced_for_a_full_ttl() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.pin("s", "b");
    bed.wait(60_000);
    let told = bed.request_as(&ask("s"), |_| ok());
    assert_eq!(
        (told.visited, pin_use(&bed.request_as(&ask("s"), |_| ok()))),
        (vec!["a".to_owned()], PinUse::Honoured)
    );
    bed.wait(TTL);
    assert_eq!(bed.pinned("s").as_deref(), Some("a"));
}

#[test]
fn in_its_promotion_hold_a_recovered_target_takes_new_sessions_but_not_pinned_ones() {
    let mut bed = recovered();
    bed.wait(59_999);
    assert_eq!(bed.session("s", |_| ok()), ["b"]);
    assert_eq!(bed.session("new", |_| ok()), ["a"]);
    assert_eq!(bed.request(|_| ok()).visited, ["a"]);
}

#[test]
fn at_exactly_sixty_seconds_the_hold_is_over() {
    let mut bed = recovered();
    bed.wait(60_000);
    assert_eq!(bed.session("s", |_| ok()), ["a"]);
    assert_eq!(bed.pinned("s").as_deref(), Some("a"));
}

#[test]
fn one_kept_target_out_of_its_hold_draws_the_session_up() {
    let mut bed = Bed::of(&["a never-failed", "b"]);
    bed.trip("a");
    bed.pin("s", "b");
    bed.wait(30_000);
    for _ in 0..3 {
        bed.hit("a", ok());
    }
    assert_ne!(bed.session("s", |_| ok()), ["b"]);
}

#[test]
fn opening_again_clears_the_hold_and_half_open_draws_sessions_up() {
    let mut bed = recovered();
    bed.trip("a");
    assert_eq!(bed.snap("a").closed_since, None);
    assert_eq!(bed.session("s", |_| ok()), ["b"], "a is open");
    bed.wait(30_000);
    assert_eq!(bed.session("s", |_| ok()), ["a"], "trials need traffic");
}

#[test]
fn a_full_half_open_target_keeps_its_pin_and_the_request_goes_elsewhere() {
    for mode in [PinMode::Selected, PinMode::Answered] {
        let mut bed = Bed::of(&["a", "b"]).route(|route| route.pin = mode);
        bed.pin("s", "a");
        bed.trip("a");
        bed.wait(30_000);
        let trial = bed.trial("a");
        let told = bed.request_as(&ask("s"), |_| ok());
        assert_eq!(told.visited, ["b"], "{mode:?}");
        assert_eq!(pin_use(&told), PinUse::KeptWhileFull, "{mode:?}");
        assert_eq!(bed.pinned("s").as_deref(), Some("a"), "{mode:?}");
        drop(trial);
        let told = bed.request_as(&ask("s"), |_| ok());
        assert_eq!(told.visited, ["a"], "{mode:?}: pinned traffic takes a permit like any other");
        assert!(told.plan.attempts().iter().all(|it| it.is_trial), "{mode:?}");
    }
}

#[test]
fn a_full_target_that_is_also_inside_a_window_loses_its_pin() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.pin("s", "a");
    bed.trip("a");
    bed.wait(30_000);
    bed.hit("a", come_back(429, 60_000));
    let _trial = bed.trial("a");
    bed.session("s", |_| ok());
    assert_eq!(bed.pinned("s").as_deref(), Some("b"));
}

/// A breaker that admits nobody stands in for a race that was lost: it reads as free, and there
/// is no permit to be had.
#[test]
fn a_pin_that_loses_the_race_for_a_permit_is_kept_at_every_rank() {
    for window in [false, true] {
        let mut bed = Bed::of(&["a", "b"]).health(|it| it.trial_permits = 0);
        bed.pin("s", "a");
        bed.trip("a");
        bed.wait(30_000);
        if window {
            bed.hit("a", come_back(429, 60_000));
            bed.hit("b", come_back(429, 60_000));
        }
        let told = bed.request_as(&ask("s"), |_| ok());
        assert_eq!(
            (told.visited.clone(), pin_use(&told)),
            (vec!["b".to_owned()], PinUse::KeptWhileFull)
        );
        assert_eq!(bed.pinned("s").as_deref(), Some("a"));
    }
}

#[test]
fn an_open_target_loses_its_pin_to_the_target_chosen() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.pin("s", "a");
    bed.trip("a");
    let told = bed.request_as(&ask("s"), |_| ok());
    assert_eq!((pin_use(&told), bed.pinned("s").as_deref()), (PinUse::Declined, Some("b")));
}

#[test]
fn with_everything_open_a_pin_is_honoured_as_a_last_resort() {
    let mut bed = Bed::of(&["a b c"]);
    bed.pin("s", "b");
    for target in ["a", "b", "c"] {
        bed.trip(target);
    }
    let told = bed.request_as(&ask("s"), |_| ok());
    assert_eq!(told.visited, ["b"]);
    assert!(told.plan.attempts().iter().all(|it| it.is_last_resort));
}

#[test]
fn a_pin_never_blocks_failover_and_follows_the_selected_target() {
    let mut bed = Bed::of(&["a b"]);
    bed.pin("s", "a");
    let visited = bed.session("s", |target| if target == "a" { status(500) } else { ok() });
    assert_eq!(visited, ["a", "b"]);
    assert_eq!(bed.pinned("s").as_deref(), Some("a"));
}

#[test]
fn pin_answered_moves_the_pin_to_the_answering_target_for_a_full_ttl() {
    let mut bed = Bed::of(&["a b"]).route(|route| route.pin = PinMode::Answered);
    bed.pin("s", "a");
    bed.wait(1_000_000);
    bed.session("s", |target| if target == "a" { status(500) } else { ok() });
    assert_eq!(bed.pinned("s").as_deref(), Some("b"));
    bed.wait(TTL);
    assert_eq!(bed.pinned("s").as_deref(), Some("b"));
    bed.wait(1);
    assert_eq!(bed.pinned("s"), None);
}

#[test]
fn pin_answered_stays_where_no_success_ended_the_request() {
    let mut bed = Bed::of(&["a b"]).route(|route| route.pin = PinMode::Answered);
    bed.pin("s", "a");
    bed.session("s", |target| status(if target == "a" { 500 } else { 400 }));
    assert_eq!(bed.pinned("s").as_deref(), Some("a"));
}

#[test]
fn pin_answered_by_the_pinned_target_does_not_extend_the_pin() {
    let mut bed = Bed::of(&["a b"]).route(|route| route.pin = PinMode::Answered);
    bed.pin("s", "a");
    bed.wait(TTL);
    bed.session("s", |_| ok());
    bed.wait(1);
    assert_eq!(bed.pinned("s"), None);
}

#[test]
fn the_table_is_bounded_and_sweeping_drops_what_expired() {
    let mut bed = Bed::of(&["a b"]).with(|settings| settings.max_pins = 128);
    for session in 0..2_000 {
        bed.session(&session.to_string(), |_| ok());
    }
    assert!(bed.core.pin_count() <= 128);
    bed.core.sweep(bed.now.after(Millis(TTL + 1)));
    assert_eq!(bed.core.pin_count(), 0);
}

#[test]
fn a_conversation_stays_where_its_state_is_while_nothing_stands_against_that_target() {
    let mut bed = Bed::of(&["a", "b"]);
    let stays = RequestSpec { stays_at: Some("b"), ..RequestSpec::default() };
    let told = bed.request_as(&stays, |_| ok());
    assert_eq!((told.visited.join(" "), pin_use(&told)), ("b".to_owned(), PinUse::Honoured));
    bed.wait(10 * 60 * 60_000);
    assert_eq!(bed.request_as(&stays, |_| ok()).visited, ["b"], "no time ends it");
    assert_eq!(bed.core.pin_count(), 0, "no table keeps it");
    bed.trip("b");
    let told = bed.request_as(&stays, |_| ok());
    assert_eq!((told.visited.join(" "), pin_use(&told)), ("a".to_owned(), PinUse::Declined));
}

#[test]
fn an_attempt_that_was_passed_says_nothing_about_its_target_and_the_request_goes_on() {
    let mut bed = Bed::of(&["a", "b"]);
    let mut plan = bed.begin("main", &RequestSpec::default());
    let permit = bed.next_permit(&mut plan);
    plan.pass(bed.now, permit, &refused());
    let permit = bed.next_permit(&mut plan);
    assert_eq!(bed.name(&permit), "b");
    plan.report(bed.now, permit, &ok(), &mut bed.notes);
    let backends = bed.core.snapshot(bed.now).backends;
    assert!(backends.iter().all(|it| (it.consecutive_failures, it.in_flight) == (0, 0)));
    let outcomes: Vec<_> = plan.attempts().iter().filter_map(|it| Some(it.outcome?.kind)).collect();
    assert_eq!(outcomes, [OutcomeKind::Transport, OutcomeKind::Success]);
}

#[test]
fn the_pins_of_each_route_are_counted() {
    let mut bed = Bed::of(&["a", "b"]);
    for session in ["one", "two"] {
        bed.session(session, |_| ok());
    }
    let counts: Vec<(&str, usize)> =
        bed.core.pin_counts(bed.now).into_iter().map(|(route, count)| (&**route, count)).collect();
    assert_eq!(counts, [("main", 2), ("a", 0), ("b", 0)]);
    assert_eq!(bed.core.pin_count(), 2);
}

#[test]
fn a_session_without_a_pin_has_lost_none() {
    let mut bed = Bed::of(&["a", "b"]);
    assert_eq!(pin_use(&bed.request_as(&ask("new"), |_| ok())), PinUse::None);
}
