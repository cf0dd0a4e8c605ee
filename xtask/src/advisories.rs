//! Known vulnerabilities of the crates we use: the dated copy of what the RustSec database says.
//!
//! `cargo deny check advisories` and `cargo audit` read that database from the network, which a
//! build machine may not have. So the facts that concern our dependency tree are kept here: the
//! advisory and the first version that is not affected. `cargo xtask deny` fails if the lock file
//! holds an older version. `cargo xtask nightly` asks `cargo deny` as well, where it is installed.
//!
//! To bring this file up to date: look up every crate of `Cargo.lock` in the database, add what is
//! new, and set [`AS_OF`]. A copy older than [`STALE_AFTER_DAYS`] is reported, not refused: an old
//! checkout must still build.

use std::collections::{BTreeMap, BTreeSet};

/// The day on which the database was read.
pub(crate) const AS_OF: &str = "2026-11-16";

/// After this many days somebody should look again.
pub(crate) const STALE_AFTER_DAYS: i64 = 60;

/// One advisory about a crate in our tree.
struct Advisory {
    package: &'static str,
    id: &'static str,
    /// Locked versions below this one are refused. Where several release lines were patched, this
    /// is the newest of those lines that we could use.
    fixed_in: &'static str,
}

const fn advisory(package: &'static str, id: &'static str, fixed_in: &'static str) -> Advisory {
    Advisory { package, id, fixed_in }
}

/// Crates that handle bytes of strangers, secrets or memory come first in each review; crates
/// without an entry had no advisory that could concern the versions we may use.
const ADVISORIES: &[Advisory] = &[
    advisory("anyhow", "RUSTSEC-2026-0190", "1.0.103"),
    advisory("aws-lc-sys", "RUSTSEC-2026-0045", "0.38.0"),
    advisory("aws-lc-sys", "RUSTSEC-2026-0048", "0.39.0"),
    advisory("bytes", "RUSTSEC-2026-0007", "1.11.1"),
    advisory("h2", "RUSTSEC-2026-0258", "0.4.16"),
    advisory("hashbrown", "RUSTSEC-2024-0402", "0.15.1"),
    advisory("rand", "RUSTSEC-2026-0097", "0.10.1"),
    advisory("ring", "RUSTSEC-2025-0009", "0.17.12"),
    advisory("rustls", "RUSTSEC-2026-0285", "0.23.45"),
    advisory("rustls-webpki", "RUSTSEC-2026-0049", "0.103.10"),
    advisory("rustls-webpki", "RUSTSEC-2026-0098", "0.103.12"),
    advisory("rustls-webpki", "RUSTSEC-2026-0099", "0.103.12"),
    advisory("rustls-webpki", "RUSTSEC-2026-0104", "0.103.13"),
    advisory("slab", "RUSTSEC-2025-0047", "0.4.11"),
    advisory("time", "RUSTSEC-2026-0009", "0.3.47"),
    advisory("tokio", "RUSTSEC-2025-0023", "1.44.2"),
    advisory("tracing-subscriber", "RUSTSEC-2025-0055", "0.3.20"),
];

/// Every locked version that an advisory is about. `locked` maps names to versions.
pub(crate) fn affected(locked: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut problems = Vec::new();
    for Advisory { package, id, fixed_in } in ADVISORIES {
        for version in locked.get(package).into_iter().flatten() {
            if numbers(version) < numbers(fixed_in) {
                problems.push(format!(
                    "`{package}` {version} is affected by {id}: `cargo update -p {package}` to \
                     {fixed_in} or later"
                ));
            }
        }
    }
    problems
}

/// A note if the copy is older than it should be. `today` is in days since 1970-01-01.
pub(crate) fn staleness(today: i64) -> Option<String> {
    let age = today - days_of(AS_OF)?;
    (age > STALE_AFTER_DAYS).then(|| {
        format!("the advisories in xtask/src/advisories.rs are {age} days old: look them up again")
    })
}

/// `v1.2.3+build` as numbers; a pre-release counts as its release.
fn numbers(version: &str) -> Vec<u64> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// Days since 1970-01-01 of `YYYY-MM-DD`, by the civil calendar.
fn days_of(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    // Years begin in March here, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    // 1970-01-01 is this many days after the first of March of the year 0.
    Some(365 * year + leap_days + day_of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{AS_OF, STALE_AFTER_DAYS, affected, days_of, staleness};

    fn locked<'a>(entries: &[(&'a str, &'a str)]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let mut map: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, version) in entries {
            map.entry(name).or_default().insert(version);
        }
        map
    }

    #[test]
    fn an_affected_version_is_refused_and_a_fixed_one_is_not() {
        let problems = affected(&locked(&[("h2", "v0.4.15"), ("rustls", "0.23.45")]));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("RUSTSEC-2026-0258") && problems[0].contains("0.4.16"));
        assert!(
            affected(&locked(&[("h2", "0.4.16"), ("h2", "0.10.0"), ("x", "0.0.1")])).is_empty()
        );
    }

    #[test]
    fn one_affected_version_of_two_is_caught() {
        assert_eq!(affected(&locked(&[("bytes", "1.9.0"), ("bytes", "1.12.1")])).len(), 1);
    }

    #[test]
    fn dates_are_counted_by_the_calendar_and_an_old_copy_is_told() {
        assert_eq!(days_of("1970-01-01"), Some(0));
        assert_eq!(days_of("2000-03-01"), Some(11_017));
        assert_eq!(days_of("2024-02-29"), Some(19_782));
        let read = days_of(AS_OF).expect("a date");
        assert!(staleness(read + STALE_AFTER_DAYS).is_none());
        assert!(staleness(read + STALE_AFTER_DAYS + 1).is_some());
    }
}
