//! Which provider holds the state that a request refers to.
//!
//! Rules kept here, first found:
//! - The provider that gave out the id, if this process saw it do so. The ids are kept as keyed
//!   hashes beside the caller's name, in a bounded table.
//! - The provider that the session is pinned to.
//! - The first provider of the route, in tier order, that takes the request in the format in which
//!   the state exists.
//!
//! State that a request cannot do without restricts the request to the provider that holds it.
//! Sealed reasoning only gives that provider's targets precedence, as long as one of them has no
//! more against it than any other target.

use std::sync::Arc;

use crate::{
    backend::Backend,
    choice::lowest_rank,
    held_state::{Holder, StateKind},
    names::PinKey,
    pins::{Pin, Pins},
    read::Read,
    route::{Needs, Route},
    settings::{KeyFingerprint, Membership},
    time::{Millis, Now},
};

/// As long as the vendors keep what they give out ids for.
const KEPT_FOR: Millis = Millis::minutes(30 * 24 * 60);

/// What identifies a request's state and session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateQuestion<'a> {
    pub(crate) caller: &'a str,
    pub(crate) session: &'a str,
    /// The id of the state; empty if it has none.
    pub(crate) state_id: &'a str,
}

/// The tables that know something of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateTables<'a> {
    pub(crate) pins: &'a Pins,
    pub(crate) states: &'a Pins,
    pub(crate) backends: &'a [Arc<Backend>],
}

/// The needs with the holder filled in, and the key that the state belongs to, where known.
pub(crate) fn resolve(
    route: &Route,
    now: Now,
    needs: Needs,
    tables: StateTables<'_>,
    question: StateQuestion<'_>,
) -> (Needs, Option<KeyFingerprint>) {
    let Some(mut state) = needs.state else { return (needs, None) };
    if state.holder == Some(Holder::Gone) {
        // The request itself shows that nobody has it.
        return (needs, None);
    }
    let StateQuestion { caller, session, state_id } = question;
    let known = (!state_id.is_empty() && state.kind.is_required())
        .then(|| tables.states.get(key_of(tables.states, caller, state_id)))
        .flatten()
        .filter(|pin| pin.holds(now));
    let endpoint_of = |pin: Pin| {
        let backend = tables.backends.iter().find(|it| it.number == pin.backend);
        backend.and_then(|it| it.endpoint_number)
    };
    let has_session = route.affinity_ttl > Millis::ZERO && !session.is_empty();
    let pinned = || {
        let pin = has_session.then(|| tables.pins.get(route.pin_key(tables.pins, caller, session)));
        let pin = pin.flatten().filter(|pin| pin.holds(now))?;
        let mut members = route.candidates.iter();
        let backend = &members.find(|it| it.backend.number == pin.backend)?.backend;
        needs.could_hold(&backend.abilities).then_some(backend.endpoint_number?)
    };
    let first = || {
        let mut members = route.candidates.iter().filter(|it| it.membership == Membership::Active);
        members.find(|it| needs.could_hold(&it.backend.abilities))?.backend.endpoint_number
    };
    state.holder = match known {
        Some(pin) => Some(endpoint_of(pin).map_or(Holder::Gone, Holder::Endpoint)),
        None if state.kind == StateKind::SealedReasoning => pinned().map(Holder::Endpoint),
        None => pinned().or_else(first).map(Holder::Endpoint),
    };
    let key = known.and_then(|pin| pin.key);
    (Needs { state: Some(state), ..needs }, key)
}

/// Remembers who holds the state of an id.
pub(crate) fn keep(
    states: &Pins,
    now: Now,
    (caller, state_id): (&str, &str),
    backend: u32,
    key: Option<KeyFingerprint>,
) {
    let pin = Pin::new(backend, key, now.after(KEPT_FOR));
    states.set(now, key_of(states, caller, state_id), pin);
}

fn key_of(states: &Pins, caller: &str, state_id: &str) -> PinKey {
    states.key("", caller, state_id)
}

/// Leaves only the reads of those who can read the sealed reasoning that the request brings, if one
/// of them has no more against it than any other.
pub(crate) fn prefer_sealer(route: &Route, needs: &Needs, reads: &mut Vec<Read>) {
    let sealed = needs.state.filter(|state| !state.kind.is_required());
    let (Some(state), Some(lowest)) = (sealed, lowest_rank(reads)) else { return };
    let can_read = |read: &Read| {
        let backend = route.backend(read.candidate);
        match state.holder {
            Some(Holder::Endpoint(number)) => backend.endpoint_number == Some(number),
            Some(Holder::Gone) => false,
            None => needs.could_hold(&backend.abilities),
        }
    };
    if reads.iter().any(|read| read.rank == lowest && can_read(read)) {
        reads.retain(can_read);
    }
}
