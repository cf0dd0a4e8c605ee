//! Verdicts: why each candidate would be chosen, skipped or held, as data.
//!
//! Explaining touches no state: no permit is taken, no cursor moves, no request is counted, no
//! pin is set. It runs the same reading and the same `select` as a real choice.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    backend::Backend,
    breaker::State,
    choice::{ChoiceInput, PinUse, lowest_rank, select},
    held_state::StateKind,
    holder,
    mark::{ActiveMark, MarkReason},
    pins::Pins,
    plan::RequestSpec,
    rank::Rank,
    read::Read,
    route::{Ability, Barred, Candidate, Needs, Route},
    settings::Membership,
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

/// What stands against a candidate, and when that ends. A switch without an end ends by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// Switched off in the file.
    Inactive,
    /// Its provider's key cannot be resolved.
    Unconfigured,
    /// Switched off by an operator.
    SwitchedOff(ActiveMark),
    /// It cannot do what the request needs.
    Lacks(Ability),
    /// Its own breaker.
    Breaker {
        /// Open, or half-open with every slot taken.
        state: State,
        /// When an attempt can pass again at the earliest.
        free_from: Now,
    },
    /// Its endpoint's breaker.
    Endpoint {
        /// Open, or half-open with every slot taken.
        state: State,
        /// When an attempt can pass again at the earliest.
        free_from: Now,
    },
    /// A window on one of its keys.
    Window(ActiveMark),
    /// An exclusion of one of its keys, or of itself.
    Exclusion(ActiveMark),
    /// The route has made as many attempts past its breaker or exclusion as its limit allows.
    LastResortLimit {
        /// When the next one may be made; [`Now::NEVER`] if the limit has no refill.
        free_from: Now,
    },
}

/// What a backend itself has against it, routes aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The state of its own breaker.
    pub state: State,
    /// Everything that stands against it.
    pub obstacles: Vec<Obstacle>,
}

impl Obstacle {
    /// The weight of what stands against a backend whatever its health: more than a rank can be.
    const BARRED: u8 = 8;

    /// How heavy it is: the weights of a [`Rank`], and more for what no choice relaxes.
    #[must_use]
    pub const fn weight(&self) -> u8 {
        match self {
            Self::Window(_) => Rank::WINDOW,
            Self::Breaker { .. } | Self::Endpoint { .. } => Rank::UNAVAILABLE,
            Self::Exclusion(_) => Rank::EXCLUDED,
            Self::Inactive
            | Self::Unconfigured
            | Self::SwitchedOff(_)
            | Self::Lacks(_)
            | Self::LastResortLimit { .. } => Self::BARRED,
        }
    }

    /// The heaviest of several, the first of equals: what is named as *the* reason.
    pub fn heaviest<'a>(obstacles: impl Iterator<Item = &'a Self>) -> Option<&'a Self> {
        obstacles.reduce(|first, other| if other.weight() > first.weight() { other } else { first })
    }

    /// When it ends; `None` if only a change of the config or of the request ends it.
    #[must_use]
    pub const fn re_entry(&self) -> Option<Now> {
        match self {
            Self::Window(mark) | Self::Exclusion(mark) | Self::SwitchedOff(mark) => {
                Some(mark.until)
            }
            Self::Breaker { free_from, .. }
            | Self::Endpoint { free_from, .. }
            | Self::LastResortLimit { free_from } => Some(*free_from),
            Self::Inactive | Self::Unconfigured | Self::Lacks(_) => None,
        }
    }

    /// What stands against it, as a phrase after its name.
    #[must_use]
    pub const fn phrase(&self) -> &'static str {
        match self {
            Self::Inactive => "is switched off in the config",
            Self::Unconfigured => "has no usable key",
            Self::SwitchedOff(_) => "is drained",
            Self::Lacks(ability) => ability.lack(),
            Self::Breaker { state: State::Open, .. } => "has an open breaker",
            Self::Breaker { .. } => "has a trial under way",
            Self::Endpoint { state: State::Open, .. } => "cannot be reached",
            Self::Endpoint { .. } => "is being tried again",
            Self::Window(_) => "is rate limited",
            Self::Exclusion(ActiveMark { reason: MarkReason::ModelGone, .. }) => {
                "does not have its model"
            }
            Self::Exclusion(ActiveMark { reason: MarkReason::Exhausted, .. }) => {
                "has no quota left"
            }
            Self::Exclusion(_) => "refused its key",
            Self::LastResortLimit { .. } => "has reached the limit of last resorts",
        }
    }
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

/// Everything that stands against a candidate at `now`.
pub(crate) fn obstacles(candidate: &Candidate, now: Now, needs: &Needs) -> Vec<Obstacle> {
    match candidate.barred(now, needs) {
        Some(Barred::Inactive) => vec![Obstacle::Inactive],
        Some(Barred::Unconfigured) => vec![Obstacle::Unconfigured],
        Some(Barred::SwitchedOff(standing)) => vec![Obstacle::SwitchedOff(standing)],
        Some(Barred::Lacks(_)) => candidate.lacks(needs).map(Obstacle::Lacks).collect(),
        None => {
            let mut obstacles = health_obstacles(&candidate.backend, now);
            let free_from = candidate.last_resorts.free_from(now).unwrap_or(Now::NEVER);
            if candidate.backend.read(now).is_limited(now) && free_from > now {
                obstacles.push(Obstacle::LastResortLimit { free_from });
            }
            obstacles
        }
    }
}

/// What stands against a member of a route at `now`, whatever a choice made of it: material of the
/// record of a decision.
#[must_use]
pub fn obstacles_of(route: &Route, candidate: u16, now: Now, needs: &Needs) -> Vec<Obstacle> {
    route
        .candidates
        .get(usize::from(candidate))
        .map_or_else(Vec::new, |it| obstacles(it, now, needs))
}

/// Why a member of a route is no candidate for a request at any time under this config.
#[must_use]
pub fn bar_of(route: &Route, candidate: u16, needs: &Needs) -> Option<Obstacle> {
    let candidate = route.candidates.get(usize::from(candidate))?;
    match candidate.membership {
        Membership::Inactive => Some(Obstacle::Inactive),
        Membership::Unconfigured => Some(Obstacle::Unconfigured),
        Membership::Active => candidate.lacks(needs).next().map(Obstacle::Lacks),
    }
}

/// Everything that stands against a backend's health at `now`.
pub(crate) fn health_obstacles(backend: &Backend, now: Now) -> Vec<Obstacle> {
    let reading = backend.read(now);
    let mut obstacles = Vec::new();
    let own = reading.own;
    if !own.is_free(now) {
        obstacles.push(Obstacle::Breaker { state: own.state(now), free_from: own.free_from });
    }
    if let Some(endpoint) = reading.endpoint
        && !endpoint.is_free(now)
    {
        let (state, free_from) = (endpoint.state(now), endpoint.free_from);
        obstacles.push(Obstacle::Endpoint { state, free_from });
    }
    obstacles.extend(backend.health.exclusion.active(now).map(Obstacle::Exclusion));
    for key in &backend.keys {
        obstacles.extend(key.excluded(now).map(Obstacle::Exclusion));
        obstacles.extend(key.window.active(now).map(Obstacle::Window));
    }
    obstacles
}
