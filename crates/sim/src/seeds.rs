//! Many seeds of one scenario at once, on several threads.
//!
//! Rules kept here:
//! - The result does not depend on the number of threads: runs are put in the order of their
//!   seeds before anybody looks at them.
//! - A failure is told once, with the smallest seed that shows it. Two failures are the same if
//!   they break the same expectation, whatever the numbers.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use crate::scenario::{Failure, Report, Scenario};

/// A failure that at least one seed shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctFailure {
    /// It, as its smallest seed shows it.
    pub failure: Failure,
    /// The smallest seed that shows it.
    pub seed: u64,
    /// How many of the seeds show it.
    pub count: u64,
    /// The command that shows it again.
    pub replay: String,
}

/// Runs every seed on that many threads and gives the distinct failures in the order of their
/// seeds. `progress` is called once after each run, from any thread.
pub fn run_seeds(
    scenario: &Scenario,
    seeds: Range<u64>,
    threads: usize,
    progress: impl Fn() + Sync,
) -> Vec<DistinctFailure> {
    sweep(seeds, threads, progress, |seed| {
        let report = scenario.run(seed);
        let replay = if report.failures().is_empty() { String::new() } else { report.replay() };
        (failures(&report), replay)
    })
}

fn failures(report: &Report) -> Vec<Failure> {
    report.failures().to_vec()
}

/// What one run showed: its failures and its replay line.
type Shown = (Vec<Failure>, String);

fn sweep(
    seeds: Range<u64>,
    threads: usize,
    progress: impl Fn() + Sync,
    run: impl Fn(u64) -> Shown + Sync,
) -> Vec<DistinctFailure> {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut found = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return found;
            }
            let shown = run(seed);
            if !shown.0.is_empty() {
                found.push((seed, shown));
            }
            progress();
        }
    };
    let mut found: Vec<(u64, Shown)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.flat_map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    found.sort_by_key(|(seed, _)| *seed);
    distinct(found)
}

fn distinct(found: Vec<(u64, Shown)>) -> Vec<DistinctFailure> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut distinct: Vec<DistinctFailure> = Vec::new();
    for (seed, (failures, replay)) in found {
        let mut counted = Vec::new();
        for failure in failures {
            let place = *places.entry(failure.expectation.clone()).or_insert(distinct.len());
            if place == distinct.len() {
                let replay = replay.clone();
                distinct.push(DistinctFailure { failure, seed, count: 0, replay });
            }
            // An invariant may break several times in one run.
            if !counted.contains(&place) {
                distinct[place].count += 1;
                counted.push(place);
            }
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(threads: usize) -> Vec<(u64, String, u64)> {
        let run = |seed: u64| {
            let failure = |expectation: &str| Failure {
                expectation: expectation.to_owned(),
                sentence: format!("{expectation} with {seed}"),
            };
            let every = |step: u64, name: &str| seed.is_multiple_of(step).then(|| failure(name));
            let shown = [every(7, "sevens"), every(5, "fives"), every(5, "fives")];
            (shown.into_iter().flatten().collect(), format!("seed {seed}"))
        };
        let distinct = sweep(1..101, threads, || (), run);
        distinct.into_iter().map(|it| (it.seed, it.failure.sentence, it.count)).collect()
    }

    #[test]
    fn each_distinct_failure_comes_once_with_its_smallest_seed() {
        let fives = (5, "fives with 5".to_owned(), 20);
        assert_eq!(found(1), [fives, (7, "sevens with 7".to_owned(), 14)]);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        for threads in [0, 2, 4] {
            assert_eq!(found(threads), found(1), "{threads}");
        }
    }

    #[test]
    fn progress_is_told_once_per_run() {
        let count = AtomicU64::new(0);
        let told = || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        sweep(0..50, 2, told, |_| (Vec::new(), String::new()));
        assert_eq!(count.into_inner(), 50);
    }
}
