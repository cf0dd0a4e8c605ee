//! A copy of the health of everything, for `/v1/health`, `status`, dashboard and simulator.
//!
//! A snapshot is a copy: later events do not change it, and changing it changes nothing.
//! It holds names and references, never a secret (I13).

use serde::{Deserialize, Serialize};

use crate::{
    backend::{Backend, Endpoint, Key, TargetKey},
    breaker::{Gate, State},
    cell::{Cell, LastError},
    explain::Obstacle,
    mark::{ActiveMark, MarkReason},
    rank::Rank,
    time::Now,
};

/// The health of everything at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Now,
    /// Targets and MCP servers, in the order of the settings.
    pub backends: Vec<BackendSnapshot>,
    /// Providers' hosts.
    pub endpoints: Vec<EndpointSnapshot>,
    /// Credentials that something stands against.
    pub keys: Vec<KeySnapshot>,
}

/// The health of one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendSnapshot {
    /// `provider/model` or `mcp:NAME`.
    pub id: String,
    /// The worse of its own breaker's state and its endpoint's.
    pub state: State,
    /// No breaker is open, no window is active, no exclusion stands.
    pub healthy: bool,
    /// What stands against it, as choosing sees it.
    pub rank: Rank,
    /// Failures of its own since the last success.
    pub consecutive_failures: u32,
    /// What went wrong last, until a success.
    pub last_error: Option<LastError>,
    /// When an outcome of a call or a probe was last heard of.
    pub last_check: Option<Now>,
    /// The latest of its re-entry times; `None` when nothing stands against it.
    pub deadline: Option<Now>,
    /// Why it is not healthy: the reason of the largest weight.
    pub reason: Option<Reason>,
    /// Until when an operator has switched it off; it is asked for nothing meanwhile.
    pub switched_off: Option<ActiveMark>,
    /// The generation of its own breaker.
    pub generation: u64,
    /// Attempts in flight.
    pub in_flight: u32,
    /// When its own breaker last closed, unless it has opened since.
    pub closed_since: Option<Now>,
}

/// Why a backend is not healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A window or an exclusion.
    Mark(MarkReason),
    /// Its own breaker is open.
    BreakerOpen,
    /// An operator holds its breaker open.
    Held,
    /// Its endpoint's breaker is open.
    EndpointOpen,
}

impl Reason {
    /// The reason that an obstacle is; `None` for one that says nothing about health.
    fn of(obstacle: &Obstacle, is_held: impl FnOnce() -> bool) -> Option<Self> {
        match obstacle {
            Obstacle::Exclusion(mark) | Obstacle::Window(mark) => Some(Self::Mark(mark.reason)),
            Obstacle::Breaker { .. } if is_held() => Some(Self::Held),
            Obstacle::Breaker { .. } => Some(Self::BreakerOpen),
            Obstacle::Endpoint { .. } => Some(Self::EndpointOpen),
            Obstacle::Inactive
            | Obstacle::Unconfigured
            | Obstacle::SwitchedOff(_)
            | Obstacle::Lacks(_)
            | Obstacle::LastResortLimit { .. } => None,
        }
    }
}

fn is_held(backend: &Backend, now: Now) -> bool {
    backend.health.cell.with(|guarded| guarded.breaker.is_held(now))
}

/// The health of one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointSnapshot {
    /// The provider's name.
    pub id: String,
    /// Its breaker's state.
    pub state: State,
    /// Failures since it was last reached.
    pub consecutive_failures: u32,
    /// What went wrong last, until it was reached.
    pub last_error: Option<LastError>,
    /// When it was last heard of. (A healthy endpoint's successes are not written down.)
    pub last_check: Option<Now>,
    /// When its breaker is (or was) half-open.
    pub deadline: Option<Now>,
}

/// What stands against one credential.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeySnapshot {
    /// Its name.
    pub id: String,
    /// Until when, and why.
    pub exclusion: ActiveMark,
}

impl BackendSnapshot {
    pub(crate) fn of(backend: &Backend, now: Now) -> Self {
        let reading = backend.read(now);
        let (own, endpoint) = (reading.own, reading.endpoint);
        let endpoint_state = endpoint.map_or(State::Closed, |gate| gate.state(now));
        let state = own.state(now).max(endpoint_state);
        let exclusion = exclusion(backend, now);
        let window = window(backend, now).filter(|_| reading.is_in_window);
        let is_open = |gate: &Gate| gate.state(now) == State::Open;
        let opened = |gate: Gate| (State::Open, gate.free_from);
        let own_open = Some(own).filter(is_open).map(opened);
        let endpoint_open = endpoint.filter(is_open).map(opened);
        let obstacles = [
            exclusion.map(Obstacle::Exclusion),
            own_open.map(|(state, free_from)| Obstacle::Breaker { state, free_from }),
            endpoint_open.map(|(state, free_from)| Obstacle::Endpoint { state, free_from }),
            window.map(Obstacle::Window),
        ];
        let heaviest = Obstacle::heaviest(obstacles.iter().flatten());
        let reason = heaviest.and_then(|it| Reason::of(it, || is_held(backend, now)));
        let (host_error, host_check) = host_news(backend, endpoint_state);
        let breakers = [own.half_open_from, endpoint.and_then(|gate| gate.half_open_from)];
        let marks = [exclusion, window].map(|mark| mark.map(|it| it.until));
        let until = breakers.into_iter().chain(marks).flatten();
        let (consecutive_failures, last_error, last_check, closed_since) =
            backend.health.cell.with(|guarded| {
                let breaker = &guarded.breaker;
                (
                    breaker.consecutive_failures(),
                    guarded.last_error,
                    guarded.last_check,
                    breaker.closed_since(),
                )
            });
        Self {
            id: backend.id.to_string(),
            state,
            healthy: state != State::Open && !reading.is_in_window && !reading.is_excluded,
            rank: reading.rank(now),
            consecutive_failures,
            // What is wrong with the host is wrong with the target; the later error is the one.
            last_error: last_error.into_iter().chain(host_error).max_by_key(|error| error.at),
            last_check: last_check.max(host_check),
            deadline: until.filter(|until| !now.reached(*until)).max(),
            reason,
            switched_off: backend.health.off.active(now),
            generation: own.generation,
            in_flight: backend.in_flight(),
            closed_since,
        }
    }
}

/// The last error and check of a target's host, as far as they are news of the target: all while
/// the host's breaker speaks for it, otherwise what probes found. They ask for every target of the
/// host, while a call is news of the called one.
fn host_news(backend: &Backend, state: State) -> (Option<LastError>, Option<Now>) {
    let Some(endpoint) = &backend.endpoint else { return (None, None) };
    endpoint.cell.with(|guarded| match state {
        State::Closed => (guarded.last_error.filter(LastError::is_of_probe), guarded.last_probe),
        State::HalfOpen | State::Open => (guarded.last_error, guarded.last_check),
    })
}

/// The exclusion of the target as a whole: its own, else its keys' if all are excluded.
fn exclusion(backend: &Backend, now: Now) -> Option<ActiveMark> {
    let own = backend.health.exclusion.active(now);
    let keys: Option<Vec<ActiveMark>> = backend.keys.iter().map(|key| key.excluded(now)).collect();
    let first_back = keys.and_then(|keys| keys.into_iter().min_by_key(|mark| mark.until));
    own.into_iter().chain(first_back).max_by_key(|mark| mark.until)
}

/// The window that ends first: the target is inside one while all of its usable keys are, or, if
/// none is usable, all of them.
fn window(backend: &Backend, now: Now) -> Option<ActiveMark> {
    let is_usable = |key: &&TargetKey| key.excluded(now).is_none();
    let is_any_usable = backend.keys.iter().any(|key| is_usable(&key));
    let keys = backend.keys.iter().filter(|key| !is_any_usable || is_usable(key));
    keys.filter_map(|key| key.window.active(now)).min_by_key(|mark| mark.until)
}

impl EndpointSnapshot {
    pub(crate) fn of(endpoint: &Endpoint, now: Now) -> Self {
        let cell: &Cell = &endpoint.cell;
        cell.with(|guarded| Self {
            id: endpoint.id.to_string(),
            state: guarded.breaker.state(now),
            consecutive_failures: guarded.breaker.consecutive_failures(),
            last_error: guarded.last_error,
            last_check: guarded.last_check,
            deadline: guarded.breaker.deadline(),
        })
    }
}

impl KeySnapshot {
    pub(crate) fn of(key: &Key, now: Now) -> Option<Self> {
        let exclusion = key.exclusion.active(now)?;
        Some(Self { id: key.id.to_string(), exclusion })
    }
}
