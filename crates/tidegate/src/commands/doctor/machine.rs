//! The machine: open files, and the clock.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use tidegate_config::Config;

use super::finding::Finding;

/// Connections, if no config says how many.
const CONNECTIONS: u64 = 10_000;
/// Files beside the connections: listeners, logs, certificates, pipes of MCP servers.
const OTHER_FILES: u64 = 256;
/// The first second of 2026 (UTC): no gateway of this version ran before.
const NOT_BEFORE_S: u64 = 1_767_225_600;
/// A century later: a clock beyond that is wrong as well.
const NOT_AFTER_S: u64 = NOT_BEFORE_S + 100 * 365 * 86_400;

/// Looks at what the machine allows and says.
pub(super) fn look(config: Option<&Config>, findings: &mut Vec<Finding>) {
    let connections = config.map_or(CONNECTIONS, |it| u64::from(it.file.limits.connections));
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    findings.extend(open_files(soft_limit(&limits), connections));
    findings.push(clock(now_s()));
}

#[expect(clippy::disallowed_methods, reason = "whether the clock is right is what is asked")]
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The soft limit on open files in the text of `/proc/self/limits`; none if it is not there or
/// there is no limit.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A client's connection and the one upstream that serves it are two files.
fn open_files(limit: Option<u64>, connections: u64) -> Option<Finding> {
    let needed = connections.saturating_mul(2).saturating_add(OTHER_FILES);
    let limit = limit?;
    let words = format!("{limit} files may be open at once");
    Some(if limit >= needed {
        Finding::good("machine", words)
    } else {
        let words = format!("only {words}; {connections} connections may need {needed}");
        let fix = format!("`ulimit -n {needed}`, or LimitNOFILE={needed} in the systemd unit");
        Finding::warning("machine", words).fix(fix)
    })
}

fn clock(now_s: u64) -> Finding {
    if (NOT_BEFORE_S..NOT_AFTER_S).contains(&now_s) {
        return Finding::good("machine", "the clock is plausible");
    }
    Finding::bad("machine", "the clock is wrong, so no certificate will be valid")
        .fix("set it, for example with `timedatectl set-ntp true`")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::{NOT_BEFORE_S, clock, open_files, soft_limit};

    #[test]
    fn the_soft_limit_is_read_from_the_kernels_table() {
        let table =
            "Limit    Soft Limit  Hard Limit  Units\nMax open files   1024   524288   files\n";
        assert_eq!(soft_limit(table), Some(1024));
        assert_eq!(soft_limit("Max open files  unlimited  unlimited  files\n"), None);
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn a_limit_below_what_the_connections_need_is_a_warning() {
        let level = |limit| open_files(limit, 500).map(|finding| finding.level);
        assert_eq!(level(Some(1256)), Some(Level::Good));
        assert_eq!(level(Some(1255)), Some(Level::Warning));
        assert_eq!(level(None), None);
    }

    #[test]
    fn a_clock_of_1970_or_of_2200_is_wrong() {
        assert_eq!(clock(0).level, Level::Bad);
        assert_eq!(clock(NOT_BEFORE_S + 86_400).level, Level::Good);
        assert_eq!(clock(7_258_118_400).level, Level::Bad);
    }
}
