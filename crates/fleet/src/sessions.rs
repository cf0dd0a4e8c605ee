//! Records of MCP sessions in the fleet's store: any replica can look one up, and one owns it.
//!
//! Rules kept here:
//! - "I do not know" is never "there is none": a store that does not answer is [`Lookup::Away`],
//!   and one without a record is [`Lookup::Absent`] with everything that might explain it.
//! - Nothing waits longer than `state.timeout`, and nothing at all for a store that is known to be
//!   away.
//! - The id of a session says when it was opened, because the record of a young one may still be on
//!   its way. One that has ended says so.
//! - A record is never dropped from the queue and never overwrites one of a higher epoch.
//!
//! The store is asked on the fleet's thread (`record_access.rs`); here is the handle that other
//! threads use.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::time::Millis;
use tidegate_runtime::clock::Clock;
use tokio::sync::{broadcast, mpsc, oneshot};

pub use crate::session_record::{
    Absence, AwayReason, Claim, Liveness, Lookup, Owner, SessionEvent, SessionHeard, SessionName,
    SessionRecord,
};
use crate::{
    identity::InstanceId,
    outbox::{Outbox, SessionWrite},
    seal::{FleetSecrets, SESSION_MAC_BYTES, SealedName, hex},
    stats::FleetStats,
};

/// What is told of sessions and waits to be read, at most.
const EVENTS_MAX: usize = 1024;
/// Questions that wait for the fleet's thread, at most.
const QUERIES_MAX: usize = 1024;

/// How often somebody who waits for the first connection to the store looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What stands before a session's beginning in its id; no hexadecimal digit.
const BIRTH: char = 't';

/// A question to the store.
#[derive(Debug)]
pub(crate) enum SessionQuery {
    Load { names: Vec<SealedName>, opened_ago: Option<Millis>, reply: oneshot::Sender<Lookup> },
    Create { name: SealedName, epoch: u64, record: Vec<u8>, reply: oneshot::Sender<bool> },
    Claim { names: Vec<SealedName>, take: TakeOver, reply: oneshot::Sender<Claim> },
    Liveness { instance: InstanceId, reply: oneshot::Sender<Option<Liveness>> },
}

/// A session that is to change hands.
#[derive(Debug)]
pub(crate) struct TakeOver {
    pub(crate) seen_epoch: u64,
    pub(crate) epoch: u64,
    pub(crate) record: Vec<u8>,
}

/// The records of a fleet's sessions. Cheap to clone, and usable on any thread.
#[derive(Clone, Debug)]
pub struct SessionStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    secrets: Arc<FleetSecrets>,
    outbox: Arc<Outbox>,
    stats: Arc<FleetStats>,
    clock: Clock,
    timeout: Duration,
    instance: InstanceId,
    queries: mpsc::Sender<SessionQuery>,
    events: broadcast::Sender<SessionHeard>,
}

/// The questions as the fleet's thread receives them.
pub(crate) type SessionQueries = mpsc::Receiver<SessionQuery>;

impl SessionStore {
    pub(crate) fn new(
        secrets: &Arc<FleetSecrets>,
        outbox: &Arc<Outbox>,
        stats: &Arc<FleetStats>,
        (clock, timeout, instance): (Clock, Duration, InstanceId),
    ) -> (Self, SessionQueries) {
        let (queries, received) = mpsc::channel(QUERIES_MAX);
        let events = broadcast::channel(EVENTS_MAX).0;
        let (secrets, outbox) = (Arc::clone(secrets), Arc::clone(outbox));
        let stats = Arc::clone(stats);
        let shared = Shared { secrets, outbox, stats, clock, timeout, instance, queries, events };
        (Self { shared: Arc::new(shared) }, received)
    }

    /// The id of a new session: a random part in hexadecimal digits, the store's time, and the
    /// proof that this fleet gave it.
    #[must_use]
    pub fn new_id(&self, random: &str) -> String {
        let secrets = &self.shared.secrets;
        let begun = self.store_seconds().map(|it| format!("{BIRTH}{it:x}")).unwrap_or_default();
        let named = format!("{random}{begun}");
        let proof = secrets.session_mac(named.as_bytes());
        named + &hex(&proof)
    }

    /// How long ago a session was opened, by the store's clock.
    fn opened_ago(&self, id: &str) -> Option<Millis> {
        let begun = id.len().checked_sub(2 * SESSION_MAC_BYTES).and_then(|at| id.get(..at));
        let begun = begun.and_then(|it| it.split_once(BIRTH)).map(|it| it.1);
        let begun = begun.and_then(|it| u64::from_str_radix(it, 16).ok());
        let (begun, now) = begun.zip(self.store_seconds())?;
        Some(Millis::seconds(now.abs_diff(begun)))
    }

    fn store_seconds(&self) -> Option<u64> {
        let shared = &self.shared;
        shared.stats.store_ms(shared.clock.now()).map(|ms| ms / 1000)
    }

    /// The record of a session.
    pub async fn load(&self, id: &str) -> Lookup {
        let (names, opened_ago) = (self.names(id), self.opened_ago(id));
        let ask = |reply| SessionQuery::Load { names, opened_ago, reply };
        self.ask(ask).await.unwrap_or_else(Lookup::Away)
    }

    /// Writes the record of a new session, and waits for it; `false` = it is not written yet, and
    /// will be when the store is back.
    pub async fn create(&self, id: &str, record: &SessionRecord) -> bool {
        let Some(bytes) = record.encode() else { return false };
        let (name, epoch) = (self.name_of(id), record.epoch);
        let ask = |reply| SessionQuery::Create { name, epoch, record: bytes, reply };
        let is_written = self.ask(ask).await.unwrap_or(false);
        if !is_written {
            self.put(id, record.clone());
        }
        is_written
    }

    /// Has a record written: the newest one per session, never one of a lower epoch than the
    /// store's. One without an owner is told to the other replicas: whoever is asked may take it.
    pub fn put(&self, id: &str, record: SessionRecord) {
        let name = self.name_of(id);
        let Some(bytes) = record.encode() else {
            tracing::warn!(bytes = record.state.len(), "a session's record is too large to share");
            return;
        };
        let (epoch, by) = (record.epoch, self.shared.instance);
        let is_released = record.owner.is_none();
        let event = is_released.then(|| SessionEvent::Released { name: name.clone(), epoch, by });
        let write = SessionWrite { epoch, record: Some(bytes), event };
        self.shared.outbox.add_session(name, write);
    }

    /// Makes a session this replica's, if its epoch is still the one that was seen.
    pub async fn claim(&self, id: &str, seen_epoch: u64, record: SessionRecord) -> Claim {
        let Some(bytes) = record.encode() else { return Claim::Away(AwayReason::Unreachable) };
        let names = self.names(id);
        let epoch = record.epoch;
        let take = TakeOver { seen_epoch, epoch, record: bytes };
        let ask = |reply| SessionQuery::Claim { names, take, reply };
        let claim = self.ask(ask).await.unwrap_or_else(Claim::Away);
        if claim == Claim::Won {
            let (name, by) = (self.name_of(id), self.shared.instance);
            self.shared.outbox.add_event(SessionEvent::Claimed { name, epoch, by });
        }
        claim
    }

    /// Has a record deleted, unless it has a higher epoch.
    pub fn delete(&self, id: &str, epoch: u64) {
        let write = SessionWrite { epoch, record: None, event: None };
        for name in self.names(id) {
            self.shared.outbox.add_session(name, write.clone());
        }
    }

    /// What the store knows of a replica; nothing if it does not answer.
    pub async fn liveness(&self, instance: InstanceId) -> Option<Liveness> {
        let ask = |reply| SessionQuery::Liveness { instance, reply };
        self.ask(ask).await.ok().flatten()
    }

    /// What is told of sessions from now on. A reader that is too slow misses the oldest.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<SessionHeard> {
        self.shared.events.subscribe()
    }

    /// Tells whoever listens on this replica.
    pub(crate) fn hear(&self, heard: SessionHeard) {
        // Nobody may listen.
        drop(self.shared.events.send(heard));
    }

    /// What a session is called in events.
    #[must_use]
    pub fn name_of(&self, id: &str) -> SessionName {
        self.shared.secrets.name("session", &[id.as_bytes()])
    }

    /// All that a session may be called in events: by any of the fleet's secrets.
    #[must_use]
    pub fn names(&self, id: &str) -> Vec<SessionName> {
        self.shared.secrets.names("session", &[id.as_bytes()]).collect()
    }

    async fn ask<T>(
        &self,
        ask: impl FnOnce(oneshot::Sender<T>) -> SessionQuery,
    ) -> Result<T, AwayReason> {
        let shared = &self.shared;
        if !shared.stats.is_tried() {
            // A gateway that has just begun: nothing is known of its store yet.
            let tried = async {
                while !shared.stats.is_tried() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            drop(tokio::time::timeout(shared.timeout, tried).await);
        }
        if !shared.stats.is_answering() {
            return Err(AwayReason::KnownAway);
        }
        let (reply, answer) = oneshot::channel();
        shared.queries.try_send(ask(reply)).map_err(|_| AwayReason::Unreachable)?;
        match tokio::time::timeout(shared.timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(AwayReason::Unreachable),
            Err(_) => {
                shared.stats.failed(shared.clock.now());
                Err(AwayReason::Unreachable)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica that is restarted serves before it has reached its store: a session that it is
    /// asked for then is not turned away for a store that nobody has tried.
    #[tokio::test]
    async fn a_store_that_was_not_tried_yet_is_waited_for_and_one_that_is_away_is_not() {
        let secret = "a secret of more than thirty-two bytes";
        let secrets = Arc::new(FleetSecrets::new("prod", [secret]).expect("keys"));
        let (outbox, stats) = (Arc::<Outbox>::default(), Arc::<FleetStats>::default());
        let clock = Clock::start();
        let of_sessions = (clock, Duration::from_millis(100), InstanceId(1));
        let (store, mut queries) = SessionStore::new(&secrets, &outbox, &stats, of_sessions);
        let waited = |began: tidegate_core::time::Now| clock.now().since(began);
        let began = clock.now();
        assert_eq!(store.load("s").await, Lookup::Away(AwayReason::KnownAway));
        assert!(waited(began) >= Millis(90), "{:?}", waited(began));
        stats.set_up(false);
        let began = clock.now();
        assert_eq!(store.load("s").await, Lookup::Away(AwayReason::KnownAway));
        assert!(waited(began) < Millis(90), "{:?}", waited(began));
        assert!(queries.try_recv().is_err(), "nobody was asked");
    }
}
