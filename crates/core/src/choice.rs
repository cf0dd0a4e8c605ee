//! The choice itself: a pure function of what was read.
//!
//! In order: leave out what is over its limit of last resorts; keep only the lowest rank present;
//! another free key of the target just tried; a live
//! pin that is eligible; else the lowest-numbered tier and the tactic. `plan.rs` reads, calls
//! this, takes the permit of the picked one, and calls again if somebody else was faster;
//! `explain.rs` calls the same without taking anything; a replay calls it with recorded reads.

use serde::{Deserialize, Serialize};

use crate::{rank::Rank, read::Read, settings::Tactic, tactic};

/// What a choice depends on besides the reads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChoiceInput {
    /// The route's tactic.
    pub tactic: Tactic,
    /// The random draw.
    pub draw: u64,
    /// The candidate of the session's pin: `None` without a live one.
    pub pin: Option<u16>,
    /// The candidate whose next free key is due.
    pub next_key_of: Option<u16>,
}

/// What was chosen, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The position in the reads.
    pub index: usize,
    /// The rank at which it was chosen; above 0 the choice is *relaxed*.
    pub rank: Rank,
    /// What decided.
    pub by: SelectedBy,
    /// What becomes of the session's pin.
    pub pin: PinUse,
}

/// What decided a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectedBy {
    /// Another free key of the target just tried.
    NextKey,
    /// The session's pin.
    Pin,
    /// The tactic, inside the lowest-numbered tier.
    Tactic,
}

/// What becomes of the session's pin: why a session moves, or stays (I20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinUse {
    /// The session has no pin, or there is no session.
    None,
    /// Its time is over.
    Expired,
    /// It was followed.
    Honoured,
    /// It is kept, but all slots of its half-open target are taken: this request goes elsewhere.
    KeptWhileFull,
    /// It is kept, but its target is over the limit of last resorts: this request goes elsewhere.
    KeptOverLimit,
    /// Its target is not a candidate, or not among the best.
    Declined,
}

impl PinUse {
    /// Whether the session is pinned anew, to the target chosen now.
    #[must_use]
    pub const fn is_replaced(self) -> bool {
        matches!(self, Self::None | Self::Expired | Self::Declined)
    }

    /// Whether the pin stays although this request goes elsewhere.
    #[must_use]
    pub const fn is_kept_unused(self) -> bool {
        matches!(self, Self::KeptWhileFull | Self::KeptOverLimit)
    }
}

/// The lowest rank present.
pub(crate) fn lowest_rank(reads: &[Read]) -> Option<Rank> {
    reads.iter().map(|read| read.rank).min()
}

/// Chooses among what was read; `None` if there is nothing. `cursor` tells a tier's cursor.
#[must_use]
pub fn select(
    reads: &[Read],
    input: &ChoiceInput,
    cursor: impl Fn(u16) -> u32,
) -> Option<Selection> {
    // The least pair is the lowest rank present and, of that rank, the lowest-numbered tier.
    let usable = reads.iter().filter(|read| !read.is_over_limit);
    let (rank, tier) = usable.map(|read| (read.rank, read.tier)).min()?;
    let kept = |read: &Read| read.rank == rank && !read.is_over_limit;
    let position = |candidate: u16| reads.iter().position(|read| read.candidate == candidate);

    let next_key = input.next_key_of.and_then(position);
    if let Some(index) = next_key.filter(|&index| kept(&reads[index]) && rank.is_clear()) {
        return Some(Selection { index, rank, by: SelectedBy::NextKey, pin: PinUse::None });
    }

    let mut pin = PinUse::None;
    if let Some(candidate) = input.pin {
        let index = position(candidate);
        pin = pin_use(reads, rank, index);
        if let (PinUse::Honoured, Some(index)) = (pin, index) {
            return Some(Selection { index, rank, by: SelectedBy::Pin, pin });
        }
    }

    let is_peer = |read: &Read| kept(read) && read.tier == tier;
    let index = tactic::pick(input.tactic, reads, is_peer, input.draw, cursor(tier))?;
    Some(Selection { index, rank, by: SelectedBy::Tactic, pin })
}

/// A pin is followed when its target is among the kept ones and every kept target of a
/// lower-numbered tier is in its promotion hold. If only the limit of last resorts keeps it from
/// being followed, it stays.
fn pin_use(reads: &[Read], rank: Rank, index: Option<usize>) -> PinUse {
    let Some(pinned) = index.map(|index| &reads[index]) else {
        return PinUse::Declined;
    };
    let is_limited = pinned.is_over_limit;
    let rank = if is_limited { lowest_rank(reads).unwrap_or(rank) } else { rank };
    let is_drawn_up = reads.iter().any(|read| {
        let is_kept = read.rank == rank && (is_limited || !read.is_over_limit);
        is_kept && read.tier < pinned.tier && !read.is_held
    });
    if pinned.rank == rank && !is_drawn_up {
        if is_limited { PinUse::KeptOverLimit } else { PinUse::Honoured }
    } else if pinned.is_full {
        PinUse::KeptWhileFull
    } else {
        PinUse::Declined
    }
}
