//! A request whose first choice succeeds allocates nothing in the core: a fact, not a timing.

mod support;

use support::{Road, TACTICS};

#[test]
fn the_first_choice_path_allocates_nothing() {
    for targets in [3, 100] {
        for tactic in TACTICS {
            for session in ["", "session"] {
                let mut road = Road::new(targets, tactic);
                let measured = allocation_counter::measure(|| {
                    for _ in 0..200 {
                        road.request(session);
                    }
                });
                let what = format!("{targets} targets, {tactic:?}, session `{session}`");
                assert_eq!(measured.count_total, 0, "{what}");
            }
        }
    }
}

#[test]
fn the_counter_counts() {
    let measured = allocation_counter::measure(|| drop(Road::new(3, TACTICS[0])));
    assert!(measured.count_total > 0);
}
