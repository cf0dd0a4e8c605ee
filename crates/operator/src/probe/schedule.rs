//! Which provider is probed when, and by which task: no I/O, no clock.
//!
//! There is one entry per provider of the config. Its times are the core's
//! [`ProbeClock`]; here is only what a reload does to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use tidegate_core::{
    probe::{Contact, ProbeClock, ProbeSettings, Tick},
    time::Now,
};
use tidegate_gateway::{live::Live, provider::Target};
use tokio::task::{AbortHandle, Id};

/// What makes a provider's probe the same after a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    settings: ProbeSettings,
    authority: HeaderValue,
    is_tls: bool,
    path: String,
}

#[derive(Debug)]
struct Entry {
    identity: Identity,
    /// A target of the provider, for its keys.
    target: Arc<Target>,
    clock: ProbeClock,
    under_way: Option<AbortHandle>,
}

impl Drop for Entry {
    /// Nobody wants to know any more.
    fn drop(&mut self) {
        if let Some(probe) = self.under_way.take() {
            probe.abort();
        }
    }
}

/// All providers' probes.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The config that the entries are of.
    live: Option<Arc<Live>>,
    entries: BTreeMap<Arc<str>, Entry>,
}

impl Schedule {
    /// Takes over a config: what did not change goes on, what is gone is called off.
    pub(super) fn follow(&mut self, live: &Arc<Live>, now: Now, mut seed: impl FnMut() -> u64) {
        if self.live.as_ref().is_some_and(|known| Arc::ptr_eq(known, live)) {
            return;
        }
        self.live = Some(Arc::clone(live));
        let mut before = std::mem::take(&mut self.entries);
        for target in live.targets.values() {
            let name = &target.provider.name;
            if self.entries.contains_key(name) {
                continue;
            }
            let identity = Identity::of(target);
            let target = Arc::clone(target);
            let entry = match before.remove(name) {
                Some(mut entry) if entry.identity == identity => {
                    entry.target = target;
                    entry
                }
                _ => {
                    let clock = ProbeClock::new(identity.settings, seed(), now);
                    Entry { identity, target, clock, under_way: None }
                }
            };
            self.entries.insert(Arc::clone(&entry.target.provider.name), entry);
        }
    }

    /// Whom to probe now; each has to be `started` or it counts as under way for ever.
    pub(super) fn due(&mut self, now: Now, contact: impl Fn(&str) -> Contact) -> Vec<Arc<Target>> {
        let mut due = Vec::new();
        for (name, entry) in &mut self.entries {
            if entry.clock.tick(now, contact(name)) == Tick::Probe {
                due.push(Arc::clone(&entry.target));
            }
        }
        due
    }

    /// The task that probes a provider.
    pub(super) fn started(&mut self, provider: &str, probe: AbortHandle) {
        match self.entries.get_mut(provider) {
            Some(entry) => entry.under_way = Some(probe),
            None => probe.abort(),
        }
    }

    /// A task ended: whose it was, if it is still wanted.
    pub(super) fn ended(&mut self, id: Id) -> Option<Arc<Target>> {
        let is_it = |entry: &&mut Entry| entry.under_way.as_ref().is_some_and(|it| it.id() == id);
        let entry = self.entries.values_mut().find(is_it)?;
        entry.under_way = None;
        entry.clock.ended();
        Some(Arc::clone(&entry.target))
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Now> {
        self.entries.values().filter_map(|entry| entry.clock.next_due()).min()
    }
}

impl Identity {
    fn of(target: &Target) -> Self {
        let provider = &target.provider;
        Self {
            settings: provider.probe,
            authority: provider.authority.clone(),
            is_tls: provider.origin.as_ref().is_some_and(|origin| origin.tls.is_some()),
            path: provider.probe_path(),
        }
    }
}
