//! What replicas know of an MCP session: its record, who owns it, and what is told of it.
//!
//! A record says what another replica needs to go on; to the store it is bytes. Its owner and epoch
//! are the store's business: the epoch is one more at each change of owner, and of two owners the
//! one with the higher epoch has the session.

use tidegate_core::time::Millis;

use crate::{identity::InstanceId, seal::SealedName};

/// The largest state of a session that is kept.
const STATE_MAX: usize = 1 << 20;
/// The longest url or name of an owner.
const TEXT_MAX: usize = 1024;
/// The layout's version.
const LAYOUT: u8 = 1;

/// A session as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Who serves it; `None` after its owner let it go.
    pub owner: Option<Owner>,
    /// How often the owner has changed.
    pub epoch: u64,
    /// What the next owner needs to go on.
    pub state: Vec<u8>,
}

/// The owner of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Which run of which replica.
    pub instance: InstanceId,
    /// How it is reached, if it can be.
    pub peer_url: Option<String>,
    /// Its name, for people.
    pub replica: String,
}

/// What became of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The record.
    Found(SessionRecord),
    /// There is none that can be read.
    Absent(Absence),
    /// The store did not say.
    Away(AwayReason),
}

/// What is known of a session without a record that can be read. What follows from it is for the
/// MCP side to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absence {
    /// The store says that the session has ended.
    pub is_ended: bool,
    /// It has a record that does not open.
    pub is_sealed: bool,
    /// How long ago the session was opened, if its id says so.
    pub opened_ago: Option<Millis>,
    /// How long ago the store was found to have lost its data, if it was.
    pub lost_ago: Option<Millis>,
}

/// What became of an attempt to take a session over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// This replica owns it.
    Won,
    /// Somebody was quicker: this is the record now.
    Lost(SessionRecord),
    /// There is no record any more that can be read.
    Missing,
    /// The store did not say.
    Away(AwayReason),
}

/// Why the store gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AwayReason {
    /// It is known to be away: nobody asked it.
    KnownAway,
    /// It did not answer in time, or with an error.
    Unreachable,
}

impl AwayReason {
    /// The word used in logs and answers.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::KnownAway => "store_away",
            Self::Unreachable => "store_unreachable",
        }
    }
}

/// What the store knows of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Its heartbeat is there.
    pub has_heartbeat: bool,
    /// For how long this replica's own heartbeat has stood, and so the store was up.
    pub store_up_for: Option<Millis>,
}

/// The name of a session in the store and in events.
pub type SessionName = SealedName;

/// What was told of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A replica took it over.
    Claimed {
        /// Which session.
        name: SessionName,
        /// The epoch from now on.
        epoch: u64,
        /// Who has it.
        by: InstanceId,
    },
    /// Its owner let it go.
    Released {
        /// Which session.
        name: SessionName,
        /// The epoch from now on.
        epoch: u64,
        /// Who had it.
        by: InstanceId,
    },
}

/// What this replica hears of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionHeard {
    /// Something was told, or was found out when a record was refused.
    Event(SessionEvent),
    /// Something may have been told and not heard, or the store may have lost its records: what is
    /// here is to be written again. A record that belongs to somebody else by then is refused.
    Anew,
}

impl SessionRecord {
    /// As bytes, without the epoch, which stands beside them; `None` if it is too large to keep.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = vec![LAYOUT, u8::from(self.owner.is_some())];
        if let Some(owner) = &self.owner {
            out.extend_from_slice(&owner.instance.0.to_be_bytes());
            out.push(u8::from(owner.peer_url.is_some()));
            for text in [owner.peer_url.as_deref().unwrap_or_default(), &owner.replica] {
                let length = u16::try_from(text.len()).ok().filter(|_| text.len() <= TEXT_MAX)?;
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
        out.extend_from_slice(&self.state);
        (self.state.len() <= STATE_MAX).then_some(out)
    }

    /// From those bytes.
    pub(crate) fn decode(epoch: u64, bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[LAYOUT])?;
        let (&has_owner, mut rest) = rest.split_first()?;
        let owner = match has_owner {
            0 => None,
            1 => {
                let (instance, after) = rest.split_first_chunk::<16>()?;
                let (&has_url, after) = after.split_first()?;
                rest = after;
                let (url, replica) = (text(&mut rest)?, text(&mut rest)?);
                let peer_url = match has_url {
                    0 if url.is_empty() => None,
                    1 => Some(url),
                    _ => return None,
                };
                let instance = InstanceId(u128::from_be_bytes(*instance));
                Some(Owner { instance, peer_url, replica })
            }
            _ => return None,
        };
        (rest.len() <= STATE_MAX).then(|| Self { owner, epoch, state: rest.to_vec() })
    }
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let (length, after) = rest.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (text, after) = after.split_at_checked(length).filter(|_| length <= TEXT_MAX)?;
    *rest = after;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            owner in proptest::option::of(
                (any::<u128>(), proptest::option::of(".{0,40}"), ".{0,40}")
            ),
            epoch in any::<u64>(),
            state in any::<Vec<u8>>(),
        ) {
            let owner = owner.map(|(instance, peer_url, replica)| Owner {
                instance: InstanceId(instance),
                peer_url,
                replica,
            });
            let record = SessionRecord { owner, epoch, state };
            let bytes = record.encode().expect("small enough");
            prop_assert_eq!(SessionRecord::decode(epoch, &bytes), Some(record));
        }

        #[test]
        fn arbitrary_bytes_are_a_record_only_if_they_are_written_so(bytes in any::<Vec<u8>>()) {
            if let Some(record) = SessionRecord::decode(7, &bytes) {
                prop_assert_eq!(record.encode(), Some(bytes));
            }
        }
    }
}
