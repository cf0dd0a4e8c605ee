//! What all threads share: the live config behind an atomic pointer, the clock, the metrics.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use http::HeaderValue;
use tidegate_config::Overrides;
use tidegate_core::{time::Now, transition::Notes};
use tokio::sync::{Notify, futures::OwnedNotified};

use crate::{
    certificates::ListenerTls,
    clock::Clock,
    demo,
    fake::{self, Fake},
    live::Live,
    log::{LineLimit, LogSettings},
    mcp::{Door, Knocks, line},
    metrics::Metrics,
    private::Private,
    reload::Fixed,
    report, rng, task,
    upstream::{Io, Pool},
};

/// What a fake provider may have written before somebody reads it, as with a socket.
const FAKE_BUFFER: usize = 64 * 1024;

/// The gateway as its threads share it.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) live: ArcSwap<Live>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    /// Where it really listens: a reload does not move listeners.
    pub(crate) address: SocketAddr,
    pub(crate) admin_address: SocketAddr,
    /// Names this process in the header that every upstream request carries (S58).
    pub(crate) mark: HeaderValue,
    /// Providers of `api: fake`, made when first asked and kept: their outages go by their age.
    fakes: Mutex<BTreeMap<Arc<str>, Arc<Fake>>>,
    /// One reload at a time: each goes on from the config before it.
    pub(crate) reloading: Mutex<()>,
    /// The way to the MCP thread, and that thread's end of it until it starts.
    pub(crate) door: Door,
    pub(crate) knocks: Mutex<Option<Knocks>>,
    /// What it serves one client only with, if it does.
    pub(crate) private: OnceLock<Private>,
    /// The log of the process, if this gateway has it.
    pub(crate) log: OnceLock<LogSettings>,
    /// Which repeated lines may be written.
    pub(crate) line_limit: LineLimit,
    /// The targets that each route's requests went to first when its state last changed.
    pub(crate) first_choices: Mutex<BTreeMap<String, Vec<String>>>,
    /// What was decided at the start, and what the command line said.
    pub(crate) fixed: OnceLock<(Fixed, Overrides)>,
    /// What the listeners present to clients.
    pub(crate) tls: ListenerTls,
}

impl Gateway {
    pub(crate) fn new(
        live: Live,
        clock: Clock,
        address: SocketAddr,
        admin_address: SocketAddr,
    ) -> Self {
        let metrics = Metrics::new();
        metrics.follow(&live);
        let tls = ListenerTls::default();
        tls.follow(&live.tls);
        let live = ArcSwap::from_pointee(live);
        let mark = HeaderValue::try_from(format!("{:016x}", rng::draw()))
            .expect("hexadecimal digits can stand in a header");
        let (door, knocks) = line();
        Self {
            live,
            clock,
            metrics,
            address,
            admin_address,
            mark,
            fakes: Mutex::default(),
            reloading: Mutex::default(),
            door,
            knocks: Mutex::new(Some(knocks)),
            private: OnceLock::new(),
            log: OnceLock::new(),
            line_limit: LineLimit::default(),
            first_choices: Mutex::default(),
            fixed: OnceLock::new(),
            tls,
        }
    }

    /// A connection to the fake provider of this name.
    pub(crate) fn dial_fake(&self, provider: &Arc<str>) -> Io {
        let mut fakes = self.fakes.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(Fake::new(demo::script_for(provider)));
        let fake = Arc::clone(fakes.entry(Arc::clone(provider)).or_insert_with(make));
        drop(fakes);
        let (ours, theirs) = tokio::io::duplex(FAKE_BUFFER);
        task::spawn("fake provider", fake::serve(theirs, fake));
        Io::Inside(ours)
    }

    /// Serves by another config from now on.
    pub(crate) fn take(&self, live: Live) {
        self.metrics.follow(&live);
        if let Some(log) = self.log.get() {
            log.follow(&live.file.log);
        }
        self.tls.follow(&live.tls);
        self.live.store(Arc::new(live));
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }
}

/// One thread's part: the shared gateway, its own connections and its own buffer for the core.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) pool: Rc<Pool>,
    /// Tells streams that the drain is over.
    drained: Arc<Notify>,
    notes: RefCell<Notes>,
}

impl Worker {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        let (pool, drained, notes) = (Rc::default(), Arc::default(), RefCell::default());
        Self { gateway, pool, drained, notes }
    }

    /// Waits for the end of the drain.
    pub(crate) fn drained(&self) -> OwnedNotified {
        Arc::clone(&self.drained).notified_owned()
    }

    /// The drain is over: every stream that is still under way says so and ends.
    pub(crate) fn end_streams(&self) {
        self.drained.notify_waiters();
    }

    /// Talks to the core, and renders the transitions it tells of.
    pub(crate) fn with_notes<R>(&self, talk: impl FnOnce(&mut Notes) -> R) -> R {
        let notes = &mut *self.notes.borrow_mut();
        let result = talk(notes);
        if !notes.transitions.is_empty() {
            report::transitions(&self.gateway, &notes.transitions);
            notes.transitions.clear();
        }
        result
    }
}
