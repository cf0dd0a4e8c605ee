//! Vectors from a route of the gateway's own, for `mcp.search.embeddings`.
//!
//! A search asks for the request's vector and takes the tools' that are known. Those of the tools
//! are asked for in the background, in batches, for each version of the tools that is searched.
//!
//! Rules kept here:
//! - A search waits [`FIND_WITHIN`] at most, for everything here together. What is missing then
//!   makes it degraded, never an error.
//! - The asking itself goes on for as long as the route allows, within [`ASK_WITHIN`], so that a
//!   route that hangs is known to the core as one; at most [`ASKED_MAX`] requests at once.
//! - A round that failed is made again, later each time, up to [`AGAIN_MAX`]. A tool is asked for
//!   once: what is known by its text is not asked for again.
//! - A route whose targets are different models is used only while one of them answers: after
//!   [`TURNS_MAX`] changes the tools are asked for no more.
//!
//! Left to the LLM plane: the request, with its failover, breakers and metrics.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_gateway::own_request::{AskRoute, OwnRequest};
use tidegate_mcp::listing::fingerprint;
use tidegate_runtime::{
    clock::timer_now,
    task::{self, Owned},
};
use tidegate_search::{Index, Vectors};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout, timeout_at};

use super::vectors::{KEPT_MAX, Space, Store, read, text_of};

/// How long a model may wait for a better ranking.
const FIND_WITHIN: Duration = Duration::from_millis(300);
/// How long one request to the route may take; its own timeouts come first, as a rule.
const ASK_WITHIN: Duration = Duration::from_secs(60);
/// Requests for vectors of searches under way at once.
const ASKED_MAX: usize = 16;
/// Texts in one request: local servers that take few take as many.
const BATCH: usize = 32;
/// Bytes of one answer: a batch of the longest vectors, as text.
const ANSWER_MAX: usize = 8 * 1024 * 1024;
/// After how long a failed round is made again: first, and at most.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// Times that another model than before may answer while the tools of one version are asked for.
const TURNS_MAX: usize = 3;
/// Answers to searches by another model, one after the other, until the tools are asked for anew.
const STRANGERS_MAX: usize = 8;

const PATH: &str = "/v1/embeddings";

/// A vector, and with which others it can be compared.
type InSpace = (Space, Vec<f32>);

/// What all versions of the tools share.
#[derive(Default)]
pub(crate) struct Embeddings {
    store: Rc<RefCell<Store>>,
    /// Whose vectors these are.
    route: RefCell<String>,
    asked: Rc<Cell<usize>>,
    strangers: Cell<usize>,
}

/// The vectors of one version of the tools, and the task that asks for them.
pub(super) struct Filling {
    route: String,
    state: watch::Receiver<State>,
    _task: Owned,
}

/// How far a filling is.
#[derive(Clone, Default)]
struct State {
    /// Whether the first round is over, one way or the other.
    has_tried: bool,
    is_complete: bool,
    known: Option<(Space, Arc<Vectors>)>,
}

/// What a search gets.
#[derive(Default)]
pub(super) struct Outside {
    /// The tools' vectors, and the request's.
    pub(super) vectors: Option<(Arc<Vectors>, Vec<f32>)>,
    /// Whether something is missing.
    pub(super) is_degraded: bool,
}

impl Embeddings {
    /// The vectors for a search, as far as they come in time.
    pub(super) async fn for_search(
        &self,
        ask_route: &AskRoute,
        route: &str,
        (index, filling): (&Arc<Index>, &RefCell<Option<Filling>>),
        text: &str,
    ) -> Outside {
        if index.documents().is_empty() {
            return Outside::default();
        }
        let until = timer_now() + FIND_WITHIN;
        let mut state = self.filled(ask_route, route, index, filling);
        let asking = self.ask_for_request(ask_route, route, text);
        // A round that has failed once is not waited for.
        let tried = timeout_at(until, state.wait_for(|it| it.has_tried)).await;
        let state = tried.ok().and_then(Result::ok).map(|it| it.clone()).unwrap_or_default();
        let request = match asking {
            Some(asking) => timeout_at(until, asking).await.ok().and_then(Result::ok).flatten(),
            None => None,
        };
        match (state.known, request) {
            (Some((space, vectors)), Some((asked, request))) if space == asked => {
                self.strangers.set(0);
                let vectors = Some((vectors, request));
                Outside { vectors, is_degraded: !state.is_complete }
            }
            (Some(_), Some(_)) => {
                self.met_a_stranger(filling);
                Outside { vectors: None, is_degraded: true }
            }
            _ => Outside { vectors: None, is_degraded: true },
        }
    }

    /// How far the vectors of a version are; asks for them if nobody does yet.
    fn filled(
        &self,
        ask_route: &AskRoute,
        route: &str,
        index: &Arc<Index>,
        filling: &RefCell<Option<Filling>>,
    ) -> watch::Receiver<State> {
        if *self.route.borrow() != route {
            route.clone_into(&mut self.route.borrow_mut());
            self.store.borrow_mut().clear();
        }
        let mut filling = filling.borrow_mut();
        let known = filling.take().filter(|it| it.route == route);
        let known = filling.insert(known.unwrap_or_else(|| {
            let (told, state) = watch::channel(State::default());
            let fill = Fill {
                ask_route: Rc::clone(ask_route),
                route: route.to_owned(),
                store: Rc::clone(&self.store),
                index: Arc::clone(index),
            };
            let task = task::spawn_owned("mcp search vectors", fill.run(told));
            Filling { route: route.to_owned(), state, _task: task }
        }));
        known.state.clone()
    }

    /// Asks for a request's vector; nothing if too many are asked for already.
    fn ask_for_request(
        &self,
        ask_route: &AskRoute,
        route: &str,
        text: &str,
    ) -> Option<oneshot::Receiver<Option<InSpace>>> {
        if self.asked.get() >= ASKED_MAX {
            return None;
        }
        let (tell, told) = oneshot::channel();
        let counted = Counted::new(&self.asked);
        let (ask_route, route, text) = (Rc::clone(ask_route), route.to_owned(), text.to_owned());
        task::spawn("mcp search request", async move {
            let found = ask(&ask_route, &route, &[&text]).await;
            drop(counted);
            let found =
                found.and_then(|(space, vectors)| Some((space, vectors.into_iter().next()?)));
            // The search may have gone on without it.
            let _ = tell.send(found);
        });
        Some(told)
    }

    /// Another model than the tools' answered. If that goes on, the tools are asked for anew.
    fn met_a_stranger(&self, filling: &RefCell<Option<Filling>>) {
        self.strangers.set(self.strangers.get() + 1);
        if self.strangers.get() >= STRANGERS_MAX {
            self.strangers.set(0);
            self.store.borrow_mut().clear();
            filling.take();
        }
    }
}

/// One more that is under way, until this is dropped.
struct Counted(Rc<Cell<usize>>);

impl Counted {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Asks for the vectors of one version of the tools.
struct Fill {
    ask_route: AskRoute,
    route: String,
    store: Rc<RefCell<Store>>,
    index: Arc<Index>,
}

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Done,
    Failed,
    /// Another model answered, and what was known is gone.
    Turned,
}

impl Fill {
    /// Until all are known.
    async fn run(self, told: watch::Sender<State>) {
        let texts: Vec<String> =
            self.index.documents().iter().take(KEPT_MAX).map(text_of).collect();
        let hashes: Vec<u64> = texts.iter().map(|text| fingerprint(&[text])).collect();
        let (mut again, mut turns) = (AGAIN, 0);
        loop {
            let before = self.store.borrow().count();
            let round = self.round(&texts, &hashes).await;
            let has_news = round != Round::Failed || self.store.borrow().count() != before;
            if has_news || !told.borrow().has_tried {
                self.publish(&hashes, &told);
            }
            match round {
                Round::Done => return,
                Round::Turned if turns == TURNS_MAX => {
                    tracing::warn!(
                        route = self.route,
                        "tools are found without `mcp.search.embeddings`: its route's targets are \
                         different models"
                    );
                    return;
                }
                Round::Turned => turns += 1,
                Round::Failed if again == AGAIN => {
                    tracing::warn!(
                        route = self.route,
                        "tools are found without `mcp.search.embeddings` until its route answers"
                    );
                }
                Round::Failed => {}
            }
            sleep(again).await;
            again = (again * 2).min(AGAIN_MAX);
        }
    }

    /// Asks for all that are not known, a batch at a time.
    async fn round(&self, texts: &[String], hashes: &[u64]) -> Round {
        let is_missing = |place: &usize| !self.store.borrow().has(hashes[*place]);
        let missing: Vec<usize> = (0..texts.len()).filter(is_missing).collect();
        for batch in missing.chunks(BATCH) {
            let asked: Vec<&str> = batch.iter().map(|place| texts[*place].as_str()).collect();
            let Some((space, vectors)) = ask(&self.ask_route, &self.route, &asked).await else {
                return Round::Failed;
            };
            let found = batch.iter().map(|place| hashes[*place]).zip(vectors).collect();
            if self.store.borrow_mut().put(space, found) {
                return Round::Turned;
            }
        }
        Round::Done
    }

    /// Tells searches what is known.
    fn publish(&self, hashes: &[u64], told: &watch::Sender<State>) {
        let known = self.store.borrow().vectors(hashes);
        told.send_modify(|state| {
            state.has_tried = true;
            state.is_complete = known.as_ref().is_some_and(|(.., is_complete)| *is_complete);
            state.known = known.map(|(space, vectors, _)| (space, Arc::new(vectors)));
        });
    }
}

/// The vectors of some texts, in their order, and their space.
async fn ask(ask_route: &AskRoute, route: &str, texts: &[&str]) -> Option<(Space, Vec<Vec<f32>>)> {
    let body = json!({ "model": route, "input": texts, "encoding_format": "float" }).to_string();
    let request = OwnRequest { path: PATH, body: body.into(), answer_max: ANSWER_MAX };
    let asking = ask_route(request);
    let said = timeout(ASK_WITHIN, asking).await.ok()??;
    let (body, count) = (said.body, texts.len());
    // A batch is a megabyte of numbers: too much to read on the MCP thread.
    let vectors = tokio::task::spawn_blocking(move || read(&body, count)).await.ok()??;
    let dimensions = vectors.first()?.len();
    Some((Space { model: said.model, dimensions }, vectors))
}
