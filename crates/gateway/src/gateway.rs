//! What all threads share: the live config behind an atomic pointer, the clock, the metrics, the
//! journal.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use http::HeaderValue;
use tidegate_config::Overrides;
use tidegate_core::time::Now;
use tidegate_fakes::{
    demo,
    fake::{self, Fake},
};
use tidegate_fleet::fleet::Fleet;
use tidegate_journal::journal::Journal;
use tidegate_net::upstream::Io;
use tidegate_runtime::{clock::Clock, rng, task};
use tokio::sync::Notify;

use crate::{
    certificates::ListenerTls,
    fixed::Fixed,
    live::Live,
    log::{LineLimit, LogSettings},
    metrics::Metrics,
    private::Private,
    stores::Stores,
};

/// What a fake provider may have written before somebody reads it, as with a socket.
const FAKE_BUFFER: usize = 64 * 1024;

/// The gateway as its threads share it.
#[derive(Debug)]
pub struct Gateway {
    pub live: ArcSwap<Live>,
    pub clock: Clock,
    pub metrics: Metrics,
    /// What was decided and what happened.
    pub journal: Arc<Journal>,
    /// Where it really listens: a reload does not move listeners.
    pub address: SocketAddr,
    pub admin_address: SocketAddr,
    /// Names this process in the header that every upstream request carries (S58).
    pub mark: HeaderValue,
    /// Providers of `api: fake`, made when first asked and kept: their outages go by their age.
    fakes: Mutex<BTreeMap<Arc<str>, Arc<Fake>>>,
    /// One reload at a time: each goes on from the config before it.
    pub reloading: Mutex<()>,
    /// What it serves one client only with, if it does.
    pub private: OnceLock<Private>,
    /// The log of the process, if this gateway has it.
    pub log: OnceLock<LogSettings>,
    /// Which repeated lines may be written.
    pub line_limit: LineLimit,
    /// The targets that each route's requests went to first when its state last changed.
    pub first_choices: Mutex<BTreeMap<String, Vec<String>>>,
    /// What was decided at the start, and what the command line said.
    pub fixed: OnceLock<(Fixed, Overrides)>,
    /// What the listeners present to clients.
    pub tls: ListenerTls,
    /// The files that the journal is written to.
    pub stores: Stores,
    /// Something changed that the MCP thread cannot see by itself: the config, or the health of a
    /// server by somebody else's doing. That thread waits for it.
    pub changed: Notify,
    /// This replica's part in its fleet, if it has one.
    pub fleet: OnceLock<Arc<Fleet>>,
    /// How many tools each MCP server offers, as far as that is known.
    server_tools: Mutex<BTreeMap<String, u64>>,
}

impl Gateway {
    pub fn new(live: Live, clock: Clock, address: SocketAddr, admin_address: SocketAddr) -> Self {
        let metrics = Metrics::new();
        metrics.follow(&live);
        let journal = Arc::new(Journal::new(clock, &live.fingerprint));
        let tls = ListenerTls::default();
        tls.follow(&live.tls);
        let live = ArcSwap::from_pointee(live);
        let mark = HeaderValue::try_from(format!("{:016x}", rng::draw()))
            .expect("hexadecimal digits can stand in a header");
        Self {
            live,
            clock,
            metrics,
            journal,
            address,
            admin_address,
            mark,
            fakes: Mutex::default(),
            reloading: Mutex::default(),
            private: OnceLock::new(),
            log: OnceLock::new(),
            line_limit: LineLimit::default(),
            first_choices: Mutex::default(),
            fixed: OnceLock::new(),
            tls,
            stores: Stores::default(),
            changed: Notify::new(),
            fleet: OnceLock::new(),
            server_tools: Mutex::default(),
        }
    }

    /// An MCP server offers so many tools.
    pub fn tell_tools(&self, server: &str, count: usize) {
        let mut tools = self.server_tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.insert(server.to_owned(), count as u64);
    }

    /// How many tools an MCP server offers, once that is known.
    pub fn server_tools(&self, server: &str) -> Option<u64> {
        let tools = self.server_tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.get(server).copied()
    }

    /// A connection to the fake provider of this name.
    pub fn dial_fake(&self, provider: &Arc<str>) -> Io {
        let mut fakes = self.fakes.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(Fake::new(demo::script_for(provider)));
        let fake = Arc::clone(fakes.entry(Arc::clone(provider)).or_insert_with(make));
        drop(fakes);
        let (ours, theirs) = tokio::io::duplex(FAKE_BUFFER);
        task::spawn("fake provider", fake::serve(theirs, fake));
        Io::Inside(ours)
    }

    /// Serves by another config from now on.
    pub fn take(&self, live: Live) {
        self.metrics.follow(&live);
        if let Some(log) = self.log.get() {
            log.follow(&live.file.log);
        }
        self.tls.follow(&live.tls);
        let sha = live.fingerprint.clone();
        self.live.store(Arc::new(live));
        self.changed.notify_one();
        self.journal.serves(self.now(), &sha);
        self.keep_records();
    }

    /// Writes the journal to the files that the config names; those that it does not name any more
    /// are closed. A gateway of one client's own writes none.
    pub fn keep_records(&self) {
        if self.private.get().is_none() {
            self.stores.follow(&self.journal, &self.live.load());
        }
    }

    /// Counts what the records' stores have dropped so far.
    pub fn count_dropped(&self) {
        let (metrics, stores) = (&self.metrics, &self.stores);
        metrics.records_dropped("journal", self.journal.size().dropped);
        metrics.records_dropped("history", stores.history().dropped);
        metrics.records_dropped("audit", stores.audit().dropped);
        metrics.records_dropped("telemetry", stores.telemetry().dropped);
    }

    /// Has the metrics of this moment exported, if the config says so.
    pub fn export_metrics(&self) {
        self.stores.export(|| self.metrics.families(&self.live.load(), self.now()));
    }

    pub fn now(&self) -> Now {
        self.clock.now()
    }
}
