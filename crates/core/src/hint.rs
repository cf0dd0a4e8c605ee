//! Hints: what one replica of a fleet tells the others, as data.
//!
//! The core makes hints ([`crate::transition::Notes::hints`]) where it learns something that other
//! replicas should know, and takes those of other replicas through one door, `Core::hear`. Whatever
//! lies between, a store or a simulated bus, carries them and decides nothing.
//!
//! Rules kept here:
//! - Times are durations that were left when the hint was made. Whoever carries a hint adds how old
//!   it is ([`Hint::age`]); no clock of another replica is ever read.
//! - Of two hints about the same [`Subject`] the one with the higher [`Precedence`] is the newer
//!   one, in whatever order and however often they arrive.
//! - An end (healed, undrained) is a hint like any other, with a higher version.
//! - A reset is an event: it is heard once, and not when it is older than [`EVENT_LIFE`].
//!
//! What a replica that hears a hint does with it is in `hear.rs`.

use serde::{Deserialize, Serialize};

use crate::{
    breaker::OpenCause,
    mark::MarkReason,
    names::{Fingerprint, PinKey, ReplicaId},
    time::Millis,
};

/// An event that is older than this is ignored: long enough for a slow bus, too short to undo
/// what was learnt since.
pub const EVENT_LIFE: Millis = Millis::seconds(30);

/// The longest that an operator's action with an end lasts: what is to last longer belongs into the
/// config. More than that no other replica is believed either.
pub const ACTION_MAX: Millis = Millis::minutes(24 * 60);

/// One fact that a replica told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// How long ago it was told; zero where it is made, set by whoever carries it.
    pub age: Millis,
    /// Its version, and who told it.
    pub stamp: Stamp,
    /// What was told.
    pub fact: Fact,
    /// How soon it should be told; of no meaning once it was.
    #[serde(default)]
    pub haste: Haste,
}

/// How soon a hint should be told. Every message wakes every replica, so what can wait for company
/// does.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Haste {
    /// At once.
    #[default]
    AtOnce,
    /// Before the session's next turn, which comes after the answer to this one.
    BeforeNextTurn,
    /// Some time: replicas that see the targets alike choose the same before they hear of it.
    Leisurely,
}

impl Haste {
    /// How long it may wait.
    #[must_use]
    pub const fn may_wait(self) -> Millis {
        match self {
            Self::AtOnce => Millis::ZERO,
            // Quicker than a model answers.
            Self::BeforeNextTurn => Millis(50),
            // A replica that sees a target otherwise by the next turn costs one prompt cache.
            Self::Leisurely => Millis(1_000),
        }
    }
}

/// A version and its writer: of two values for the same subject the higher one counts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Stamp {
    /// One more than any that the writer had seen for the subject (an exclusion that is set keeps
    /// the version that it finds).
    pub version: u64,
    /// Who wrote it.
    pub writer: ReplicaId,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// A (target, key) is inside a window.
    Window {
        /// The target.
        backend: Fingerprint,
        /// The key.
        key: Fingerprint,
        /// For how long.
        remaining: Millis,
        /// Why.
        reason: MarkReason,
    },
    /// Something is excluded, or no longer.
    Exclusion {
        /// What.
        of: Excluded,
        /// For how long; `None` = a success healed it.
        remaining: Option<Millis>,
        /// Why.
        reason: MarkReason,
    },
    /// An operator did something that lasts, or ended it.
    Action {
        /// To which backend.
        backend: Fingerprint,
        /// What.
        action: OperatorAction,
        /// For how long.
        lasts: Lasts,
    },
    /// An operator declared a backend healthy.
    Reset {
        /// Which one.
        backend: Fingerprint,
    },
    /// A breaker opened, on evidence of the replica's own.
    Opened {
        /// Whose breaker.
        of: BreakerOf,
        /// For how long.
        remaining: Millis,
        /// Why.
        cause: OpenCause,
    },
    /// A session is pinned.
    Pin {
        /// The session.
        session: PinKey,
        /// The target.
        backend: Fingerprint,
        /// The key.
        key: Fingerprint,
        /// For how long.
        remaining: Millis,
        /// For how long no lower-numbered tier draws it up; zero if nothing keeps it.
        stays: Millis,
    },
}

/// What is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excluded {
    /// A key, at every target that uses it.
    Key(Fingerprint),
    /// A key at one target.
    Pair {
        /// The target.
        backend: Fingerprint,
        /// The key.
        key: Fingerprint,
    },
    /// A target, whatever the key: its model does not exist.
    Model(Fingerprint),
}

/// What an operator can do to a backend that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorAction {
    /// It is no candidate.
    Drain,
    /// Its breaker is held open.
    Hold,
}

/// How long an operator's action lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    /// So much longer.
    For(Millis),
    /// Until further notice.
    UntilEnded,
    /// It has ended.
    Ended,
}

/// Whose breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerOf {
    /// A target's or an MCP server's own.
    Backend(Fingerprint),
    /// That of a provider's endpoint.
    Endpoint(Fingerprint),
}

/// What a hint is about: of two hints with the same subject one takes the other's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The window of a (target, key).
    Window {
        /// The target.
        backend: Fingerprint,
        /// The key.
        key: Fingerprint,
    },
    /// An exclusion.
    Exclusion(Excluded),
    /// An operator's action.
    Action(OperatorAction, Fingerprint),
    /// Resets of a backend.
    Reset(Fingerprint),
    /// Openings of a breaker.
    Opened(BreakerOf),
    /// A session's pin.
    Pin(PinKey),
}

/// What decides between two hints about one subject: the higher one is the newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence {
    /// Zero where only the end counts.
    version: u64,
    /// Zero where it does not count.
    end_ms: u64,
    writer: ReplicaId,
}

impl Precedence {
    /// The same order as bytes, for a store that compares without understanding.
    #[must_use]
    pub fn sort_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.version.to_be_bytes());
        key[8..16].copy_from_slice(&self.end_ms.to_be_bytes());
        key[16..].copy_from_slice(&self.writer.0.to_be_bytes());
        key
    }
}

impl Fact {
    /// What it is about.
    #[must_use]
    pub const fn subject(&self) -> Subject {
        match *self {
            Self::Window { backend, key, .. } => Subject::Window { backend, key },
            Self::Exclusion { of, .. } => Subject::Exclusion(of),
            Self::Action { backend, action, .. } => Subject::Action(action, backend),
            Self::Reset { backend } => Subject::Reset(backend),
            Self::Opened { of, .. } => Subject::Opened(of),
            Self::Pin { session, .. } => Subject::Pin(session),
        }
    }

    /// Whether a replica that starts later needs it: it is then kept, and not only told.
    #[must_use]
    pub const fn is_state(&self) -> bool {
        match self {
            Self::Window { .. }
            | Self::Exclusion { .. }
            | Self::Action { .. }
            | Self::Pin { .. } => true,
            Self::Reset { .. } | Self::Opened { .. } => false,
        }
    }
}

impl Hint {
    /// What decides between this and another hint about the same subject, where this one was told
    /// at `told_at_ms`. Both moments must be read from one clock.
    #[must_use]
    pub fn precedence(&self, told_at_ms: u64) -> Precedence {
        let Stamp { version, writer } = self.stamp;
        let end = |span: Millis| told_at_ms.saturating_add(span.0);
        let (version, end_ms) = match &self.fact {
            Fact::Window { remaining, .. } | Fact::Opened { remaining, .. } => (0, end(*remaining)),
            Fact::Exclusion { remaining: Some(remaining), .. } => (version, end(*remaining)),
            Fact::Exclusion { remaining: None, .. }
            | Fact::Action { .. }
            | Fact::Reset { .. }
            | Fact::Pin { .. } => (version, 0),
        };
        Precedence { version, end_ms, writer }
    }
}

/// What became of a hint that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heard {
    /// It told something new.
    Taken,
    /// It told nothing new.
    Known,
    /// It is over already.
    Late,
    /// It is about something that this replica does not have, or does not share.
    Unknown,
    /// This replica told it itself.
    Own,
}

impl Heard {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Taken, Self::Known, Self::Late, Self::Unknown, Self::Own];

    /// The word used in metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Known => "known",
            Self::Late => "late",
            Self::Unknown => "unknown",
            Self::Own => "own",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Fingerprint = Fingerprint([1; 16]);

    fn hint(version: u64, writer: u128, fact: Fact) -> Hint {
        let stamp = Stamp { version, writer: ReplicaId(writer) };
        Hint { age: Millis::ZERO, stamp, fact, haste: Haste::AtOnce }
    }

    fn excluded(version: u64, writer: u128, remaining: Option<u64>) -> Hint {
        let (of, reason) = (Excluded::Key(KEY), MarkReason::AuthRejected);
        let remaining = remaining.map(Millis);
        hint(version, writer, Fact::Exclusion { of, remaining, reason })
    }

    #[test]
    fn a_healing_beats_every_exclusion_of_the_version_before_and_loses_to_one_of_its_own() {
        let old = excluded(1, 9, Some(300_000)).precedence(5_000);
        let healed = excluded(2, 1, None).precedence(1_000);
        let again = excluded(2, 0, Some(1)).precedence(1_000);
        assert!(old < healed && healed < again);
    }

    #[test]
    fn of_windows_the_later_end_counts_whatever_the_version() {
        let window = |version, span, at| {
            let (backend, key, reason) = (KEY, KEY, MarkReason::RateLimited);
            let fact = Fact::Window { backend, key, remaining: Millis(span), reason };
            hint(version, 0, fact).precedence(at)
        };
        assert!(window(9, 1_000, 0) < window(0, 999, 2));
    }

    #[test]
    fn of_equal_versions_of_an_action_the_higher_writer_counts() {
        let drained = |writer, lasts| {
            let (backend, action) = (KEY, OperatorAction::Drain);
            hint(1, writer, Fact::Action { backend, action, lasts }).precedence(0)
        };
        assert!(drained(1, Lasts::UntilEnded) < drained(2, Lasts::Ended));
    }

    #[test]
    fn precedence_as_bytes_has_the_same_order() {
        let all = [
            excluded(1, 9, Some(300_000)).precedence(5_000),
            excluded(2, 1, None).precedence(1_000),
            excluded(2, 0, Some(1)).precedence(1_000),
            excluded(2, 7, Some(1)).precedence(1_000),
            excluded(256, 0, None).precedence(0),
        ];
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            assert_eq!(one.cmp(other), one.sort_key().cmp(&other.sort_key()));
        }
    }

    #[test]
    fn a_replica_that_starts_later_needs_what_stands_and_no_event() {
        let stands = Fact::Exclusion {
            of: Excluded::Key(KEY),
            remaining: None,
            reason: MarkReason::AuthRejected,
        };
        assert!(stands.is_state());
        assert!(!Fact::Reset { backend: KEY }.is_state());
    }
}
