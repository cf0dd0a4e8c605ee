//! MCP sessions of a fleet: its store and the way to other replicas, as the MCP side wants them;
//! and the listener for other replicas.

use std::collections::HashMap;
use std::future::Future;
use std::net::TcpListener;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_fleet::{
    fleet::Fleet,
    identity::InstanceId,
    peer::{
        Answering, PeerAsk, PeerAsker, PeerHandler, PeerKeys, PeerReply, PeerTrouble, Piece, Reply,
        ReplyPieces, serve, who_is_at,
    },
    seal::hex,
    sessions::{
        Absence, Claim, Liveness, Lookup, Owner, SessionEvent, SessionHeard, SessionName,
        SessionRecord, SessionStore,
    },
};
use tidegate_mcp::shared_session::{AbsentRecord, OwnerSigns};
use tidegate_mcp_shell::{
    McpHandle,
    fleet::{
        Later, LookedUp, NotForwarded, PeerAnswer, PeerBody, PeerPiece, PeerPieces, PeerRequest,
        Replica, SessionFleet, SessionNews, StoredSession, TakenOver,
    },
};
use tidegate_runtime::task;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// What was told of sessions and waits for the MCP thread.
const NEWS_MAX: usize = 1024;
/// What the name of a parked call is sealed under, together with its random part.
const PARKED: &[u8] = b"parked call ";
/// How long a replica waits until it knows how others reach it, before it asks itself.
const URL_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Ids of sessions by what the store calls them.
type Names = Arc<Mutex<HashMap<SessionName, Arc<str>>>>;

/// The sessions of a fleet, as the MCP side wants them.
pub(crate) struct FleetSessions {
    fleet: Arc<Fleet>,
    store: SessionStore,
    peers: Arc<PeerAsker>,
    /// The sessions that are here.
    names: Names,
}

impl FleetSessions {
    pub(crate) fn new(fleet: &Arc<Fleet>) -> Arc<Self> {
        let peers = Arc::new(PeerAsker::new(PeerKeys::of(fleet.secrets())));
        let store = fleet.sessions();
        Arc::new(Self { fleet: Arc::clone(fleet), store, peers, names: Names::default() })
    }

    fn names(&self) -> MutexGuard<'_, HashMap<SessionName, Arc<str>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session is here, or is not any more.
    fn note(&self, id: &str, is_here: bool) {
        let (all, mut names) = (self.store.names(id), self.names());
        match is_here {
            true if all.first().is_some_and(|name| names.contains_key(name)) => {}
            true => {
                let id: Arc<str> = id.into();
                names.extend(all.into_iter().map(|name| (name, Arc::clone(&id))));
            }
            false => all.iter().for_each(|name| drop(names.remove(name))),
        }
    }
}

impl SessionFleet for FleetSessions {
    fn me(&self) -> Replica {
        let identity = self.fleet.identity();
        Replica {
            instance: identity.instance.0,
            peer_url: self.fleet.peer_url().map(str::to_owned),
            name: identity.replica.clone(),
        }
    }

    fn session_id(&self, random: &str) -> String {
        self.store.new_id(random)
    }

    fn gave(&self, id: &str) -> bool {
        self.fleet.secrets().knows_session(id)
    }

    fn parked_id(&self, random: &str) -> Option<String> {
        let me = self.me();
        let mut owner = me.instance.to_be_bytes().to_vec();
        owner.extend_from_slice(me.peer_url.unwrap_or_default().as_bytes());
        let sealed = self.fleet.secrets().seal(&parked_name(random), &owner)?;
        Some(format!("{random}.{}", hex(&sealed)))
    }

    fn parked_at(&self, id: &str) -> Option<Replica> {
        let (random, sealed) = id.split_once('.')?;
        let sealed = unhex(sealed)?;
        let owner = self.fleet.secrets().open(&parked_name(random), &sealed).ok()?;
        let (instance, url) = owner.split_first_chunk::<16>()?;
        let url = std::str::from_utf8(url).ok()?;
        let peer_url = Some(url.to_owned()).filter(|it| !it.is_empty());
        let instance = u128::from_be_bytes(*instance);
        Some(Replica { instance, peer_url, name: String::new() })
    }

    fn load(&self, id: &str) -> Later<LookedUp> {
        let (store, id) = (self.store.clone(), id.to_owned());
        Box::pin(async move {
            match store.load(&id).await {
                Lookup::Found(record) => LookedUp::Found(stored(record)),
                Lookup::Absent(Absence { is_ended, is_sealed, opened_ago, lost_ago }) => {
                    let absent = AbsentRecord { is_ended, is_sealed, opened_ago, lost_ago };
                    LookedUp::Absent(absent)
                }
                Lookup::Away(reason) => LookedUp::Away(reason.word()),
            }
        })
    }

    fn create(&self, id: &str, record: StoredSession) -> Later<bool> {
        self.note(id, true);
        let (store, id) = (self.store.clone(), id.to_owned());
        Box::pin(async move { store.create(&id, &kept(record)).await })
    }

    fn put(&self, id: &str, record: StoredSession) {
        self.note(id, record.owner.is_some());
        self.store.put(id, kept(record));
    }

    fn claim(&self, id: &str, seen: u64, record: StoredSession) -> Later<TakenOver> {
        self.note(id, true);
        let (store, id, names) = (self.store.clone(), id.to_owned(), Arc::clone(&self.names));
        Box::pin(async move {
            let taken = match store.claim(&id, seen, kept(record)).await {
                Claim::Won => return TakenOver::Won,
                Claim::Lost(_) | Claim::Missing => TakenOver::Lost,
                Claim::Away(reason) => TakenOver::Away(reason.word()),
            };
            let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
            store.names(&id).iter().for_each(|name| drop(names.remove(name)));
            taken
        })
    }

    fn delete(&self, id: &str, epoch: u64) {
        self.note(id, false);
        self.store.delete(id, epoch);
    }

    fn signs_of(&self, instance: u128) -> Later<Option<OwnerSigns>> {
        let store = self.store.clone();
        Box::pin(async move {
            let Liveness { has_heartbeat, store_up_for } =
                store.liveness(InstanceId(instance)).await?;
            Some(OwnerSigns { has_heartbeat, store_up_for })
        })
    }

    fn forward(
        &self,
        to: &Replica,
        request: PeerRequest,
    ) -> Later<Result<PeerAnswer, NotForwarded>> {
        let (peers, to) = (Arc::clone(&self.peers), to.clone());
        Box::pin(async move {
            // Without a way there its heartbeat decides.
            let Some(url) = &to.peer_url else { return Err(NotForwarded::Unreachable) };
            let head = serde_json::to_vec(&request.head).unwrap_or_default();
            let request = PeerAsk { head, body: request.body };
            match peers.ask(url, InstanceId(to.instance), request).await {
                Ok(reply) => {
                    let head = serde_json::from_slice(&reply.head);
                    let head = head.map_err(|_| NotForwarded::Broken)?;
                    Ok(PeerAnswer { head, body: PeerBody::Elsewhere(Box::new(Coming(reply))) })
                }
                Err(trouble) => {
                    tracing::debug!(replica = to.name, %trouble, "a request was not handed over");
                    Err(match trouble {
                        PeerTrouble::Refused | PeerTrouble::OtherInstance => NotForwarded::Gone,
                        PeerTrouble::Unreachable(_) => NotForwarded::Unreachable,
                        PeerTrouble::NotMine => NotForwarded::NotMine,
                        PeerTrouble::Broken(_) => NotForwarded::Broken,
                    })
                }
            }
        })
    }

    fn news(&self) -> mpsc::Receiver<SessionNews> {
        let (sender, heard) = mpsc::channel(NEWS_MAX);
        let (mut events, names) = (self.store.events(), Arc::clone(&self.names));
        task::spawn("news of sessions", async move {
            loop {
                let news = match events.recv().await {
                    Ok(SessionHeard::Event(SessionEvent::Claimed { name, epoch, .. })) => {
                        let names = names.lock().unwrap_or_else(PoisonError::into_inner);
                        let known = names.get(&name).map(Arc::clone);
                        drop(names);
                        let Some(session) = known else { continue };
                        SessionNews::Claimed { session, epoch }
                    }
                    Ok(SessionHeard::Event(SessionEvent::Released { .. })) => continue,
                    Ok(SessionHeard::Anew) => SessionNews::Missed,
                    Err(broadcast::error::RecvError::Lagged(_)) => SessionNews::Missed,
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                if sender.send(news).await.is_err() {
                    return;
                }
            }
        });
        heard
    }
}

/// An answer on its way from another replica.
#[derive(Debug)]
struct Coming(PeerReply);

impl PeerPieces for Coming {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<PeerPiece>> + Send + '_>> {
        Box::pin(async {
            Some(match self.0.next().await? {
                Piece::Bytes(bytes) => PeerPiece::Bytes(bytes),
                Piece::End => PeerPiece::End,
            })
        })
    }
}

/// An answer on its way to another replica.
struct Going(PeerBody);

impl ReplyPieces for Going {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<Piece>> + '_>> {
        Box::pin(async {
            Some(match self.0.next().await? {
                PeerPiece::Bytes(bytes) => Piece::Bytes(bytes),
                PeerPiece::End => Piece::End,
            })
        })
    }
}

/// Serves other replicas until the MCP side has ended: the last that closes.
pub(crate) async fn run(
    listener: TcpListener,
    fleet: Arc<Fleet>,
    handle: McpHandle,
    mcp: oneshot::Receiver<()>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the peer listener cannot listen"),
    };
    let keys = Rc::new(PeerKeys::of(fleet.secrets()));
    let me = fleet.identity().instance;
    let handler: PeerHandler = Rc::new(move |request: PeerAsk| {
        let handle = handle.clone();
        let answering: Answering<Option<Reply>> = Box::pin(async move {
            let head = serde_json::from_slice(&request.head).ok()?;
            let PeerAnswer { head, body } =
                handle.answer_peer(PeerRequest { head, body: request.body }).await?;
            let head = serde_json::to_vec(&head).ok()?;
            Some(Reply { head, body: Box::new(Going(body)) })
        });
        answering
    });
    let checked = Rc::clone(&keys);
    task::spawn("whether this replica is where it says", async move {
        look_at_own_url(&fleet, &checked).await;
    });
    // Its sender is dropped when the MCP side has ended.
    serve(listener, keys, me, handler, async { drop(mcp.await) }).await;
}

/// Asks itself by its own url: a wrong one sends other replicas elsewhere.
async fn look_at_own_url(fleet: &Fleet, keys: &PeerKeys) {
    let known = async {
        // Not at once: the log is opened when everything has started.
        sleep(LOOK_EVERY).await;
        while fleet.peer_url().is_none() {
            sleep(LOOK_EVERY).await;
        }
    };
    drop(timeout(URL_WITHIN, known).await);
    let Some(url) = fleet.peer_url() else { return };
    match who_is_at(url, keys).await {
        Ok(instance) if instance == fleet.identity().instance => {
            tracing::info!(peer_url = url, "other replicas reach this one");
        }
        Ok(_) => tracing::warn!(
            peer_url = url,
            "another replica answers at this one's `state.peer_url`: requests for the sessions \
             here will not reach it"
        ),
        Err(trouble) => tracing::warn!(
            peer_url = url,
            %trouble,
            "this replica is not reached by its own `state.peer_url`: requests for the sessions \
             here will not reach it"
        ),
    }
}

fn parked_name(random: &str) -> Vec<u8> {
    [PARKED, random.as_bytes()].concat()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(pair).collect()
}

fn stored(record: SessionRecord) -> StoredSession {
    let owner = record.owner.map(|it| Replica {
        instance: it.instance.0,
        peer_url: it.peer_url,
        name: it.replica,
    });
    StoredSession { owner, epoch: record.epoch, state: record.state.into() }
}

fn kept(record: StoredSession) -> SessionRecord {
    let owner = record.owner.map(|it| Owner {
        instance: InstanceId(it.instance),
        peer_url: it.peer_url,
        replica: it.name,
    });
    SessionRecord { owner, epoch: record.epoch, state: record.state.to_vec() }
}
