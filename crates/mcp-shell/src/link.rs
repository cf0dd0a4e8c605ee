//! A kept connection to one server, at work: connects, converses, carries calls.
//!
//! `making` has how a connection is made, in whichever era the server speaks; `listening` what a
//! server without sessions is asked to tell of its own accord, `freshness` whether it is still
//! there; `legs` what is different in a group of equivalent servers.
//!
//! The machines decide ([`tidegate_mcp::link`], [`tidegate_mcp::call`]); here their words become
//! sockets and timers.
//!
//! Rules kept here:
//! - Connecting is a task of the link's, not of the call that asked for it: a call that is
//!   cancelled does not take the attempt away from the others that wait for it.
//! - Whoever speaks the stateless era has no session to lose: what the client told is said again
//!   with every request.
//! - A call waits in line while its server has as many calls as it may have at once; it takes a
//!   permit of the core's only when its turn has come, and its time begins then.

mod freshness;
mod legs;
mod listening;
mod making;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_core::time::{Millis, Now};
use tidegate_mcp::{
    call::{Call, Code, Do, End, Errand, Unavailable, of_new_session},
    cause::{Cause, Delivery},
    era::{Era, is_about_the_era, may_be_about_the_era},
    health::{self, Reply as Meaning},
    link::{self as machine, Generation, LinkState},
    listing::ServerInfo,
    message::{ErrorObject, Params},
    stateless::discover,
};
use tidegate_runtime::{
    clock::timer_now,
    rng,
    task::{self, Owned},
};
use tokio::sync::{Notify, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::{
    client::Client,
    conversation::{Conversation, Reply, Voice},
    ground::Ground,
    hello::Hello,
    party::Party,
    server::Server,
    transport::Failure,
};

/// Whose connection it is.
pub(crate) enum Owner {
    /// One client's.
    Client(Weak<Client>),
    /// The gateway's own; a shared child serves every client over it.
    Gateway,
}

/// A kept connection.
pub(crate) struct Link {
    pub(crate) server: Rc<Server>,
    pub(super) ground: Rc<Ground>,
    pub(super) owner: Owner,
    pub(super) hello: Hello,
    /// The eras to try, in this order.
    wishes: &'static [Era],
    pub(super) machine: RefCell<machine::Link>,
    talk: RefCell<Option<(Generation, Rc<Conversation>)>>,
    /// An attempt has ended, or the link was closed.
    turned: Notify,
    connecting: RefCell<Option<Owned>>,
    pub(super) keepalive: RefCell<Option<Owned>>,
    info: RefCell<Option<Rc<ServerInfo>>>,
    level: RefCell<Option<String>>,
    pub(super) subscriptions: RefCell<BTreeSet<String>>,
    /// Those have changed: whoever listens asks anew.
    resubscribed: Rc<Notify>,
    listening: RefCell<Vec<Owned>>,
    /// A look whether the server still answers, which sessions that open share.
    checking: RefCell<Option<Rc<freshness::Check>>>,
    /// When the connection was made, and when something last went over it.
    pub(super) made_at: Cell<Now>,
    pub(super) sent_at: Cell<Now>,
    pub(super) heard_at: Cell<Now>,
    this: Weak<Link>,
}

/// A request to a server.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) errand: Errand,
    pub(crate) party: Option<Rc<Party>>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Answered {
    /// The text of the server's `result`, or of its `error`.
    Reply(Result<Bytes, Bytes>),
    /// What the client hears instead.
    Unavailable(Unavailable),
}

/// How an attempt at a server went.
#[expect(clippy::large_enum_variant, reason = "made and taken apart at once, once per attempt")]
pub(super) enum Carried {
    /// It is over; the server's answer, if there was one.
    Ended(Call, End, Option<Result<Bytes, Bytes>>),
    /// What the client hears is known, and nobody else may be asked.
    Known(Unavailable),
}

impl Link {
    /// A link that speaks what its client speaks if the server does, and else the other era. The
    /// gateway's own asks over HTTP for the stateless one first: a server of either era can refuse
    /// that unharmed. A program may not answer a question it does not know at all, so it is
    /// greeted in the other order.
    pub(crate) fn new(
        ground: &Rc<Ground>,
        server: &Rc<Server>,
        hello: Hello,
        owner: Owner,
    ) -> Rc<Self> {
        let is_asking = matches!(owner, Owner::Gateway) && !server.is_child();
        let wishes: &'static [Era] = match hello.era {
            Era::Sessions if !is_asking => &[Era::Sessions, Era::Stateless],
            Era::Sessions | Era::Stateless => &[Era::Stateless, Era::Sessions],
        };
        Self::wishing(ground, server, (hello, owner), wishes)
    }

    /// The gateway's one link to a server of the stateless era, over which all clients may speak.
    pub(crate) fn lane(ground: &Rc<Ground>, server: &Rc<Server>) -> Rc<Self> {
        Self::wishing(ground, server, (Hello::own(), Owner::Gateway), &[Era::Stateless])
    }

    fn wishing(
        ground: &Rc<Ground>,
        server: &Rc<Server>,
        (hello, owner): (Hello, Owner),
        wishes: &'static [Era],
    ) -> Rc<Self> {
        Rc::new_cyclic(|this| Self {
            server: Rc::clone(server),
            ground: Rc::clone(ground),
            owner,
            hello,
            wishes,
            machine: RefCell::new(machine::Link::new()),
            talk: RefCell::default(),
            turned: Notify::new(),
            connecting: RefCell::default(),
            keepalive: RefCell::default(),
            info: RefCell::default(),
            level: RefCell::default(),
            subscriptions: RefCell::default(),
            resubscribed: Rc::default(),
            listening: RefCell::default(),
            checking: RefCell::default(),
            made_at: Cell::new(ground.now()),
            sent_at: Cell::new(ground.now()),
            heard_at: Cell::new(ground.now()),
            this: Weak::clone(this),
        })
    }

    /// Asks the server, with everything that health and lost connections ask for.
    pub(crate) async fn ask(&self, ask: Ask) -> Answered {
        let limit = self.server.call_timeout;
        let Some(_turn) = self.turn(limit).await else {
            let busy = Unavailable { code: Code::Busy, ..self.unavailable(Cause::Busy) };
            return self.told(Answered::Unavailable(busy));
        };
        let until = timer_now() + Duration::from_millis(limit.0);
        let mut call = Call::new(&self.server.name, ask.errand, self.ground.now(), limit);
        let next = self.begin(&mut call);
        match self.carry(call, next, &ask, until).await {
            Carried::Ended(_, End::Answered, Some(reply)) => self.told(Answered::Reply(reply)),
            Carried::Ended(_, End::Unavailable(unavailable), _) | Carried::Known(unavailable) => {
                self.told(Answered::Unavailable(unavailable))
            }
            Carried::Ended(..) => {
                self.told(Answered::Unavailable(self.unavailable(Cause::Closing)))
            }
        }
    }

    /// A turn at the server, if one comes free in time.
    async fn turn(&self, within: Millis) -> Option<SemaphorePermit<'_>> {
        let turns = &self.server.turns;
        // One that is free is taken even where there is no time to wait.
        if let Ok(turn) = turns.try_acquire() {
            return Some(turn);
        }
        let until = timer_now() + Duration::from_millis(within.0);
        timeout_at(until, turns.acquire()).await.ok()?.ok()
    }

    /// Does what the machine of a call says, up to its end.
    async fn carry(&self, mut call: Call, mut next: Do, ask: &Ask, until: Instant) -> Carried {
        let mut reply = None;
        let end = loop {
            next = match next {
                Do::Connect(generation) => {
                    self.connect(generation);
                    self.after_connect(&mut call, generation, until).await
                }
                Do::Wait(generation) => self.after_connect(&mut call, generation, until).await,
                Do::Send(generation) => {
                    let (then, answer) = self.send(&mut call, generation, ask).await;
                    reply = answer;
                    then
                }
                Do::End(end) => break end,
                // The machine is told only what it waits for.
                Do::Nothing => break End::Connected,
            };
            if let Some(known) = call.verdict() {
                // The client need not wait until it is known whether the server is to blame.
                self.find_out(call, next, until);
                return Carried::Known(known);
            }
        };
        Carried::Ended(call, end, reply)
    }

    /// Sees to it that the connection is there, as a call would: with a permit, once.
    pub(crate) async fn bring_up(&self, within: Millis) -> Result<(), Unavailable> {
        let until = timer_now() + Duration::from_millis(within.0);
        let mut call = Call::new(&self.server.name, Errand::Connect, self.ground.now(), within);
        let next = self.begin(&mut call);
        match self.brought(&mut call, next, until).await {
            End::Answered | End::Connected => Ok(()),
            End::Unavailable(unavailable) => Err(unavailable),
        }
    }

    async fn brought(&self, call: &mut Call, mut next: Do, until: Instant) -> End {
        loop {
            next = match next {
                Do::Connect(generation) => {
                    self.connect(generation);
                    self.after_connect(call, generation, until).await
                }
                Do::Wait(generation) => self.after_connect(call, generation, until).await,
                Do::Send(_) => return End::Connected,
                Do::End(end) => return end,
                Do::Nothing => return End::Unavailable(self.unavailable(Cause::Closing)),
            };
        }
    }

    /// A call whose client has its answer goes on alone until it knows what to report.
    fn find_out(&self, mut call: Call, mut next: Do, until: Instant) {
        let Some(this) = self.this.upgrade() else { return };
        task::spawn("end of a broken call", async move {
            loop {
                next = match next {
                    Do::Connect(generation) => {
                        this.connect(generation);
                        this.after_connect(&mut call, generation, until).await
                    }
                    Do::Wait(generation) => this.after_connect(&mut call, generation, until).await,
                    Do::Send(_) | Do::Nothing | Do::End(_) => return,
                };
            }
        });
    }

    fn begin(&self, call: &mut Call) -> Do {
        let (live, now) = (self.ground.live(), self.ground.now());
        self.ground.with_notes(|notes| {
            let machine = &mut *self.machine.borrow_mut();
            call.begin(&live.core, machine, now, rng::draw(), notes)
        })
    }

    /// Waits until an attempt has ended, and tells the call.
    async fn after_connect(&self, call: &mut Call, generation: Generation, until: Instant) -> Do {
        let settled = timeout_at(until, self.settled(generation)).await;
        let now = self.ground.now();
        self.ground.with_notes(|notes| {
            let machine = &mut *self.machine.borrow_mut();
            match settled {
                Ok(None) => call.connected(machine, now, notes),
                Ok(Some(failure)) => call.connect_failed(machine, now, &failure, notes),
                Err(_) => call.timed_out(machine, now, notes),
            }
        })
    }

    /// Waits until an attempt to connect has ended, as long as one may take.
    pub(crate) async fn first_attempt(&self) {
        let ended = async {
            loop {
                let mut turned = std::pin::pin!(self.turned.notified());
                turned.as_mut().enable();
                {
                    let machine = self.machine.borrow();
                    let is_failed = machine.failure(machine.generation()).is_some();
                    if machine.state() == LinkState::Ready || is_failed {
                        return;
                    }
                }
                turned.await;
            }
        };
        let within = Duration::from_millis(self.server.initialize_within().0);
        drop(tokio::time::timeout(within, ended).await);
    }

    /// Waits for the end of an attempt; its failure, if it failed.
    pub(super) async fn settled(&self, generation: Generation) -> Option<Failure> {
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            {
                let machine = self.machine.borrow();
                let is_under_way =
                    machine.state() == LinkState::Connecting && machine.generation() == generation;
                if !is_under_way {
                    return machine.failure(generation);
                }
            }
            turned.await;
        }
    }

    async fn send(
        &self,
        call: &mut Call,
        generation: Generation,
        ask: &Ask,
    ) -> (Do, Option<Result<Bytes, Bytes>>) {
        let talk =
            self.talk.borrow().as_ref().filter(|it| it.0 == generation).map(|it| Rc::clone(&it.1));
        self.sent_at.set(self.ground.now());
        let reply = match talk {
            Some(talk) => {
                let left = call.deadline().since(self.ground.now());
                // Params were taken apart before, so they can be again.
                let params = Params::parse(ask.params.as_deref()).unwrap_or_default();
                let client = ask.party.as_ref().and_then(|party| party.client.upgrade());
                let hello = client.as_ref().map_or(&self.hello, |client| &client.hello);
                let voice = Voice { hello, party: ask.party.clone() };
                let reply = talk.ask(ask.method, params, voice, left).await;
                self.doubted(reply, talk.era())
            }
            None => Reply::Failed(Failure::session_lost()),
        };
        let now = self.ground.now();
        if matches!(reply, Reply::Answer(_)) {
            self.heard_at.set(now);
        }
        let meaning = match &reply {
            Reply::Answer(Ok(_)) => Ok(health::of_answer(None)),
            Reply::Answer(Err(error)) => Ok(meaning_of(error)),
            Reply::Failed(failure) => Err(*failure),
        };
        let next = self.ground.with_notes(|notes| {
            let machine = &mut *self.machine.borrow_mut();
            match meaning {
                Ok(meaning) => call.answered(machine, now, meaning, notes),
                Err(Failure { cause: Cause::TimedOut(_), delivery: Delivery::Maybe, .. }) => {
                    call.timed_out(machine, now, notes)
                }
                Err(failure) => call.broken(machine, now, &failure, notes),
            }
        });
        let answer = match reply {
            Reply::Answer(Ok(result)) if ask.party.is_some() => Some(Ok(self.told_new(result))),
            Reply::Answer(answer) => Some(answer),
            Reply::Failed(_) => None,
        };
        (next, answer)
    }

    /// A client's result, which says so if it is the first of a session that was regained.
    fn told_new(&self, result: Bytes) -> Bytes {
        if self.is_stateless() || !self.machine.borrow_mut().tell_new() {
            return result;
        }
        let text = std::str::from_utf8(&result).ok();
        text.and_then(of_new_session).map_or(result, Bytes::from)
    }

    /// A server that does not speak the era any more refused the request unread, in words of the
    /// other or in none: it is greeted anew.
    pub(super) fn doubted(&self, reply: Reply, spoken: Era) -> Reply {
        let is_doubtful = match &reply {
            Reply::Answer(Err(error)) => read_error(error).is_some_and(|it| is_about_the_era(&it)),
            Reply::Answer(Ok(_)) => false,
            Reply::Failed(failure) => may_be_about_the_era(failure, spoken),
        };
        if !is_doubtful {
            return reply;
        }
        self.server.set_eras(Default::default());
        Reply::Failed(Failure::session_lost())
    }

    /// No keepalive any more, from this moment on.
    pub(crate) fn rest(&self) {
        self.keepalive.borrow_mut().take();
    }

    /// Nothing is sent any more, no keepalive either, and nobody connects.
    pub(crate) fn stop(&self) {
        self.keepalive.borrow_mut().take();
        self.listening.borrow_mut().clear();
        self.machine.borrow_mut().close();
        self.connecting.borrow_mut().take();
        self.turned.notify_waiters();
    }

    /// Closes the link in good order: the server is told.
    pub(crate) async fn close(&self) {
        self.stop();
        let talk = self.talk.borrow_mut().take();
        if let Some((_, talk)) = talk {
            talk.close().await;
        }
    }

    /// The conversation under way, if there is one that is ready.
    pub(crate) fn conversation(&self) -> Option<Rc<Conversation>> {
        let is_ready = self.machine.borrow().state() == LinkState::Ready;
        let talk = self.talk.borrow();
        talk.as_ref().filter(|_| is_ready).map(|(_, talk)| Rc::clone(talk))
    }

    /// Whether the server is spoken to without a session.
    pub(crate) fn is_stateless(&self) -> bool {
        self.talk.borrow().as_ref().is_some_and(|(_, talk)| talk.is_stateless())
    }

    /// Whether clients may still speak over it: the gateway's own serves them while the server is
    /// spoken to without sessions (or is a program that all share), a client's own while the era
    /// that it speaks is not known to be gone.
    pub(crate) fn is_fit(&self) -> bool {
        let eras = self.server.eras();
        match self.owner {
            Owner::Gateway => {
                self.server.is_shared_child() || eras.speaks(Era::Stateless) == Some(true)
            }
            Owner::Client(_) => eras.speaks(self.era()) != Some(false),
        }
    }

    /// What asks the server for a sign of life.
    pub(crate) fn ping(&self) -> &'static str {
        if self.is_stateless() { discover::METHOD } else { "ping" }
    }

    /// The era that is spoken over it.
    pub(crate) fn era(&self) -> Era {
        if self.is_stateless() { Era::Stateless } else { Era::Sessions }
    }

    /// On whose behalf lists are fetched over it: its client's, or everybody's who has looked.
    pub(super) fn speaks_for(&self) -> Vec<Hello> {
        let mut all = vec![self.hello.clone()];
        if self.is_stateless() && matches!(self.owner, Owner::Gateway) {
            all.extend(self.server.shelf.hellos_in(Era::Stateless));
        }
        all
    }

    /// What the server said when it was greeted last.
    pub(crate) fn info(&self) -> Option<Rc<ServerInfo>> {
        self.info.borrow().clone()
    }

    pub(crate) fn downgrade(&self) -> Weak<Self> {
        Weak::clone(&self.this)
    }

    /// The generation that a conversation belongs to, if it is the one at work.
    pub(super) fn generation_of(&self, talk: &Rc<Conversation>) -> Option<Generation> {
        let at_work = self.talk.borrow();
        at_work.as_ref().filter(|it| Rc::ptr_eq(&it.1, talk)).map(|it| it.0)
    }

    /// The connection of this generation is gone.
    pub(super) fn lost(&self, generation: Generation) -> bool {
        let is_news = self.machine.borrow_mut().lost(generation);
        self.turned.notify_waiters();
        is_news
    }

    /// The client wants logs from this level on, now and after a re-initialise.
    pub(crate) fn set_level(&self, level: &str) {
        *self.level.borrow_mut() = Some(level.to_owned());
    }

    /// Whether the server was told which log lines are wanted.
    pub(crate) fn has_level(&self) -> bool {
        self.level.borrow().is_some()
    }

    /// The client, if the link is one client's.
    pub(super) fn client(&self) -> Option<Rc<Client>> {
        match &self.owner {
            Owner::Client(client) => client.upgrade(),
            Owner::Gateway => None,
        }
    }

    fn unavailable(&self, cause: Cause) -> Unavailable {
        let server = self.server.name.to_string();
        Unavailable { server, cause, retry_after: None, code: Code::BackendUnavailable }
    }

    /// Counts how a call ended.
    fn told(&self, answered: Answered) -> Answered {
        let outcome = match &answered {
            Answered::Reply(reply) => outcome_of(reply),
            Answered::Unavailable(unavailable) => unavailable.code.word(),
        };
        self.ground.gateway().metrics.mcp_call(&self.server.name, outcome);
        answered
    }
}

/// The word for an answer in metrics.
fn outcome_of(reply: &Result<Bytes, Bytes>) -> &'static str {
    let Err(error) = reply else { return "success" };
    match meaning_of(error) {
        Meaning::Ended(kind) => kind.word(),
        Meaning::SessionLost => "transport",
    }
}

pub(super) fn read_error(error: &[u8]) -> Option<ErrorObject<'_>> {
    serde_json::from_slice::<&RawValue>(error).ok().map(ErrorObject::read)
}

/// What an `error` says of its server.
fn meaning_of(error: &[u8]) -> Meaning {
    let read = read_error(error);
    health::of_answer(read.as_ref().map(|error| (error.code, error.message.as_str())))
}
