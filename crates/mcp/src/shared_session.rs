//! What may be concluded about a session of the fleet from what the store says, and does not say.
//!
//! A 404 makes a client throw its session away, and two owners of one session are one too many. So
//! "there is none" and "its owner is gone" are conclusions, and each needs evidence of its own;
//! what the store leaves open is left open.
//!
//! | the store has no record, and | then |
//! |---|---|
//! | says that the session has ended | there is none |
//! | has one that does not open | nobody can say |
//! | the session was opened a moment ago | nobody can say: the record may be on its way |
//! | lost its data a moment ago | nobody can say: its owner has not written it again |
//! | none of these | there is none |

use tidegate_core::time::Millis;

/// For so long the record of a new session may still be on its way: the answer to `initialize` does
/// not wait for a store that is slow.
const YOUNG: Millis = Millis::seconds(10);
/// For so long after the store lost its data a record may not have been written again.
const RESTORED_WITHIN: Millis = Millis::seconds(10);
/// A heartbeat lives for ten seconds; for as long the store must have been up before a missing one
/// says something: right after a pause of the store all of them are missing.
const STEADY: Millis = Millis::seconds(10);

/// The store answered, and has no record of a session that can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbsentRecord {
    /// It says that the session has ended.
    pub is_ended: bool,
    /// It has a record that does not open.
    pub is_sealed: bool,
    /// How long ago the session was opened, if its id says so.
    pub opened_ago: Option<Millis>,
    /// How long ago the store was found to have lost its data, if it was.
    pub lost_ago: Option<Millis>,
}

/// What an absent record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsenceVerdict {
    /// There is no such session.
    NoSession,
    /// Nobody can say, for this reason.
    Unknown(&'static str),
}

impl AbsentRecord {
    /// What it means.
    #[must_use]
    pub fn verdict(&self) -> AbsenceVerdict {
        let is_within = |ago: Option<Millis>, span: Millis| ago.is_some_and(|ago| ago < span);
        match self {
            Self { is_ended: true, .. } => AbsenceVerdict::NoSession,
            Self { is_sealed: true, .. } => AbsenceVerdict::Unknown("record_does_not_open"),
            Self { opened_ago, .. } if is_within(*opened_ago, YOUNG) => {
                AbsenceVerdict::Unknown("record_not_written_yet")
            }
            Self { lost_ago, .. } if is_within(*lost_ago, RESTORED_WITHIN) => {
                AbsenceVerdict::Unknown("store_restarted")
            }
            Self { .. } => AbsenceVerdict::NoSession,
        }
    }
}

/// What the store says about a replica that cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerSigns {
    /// Its heartbeat is there.
    pub has_heartbeat: bool,
    /// For how long the store has been up, as far as this replica knows.
    pub store_up_for: Option<Millis>,
}

impl OwnerSigns {
    /// Whether it is gone for certain: its sessions may be taken over.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        !self.has_heartbeat && self.store_up_for.is_some_and(|it| it >= STEADY)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const NOTHING: AbsentRecord =
        AbsentRecord { is_ended: false, is_sealed: false, opened_ago: None, lost_ago: None };

    #[test]
    fn a_missing_record_ends_a_session_only_where_nothing_else_explains_it() {
        let ago = |ms| Some(Millis(ms));
        let unknown = AbsenceVerdict::Unknown;
        for (absent, verdict) in [
            (NOTHING, AbsenceVerdict::NoSession),
            (AbsentRecord { opened_ago: ago(0), ..NOTHING }, unknown("record_not_written_yet")),
            (AbsentRecord { opened_ago: ago(9_999), ..NOTHING }, unknown("record_not_written_yet")),
            (AbsentRecord { opened_ago: ago(10_000), ..NOTHING }, AbsenceVerdict::NoSession),
            (AbsentRecord { lost_ago: ago(9_999), ..NOTHING }, unknown("store_restarted")),
            (AbsentRecord { lost_ago: ago(10_000), ..NOTHING }, AbsenceVerdict::NoSession),
            (AbsentRecord { is_sealed: true, ..NOTHING }, unknown("record_does_not_open")),
        ] {
            assert_eq!(absent.verdict(), verdict, "{absent:?}");
            // What says that it has ended was written by its owner: nothing stands against that.
            let ended = AbsentRecord { is_ended: true, ..absent };
            assert_eq!(ended.verdict(), AbsenceVerdict::NoSession, "{ended:?}");
        }
    }

    #[test]
    fn an_owner_is_gone_without_a_heartbeat_in_a_store_that_was_up_for_as_long_as_one_lives() {
        let signs = |has_heartbeat, up: Option<u64>| {
            OwnerSigns { has_heartbeat, store_up_for: up.map(Millis) }.is_gone()
        };
        assert!(signs(false, Some(10_000)));
        assert!(!signs(false, Some(9_999)) && !signs(false, None) && !signs(true, Some(60_000)));
    }

    /// How long an owner takes to write a record, at most: `state.timeout` can be ten seconds.
    const WRITTEN_WITHIN: u64 = 9_999;
    /// How long heartbeats live, and how long a replica may be late with one, at most.
    const BEAT_LIVES: u64 = 10_000;

    proptest! {
        /// A session lives, and its owner writes its record soon after it was opened and after
        /// every loss of the store's data: whoever looks meanwhile never hears that there is none.
        #[test]
        fn a_session_that_lives_is_never_said_to_have_ended(
            written_after in 0..=WRITTEN_WITHIN,
            losses in vec((0_u64..100_000, 0..=WRITTEN_WITHIN), 0..6),
            looks in vec(0_u64..120_000, 1..20),
        ) {
            for at in looks {
                let lost_at = losses.iter().filter(|it| it.0 <= at).max();
                let (since, after) = lost_at.copied().unwrap_or((0, written_after));
                // A record that was not written before a loss is written after it.
                if at >= since + after && at >= written_after {
                    continue;
                }
                let absent = AbsentRecord {
                    opened_ago: Some(Millis(at)),
                    lost_ago: lost_at.map(|it| Millis(at - it.0)),
                    ..NOTHING
                };
                prop_assert!(matches!(absent.verdict(), AbsenceVerdict::Unknown(_)), "{absent:?}");
            }
        }

        /// A replica lives and renews its heartbeat while the store is up, and at the latest when
        /// the next one is due after the store was away or lost its data: nobody who cannot reach
        /// it takes it for gone.
        #[test]
        fn a_replica_that_lives_is_never_taken_for_gone(
            pauses in vec((0_u64..100_000, 1_u64..30_000), 0..6),
            late in 0_u64..BEAT_LIVES,
            looks in vec(0_u64..140_000, 1..20),
        ) {
            for at in looks {
                let is_away = pauses.iter().any(|it| (it.0..it.0 + it.1).contains(&at));
                // The store has been up since the last pause ended, and no heartbeat outlived it.
                let up_since = pauses.iter().map(|it| it.0 + it.1).filter(|it| *it <= at).max();
                let up_for = at - up_since.unwrap_or(0);
                let has_heartbeat = up_for >= late;
                let signs = OwnerSigns {
                    has_heartbeat,
                    store_up_for: (!is_away).then_some(Millis(up_for)),
                };
                prop_assert!(!signs.is_gone(), "{signs:?}");
            }
        }
    }
}
