//! The machine that tests run on.

/// Whether the tests that take minutes are wanted.
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
