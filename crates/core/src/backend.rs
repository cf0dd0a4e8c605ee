//! A backend: whatever has health. A target, or an MCP server.
//!
//! It joins what can stand against it: its own breaker, its endpoint's breaker (shared with the
//! provider's other targets), a window per key, exclusions of its keys (shared likewise) and of
//! itself, and of the target with one of its keys. An MCP server is a backend without endpoint and
//! with one nameless key.
//!
//! Rules kept here:
//! - A target is *available* when its own breaker and its endpoint's each let an attempt pass; an
//!   attempt takes the passes of both or of neither.
//! - A target is *excluded* when every key is, or it is itself. It is *inside a window* when each
//!   key that is not excluded has one (if all are excluded: when each of them has one).
//! - A session's own key is used while it is free. Otherwise free keys are used in turn; if none is
//!   free, the one whose re-entry comes first.
//!
//! What an outcome does to all this is in `report.rs`; who is asked is the plan's business.

use std::sync::Arc;

use crate::{
    breaker::{Breaker, Gate},
    cell::Cell,
    hint::Stamp,
    mark::{ActiveMark, Exclusion, Mark},
    names::{FleetName, FleetSettings},
    probe::SharedContact,
    rank::Rank,
    settings::{Abilities, BackendSettings, EndpointSettings, KeyFingerprint, KeySettings},
    sync::{AtomicU32, Mutex, Ordering},
    time::{Millis, Now},
};

/// A provider's host.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: Arc<str>,
    pub(crate) identity: String,
    pub(crate) cell: Cell,
    pub(crate) contact: SharedContact,
    /// Behind a lock because the endpoint outlives a reload that names it anew.
    pub(crate) fleet: Mutex<FleetName>,
}

impl Endpoint {
    pub(crate) fn new(settings: &EndpointSettings, fleet: FleetName, seed: u64) -> Self {
        let breaker = Breaker::new(streak_only(settings), seed);
        Self {
            id: settings.id.as_str().into(),
            identity: settings.identity.clone(),
            cell: Cell::new(breaker),
            contact: SharedContact::default(),
            fleet: Mutex::new(fleet),
        }
    }
}

/// An endpoint knows only reachability: the streak rule, never the ratio.
pub(crate) fn streak_only(settings: &EndpointSettings) -> crate::settings::HealthSettings {
    crate::settings::HealthSettings { failure_ratio: 0.0, ..settings.health.clone() }
}

/// A credential: its name and what stands against it, never its value.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) id: Arc<str>,
    pub(crate) identity: String,
    pub(crate) fingerprint: KeyFingerprint,
    /// Shared with the same key after a reload, which may have given it another name.
    pub(crate) exclusion: Arc<Exclusion>,
    pub(crate) fleet: FleetName,
}

impl Key {
    pub(crate) fn new(
        settings: &KeySettings,
        exclusion: Arc<Exclusion>,
        fleet: Option<&FleetSettings>,
    ) -> Self {
        Self {
            id: settings.id.as_str().into(),
            identity: settings.identity.clone(),
            fingerprint: settings.fingerprint,
            exclusion,
            fleet: FleetName::new(&settings.fleet_names, fleet),
        }
    }

    /// What a session's choice among keys knows it by.
    pub(crate) fn lot_name(&self) -> &[u8] {
        self.fleet.all().first().map_or(self.id.as_bytes(), |name| &name.0)
    }
}

/// A key as one target uses it.
#[derive(Debug)]
pub(crate) struct TargetKey {
    pub(crate) key: Arc<Key>,
    /// The key's own, one step nearer: every choice reads it.
    pub(crate) exclusion: Arc<Exclusion>,
    /// The exclusion of this (target, key) alone: the key may be good for other models.
    pub(crate) refusal: Arc<Exclusion>,
    /// A window belongs to a (target, key).
    pub(crate) window: Arc<Mark>,
}

impl TargetKey {
    pub(crate) fn is_free(&self, now: Now) -> bool {
        self.excluded(now).is_none() && self.window.active(now).is_none()
    }

    /// The exclusion of the key, everywhere or at this target: the one that ends last.
    pub(crate) fn excluded(&self, now: Now) -> Option<ActiveMark> {
        let (everywhere, here) = (self.exclusion.active(now), self.refusal.active(now));
        everywhere.into_iter().chain(here).max_by_key(|standing| standing.until)
    }

    /// Whether it is excluded on evidence of this replica's own.
    pub(crate) fn is_excluded_by_own(&self, now: Now) -> bool {
        self.exclusion.is_own(now) || self.refusal.is_own(now)
    }

    /// When nothing stands against it any more.
    pub(crate) fn free_from(&self, now: Now) -> Now {
        let until = |mark: Option<ActiveMark>| mark.map_or(now, |standing| standing.until);
        until(self.excluded(now)).max(until(self.window.active(now)))
    }
}

/// The part of a backend that outlives a reload.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) cell: Cell,
    pub(crate) exclusion: Exclusion,
    /// An operator's word: not a candidate until then. Written with `actions` held.
    pub(crate) off: Mark,
    pub(crate) actions: Mutex<Actions>,
    pub(crate) in_flight: AtomicU32,
    /// Whose turn it is among the keys.
    pub(crate) next_key: AtomicU32,
    pub(crate) contact: SharedContact,
}

/// What operators did to a backend, here or at another replica: the newest of each.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    pub(crate) drain: Stamp,
    pub(crate) hold: Stamp,
    pub(crate) reset: Stamp,
    /// When it was last reset: what was told before is overtaken.
    pub(crate) reset_at: Option<Now>,
}

/// A target or an MCP server.
#[derive(Debug)]
pub struct Backend {
    pub(crate) id: Arc<str>,
    pub(crate) number: u32,
    pub(crate) identity: String,
    pub(crate) health: Arc<Health>,
    pub(crate) endpoint: Option<Arc<Endpoint>>,
    /// Its place among the endpoints of the settings.
    pub(crate) endpoint_number: Option<u32>,
    pub(crate) keys: Vec<TargetKey>,
    pub(crate) abilities: Abilities,
    pub(crate) windows: Windows,
    pub(crate) leases: Leases,
    pub(crate) promotion_hold: Millis,
    pub(crate) fleet: FleetName,
}

/// How long the marks of one backend stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    pub(crate) rate_limit: Millis,
    pub(crate) auth: Millis,
    pub(crate) exhausted: Millis,
    pub(crate) model_gone: Millis,
}

/// The longest an attempt may take to its first content, or to its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leases {
    pub(crate) first_content: Millis,
    pub(crate) answer: Millis,
}

/// What was read of a backend, all at one moment.
pub(crate) struct Reading {
    pub(crate) own: Gate,
    pub(crate) endpoint: Option<Gate>,
    pub(crate) is_in_window: bool,
    pub(crate) is_excluded: bool,
    /// Whether it would be excluded on evidence of this replica alone.
    pub(crate) is_excluded_by_own: bool,
}

impl Reading {
    pub(crate) fn is_available(&self, now: Now) -> bool {
        self.own.is_free(now) && self.endpoint.is_none_or(|endpoint| endpoint.is_free(now))
    }

    /// Whether attempts are limited: those past a breaker, and past an exclusion that this replica
    /// has evidence for. What another replica tells never takes the last candidate away (I22).
    pub(crate) fn is_limited(&self, now: Now) -> bool {
        self.is_excluded_by_own || !self.is_available(now)
    }

    pub(crate) fn rank(&self, now: Now) -> Rank {
        let bit = |stands: bool, weight: u8| if stands { weight } else { 0 };
        Rank(
            bit(self.is_in_window, Rank::WINDOW)
                | bit(!self.is_available(now), Rank::UNAVAILABLE)
                | bit(self.is_excluded, Rank::EXCLUDED),
        )
    }
}

impl Backend {
    pub(crate) fn new(
        settings: &BackendSettings,
        number: u32,
        seed: u64,
        endpoint: Option<Arc<Endpoint>>,
        keys: Vec<TargetKey>,
        fleet: Option<&FleetSettings>,
    ) -> Self {
        let health = Health {
            cell: Cell::new(Breaker::new(settings.health.clone(), seed)),
            exclusion: Exclusion::default(),
            off: Mark::default(),
            actions: Mutex::new(Actions::default()),
            in_flight: AtomicU32::new(0),
            next_key: AtomicU32::new(0),
            contact: SharedContact::default(),
        };
        Self::with_health(settings, number, Arc::new(health), endpoint, keys, fleet)
    }

    pub(crate) fn with_health(
        settings: &BackendSettings,
        number: u32,
        health: Arc<Health>,
        endpoint: Option<Arc<Endpoint>>,
        keys: Vec<TargetKey>,
        fleet: Option<&FleetSettings>,
    ) -> Self {
        Self {
            id: settings.id.as_str().into(),
            number,
            identity: settings.identity.clone(),
            health,
            endpoint,
            endpoint_number: settings.endpoint.map(|number| number as u32),
            keys,
            abilities: settings.abilities,
            windows: Windows {
                rate_limit: settings.health.rate_limit_window,
                auth: settings.health.auth_window,
                exhausted: settings.health.exhausted_window,
                model_gone: settings.health.model_gone_window,
            },
            leases: Leases {
                first_content: settings.first_content_within,
                answer: settings.answer_within,
            },
            promotion_hold: settings.health.promotion_hold,
            fleet: FleetName::new(&settings.fleet_names, fleet),
        }
    }

    /// Its name: `provider/model` or `mcp:NAME`.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// How many keys it has.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Reads everything that can stand against it, without a lock.
    pub(crate) fn read(&self, now: Now) -> Reading {
        self.read_with(now, self.health.cell.gate())
    }

    /// The same, where its own gate has been read already.
    pub(crate) fn read_with(&self, now: Now, own: Gate) -> Reading {
        let (mut all_excluded, mut all_in_window, mut usable_in_window) = (true, true, true);
        let mut all_by_own = true;
        for key in &self.keys {
            let is_excluded = key.excluded(now).is_some();
            let is_in_window = key.window.active(now).is_some();
            all_excluded &= is_excluded;
            all_by_own &= is_excluded && key.is_excluded_by_own(now);
            all_in_window &= is_in_window;
            usable_in_window &= is_excluded || is_in_window;
        }
        Reading {
            own,
            endpoint: self.endpoint.as_ref().map(|endpoint| endpoint.cell.gate()),
            is_in_window: if all_excluded { all_in_window } else { usable_in_window },
            is_excluded: all_excluded || self.health.exclusion.active(now).is_some(),
            is_excluded_by_own: all_by_own || self.health.exclusion.is_own(now),
        }
    }

    /// Where a probe of it looks: its endpoint's contact with traffic, else its own.
    pub(crate) fn contact(&self) -> &SharedContact {
        self.endpoint.as_ref().map_or(&self.health.contact, |endpoint| &endpoint.contact)
    }

    /// How long such requests usually take here; `None` without samples.
    pub(crate) fn usual_time(&self, is_stream: bool) -> Option<Millis> {
        self.health.cell.usual_time(is_stream)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.health.in_flight.load(Ordering::Relaxed)
    }

    /// The key to use next, among those `may_use` admits: the free ones in turn, else the one
    /// whose re-entry comes first.
    pub(crate) fn pick_key(&self, now: Now, may_use: impl Fn(usize) -> bool) -> Option<usize> {
        let count = self.keys.len();
        if count == 1 {
            return may_use(0).then_some(0);
        }
        let start = self.health.next_key.load(Ordering::Relaxed) as usize;
        let in_turn = (0..count).map(|step| (start + step) % count);
        if let Some(free) =
            in_turn.into_iter().find(|&key| may_use(key) && self.keys[key].is_free(now))
        {
            self.health.next_key.store((free as u32 + 1) % count as u32, Ordering::Relaxed);
            return Some(free);
        }
        (0..count).filter(|&key| may_use(key)).min_by_key(|&key| self.keys[key].free_from(now))
    }

    /// The free key with the greatest lot, else the one whose re-entry comes first: what replicas
    /// with the same view agree on.
    pub(crate) fn pick_key_by_lot(
        &self,
        now: Now,
        may_use: impl Fn(usize) -> bool,
        lot: impl Fn(&Key) -> u64,
    ) -> Option<usize> {
        let free = (0..self.keys.len()).filter(|&key| may_use(key) && self.keys[key].is_free(now));
        let picked = free.max_by_key(|&key| lot(&self.keys[key].key));
        picked.or_else(|| self.pick_key(now, may_use))
    }

    /// What a session's choice among targets knows it by.
    pub(crate) fn lot_name(&self) -> &[u8] {
        self.fleet.all().first().map_or(self.id.as_bytes(), |name| &name.0)
    }

    /// The free key with this fingerprint, among those `may_use` admits.
    pub(crate) fn free_key(
        &self,
        now: Now,
        fingerprint: KeyFingerprint,
        may_use: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let is_it = |key: &TargetKey| key.key.fingerprint == fingerprint && key.is_free(now);
        (0..self.keys.len()).find(|&key| may_use(key) && is_it(&self.keys[key]))
    }

    /// The moment from which nothing stands against it, as far as is known now.
    pub(crate) fn clear_from(&self, now: Now) -> Now {
        let reading = self.read(now);
        let endpoint = reading.endpoint.map_or(now, |gate| gate.free_from);
        let exclusion = self.health.exclusion.active(now).map_or(now, |it| it.until);
        let key = self.keys.iter().map(|key| key.free_from(now)).min().unwrap_or(now);
        reading.own.free_from.max(endpoint).max(exclusion).max(key).max(now)
    }

    pub(crate) fn has_free_key(&self, now: Now, may_use: impl Fn(usize) -> bool) -> bool {
        (0..self.keys.len()).any(|key| may_use(key) && self.keys[key].is_free(now))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::settings::HealthSettings;

    /// A target and its endpoint, whose breakers open at the start of time and are half-open from
    /// `HALF_OPEN` on, each with one slot.
    fn both_half_open() -> (Arc<Backend>, Arc<Endpoint>) {
        let health = HealthSettings {
            failure_threshold: 1,
            open_for: Millis(HALF_OPEN.0),
            trial_permits: 1,
            ..HealthSettings::default()
        };
        let endpoint = EndpointSettings {
            id: "p".to_owned(),
            identity: "p".to_owned(),
            health: health.clone(),
            fleet_names: Vec::new(),
        };
        let endpoint = Arc::new(Endpoint::new(&endpoint, FleetName::default(), 0));
        let settings = BackendSettings {
            id: "p/m".to_owned(),
            identity: "p m".to_owned(),
            endpoint: Some(0),
            keys: Vec::new(),
            health,
            first_content_within: Millis::seconds(1),
            answer_within: Millis::seconds(1),
            abilities: Abilities::default(),
            fleet_names: Vec::new(),
        };
        let backend = Backend::new(&settings, 0, 0, Some(Arc::clone(&endpoint)), Vec::new(), None);
        for cell in [&backend.health.cell, &endpoint.cell] {
            cell.with(|guarded| {
                let pass = guarded.breaker.take(Now::ZERO, Now(9)).expect("it is closed");
                guarded.breaker.failure(Now::ZERO, pass, false);
            });
        }
        (Arc::new(backend), endpoint)
    }

    const HALF_OPEN: Now = Now(1_000);

    #[test]
    fn a_target_keeps_no_slot_when_its_endpoint_refuses() {
        let (backend, endpoint) = both_half_open();
        let take_slot = |guarded: &mut crate::cell::Guarded| {
            guarded.breaker.take(HALF_OPEN, Now(9_000)).expect("one slot is free")
        };
        let taken = endpoint.cell.with(take_slot);
        assert!(backend.take(HALF_OPEN, 0, Millis(1_000)).is_none());
        let slots = |cell: &Cell| cell.with(|guarded| guarded.breaker.slots_taken(HALF_OPEN));
        assert_eq!((slots(&backend.health.cell), slots(&endpoint.cell)), (0, 1));
        endpoint.cell.with(|guarded| guarded.breaker.release(&taken));
        assert!(backend.take(HALF_OPEN, 0, Millis(1_000)).is_some_and(|it| it.is_trial()));
    }
}
