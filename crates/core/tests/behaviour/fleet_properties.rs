//! Properties of hearing: order and repetition do not matter (principle of the maximum), no hint
//! opens, closes or takes away anything (I22), and a replica that hears nothing new decides as if
//! it were alone (I21).

use proptest::prelude::*;
use tidegate_core::{
    breaker::OpenCause,
    hint::{BreakerOf, Excluded, Fact, Haste, Heard, Hint, Lasts, OperatorAction, Stamp},
    mark::MarkReason,
    names::{Fingerprint, PinKey, ReplicaId},
    settings::Tactic,
    time::Millis,
    transition::Change,
};

use crate::{
    bed::{Bed, come_back, ok, status},
    fleet::name,
};

fn backends() -> impl Strategy<Value = Fingerprint> {
    prop_oneof![Just(name("x")), Just(name("y")), Just(name("nobody"))]
}

fn keys() -> impl Strategy<Value = Fingerprint> {
    prop_oneof![Just(name("k1")), Just(name("k2")), Just(name("no-key"))]
}

fn excluded() -> impl Strategy<Value = (Excluded, MarkReason)> {
    let key = prop_oneof![Just(MarkReason::AuthRejected), Just(MarkReason::Exhausted)];
    prop_oneof![
        (keys(), key).prop_map(|(key, reason)| (Excluded::Key(key), reason)),
        (backends(), keys()).prop_map(|(backend, key)| {
            (Excluded::Pair { backend, key }, MarkReason::AuthRejected)
        }),
        backends().prop_map(|it| (Excluded::Model(it), MarkReason::ModelGone)),
    ]
}

fn span() -> impl Strategy<Value = Millis> {
    (0_u64..400_000).prop_map(Millis)
}

/// What the stamp decides is a function of it: one writer writes a version once.
fn derived(stamp: Stamp) -> u64 {
    stamp.version * 1_000 + u64::try_from(stamp.writer.0).unwrap_or(0) * 7_000
}

fn learnt() -> impl Strategy<Value = Fact> {
    let window = (backends(), keys(), span()).prop_map(|(backend, key, remaining)| Fact::Window {
        backend,
        key,
        remaining,
        reason: MarkReason::RateLimited,
    });
    let exclusion = (excluded(), proptest::option::of(span()))
        .prop_map(|((of, reason), remaining)| Fact::Exclusion { of, remaining, reason });
    let opened = (backends(), span()).prop_map(|(it, remaining)| {
        let cause = OpenCause::ConsecutiveFailures(3);
        Fact::Opened { of: BreakerOf::Backend(it), remaining, cause }
    });
    prop_oneof![window, exclusion, opened]
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (1_u64..4, 5_u128..8).prop_map(|(version, it)| Stamp { version, writer: ReplicaId(it) })
}

/// Hints of replicas that are none of the beds, with sessions that the beds have.
fn hints(session: PinKey) -> impl Strategy<Value = Vec<Hint>> {
    let fact = (0_u8..8, learnt(), backends());
    let hint =
        (stamp(), fact, 0_u64..100_000).prop_map(move |(stamp, (kind, fact, backend), age)| {
            let remaining = Millis(derived(stamp) * 20);
            let fact = match kind {
                0 => {
                    let lasts = match derived(stamp) % 3 {
                        0 => Lasts::Ended,
                        1 => Lasts::UntilEnded,
                        _ => Lasts::For(Millis(500_000)),
                    };
                    Fact::Action { backend, action: OperatorAction::Drain, lasts }
                }
                1 | 2 => {
                    // One writer gives a session's version to one target.
                    let backend = if stamp.version % 2 == 0 { name("x") } else { name("y") };
                    let key = if stamp.writer.0 % 2 == 0 { name("k1") } else { name("k2") };
                    Fact::Pin { session, backend, key, remaining, stays: Millis(30_000) }
                }
                _ => fact,
            };
            Hint { age: Millis(age), stamp, fact, haste: Haste::AtOnce }
        });
    proptest::collection::vec(hint, 1..12)
}

fn bed() -> Bed {
    let mut bed = Bed::of(&["x", "y"]).keys("k1 k2", "x y").in_fleet(1);
    bed.wait(1_000_000);
    bed
}

/// The name of the session `s`, learnt from what a replica tells of it.
fn session() -> PinKey {
    let mut bed = bed();
    bed.session("s", |_| ok());
    match bed.told()[0].fact {
        Fact::Pin { session, .. } => session,
        other => panic!("{other:?}"),
    }
}

/// The same age for the same fact: hearing twice is hearing the same.
fn settled(hints: Vec<Hint>) -> Vec<Hint> {
    let mut settled: Vec<Hint> = Vec::new();
    for hint in hints {
        let is_same = |it: &&Hint| {
            it.fact.subject() == hint.fact.subject() && it.stamp == hint.stamp && is_versioned(it)
        };
        match settled.iter().find(is_same).copied() {
            Some(known) => settled.push(known),
            None => settled.push(hint),
        }
    }
    settled
}

fn is_versioned(hint: &Hint) -> bool {
    matches!(hint.fact, Fact::Pin { .. } | Fact::Action { .. })
}

/// All that can be seen of a bed, now and after one failure.
fn seen(bed: &mut Bed) -> String {
    let mut all = format!("{:?}\n{:?}\n", bed.core.holdings(bed.now), bed.core.snapshot(bed.now));
    all += &format!("{:?} {:?}\n", bed.pinned("s"), bed.core.held_pins(bed.now, None, 9));
    for target in ["x", "y"] {
        if bed.core.condition(bed.now, target).is_some_and(|it| {
            !it.obstacles
                .iter()
                .any(|it| matches!(it, tidegate_core::explain::Obstacle::SwitchedOff(_)))
        }) {
            bed.hit(target, status(500));
        }
        all += &format!("{:?}\n", bed.state(target));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_order_of_hints_and_their_repetition_do_not_matter(
        (hints, shuffled, again) in hints(session()).prop_map(settled).prop_flat_map(|hints| {
            let again = proptest::collection::vec(0..hints.len(), 0..6);
            (Just(hints.clone()), Just(hints).prop_shuffle(), again)
        })
    ) {
        let (mut one, mut other) = (bed(), bed());
        for hint in &hints {
            one.hear(hint);
        }
        for hint in &shuffled {
            other.hear(hint);
        }
        for index in again {
            let heard = other.hear(&hints[index]);
            prop_assert!(heard != Heard::Taken, "{:?} told something new twice", hints[index]);
        }
        prop_assert_eq!(one.told(), [], "what was heard is not told again");
        prop_assert_eq!(seen(&mut one), seen(&mut other));
    }

    #[test]
    fn no_hint_opens_or_closes_a_breaker_or_takes_the_last_candidate(
        hints in hints(session()),
        trips in 0_u8..3,
    ) {
        let mut bed = bed();
        if trips > 0 {
            bed.trip("x");
        }
        let before = bed.notes.transitions.len();
        for hint in hints.iter().filter(|it| !matches!(it.fact, Fact::Action { .. })) {
            bed.hear(hint);
        }
        let heard = &bed.notes.transitions[before..];
        let has_turned = heard.iter().any(|it| matches!(it.change, Change::Breaker { .. }));
        prop_assert!(!has_turned, "{:?}", heard);
        prop_assert!(heard.iter().all(|it| it.is_heard));
        let mut held = Vec::new();
        for _ in 0..150 {
            let mut plan = bed.begin("main", &Default::default());
            held.push((bed.next_permit(&mut plan), plan));
        }
    }

    #[test]
    fn a_replica_that_hears_nothing_new_decides_as_if_it_were_alone(
        deeds in proptest::collection::vec((0_u8..6, 0_u8..2), 1..60),
        foreign in hints(session()),
    ) {
        let make = || Bed::of(&["x", "y"]).keys("k1 k2", "x y")
            .route(|it| it.tactic = Tactic::RoundRobin);
        let (mut alone, mut member) = (make(), make().in_fleet(1));
        // Of what it does not know, what it said itself, and what is over, it learns nothing.
        let unknown = |hint: &Hint| matches!(
            hint.fact,
            Fact::Window { backend, .. } if backend == name("nobody")
        );
        for (deed, target) in deeds {
            for hint in foreign.iter().filter(|it| unknown(it)) {
                prop_assert_eq!(member.hear(hint), Heard::Unknown);
            }
            let target = ["x", "y"][usize::from(target)];
            let outcomes = [alone.now, member.now];
            prop_assert_eq!(outcomes[0], outcomes[1]);
            for bed in [&mut alone, &mut member] {
                match deed {
                    0 => bed.wait(7_000),
                    1 => bed.hit(target, status(500)),
                    2 => bed.hit(target, come_back(429, 9_000)),
                    3 => bed.hit(target, status(401)),
                    _ => bed.hit(target, ok()),
                }
            }
            let own = member.told();
            for hint in own {
                prop_assert_eq!(member.hear(&hint), Heard::Own);
            }
            let visited = [&mut alone, &mut member].map(|it| it.request(|_| status(503)).visited);
            prop_assert_eq!(&visited[0], &visited[1]);
            let views = [&alone, &member].map(|it| format!("{:?}", it.core.snapshot(it.now)));
            prop_assert_eq!(&views[0], &views[1]);
        }
    }
}
