//! A bound on lines of one kind: the first few are written, the others are counted.
//!
//! An outage fails thousands of requests in a second, and an attacker can try as many keys. One
//! line tells an operator what happens; ten thousand tell nothing more and hide everything else.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tidegate_core::time::{Millis, Now};

/// Lines of one kind within [`WINDOW`].
const BURST: u32 = 5;
/// Long enough that a lasting outage writes a line every other second on average.
const WINDOW: Millis = Millis::seconds(10);
/// Kinds that are counted apart. Names come from the config, so real ones are far fewer.
const MAX_KINDS: usize = 4096;

/// Which lines may be written.
#[derive(Debug, Default)]
pub struct LineLimit {
    kinds: Mutex<BTreeMap<String, Written>>,
}

#[derive(Debug)]
struct Written {
    since: Now,
    lines: u32,
    suppressed: u64,
}

impl LineLimit {
    /// Whether a line of this kind may be written, and how many were not since the last one.
    pub fn admit(&self, now: Now, kind: &str) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if !kinds.contains_key(kind) && kinds.len() >= MAX_KINDS {
            kinds.clear();
        }
        let fresh = || Written { since: now, lines: 0, suppressed: 0 };
        let written = kinds.entry(kind.to_owned()).or_insert_with(fresh);
        if now.since(written.since) >= WINDOW {
            (written.since, written.lines) = (now, 0);
        }
        if written.lines >= BURST {
            written.suppressed += 1;
            return None;
        }
        written.lines += 1;
        Some(std::mem::take(&mut written.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_written_and_what_follows_is_counted() {
        let limit = LineLimit::default();
        let admitted = (0..100).filter(|at| limit.admit(Now(*at), "fast").is_some()).count();
        assert_eq!(admitted, BURST as usize);
        assert_eq!(limit.admit(Now(50), "slow"), Some(0), "another kind has a bound of its own");
        assert_eq!(limit.admit(Now(10_000), "fast"), Some(95));
        assert_eq!(limit.admit(Now(10_001), "fast"), Some(0));
    }

    #[test]
    fn the_table_is_bounded() {
        let limit = LineLimit::default();
        for kind in 0..3 * MAX_KINDS {
            limit.admit(Now(0), &kind.to_string());
        }
        assert!(limit.kinds.lock().is_ok_and(|kinds| kinds.len() <= MAX_KINDS));
    }
}
