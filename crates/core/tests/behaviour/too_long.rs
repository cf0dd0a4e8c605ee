//! A request that is too long for a target's context: who may still be asked, and what is shown.

use tidegate_core::{
    attempt::{Answer, End},
    breaker::State,
    outcome::{Outcome, OutcomeKind},
    settings::OnAuthError,
};

use crate::bed::{Bed, ok, refused, status};

fn too_long(status: u16) -> Outcome {
    Outcome::error(OutcomeKind::TooLong, status)
}

/// Targets, one per tier, whose contexts are these; 0 = not known.
fn contexts(sizes: &[u64]) -> Bed {
    let names = ["a", "b", "c", "d"];
    Bed::of(&names[..sizes.len()]).with(|settings| {
        for (backend, &size) in settings.backends.iter_mut().zip(sizes) {
            backend.abilities.context = (size > 0).then_some(size);
        }
    })
}

#[test]
fn it_goes_on_only_to_targets_not_known_to_be_the_same_or_smaller() {
    let rows: [(&[u64], &[&str]); 5] = [
        (&[100, 100, 50, 101], &["a", "d"]),
        (&[100, 0, 100], &["a", "b"]),
        (&[0, 1, 100], &["a", "b", "c"]),
        (&[100, 300, 200], &["a", "b"]),
        (&[100, 200, 300], &["a", "b", "c"]),
    ];
    for (sizes, visited) in rows {
        let told = contexts(sizes).request(|_| too_long(400));
        assert_eq!(told.visited, visited, "{sizes:?}");
        assert_eq!((told.finish.answer, told.finish.status), (Answer::Attempt(0), 400));
        assert_eq!(told.finish.end, End::ClientFault);
    }
}

#[test]
fn a_larger_target_answers_it() {
    let told = contexts(&[100, 200]).request(|it| if it == "a" { too_long(413) } else { ok() });
    assert_eq!((told.visited.len(), told.finish.status), (2, 200));
}

#[test]
fn the_first_such_answer_is_shown_whatever_comes_after_it() {
    for later in [status(500), status(404), status(401), refused(), too_long(413)] {
        let mut bed = contexts(&[100, 200]);
        let told = bed.request(|it| if it == "a" { too_long(400) } else { later });
        assert_eq!(
            (told.finish.answer, told.finish.status),
            (Answer::Attempt(0), 400),
            "{later:?}"
        );
    }
    let mut bed = contexts(&[100, 200]);
    let told = bed.request(|it| if it == "a" { status(500) } else { too_long(413) });
    assert_eq!((told.finish.answer, told.finish.status), (Answer::Attempt(1), 413));
}

#[test]
fn a_rejected_key_is_still_surfaced_where_the_route_says_so() {
    let mut bed = contexts(&[100, 200]).route(|route| route.on_auth_error = OnAuthError::Surface);
    let told = bed.request(|it| if it == "a" { too_long(400) } else { status(401) });
    assert_eq!((told.finish.end, told.finish.status), (End::AuthSurfaced, 401));
}

#[test]
fn it_tries_no_other_key_of_the_same_target() {
    let mut bed = contexts(&[0, 0]).keys("k0 k1", "a");
    let told = bed.request(|it| if it == "b" { ok() } else { too_long(400) });
    assert_eq!(told.visited, ["a#0", "b"]);
}

#[test]
fn it_charges_nothing_and_gives_the_slot_back() {
    let mut bed = contexts(&[100]);
    for _ in 0..20 {
        bed.hit("a", too_long(400));
    }
    let snap = bed.snap("a");
    assert_eq!((snap.healthy, snap.consecutive_failures, snap.last_error), (true, 0, None));
    bed.trip("a");
    bed.wait(30_000);
    let trial = bed.trial("a");
    bed.report(trial, too_long(400));
    assert_eq!(bed.state("a"), State::HalfOpen);
    bed.trial("a");
}
