//! Where a request goes, and what is done with what was found out of sessions elsewhere: the
//! driver's part of `elsewhere`.

use std::sync::Arc;

use memchr::memmem;
use tidegate_mcp::{
    hub::{
        Adoption, Event, HttpMethod, McpAnswer, McpRequest, PARKED, RequestToken, SessionRecord,
    },
    message::{Message, Params},
};
use tokio::sync::oneshot;

use super::Driver;
use crate::{
    elsewhere::{Elsewhere, OwnedSession, TRIES_MAX, Told, WaitingRequest, find, not_now, refuse},
    fleet::{Replica, SessionNews, StoredSession, TakenOver},
    handle::{Answered, Came, NOT_MINE},
};

/// A request for this replica, and who waits for its answer.
type Taken = (Box<McpRequest>, oneshot::Sender<Answered>);

impl Driver {
    /// The request, if it is to be answered here; otherwise it is seen to.
    pub(crate) fn here(
        &mut self,
        request: Box<McpRequest>,
        answer: oneshot::Sender<Answered>,
        came: Came,
    ) -> Option<Taken> {
        let Some(elsewhere) = &mut self.elsewhere else { return Some((request, answer)) };
        let owner = parked_at(elsewhere, &request);
        let session = request.session.as_deref();
        let is_missing = session.is_some_and(|it| !self.hub.holds(it) && elsewhere.fleet.gave(it));
        if owner.is_none() && !is_missing {
            return Some((request, answer));
        }
        let waiting = WaitingRequest { request, answer, tries: 0 };
        if came == Came::FromPeer {
            refuse(waiting.answer, McpAnswer::empty(NOT_MINE));
            return None;
        }
        let session = waiting.request.session.as_deref().unwrap_or_default();
        if let Some(others) = elsewhere.taking.get_mut(session) {
            others.push(waiting);
            return None;
        }
        let is_post = waiting.request.method == HttpMethod::Post;
        let words = is_post.then(|| self.hub.last_words(&waiting.request.body)).flatten();
        match owner {
            Some(owner) => {
                let search = find::Search {
                    fleet: Arc::clone(&elsewhere.fleet),
                    me: elsewhere.me,
                    clients: elsewhere.clients.clone(),
                    words,
                };
                let sender = elsewhere.sender.clone();
                elsewhere.begin(false, async move {
                    if let Some(told) = search.run_parked(waiting, owner).await {
                        drop(sender.send(told));
                    }
                });
            }
            None => elsewhere.find(waiting, words),
        }
        None
    }

    /// Something was found out of a session elsewhere.
    pub(crate) fn hear_elsewhere(&mut self, told: Told) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        match told {
            Told::Ended(number) => drop(elsewhere.tasks.remove(&number)),
            Told::Opened { request, answer, session, state } => {
                elsewhere.is_open(&session, &state);
                self.clients.answer(self.runtime.now(), request, answer);
                self.arm();
            }
            Told::News(SessionNews::Claimed { session, epoch }) => {
                if elsewhere.owned.get(&session).is_some_and(|it| it.epoch < epoch) {
                    elsewhere.owned.remove(&session);
                    tracing::info!("another replica has taken a session over");
                    self.tell(Event::LetGo { session });
                }
            }
            Told::News(SessionNews::Missed) => elsewhere.renew(self.runtime.now()),
            Told::Here(waiting) => {
                let session = waiting.request.session.as_deref().unwrap_or_default();
                match elsewhere.taking.get_mut(session) {
                    Some(others) => others.push(waiting),
                    None => self.answer_here(waiting),
                }
            }
            Told::Mine(waiting, record) => {
                let session = waiting.request.session.as_deref().unwrap_or_default();
                // Without a doubt about it, it has just ended here, and its record is to follow.
                match elsewhere.was_unsure(session, record.epoch) {
                    true => self.take_over(waiting, record),
                    false => self.hear_elsewhere(Told::Here(waiting)),
                }
            }
            Told::Free(waiting, record) => self.take_over(waiting, record),
            Told::Tried { session, record, taken } => self.taken_over(session, record, taken),
        }
    }

    /// The Hub answers, whether it has the session or not.
    fn answer_here(&mut self, waiting: WaitingRequest) {
        let WaitingRequest { request, answer, .. } = waiting;
        let token = request.token;
        let has_left = answer.is_closed();
        self.clients.wait(token, answer);
        self.tell(Event::Request(request));
        if has_left {
            self.tell(Event::RequestGone { request: token });
        }
    }

    /// A session has no owner that lives: it is to go on here.
    fn take_over(&mut self, waiting: WaitingRequest, stored: StoredSession) {
        let Some(session) = waiting.request.session.clone() else { return };
        let Some(elsewhere) = &mut self.elsewhere else { return };
        if self.hub.holds(&session) {
            return self.answer_here(waiting);
        }
        if let Some(others) = elsewhere.taking.get_mut(&*session) {
            return others.push(waiting);
        }
        if elsewhere.is_leaving {
            return refuse(waiting.answer, not_now("this replica is closing"));
        }
        let Some(record) = SessionRecord::read(&stored.state) else {
            return refuse(waiting.answer, not_now("its record cannot be read"));
        };
        if *record.caller != *waiting.request.caller {
            // Somebody else's is nobody's: the Hub says so.
            return self.answer_here(waiting);
        }
        let session: Arc<str> = session.into();
        let (owner, epoch) = (Some(elsewhere.fleet.me()), stored.epoch + 1);
        let record = StoredSession { owner, epoch, state: stored.state };
        let claim = elsewhere.fleet.claim(&session, stored.epoch, record.clone());
        elsewhere.taking.insert(Arc::clone(&session), vec![waiting]);
        let sender = elsewhere.sender.clone();
        elsewhere.begin(false, async move {
            let taken = claim.await;
            drop(sender.send(Told::Tried { session, record, taken }));
        });
    }

    /// An attempt to take a session over has ended.
    fn taken_over(&mut self, session: Arc<str>, record: StoredSession, taken: TakenOver) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        let waiting = elsewhere.taking.remove(&session).unwrap_or_default();
        match taken {
            TakenOver::Won => {
                let StoredSession { epoch, state, .. } = record;
                let owned = OwnedSession { epoch, state: state.clone(), is_opening: false };
                elsewhere.owned.insert(Arc::clone(&session), owned);
                if let Some(record) = SessionRecord::read(&state) {
                    let session = Arc::clone(&session);
                    self.tell(Event::Adopt(Box::new(Adoption { session, epoch, record })));
                }
                if self.hub.holds(&session) {
                    tracing::info!(epoch, "took a session over from another replica");
                    return waiting.into_iter().for_each(|it| self.answer_here(it));
                }
                // There is no room for it: somebody else may have some.
                self.elsewhere.iter_mut().for_each(|it| it.released(&session, &state));
                let answer = || not_now("there is no room for it here");
                waiting.into_iter().for_each(|it| refuse(it.answer, answer()));
            }
            TakenOver::Lost => {
                for mut waiting in waiting {
                    waiting.tries += 1;
                    if waiting.tries >= TRIES_MAX {
                        refuse(waiting.answer, not_now("its owner changes"));
                        continue;
                    }
                    let words = self.hub.last_words(&waiting.request.body);
                    if let Some(elsewhere) = &mut self.elsewhere {
                        elsewhere.find(waiting, words);
                    }
                }
            }
            TakenOver::Away(reason) => {
                elsewhere.is_unsure(&session, record.epoch);
                waiting.into_iter().for_each(|it| refuse(it.answer, not_now(reason)));
            }
        }
    }

    /// The answer, unless it opens a session whose record is to be written first.
    pub(crate) fn hold_opened(
        &mut self,
        request: RequestToken,
        answer: McpAnswer,
    ) -> Option<McpAnswer> {
        let (Some(elsewhere), Some(session)) = (&mut self.elsewhere, answer.session.clone()) else {
            return Some(answer);
        };
        elsewhere.opened.insert(session, (request, answer));
        None
    }

    /// Answers that were held and whose record nobody told are given.
    pub(crate) fn answer_opened(&mut self) {
        let Some(elsewhere) = self.elsewhere.as_mut().filter(|it| !it.opened.is_empty()) else {
            return;
        };
        for (request, answer) in std::mem::take(&mut elsewhere.opened).into_values() {
            self.clients.answer(self.runtime.now(), request, answer);
        }
    }

    /// The gateway leaves, and takes no session over any more. Whether there is anybody to hand its
    /// own to.
    pub(crate) fn begin_leaving(&mut self) -> bool {
        self.elsewhere.as_mut().map(|it| it.is_leaving = true).is_some()
    }

    /// Its sessions are handed over.
    pub(crate) fn release(&mut self) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        // A stream that only its client ends is not waited for: the client comes back elsewhere.
        elsewhere.tasks.retain(|_, it| !it.is_standing);
        let sessions = elsewhere.owned.len();
        tracing::info!(sessions, "handing sessions over to other replicas");
        self.tell(Event::Release);
    }

    /// Whether nothing is left that others are waited for, or wait for.
    pub(crate) fn is_released(&self) -> bool {
        let elsewhere = self.elsewhere.as_ref();
        self.hub.held() == 0
            && elsewhere.is_none_or(|it| it.tasks.is_empty() && it.taking.is_empty())
            && self.hub.sizes().calls == 0
    }
}

/// The other replica that has the call which a request comes back for, if one has.
fn parked_at(elsewhere: &Elsewhere, request: &McpRequest) -> Option<Replica> {
    let is_post = request.method == HttpMethod::Post;
    if !is_post || memmem::find(&request.body, PARKED.as_bytes()).is_none() {
        return None;
    }
    let Ok(Message::Request { params, .. }) = Message::parse(&request.body) else { return None };
    let state = Params::parse(params).ok()?.text("requestState")?;
    let owner = elsewhere.fleet.parked_at(state.strip_prefix(PARKED)?)?;
    (owner.instance != elsewhere.me).then_some(owner)
}
