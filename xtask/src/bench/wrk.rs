//! One run of `wrk` with the 2 KiB chat request of `bench/chat.lua`.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::tools::Tools;
use crate::docs;

/// What a run of load showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) requests: u64,
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

/// Sends requests over `connections` connections for a while.
pub(super) fn run(
    tools: &Tools,
    port: u16,
    connections: usize,
    load: Duration,
) -> anyhow::Result<Load> {
    let output = Command::new(&tools.wrk)
        .args(["-t", "1", "-c", &connections.to_string()])
        .args(["-d", &format!("{}s", load.as_secs().max(1))])
        // A slow answer is no failed one.
        .args(["--timeout", "30s"])
        .arg("-s")
        .arg(docs::root().join("bench/chat.lua"))
        .arg(format!("http://127.0.0.1:{port}"))
        .output()
        .context("cannot start `wrk`")?;
    read(&String::from_utf8_lossy(&output.stdout))
}

/// Reads the line that `bench/chat.lua` writes.
fn read(output: &str) -> anyhow::Result<Load> {
    let line = output.lines().find_map(|line| line.strip_prefix("bench "));
    let line = line.with_context(|| format!("`wrk` said nothing of use:\n{output}"))?;
    let field = |name: &str| -> anyhow::Result<u64> {
        let mut pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        let value = pairs.find_map(|(key, value)| (key == name).then_some(value));
        value.and_then(|it| it.parse().ok()).with_context(|| format!("no `{name}` in `{line}`"))
    };
    let (requests, failed) = (field("requests")?, field("failed")?);
    if failed > 0 || requests == 0 {
        bail!("void: {failed} of {requests} requests failed");
    }
    Ok(Load {
        requests,
        per_second: requests as f64 * 1e6 / field("micros")?.max(1) as f64,
        p50_us: field("p50")? as f64,
        p99_us: field("p99")? as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_line_is_read_and_a_single_failed_request_voids_it() {
        let line = "noise\nbench requests=200 failed=0 micros=1000000 p50=90 p99=120\n";
        let load = read(line).expect("a whole line");
        assert_eq!((load.requests, load.per_second, load.p99_us), (200, 200.0, 120.0));
        let text = read(&line.replace("failed=0", "failed=1")).expect_err("void").to_string();
        assert!(text.contains("1 of 200 requests failed"), "{text}");
        assert!(read("nothing").is_err());
    }
}
