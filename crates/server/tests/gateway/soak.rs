//! Many streams and many idle connections at once: nothing is lost.
//!
//! Small by default; `TIDEGATE_LONG=1` makes it 2 000 streams for a minute and 10 000 idle
//! connections, measures memory and prints the figures (run it alone: `cargo test --test gateway
//! soak:: -- --test-threads 1 --nocapture`).
//!
//! What is resident after the load is told and held to no bound: glibc's allocator keeps pages that
//! nobody uses, so the figure says more about it than about what the gateway holds.
//!
//! The gateway is this process; the provider and the clients are others, so that neither their
//! memory nor their descriptors are counted here. `parts.rs` is what those processes do.

use std::time::Duration;

use crate::bed::{Gate, Setup, good, now, pause};
use crate::parts::{PATIENCE, Part};

/// Whether the large form is wanted.
pub fn is_long() -> bool {
    std::env::var_os("TIDEGATE_LONG").is_some_and(|it| it == "1")
}

/// What this process has in memory, in KiB.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn gate_before(provider: &str) -> Gate {
    let fake = good();
    let mut setup = Setup { top: "limits: {connections: 20000}", ..Setup::of(&[&fake]) };
    setup.urls[0] = format!("http://{provider}");
    setup.start()
}

#[test]
fn many_streams_at_once_lose_no_frame() {
    // A token every 100 ms: 600 of them are a minute.
    let (streams, tokens) = if is_long() { (2000_u64, 600_u64) } else { (200, 20) };
    let mut provider = Part::start(&format!("provider {tokens}"));
    let gate = gate_before(&provider.hear("address"));
    assert!(gate.stream().is_whole_stream());
    let idle_kib = resident_kib();
    let began = now();
    let mut crowd = Part::start(&format!("streams {} {streams}", gate.address()));
    let mut peak_kib = 0;
    while !crowd.has_said("whole") && began.elapsed() < PATIENCE {
        peak_kib = peak_kib.max(resident_kib());
        pause(Duration::from_millis(50));
    }
    assert_eq!(crowd.hear("whole"), streams.to_string(), "streams that ended well");
    assert_eq!(crowd.hear("tokens"), (streams * tokens).to_string(), "frames that came");
    if is_long() {
        let took = began.elapsed();
        // Until the last kept connection to the provider has been idle for too long.
        pause(Duration::from_secs(70));
        let after_kib = resident_kib();
        tell(&format!(
            "{streams} streams, {} frames in {took:.1?}, none lost; gateway's memory: idle \
             {idle_kib} KiB, peak {peak_kib} KiB, after {after_kib} KiB",
            streams * tokens
        ));
    }
}

#[test]
fn many_idle_connections_are_held_and_still_served() {
    let (count, seconds) = if is_long() { (10_000, 15) } else { (1000, 0) };
    let mut provider = Part::start("provider 1");
    let gate = gate_before(&provider.hear("address"));
    let before_kib = resident_kib();
    // In the large form longer than a request head may take: idling is not dawdling.
    let mut crowd = Part::start(&format!("idle {} {count} {seconds}", gate.address()));
    assert_eq!(crowd.hear("held"), count.to_string());
    if is_long() {
        let kib = resident_kib() - before_kib;
        tell(&format!("{count} idle connections held in {kib} KiB more"));
    }
    assert_eq!(crowd.hear("served"), count.to_string());
}

/// Figures for whoever runs the large form by hand.
fn tell(text: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "{text}"));
}
