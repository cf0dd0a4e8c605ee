//! When a server's lists are fetched again.
//!
//! Rules kept here:
//! - Lists are due when somebody uses them and they are older than `fresh_for`, and when there is a
//!   reason to doubt them: a lost connection was made anew, the server introduces itself otherwise,
//!   it has recovered, or the config was read again. A server that was deployed anew may offer
//!   other tools, and need not say so.
//! - Doubts that come while lists are being fetched are about what was not fetched yet: they stay.
//! - A fetch that failed is tried again at the next use, but not before [`PAUSE`]: a server that
//!   fails is not asked by every request that comes by.
//! - As long as none has brought everything, nobody can use what is missing. So it is tried again
//!   without a use too, after pauses that double ([`Freshness::retry_after`]).
//!
//! Left to others: the fetch itself, of which there is one at a time (the server's shelf), and the
//! lists that are kept while it runs and when it fails.

use tidegate_core::time::{Millis, Now};

/// The least time between a fetch that failed and the next one.
pub const PAUSE: Millis = Millis::seconds(1);

/// The longest time between two fetches that nobody asked for.
const LONGEST_PAUSE: Millis = Millis::minutes(1);

/// What is known of the age of one server's lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    fetched_at: Option<Now>,
    failed_at: Option<Now>,
    /// Failures in a row.
    failures: u32,
    is_doubted: bool,
}

impl Freshness {
    /// There is a reason to think that the lists are not what the server offers.
    pub fn doubt(&mut self) {
        self.is_doubted = true;
    }

    /// A fetch of all lists begins.
    pub fn begin(&mut self) {
        self.is_doubted = false;
    }

    /// It brought everything.
    pub fn fetched(&mut self, now: Now) {
        self.fetched_at = Some(now);
        self.failed_at = None;
        self.failures = 0;
    }

    /// It did not.
    pub fn failed(&mut self, now: Now) {
        self.failed_at = Some(now);
        self.failures = self.failures.saturating_add(1);
        self.is_doubted = true;
    }

    /// How long after a failure it is tried again although nobody asks; none if the lists were
    /// whole before, since those are offered meanwhile.
    #[must_use]
    pub fn retry_after(&self) -> Option<Millis> {
        let is_wanted = self.fetched_at.is_none() && self.failures > 0;
        let doubled = 2_u64.saturating_pow(self.failures.saturating_sub(1));
        is_wanted.then(|| Millis(PAUSE.0.saturating_mul(doubled)).min(LONGEST_PAUSE))
    }

    /// Whether somebody who uses the lists has them fetched again.
    #[must_use]
    pub fn is_due(&self, now: Now, fresh_for: Millis) -> bool {
        let has_age = |moment: Option<Now>, span: Millis| {
            moment.is_none_or(|moment| now.reached(moment.after(span)))
        };
        has_age(self.failed_at, PAUSE) && (self.is_doubted || has_age(self.fetched_at, fresh_for))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH_FOR: Millis = Millis::minutes(5);

    fn fetched_at(moment: u64) -> Freshness {
        let mut freshness = Freshness::default();
        freshness.begin();
        freshness.fetched(Now(moment));
        freshness
    }

    #[test]
    fn lists_are_due_at_a_use_when_they_are_old() {
        let freshness = fetched_at(1000);
        assert!(!freshness.is_due(Now(300_999), FRESH_FOR));
        assert!(freshness.is_due(Now(301_000), FRESH_FOR));
        assert!(Freshness::default().is_due(Now(0), FRESH_FOR), "nothing was ever fetched");
    }

    #[test]
    fn a_doubt_makes_them_due_and_a_fetch_settles_it() {
        let mut freshness = fetched_at(0);
        freshness.doubt();
        assert!(freshness.is_due(Now(5000), FRESH_FOR));
        freshness.begin();
        freshness.fetched(Now(5200));
        assert!(!freshness.is_due(Now(9000), FRESH_FOR));
    }

    #[test]
    fn a_doubt_that_comes_during_a_fetch_outlives_it() {
        let mut freshness = fetched_at(0);
        freshness.begin();
        freshness.doubt();
        freshness.fetched(Now(5200));
        assert!(freshness.is_due(Now(6000), FRESH_FOR));
    }

    #[test]
    fn a_first_fetch_that_fails_is_tried_again_by_itself_after_pauses_that_double() {
        let mut freshness = Freshness::default();
        assert_eq!(freshness.retry_after(), None);
        let pauses = [1, 2, 4, 8, 16, 32, 60, 60].map(Millis::seconds);
        for pause in pauses {
            freshness.failed(Now(0));
            assert_eq!(freshness.retry_after(), Some(pause));
        }
        freshness.fetched(Now(1000));
        freshness.failed(Now(2000));
        assert_eq!(freshness.retry_after(), None, "what was fetched is offered meanwhile");
    }

    #[test]
    fn a_failed_fetch_is_tried_again_after_a_pause() {
        let mut freshness = fetched_at(0);
        freshness.begin();
        freshness.failed(Now(300_000));
        assert!(!freshness.is_due(Now(300_999), FRESH_FOR));
        assert!(freshness.is_due(Now(301_000), FRESH_FOR));
    }
}
