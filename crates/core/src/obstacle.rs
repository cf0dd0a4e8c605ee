//! What stands against a backend or a candidate, as data.
//!
//! A plan asks it to say when a request can come again, an explanation to say why a candidate is
//! skipped; both read the same state here. Nothing is changed by looking.

use serde::{Deserialize, Serialize};

use crate::{
    backend::Backend,
    breaker::State,
    mark::{ActiveMark, MarkReason},
    rank::Rank,
    route::{Ability, Barred, Candidate, Needs, Route},
    settings::Membership,
    time::Now,
};

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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// One ranking of obstacles: what bars, then an exclusion, a breaker, a window.
    #[test]
    fn the_heaviest_obstacle_is_named_and_the_first_of_equals() {
        let mark = |reason| ActiveMark { until: Now(5), reason };
        let window = Obstacle::Window(mark(MarkReason::RateLimited));
        let exclusion = Obstacle::Exclusion(mark(MarkReason::Exhausted));
        let other = Obstacle::Exclusion(mark(MarkReason::AuthRejected));
        let heaviest = |all: &[&Obstacle]| Obstacle::heaviest(all.iter().copied()).cloned();
        assert_eq!(heaviest(&[&window, &exclusion, &other]), Some(exclusion));
        assert_eq!(heaviest(&[&exclusion, &window, &Obstacle::Inactive]), Some(Obstacle::Inactive));
        assert_eq!(heaviest(&[]), None);
    }
}
