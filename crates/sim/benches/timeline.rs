//! Simulated requests per second on one core, without the auditor. The aim: a million.
//!
//! Each story is played whole and its requests are counted, so the printed throughput is requests
//! per second: `cargo bench -p tidegate-sim`.

use divan::{Bencher, counter::ItemsCount};
use tidegate_config::source::Source;
use tidegate_sim::{
    scenario::{Scenario, load},
    timeline::Timeline,
};

fn main() {
    divan::main();
}

/// Three tiers, the first of which is fine: what most gateways do most of the time.
const QUIET: &str = "
for: 1000s
traffic: { rate: 200/s, stream: 100% }
backends:
  a/one: [{ at: 0s, do: ok, jitter: 20% }]
  b/two: []
  c/three: []
";

/// The same with sessions, so that every request looks up a pin.
const SESSIONS: &str = "
for: 1000s
traffic: { rate: 200/s, stream: 100%, sessions: 1000 }
backends:
  a/one: [{ at: 0s, do: ok, jitter: 20% }]
  b/two: []
  c/three: []
";

/// The first choice fails half of its requests and opens again and again.
const OUTAGE: &str = "
for: 1000s
traffic: { rate: 200/s, stream: 70%, sessions: 1000, clients_retry: 2 }
backends:
  a/one: [{ at: 0s, do: ok }, { at: 200s, do: status, status: 529, share: 50% }]
  b/two: []
  c/three: []
";

fn timeline(text: &str) -> Timeline {
    match load(&Source::new("bench.yaml", text)).0 {
        Some(Scenario::Timeline(timeline)) => *timeline,
        _ => panic!("the story of a bench is sound"),
    }
}

fn play(bencher: Bencher<'_, '_>, text: &str) {
    let timeline = timeline(text);
    let requests = timeline.run_unchecked(0);
    bencher.counter(ItemsCount::new(requests)).bench(|| timeline.run_unchecked(0));
}

#[divan::bench(sample_count = 10)]
fn quiet(bencher: Bencher<'_, '_>) {
    play(bencher, QUIET);
}

#[divan::bench(sample_count = 10)]
fn sessions(bencher: Bencher<'_, '_>) {
    play(bencher, SESSIONS);
}

#[divan::bench(sample_count = 10)]
fn outage(bencher: Bencher<'_, '_>) {
    play(bencher, OUTAGE);
}
