//! A fleet of gateways in one process, for tests: records in a table, and requests handed over
//! without a socket. It can be cut off, and its replicas can be killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::time::Millis;
use tidegate_mcp::shared_session::{AbsentRecord, OwnerSigns};
use tokio::sync::mpsc;

use super::{
    fleet::{
        Later, LookedUp, NotForwarded, PeerAnswer, PeerRequest, Replica, SessionFleet, SessionNews,
        StoredSession, TakenOver,
    },
    handle::McpHandle,
};

const NEWS_MAX: usize = 1024;
/// What ids of this fleet end with.
const MARK: &str = "-fleet";

/// What all replicas share.
#[derive(Clone, Default)]
pub struct MemoryFleet(Arc<Mutex<MemoryStore>>);

#[derive(Default)]
struct MemoryStore {
    sessions: BTreeMap<String, StoredSession>,
    handles: BTreeMap<u128, McpHandle>,
    news: BTreeMap<u128, mpsc::Sender<SessionNews>>,
    is_away: bool,
    is_late: bool,
    is_slow: bool,
    /// Records of new sessions that are not written yet.
    on_their_way: BTreeMap<String, StoredSession>,
    unreachable: BTreeSet<u128>,
    silent: BTreeSet<u128>,
    lookups: usize,
    claims: usize,
}

/// One replica's part of a fleet.
pub struct MemoryReplica {
    fleet: MemoryFleet,
    me: Replica,
    heard: Mutex<Option<mpsc::Receiver<SessionNews>>>,
}

impl MemoryFleet {
    /// A replica of this number. It can be forwarded to once its [`join`](Self::join) was told.
    #[must_use]
    pub fn replica(&self, instance: u128) -> Arc<MemoryReplica> {
        let (sender, heard) = mpsc::channel(NEWS_MAX);
        self.lock().news.insert(instance, sender);
        let name = format!("replica-{instance}");
        let me = Replica { instance, peer_url: Some(format!("memory:{instance}")), name };
        Arc::new(MemoryReplica { fleet: self.clone(), me, heard: Mutex::new(Some(heard)) })
    }

    /// Requests for a replica's sessions go to this handle from here on.
    pub fn join(&self, instance: u128, handle: McpHandle) {
        self.lock().handles.insert(instance, handle);
    }

    /// A replica is gone: whoever asks for it is refused.
    pub fn kill(&self, instance: u128) {
        let mut shared = self.lock();
        shared.handles.remove(&instance);
        shared.news.remove(&instance);
    }

    /// The store is away, or is back.
    pub fn set_away(&self, is_away: bool) {
        self.lock().is_away = is_away;
    }

    /// The store carries take-overs out, and answers too late; or in time again.
    pub fn set_late(&self, is_late: bool) {
        self.lock().is_late = is_late;
    }

    /// The records of new sessions are on their way from here on; or all of them have arrived.
    pub fn set_slow(&self, is_slow: bool) {
        let mut shared = self.lock();
        shared.is_slow = is_slow;
        if !is_slow {
            let arrived = std::mem::take(&mut shared.on_their_way);
            shared.sessions.extend(arrived);
        }
    }

    /// A replica cannot be reached by others, but lives; or can be again.
    pub fn set_unreachable(&self, instance: u128, is_unreachable: bool) {
        let mut shared = self.lock();
        match is_unreachable {
            true => shared.unreachable.insert(instance),
            false => shared.unreachable.remove(&instance),
        };
    }

    /// Whoever asks whether a replica lives hears that it does not.
    pub fn set_silent(&self, instance: u128) {
        self.lock().silent.insert(instance);
    }

    /// Who has a session, and its epoch.
    #[must_use]
    pub fn owner_of(&self, session: &str) -> Option<(Option<u128>, u64)> {
        let shared = self.lock();
        let record = shared.sessions.get(session)?;
        Some((record.owner.as_ref().map(|it| it.instance), record.epoch))
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often records were looked up, and sessions taken over.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let shared = self.lock();
        (shared.lookups, shared.claims)
    }

    fn lock(&self) -> MutexGuard<'_, MemoryStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready<T: Send + 'static>(value: T) -> Later<T> {
    Box::pin(std::future::ready(value))
}

impl SessionFleet for MemoryReplica {
    fn me(&self) -> Replica {
        self.me.clone()
    }

    fn session_id(&self, random: &str) -> String {
        format!("{random}{MARK}")
    }

    fn gave(&self, id: &str) -> bool {
        id.ends_with(MARK)
    }

    fn parked_id(&self, random: &str) -> Option<String> {
        Some(format!("{random}.{}", self.me.instance))
    }

    fn parked_at(&self, id: &str) -> Option<Replica> {
        let (_, instance) = id.rsplit_once('.')?;
        let instance: u128 = instance.parse().ok()?;
        let peer_url = Some(format!("memory:{instance}"));
        Some(Replica { instance, peer_url, name: format!("replica-{instance}") })
    }

    fn load(&self, id: &str) -> Later<LookedUp> {
        let mut shared = self.fleet.lock();
        shared.lookups += 1;
        ready(match shared.sessions.get(id) {
            _ if shared.is_away => LookedUp::Away("store_away"),
            Some(record) => LookedUp::Found(record.clone()),
            None => {
                let opened_ago = shared.on_their_way.contains_key(id).then_some(Millis::ZERO);
                LookedUp::Absent(AbsentRecord { opened_ago, ..AbsentRecord::default() })
            }
        })
    }

    fn create(&self, id: &str, record: StoredSession) -> Later<bool> {
        let shared = self.fleet.lock();
        let is_away = shared.is_away || shared.is_slow;
        drop(shared);
        self.put(id, record);
        ready(!is_away)
    }

    fn put(&self, id: &str, record: StoredSession) {
        let mut shared = self.fleet.lock();
        let known = shared.sessions.get(id).map_or(0, |it| it.epoch);
        if shared.is_slow && known == 0 {
            shared.on_their_way.insert(id.to_owned(), record);
            return;
        }
        if record.epoch >= known {
            shared.sessions.insert(id.to_owned(), record);
        } else if let Some(news) = shared.news.get(&self.me.instance) {
            let (session, epoch) = (id.into(), known);
            drop(news.try_send(SessionNews::Claimed { session, epoch }));
        }
    }

    fn claim(&self, id: &str, seen: u64, record: StoredSession) -> Later<TakenOver> {
        let mut shared = self.fleet.lock();
        if shared.is_away {
            return ready(TakenOver::Away("store_away"));
        }
        let Some(known) = shared.sessions.get_mut(id).filter(|it| it.epoch == seen) else {
            return ready(TakenOver::Lost);
        };
        let epoch = record.epoch;
        *known = record;
        shared.claims += 1;
        for (instance, news) in &shared.news {
            if *instance != self.me.instance {
                let session = id.into();
                drop(news.try_send(SessionNews::Claimed { session, epoch }));
            }
        }
        if shared.is_late {
            return ready(TakenOver::Away("store_unreachable"));
        }
        ready(TakenOver::Won)
    }

    fn delete(&self, id: &str, epoch: u64) {
        let mut shared = self.fleet.lock();
        if shared.sessions.get(id).is_some_and(|it| it.epoch <= epoch) {
            shared.sessions.remove(id);
        }
    }

    fn signs_of(&self, instance: u128) -> Later<Option<OwnerSigns>> {
        let shared = self.fleet.lock();
        let is_silent = shared.silent.contains(&instance);
        let has_heartbeat = !is_silent && shared.handles.contains_key(&instance);
        ready(Some(OwnerSigns { has_heartbeat, store_up_for: Some(Millis::minutes(1)) }))
    }

    fn forward(
        &self,
        to: &Replica,
        request: PeerRequest,
    ) -> Later<Result<PeerAnswer, NotForwarded>> {
        let shared = self.fleet.lock();
        if shared.unreachable.contains(&to.instance) {
            return ready(Err(NotForwarded::Unreachable));
        }
        let Some(handle) = shared.handles.get(&to.instance).cloned() else {
            return ready(Err(NotForwarded::Gone));
        };
        Box::pin(async move { handle.answer_peer(request).await.ok_or(NotForwarded::NotMine) })
    }

    fn news(&self) -> mpsc::Receiver<SessionNews> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.take().unwrap_or_else(|| mpsc::channel(1).1)
    }
}
