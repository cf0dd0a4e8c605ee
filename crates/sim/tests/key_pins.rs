//! The trace of a timeline shows which key a session is pinned to.

use tidegate_config::source::Source;
use tidegate_sim::scenario::{RenderOptions, load};

/// One target with two keys; each key is limited once for a while.
const POOL: &str = "scenario: pool
config: { keys: 2 }
for: 1m
traffic: { rate: 1/s, arrivals: even, sessions: 1, stream: 100%, clients_retry: 0 }
backends:
  a/x:
    - { at: 0s, do: ok }
    - { at: 20s, do: status, status: 429, retry_after: 10s }
    - { at: 20500ms, do: ok }
";

fn trace(text: &str) -> String {
    let options = RenderOptions { trace: true, ..RenderOptions::default() };
    let (scenario, problems) = load(&Source::new("t.yaml", text));
    let scenario = scenario.unwrap_or_else(|| panic!("{text}\n{problems:?}"));
    scenario.run(0).render(&options)
}

#[test]
fn a_trace_names_the_key_of_each_attempt_and_of_the_pin() {
    let trace = trace(POOL);
    let line = trace.lines().find(|it| it.contains("a/x#1 rate_limited 429"));
    let line = line.unwrap_or_else(|| panic!("no attempt with a key:\n{trace}"));
    assert!(line.contains("a/x#2"), "the other key is tried next: {line}");
    assert!(line.contains("pin=a/x#"), "{line}");
}

#[test]
fn a_trace_of_targets_with_one_key_names_no_key() {
    let single = trace(&POOL.replace("keys: 2", "keys: 1"));
    assert!(!single.contains("a/x#") && !single.contains("pin="), "{single}");
}
