//! One replica's part in its fleet: what other threads hold of it.
//!
//! [`Fleet`] takes hints from every thread without making one wait, and shows what is known of the
//! others. Its thread runs `connection::run`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tidegate_config::store_url::StoreUrl;
use tidegate_core::{
    hint::{Heard, Hint},
    names::PinKey,
    time::Now,
};
use tidegate_runtime::{clock::Clock, rng};

use crate::{
    heartbeat::Roster,
    identity::Identity,
    layout::Layout,
    outbox::Outbox,
    seal::FleetSecrets,
    sessions::{SessionQueries, SessionStore},
    stats::{FactKind, FleetStats},
};

/// What a replica is started with.
#[derive(Clone, Debug)]
pub struct FleetStart {
    /// Where the store is.
    pub url: StoreUrl,
    /// The fleet's keys.
    pub secrets: Arc<FleetSecrets>,
    /// The fleet's name.
    pub fleet: String,
    /// Who this replica is.
    pub identity: Identity,
    /// The port that other replicas reach it at, if it has no url of its own.
    pub peer_port: Option<u16>,
    /// How long a client may wait for the store.
    pub timeout: Duration,
    /// How long a session's record is kept after it was last written.
    pub session_ttl: Duration,
    /// The gateway's clock.
    pub clock: Clock,
    /// The version of the program.
    pub version: &'static str,
}

/// Where hints of others go, and where those of this replica come from.
pub trait Ears {
    /// Another replica told something.
    fn hear(&self, hint: &Hint) -> Heard;
    /// What this replica holds, pins aside.
    fn holdings(&self) -> Vec<Hint>;
    /// Pins that it holds, after this one, and where to go on.
    fn held_pins(&self, after: Option<PinKey>, max: usize) -> (Vec<Hint>, Option<PinKey>);
    /// Names the config that it serves by.
    fn config_sha(&self) -> String;
}

/// One replica's part in its fleet.
#[derive(Debug)]
pub struct Fleet {
    pub(crate) start: FleetStart,
    pub(crate) layout: Layout,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) stats: Arc<FleetStats>,
    pub(crate) roster: Mutex<Roster>,
    pub(crate) problem: Mutex<Option<String>>,
    pub(crate) queries: Mutex<Option<SessionQueries>>,
    pub(crate) found_url: OnceLock<String>,
    sessions: SessionStore,
}

impl Fleet {
    /// A replica that is not connected yet.
    #[must_use]
    pub fn new(start: FleetStart) -> Arc<Self> {
        let (outbox, stats) = (Arc::new(Outbox::drawn(rng::draw())), Arc::<FleetStats>::default());
        let of_sessions = (start.clock, start.timeout, start.identity.instance);
        let (sessions, queries) = SessionStore::new(&start.secrets, &outbox, &stats, of_sessions);
        Arc::new(Self {
            layout: Layout::new(&start.fleet, &start.secrets),
            outbox,
            stats,
            roster: Mutex::default(),
            problem: Mutex::default(),
            queries: Mutex::new(Some(queries)),
            found_url: OnceLock::new(),
            sessions,
            start,
        })
    }

    /// Has hints told, and takes them out. Waits for nothing.
    pub fn tell(&self, hints: &mut Vec<Hint>, now: Now) {
        let dropped = self.outbox.add(hints, now);
        for _ in 0..dropped {
            self.stats.drop_one();
        }
    }

    /// The records of MCP sessions.
    #[must_use]
    pub fn sessions(&self) -> SessionStore {
        self.sessions.clone()
    }

    /// The fleet's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.start.fleet
    }

    /// The fleet's keys.
    #[must_use]
    pub fn secrets(&self) -> &Arc<FleetSecrets> {
        &self.start.secrets
    }

    /// Who this replica is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.start.identity
    }

    /// How other replicas reach this one: as configured, or by the address that it reaches the
    /// store from, once that is known.
    #[must_use]
    pub fn peer_url(&self) -> Option<&str> {
        let configured = self.start.identity.peer_url.as_deref();
        configured.or_else(|| self.found_url.get().map(String::as_str))
    }

    /// Where the store is, without a password.
    #[must_use]
    pub fn store(&self) -> String {
        self.start.url.to_string()
    }

    /// What is counted.
    #[must_use]
    pub fn stats(&self) -> &FleetStats {
        &self.stats
    }

    /// How much waits to be told.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.outbox.len()
    }

    /// The replicas as they were last seen.
    #[must_use]
    pub fn roster(&self) -> Roster {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the store is not there, or takes nothing.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what is wrong with the store; whether that is news.
    pub(crate) fn set_problem(&self, problem: Option<String>) -> bool {
        let mut held = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *held != problem;
        *held = problem;
        is_news
    }

    pub(crate) fn now(&self) -> Now {
        self.start.clock.now()
    }

    pub(crate) fn count_told(&self, hints: impl Iterator<Item = FactKind>) {
        hints.for_each(|kind| self.stats.told(kind));
    }
}
