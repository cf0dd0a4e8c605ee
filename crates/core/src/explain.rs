//! Verdicts: why each candidate would be chosen, skipped or held, as data.
//!
//! Explaining touches no state: no permit is taken, no cursor moves, no request is counted, no
//! pin is set. It runs the same reading and the same `select` as a real choice.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::obstacle::{Condition, Obstacle, bar_of, obstacles_of};
use crate::{
    choice::{ChoiceInput, PinUse, lowest_rank, select},
    held_state::StateKind,
    holder,
    obstacle::obstacles,
    pins::Pins,
    plan::RequestSpec,
    rank::Rank,
    read::Read,
    route::{Candidate, Needs, Route},
    time::{Millis, Now},
};

/// What would happen to a request, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// A verdict for every member of the route, in tier order.
    pub candidates: Vec<CandidateVerdict>,
    /// What would become of the session's pin.
    pub pin: PinUse,
    /// The lowest rank present; `None` without candidates.
    pub rank: Option<Rank>,
    /// What keeps the request at one provider, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateVerdict>,
}

/// What keeps a request at one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateVerdict {
    /// What the request refers to.
    pub kind: StateKind,
    /// The provider that holds it; `None` if nobody of the route does.
    pub provider: Option<Arc<str>>,
    /// Whether no other provider may be asked. Otherwise its targets only come first.
    pub is_required: bool,
}

impl StateVerdict {
    /// Of what a request needs on a route.
    #[must_use]
    pub fn of(route: &Route, needs: &Needs) -> Option<Self> {
        let state = needs.state?;
        let provider = state.holder.and_then(|holder| route.holder_name(holder));
        let is_required = state.kind.is_required();
        Some(Self { kind: state.kind, provider: provider.cloned(), is_required })
    }
}

/// The verdict on one member of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateVerdict {
    /// Its name.
    pub backend: Arc<str>,
    /// Its tier.
    pub tier: u16,
    /// What would become of it.
    pub verdict: Verdict,
}

/// Why a candidate was chosen, skipped or held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It would be asked.
    Chosen {
        /// Without a permit, because nothing is available.
        is_last_resort: bool,
    },
    /// It could be asked, but a peer or a lower-numbered tier comes first.
    Held,
    /// Something stands against it.
    Skipped(Vec<Obstacle>),
}

pub(crate) fn explain(
    route: &Route,
    pins: &Pins,
    now: Now,
    spec: &RequestSpec<'_>,
    draw: u64,
) -> Explanation {
    let tactic = route.tactic;
    let stays_at = spec.stays_at.and_then(|id| route.position(id));
    let has_affinity = route.affinity_ttl > Millis::ZERO && !spec.session.is_empty();
    let session = has_affinity.then(|| route.pin_key(pins, spec.caller, spec.session));
    let pin = session.and_then(|session| pins.get(session)).filter(|pin| pin.holds(now));
    let stays = pin.is_some_and(|pin| !now.reached(pin.stays_until));
    let lots = session.and_then(|session| route.lots(session));
    let mut reads: Vec<Read> = route
        .candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.barred(now, &spec.needs).is_none())
        .map(|(index, candidate)| {
            let mut read = candidate.read(now, index, tactic);
            read.is_held |= stays_at.is_some() || stays;
            read.lot = lots.map(|lots| lots.of(candidate.backend.lot_name()));
            read
        })
        .collect();
    holder::prefer_sealer(route, &spec.needs, &mut reads);
    let pin = pin
        .and_then(|pin| route.candidates.iter().position(|it| it.backend.number == pin.backend))
        .map(|index| index as u16)
        .or(stays_at);
    let input = ChoiceInput { tactic, draw, pin, next_key_of: None };
    let selection = select(&reads, &input, |tier| route.cursor(tier));
    let chosen = selection.map(|selection| reads[selection.index].candidate);
    let rank = lowest_rank(&reads);
    let kept = selection.map(|selection| selection.rank);
    let verdict = |index: usize, candidate: &Candidate| {
        let read = reads.iter().find(|read| usize::from(read.candidate) == index);
        match read {
            Some(read) if Some(read.candidate) == chosen => {
                Verdict::Chosen { is_last_resort: read.rank.is_last_resort() }
            }
            Some(read) if Some(read.rank) == kept && !read.is_over_limit => Verdict::Held,
            _ => match obstacles(candidate, now, &spec.needs) {
                // Nothing stands against it: those who can read the request's reasoning go first.
                obstacles if obstacles.is_empty() => Verdict::Held,
                obstacles => Verdict::Skipped(obstacles),
            },
        }
    };
    let candidates = route
        .candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| CandidateVerdict {
            backend: Arc::clone(&candidate.backend.id),
            tier: candidate.tier,
            verdict: verdict(index, candidate),
        })
        .collect();
    let pin = selection.map_or(PinUse::None, |it| it.pin);
    Explanation { candidates, pin, rank, state: StateVerdict::of(route, &spec.needs) }
}
