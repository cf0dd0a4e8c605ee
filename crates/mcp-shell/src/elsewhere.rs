//! Requests for sessions that are not here: looked up, handed to the replica that has them, or the
//! session is taken over from one that is gone.
//!
//! | what the store says | what becomes of the request |
//! |---|---|
//! | another replica has it | it is handed to that one, its answer handed back as it comes |
//! | that one is gone, or nobody has it | this replica takes the session over, and answers |
//! | this one, which took it over and was not told so | it takes the session over once more |
//! | there is no such session | 404 |
//! | nobody can say | 503, and when to come back: never 404, which ends sessions |
//!
//! Rules kept here:
//! - An id that this fleet never gave is not looked up.
//! - One attempt to take a session over at a time; whoever asks for it meanwhile waits for that.
//! - A replica that leaves takes none over.
//! - What was handed to a replica that then died is not sent again unless that is harmless: the
//!   client hears by name what became of it.
//! - The answer to `initialize` waits until the record is written, or cannot be.
//!
//! Left to others: what goes on in a session (the Hub), deadlines of the store and of the way to
//! other replicas (the [`SessionFleet`]).

mod carry;
pub(crate) mod find;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::time::{Millis, Now};
use tidegate_mcp::hub::{LastWords, McpAnswer, McpRequest, RequestToken};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::{mpsc, oneshot};

use super::{
    event_body::ClientNews,
    fleet::{SessionFleet, SessionNews, StoredSession, TakenOver},
    handle::Answered,
};

/// The epoch of a session whose first owner has it.
const FIRST_EPOCH: u64 = 1;
/// How often records are written again, so that the store keeps them.
const RENEW_EVERY: Millis = Millis::seconds(60);
/// Requests that are elsewhere at once.
const TASKS_MAX: usize = 8192;
/// Attempts to take a session over that are remembered because their end is not known.
const UNSURE_MAX: usize = 1024;
/// How often a request begins anew because somebody else was quicker.
pub(crate) const TRIES_MAX: u32 = 3;

/// A request that waits for its answer.
pub(crate) struct WaitingRequest {
    pub(crate) request: Box<McpRequest>,
    pub(crate) answer: oneshot::Sender<Answered>,
    pub(crate) tries: u32,
}

/// What a task found out.
pub(crate) enum Told {
    /// The session may be taken over.
    Free(WaitingRequest, StoredSession),
    /// Whoever is asked here is to answer.
    Here(WaitingRequest),
    /// By its record the session is this replica's.
    Mine(WaitingRequest, StoredSession),
    /// An attempt to take a session over has ended.
    Tried { session: Arc<str>, record: StoredSession, taken: TakenOver },
    /// The record of a new session is written, or will be.
    Opened { request: RequestToken, answer: McpAnswer, session: Arc<str>, state: Bytes },
    /// A task has ended.
    Ended(u64),
    /// Something was told of a session.
    News(SessionNews),
}

/// What is known of a session that is here.
pub(crate) struct OwnedSession {
    pub(crate) epoch: u64,
    pub(crate) state: Bytes,
    /// Its first record is on its way: the next one waits for it, so as not to be overtaken.
    pub(crate) is_opening: bool,
}

/// Everything about sessions that other replicas have, or may have.
pub(crate) struct Elsewhere {
    pub(crate) fleet: Arc<dyn SessionFleet>,
    /// This replica's instance.
    pub(crate) me: u128,
    pub(crate) owned: BTreeMap<Arc<str>, OwnedSession>,
    /// Sessions that are being taken over, and who waits for that.
    pub(crate) taking: BTreeMap<Arc<str>, Vec<WaitingRequest>>,
    /// Attempts to take a session over that the store did not answer, by their epoch: it may have
    /// carried them out all the same.
    unsure: BTreeMap<Arc<str>, u64>,
    /// Answers to `initialize` whose record has not been told yet.
    pub(crate) opened: BTreeMap<String, (RequestToken, McpAnswer)>,
    pub(crate) tasks: BTreeMap<u64, ForwardTask>,
    next_task: u64,
    pub(crate) sender: mpsc::UnboundedSender<Told>,
    told: mpsc::UnboundedReceiver<Told>,
    news: mpsc::Receiver<SessionNews>,
    pub(crate) clients: mpsc::UnboundedSender<ClientNews>,
    renew_at: Now,
    pub(crate) is_leaving: bool,
}

pub(crate) struct ForwardTask {
    #[expect(dead_code, reason = "it ends with the entry")]
    task: Owned,
    /// It carries a stream that ends only with its client.
    pub(crate) is_standing: bool,
}

impl Elsewhere {
    pub(crate) fn new(
        fleet: Arc<dyn SessionFleet>,
        clients: mpsc::UnboundedSender<ClientNews>,
        now: Now,
    ) -> Self {
        // Bounded by the tasks and the requests there are: each says one thing at its end.
        let (sender, told) = mpsc::unbounded_channel();
        Self {
            me: fleet.me().instance,
            news: fleet.news(),
            fleet,
            owned: BTreeMap::new(),
            taking: BTreeMap::new(),
            unsure: BTreeMap::new(),
            opened: BTreeMap::new(),
            tasks: BTreeMap::new(),
            next_task: 0,
            sender,
            told,
            clients,
            renew_at: now.after(RENEW_EVERY),
            is_leaving: false,
        }
    }

    /// Nobody can say whether a session is this replica's now.
    pub(crate) fn is_unsure(&mut self, session: &Arc<str>, epoch: u64) {
        if self.unsure.len() >= UNSURE_MAX {
            self.unsure.pop_first();
        }
        self.unsure.insert(Arc::clone(session), epoch);
    }

    /// Whether this replica was not told that it had taken a session over at this epoch: then
    /// nobody serves it.
    pub(crate) fn was_unsure(&mut self, session: &str, epoch: u64) -> bool {
        self.unsure.remove(session) == Some(epoch)
    }

    /// A session's record is another one.
    pub(crate) fn changed(&mut self, session: &Arc<str>, state: &Bytes) {
        let opened = self.opened.remove(&**session);
        if opened.is_some() {
            let (epoch, state) = (FIRST_EPOCH, Bytes::new());
            let owned = OwnedSession { epoch, state, is_opening: true };
            self.owned.insert(Arc::clone(session), owned);
        }
        // One that has just been let go is somebody else's to speak of.
        let Some(owned) = self.owned.get_mut(session) else { return };
        owned.state = state.clone();
        let Some((request, answer)) = opened else {
            return if !owned.is_opening {
                self.write(session)
            };
        };
        let (owner, epoch) = (Some(self.fleet.me()), owned.epoch);
        let record = StoredSession { owner, epoch, state: state.clone() };
        let created = self.fleet.create(session, record);
        let (sender, session, state) = (self.sender.clone(), Arc::clone(session), state.clone());
        self.begin(false, async move {
            if !created.await {
                tracing::debug!("the record of a new session is not written yet");
            }
            drop(sender.send(Told::Opened { request, answer, session, state }));
        });
    }

    /// The first record of a session is written, or will be: what has changed since is next.
    pub(crate) fn is_open(&mut self, session: &Arc<str>, first: &Bytes) {
        let Some(owned) = self.owned.get_mut(session) else { return };
        owned.is_opening = false;
        if owned.state != *first {
            self.write(session);
        }
    }

    fn write(&self, session: &Arc<str>) {
        let Some(OwnedSession { epoch, state, .. }) = self.owned.get(session) else { return };
        let (owner, epoch) = (Some(self.fleet.me()), *epoch);
        self.fleet.put(session, StoredSession { owner, epoch, state: state.clone() });
    }

    /// A session is free for others.
    pub(crate) fn released(&mut self, session: &Arc<str>, state: &Bytes) {
        if let Some(owned) = self.owned.remove(session) {
            let record = StoredSession { owner: None, epoch: owned.epoch, state: state.clone() };
            self.fleet.put(session, record);
        }
    }

    /// A session has ended.
    pub(crate) fn ended(&mut self, session: &Arc<str>) {
        if let Some(owned) = self.owned.remove(session) {
            self.fleet.delete(session, owned.epoch);
        }
    }

    /// When records are to be written again.
    pub(crate) fn renew_at(&self) -> Now {
        self.renew_at
    }

    /// Writes every record again if that is due: the store must not forget a session that lives.
    pub(crate) fn renew_due(&mut self, now: Now) {
        if now.reached(self.renew_at) {
            self.renew(now);
        }
    }

    /// Writes every record again.
    pub(crate) fn renew(&mut self, now: Now) {
        self.renew_at = now.after(RENEW_EVERY);
        let written = self.owned.iter().filter(|it| !it.1.is_opening);
        written.for_each(|(session, _)| self.write(session));
    }

    /// Finds out what becomes of a request.
    pub(crate) fn find(&mut self, waiting: WaitingRequest, words: Option<LastWords>) {
        if self.tasks.len() >= TASKS_MAX {
            return refuse(waiting.answer, McpAnswer::busy("the gateway is busy; try again"));
        }
        let is_standing = waiting.request.method == tidegate_mcp::hub::HttpMethod::Get;
        let search = find::Search {
            fleet: Arc::clone(&self.fleet),
            me: self.me,
            clients: self.clients.clone(),
            words,
        };
        let sender = self.sender.clone();
        self.begin(is_standing, async move {
            if let Some(told) = search.run(waiting).await {
                drop(sender.send(told));
            }
        });
    }

    pub(crate) fn begin(&mut self, is_standing: bool, work: impl Future<Output = ()> + 'static) {
        self.next_task += 1;
        let (number, sender) = (self.next_task, self.sender.clone());
        let task = task::spawn_owned("a session elsewhere", async move {
            work.await;
            drop(sender.send(Told::Ended(number)));
        });
        self.tasks.insert(number, ForwardTask { task, is_standing });
    }
}

/// The next thing that is heard; never, without other replicas.
pub(crate) async fn next_told(elsewhere: &mut Option<Elsewhere>) -> Told {
    let Some(elsewhere) = elsewhere else { return std::future::pending().await };
    tokio::select! {
        Some(told) = elsewhere.told.recv() => told,
        Some(news) = elsewhere.news.recv() => Told::News(news),
        else => std::future::pending().await,
    }
}

/// Answers a request with a refusal.
pub(crate) fn refuse(waiting: oneshot::Sender<Answered>, answer: McpAnswer) {
    // The client may have left.
    drop(waiting.send(Answered { answer, events: None }));
}

/// The answer where nobody can say what is right: the session may live.
pub(crate) fn not_now(reason: &str) -> McpAnswer {
    McpAnswer::busy(&format!("this session cannot be reached at the moment ({reason}); try again"))
}

/// The answer where a request that nothing can be said of by name was handed over and lost. No
/// `retry-after`: it may have been carried out.
fn broke_off() -> McpAnswer {
    McpAnswer::refusal(502, "the replica that had this session broke off; ask again if you must")
}
