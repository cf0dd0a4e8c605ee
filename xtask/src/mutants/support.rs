//! A module of a woven crate: which fault is switched on, and what runs through its functions.

use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static CHOSEN: LazyLock<u32> = LazyLock::new(|| {
    std::env::var("TIDEGATE_FAULT").ok().and_then(|it| it.parse().ok()).unwrap_or(0)
});
static REACHED_FILE: LazyLock<Option<std::ffi::OsString>> =
    LazyLock::new(|| std::env::var_os("TIDEGATE_FAULT_REACHED"));
static REACHED: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];

/// The fault that is on, or 0 if it is none of this function's.
pub(crate) fn chosen(function: usize, faults: &[u32]) -> u32 {
    if let Some(file) = &*REACHED_FILE
        && !REACHED[function].swap(true, Ordering::Relaxed)
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(file)
    {
        drop(file.write_all(format!("{function}\n").as_bytes()));
    }
    let chosen = *CHOSEN;
    if chosen != 0 && faults.contains(&chosen) { chosen } else { 0 }
}
