//! What a choice reads of each candidate, kept so that the choice can be replayed.
//!
//! A choice has two halves: reading every candidate without a lock, and a pure pick over what was
//! read (`tactic.rs`, `choice.rs`). There is no global order between backends to rely on, so the
//! record is not "the state at a time" but the reads themselves, each with the generation it saw.

use serde::{Deserialize, Serialize};

use crate::{
    backend::Backend,
    breaker::{Gate, State},
    cell::Words,
    latency::LatencyRead,
    rank::Rank,
    settings::Tactic,
    time::Now,
};

/// What was read of one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// Its index among the route's candidates.
    pub candidate: u16,
    /// Its tier.
    pub tier: u16,
    /// What stands against it.
    pub rank: Rank,
    /// Unavailable only because every slot of a half-open breaker is taken, and nothing else
    /// stands against it.
    pub is_full: bool,
    /// Only an attempt past its breaker could be made, or past an exclusion that this replica has
    /// evidence for: those are limited.
    pub is_limited: bool,
    /// The route's limit of such attempts is reached: it is skipped.
    pub is_over_limit: bool,
    /// Inside its promotion hold, or met by a conversation that stays where it is: no pin is drawn
    /// away to it.
    pub is_held: bool,
    /// The state of its own breaker.
    pub state: State,
    /// The generation of its own breaker.
    pub generation: u64,
    /// The generation of its endpoint's breaker.
    pub endpoint_generation: u64,
    /// Attempts in flight.
    pub in_flight: u32,
    /// Its share under the `weighted` tactic.
    pub weight: u32,
    /// What a new session of a fleet drew for it: replicas with the same view agree on it.
    pub lot: Option<u64>,
    /// Recent time to first content, where the tactic asks for it and it has any.
    pub latency: Option<LatencyRead>,
}

impl Read {
    pub(crate) fn of(
        backend: &Backend,
        now: Now,
        (candidate, tier, weight): (u16, u16, u32),
        tactic: Tactic,
    ) -> Self {
        let (reading, latency) = match tactic {
            // Gate and latency of one moment, by one read of the cell.
            Tactic::LeastLatency => {
                let Words { gate, latency } = backend.health.cell.read();
                (backend.read_with(now, gate), latency.read(now))
            }
            Tactic::Random | Tactic::RoundRobin | Tactic::Weighted | Tactic::LeastBusy => {
                (backend.read(now), None)
            }
        };
        let rank = reading.rank(now);
        let is_open = |gate: &Gate| gate.state(now) == State::Open;
        let any_open = is_open(&reading.own) || reading.endpoint.as_ref().is_some_and(is_open);
        Self {
            candidate,
            tier,
            rank,
            is_full: rank == Rank(Rank::UNAVAILABLE) && !any_open,
            is_limited: reading.is_limited(now),
            is_over_limit: false,
            is_held: !now.reached(reading.own.hold_until),
            state: reading.own.state(now),
            generation: reading.own.generation,
            endpoint_generation: reading.endpoint.map_or(0, |gate| gate.generation),
            in_flight: backend.in_flight(),
            weight,
            lot: None,
            latency,
        }
    }
}
