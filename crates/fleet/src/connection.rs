//! The fleet's thread: reaches the store, keeps what is told and heard flowing, and begins anew
//! when it breaks.
//!
//! One task writes, one reads; a third renews the heartbeat and answers questions about sessions.
//! Whichever of them fails ends the connection, and after a pause with jitter everything begins
//! anew: note where the stream ends, load what others hold, write again what this replica holds,
//! read on from there. A store that is full is not away: it is read, and asked again every second.

mod beat;
mod load;
mod read;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tidegate_core::{names::ReplicaId, time::Millis};
use tidegate_runtime::{
    phase::{Phase, reached},
    rng,
};
use tokio::sync::{Notify, watch};

use crate::{
    fleet::{Ears, Fleet},
    layout::StoreKeys,
    link::{Link, StoreError},
    marker::KnownMarker,
    record_access::RecordAccess,
    scripts::Scripts,
    session_record::SessionHeard,
    sessions::SessionQueries,
};

/// The first pause before the store is reached again, and the longest.
const PAUSE: Millis = Millis(100);
const PAUSE_MAX: Millis = Millis::seconds(5);
/// A connection that lasted this long was a good one.
const LASTED: Millis = Millis::seconds(10);
/// What is left to write at the end has so long.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Questions about sessions that are answered at a time.
const QUESTIONS_MAX: usize = 64;

/// Runs until the gateway has stopped.
pub async fn run(fleet: Arc<Fleet>, ears: Rc<dyn Ears>, phase: watch::Receiver<Phase>) {
    // TLS needs a provider of cryptography for the process; one that is there already is as good.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let queries = fleet.queries.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut queries) = queries else { return };
    write::find_own_address(&fleet).await;
    let memory = Rc::new(Memory::default());
    tokio::select! {
        () = reached(phase, Phase::Stopped) => {}
        () = keep_connected(&fleet, &ears, &memory, &mut queries) => {}
    }
    fleet.stats.set_up(false);
    let last = memory.last.borrow_mut().take();
    if let Some((link, scripts)) = last {
        let connection = Connection::new(&fleet, &ears, &memory, link, scripts);
        drop(tokio::time::timeout(LAST_WORDS, connection.leave()).await);
    }
}

/// What is remembered from one connection to the next.
#[derive(Default)]
pub(crate) struct Memory {
    /// The store's marker as it was last seen.
    marker: KnownMarker,
    /// The number of this replica's last entry.
    number: Cell<u64>,
    /// The numbers of the others' last entries.
    numbers: RefCell<HashMap<ReplicaId, u64>>,
    /// What the last connection was, for last words.
    last: RefCell<Option<(Link, Scripts)>>,
    /// Whether somebody has been warned of another replica of the same name.
    is_warned: Cell<bool>,
}

async fn keep_connected(
    fleet: &Arc<Fleet>,
    ears: &Rc<dyn Ears>,
    memory: &Rc<Memory>,
    queries: &mut SessionQueries,
) {
    let mut pause = PAUSE;
    loop {
        let began = fleet.now();
        let ended = connected(fleet, ears, memory, queries).await;
        fleet.stats.set_up(false);
        memory.last.borrow_mut().take();
        let Err(problem) = ended;
        if fleet.set_problem(Some(problem.to_string())) {
            let (store, what) = (fleet.store(), "the fleet's store is away: going on alone");
            tracing::warn!(store, problem = %problem, "{what}");
        }
        if fleet.now().since(began) > LASTED {
            pause = PAUSE;
        }
        // Somewhere in its second half, so that a fleet does not come back in step.
        let half = pause.0 / 2;
        let wait = half + rng::draw() % (half + 1);
        tokio::time::sleep(Duration::from_millis(wait)).await;
        while queries.try_recv().is_ok() {}
        pause = Millis((2 * pause.0).min(PAUSE_MAX.0));
    }
}

/// Never returns but with what ended the connection.
async fn connected(
    fleet: &Arc<Fleet>,
    ears: &Rc<dyn Ears>,
    memory: &Rc<Memory>,
    queries: &mut SessionQueries,
) -> Result<std::convert::Infallible, StoreError> {
    let url = &fleet.start.url;
    let mut talk = Link::open(url).await?;
    let listen = Link::open(url).await?;
    let scripts = Scripts::load(&mut talk).await?;
    *memory.last.borrow_mut() = Some((talk.clone(), scripts.clone()));
    let connection = Connection::new(fleet, ears, memory, talk, scripts);
    connection.beat().await?;
    let from = connection.sync().await?;
    fleet.stats.set_up(true);
    if fleet.set_problem(None) || fleet.stats.link_count() == 1 {
        let store = fleet.store();
        tracing::info!(store, fleet = fleet.name(), "the fleet's store is there");
    }
    fleet.sessions().hear(SessionHeard::Anew);
    tokio::select! {
        ended = connection.write_loop() => ended,
        ended = connection.read_loop(listen, from) => ended,
        ended = connection.beat_loop() => ended,
        ended = connection.background_loop() => ended,
        ended = connection.answer_loop(queries) => ended,
    }
}

/// One connection to the store, and what is done with it.
pub(crate) struct Connection<'a> {
    fleet: &'a Arc<Fleet>,
    ears: &'a Rc<dyn Ears>,
    memory: &'a Rc<Memory>,
    link: Link,
    scripts: Scripts,
    store_keys: Vec<StoreKeys>,
    /// Pins are to be loaded, and written again if the flag says so.
    pins_due: Notify,
    pins_are_lost: Cell<bool>,
}

impl<'a> Connection<'a> {
    fn new(
        fleet: &'a Arc<Fleet>,
        ears: &'a Rc<dyn Ears>,
        memory: &'a Rc<Memory>,
        link: Link,
        scripts: Scripts,
    ) -> Self {
        let store_keys = fleet.layout.store_keys();
        let (pins_due, pins_are_lost) = (Notify::new(), Cell::new(false));
        Self { fleet, ears, memory, link, scripts, store_keys, pins_due, pins_are_lost }
    }

    fn records(&self) -> RecordAccess<'_> {
        let Fleet { layout, stats, start, .. } = &**self.fleet;
        RecordAccess {
            link: self.link.clone(),
            scripts: &self.scripts,
            layout,
            secrets: &start.secrets,
            stats,
            marker: &self.memory.marker,
            store_keys: &self.store_keys,
            ttl_ms: start.session_ttl.as_millis() as u64,
        }
    }

    /// Answers questions about sessions, several at a time.
    async fn answer_loop(
        &self,
        queries: &mut SessionQueries,
    ) -> Result<std::convert::Infallible, StoreError> {
        let mut under_way = futures_util::stream::FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(is_answered) = futures_util::StreamExt::next(&mut under_way) => {
                    // Also where nobody waited so long: the store is there after all.
                    if is_answered {
                        self.fleet.stats.answered(self.fleet.now());
                    }
                }
                query = queries.recv(), if under_way.len() < QUESTIONS_MAX => {
                    let gone = || StoreError::Unfit("nobody asks any more".to_owned());
                    let query = query.ok_or_else(gone)?;
                    under_way.push(self.records().answer(query, self.fleet.now()));
                }
            }
        }
    }
}
