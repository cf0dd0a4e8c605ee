//! What one request costs in the core when its first choice succeeds: choose, head, content,
//! report. The aim: below 300 ns for 3 targets and below 2 µs for 100.

#[path = "../tests/support/mod.rs"]
mod support;

use divan::Bencher;
use support::{Road, TACTICS};
use tidegate_core::settings::Tactic;

fn main() {
    divan::main();
}

#[divan::bench(args = TACTICS, sample_size = 200)]
fn three_targets(bencher: Bencher<'_, '_>, tactic: Tactic) {
    let mut road = Road::new(3, tactic);
    bencher.bench_local(|| road.request(""));
}

#[divan::bench(args = TACTICS, sample_size = 200)]
fn three_targets_with_session(bencher: Bencher<'_, '_>, tactic: Tactic) {
    let mut road = Road::new(3, tactic);
    bencher.bench_local(|| road.request("session"));
}

#[divan::bench(args = TACTICS, sample_size = 200)]
fn hundred_targets(bencher: Bencher<'_, '_>, tactic: Tactic) {
    let mut road = Road::new(100, tactic);
    bencher.bench_local(|| road.request(""));
}

#[divan::bench(args = TACTICS, sample_size = 200)]
fn hundred_targets_with_session(bencher: Bencher<'_, '_>, tactic: Tactic) {
    let mut road = Road::new(100, tactic);
    bencher.bench_local(|| road.request("session"));
}
