//! One request to a server, from its turn to its answer, with everything that health and lost
//! connections ask for; or only a connection, for who needs one.
//!
//! ```text
//!   waits for a turn ─▶ (core: permit) ─▶ connecting ◀─▶ sent ─▶ ended: its owner is told
//! ```
//! The machine of a call decides ([`crate::call`]); here its words become requests and deadlines.
//!
//! Rules kept here:
//! - A call waits in line while its server has as many calls as it may have at once; it takes a
//!   permit of the core's only when its turn has come, and its time begins then. In a group the
//!   permit was taken before, because the core chooses the server; a wait that was in vain gives it
//!   back.
//! - A client that may be told already is told: the exchange goes on alone until it knows what to
//!   report.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{
    outcome::OutcomeKind,
    time::{Millis, Now},
};

use super::connection::{Asker, Outbound, OutboundParams, ServerReply};
use super::effect::{Effect, Metric};
use super::ids::{CallId, ConnectionId, ExchangeId, JoinId, LinkId, ServerId};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    call::{Action, Call, Code, End, Replayability, Unavailable, say_new},
    cause::{Cause, Delivery},
    health::{self, Failure, Reply as Meaning},
    link::{Generation, Link},
    message::read_error,
};

/// Who hears how an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeOwner {
    /// A client's call.
    Call(CallId),
    /// A client's call that only waits for it to be over.
    Before(CallId),
    /// A server on its way into a session.
    Join(JoinId),
    /// The same, which only waits for it to be over.
    BeforeJoin(JoinId),
    /// A keepalive that makes the connection again.
    Keepalive(LinkId),
    /// The question whether a server still answers.
    Check(LinkId),
    /// Nobody.
    Nobody,
}

/// What is asked of a server.
#[derive(Debug)]
pub(super) struct Inquiry {
    pub(super) method: &'static str,
    /// An object as text.
    pub(super) params: Option<Arc<str>>,
    pub(super) origin: Option<CallId>,
}

/// How an exchange ended.
pub(super) enum ExchangeEnd {
    /// It is over; the server's answer, if there was one. How long it waited for its turn.
    Ended { call: Box<Call>, end: End, reply: Option<Result<Bytes, Bytes>>, waited: Millis },
    /// What the client hears is known, and nobody else may be asked.
    Known(Unavailable),
}

enum ExchangeStage {
    /// In the line of its server, until then.
    Turn { until: Now },
    /// An attempt to connect is under way.
    Connecting(Generation),
    /// The request was sent.
    Sent { talk: ConnectionId },
}

/// One request to a server.
pub(super) struct Exchange {
    link: LinkId,
    server: ServerId,
    /// What is asked; nothing if only the connection is wanted.
    inquiry: Option<Inquiry>,
    call: Call,
    owner: ExchangeOwner,
    stage: ExchangeStage,
    /// When it must be over.
    until: Now,
    asked_at: Now,
    waited: Millis,
    /// Whether the core has admitted it already, as one attempt in a group.
    is_admitted: bool,
    has_turn: bool,
    /// The client has been told.
    is_told: bool,
    reply: Option<Result<Bytes, Bytes>>,
}

impl Hub {
    /// Asks a server over a link.
    pub(super) fn ask(
        &mut self,
        env: &mut Env<'_>,
        link: LinkId,
        inquiry: Inquiry,
        replayability: Replayability,
        owner: ExchangeOwner,
    ) -> ExchangeId {
        let server = self.links.get(link).map(|it| it.server);
        let kept = server.and_then(|it| self.servers.get(it));
        let limit = kept.map_or(Millis::ZERO, |it| it.call_timeout);
        let name = kept.map(|it| Arc::clone(&it.name)).unwrap_or_default();
        let call = Call::new(&name, replayability, env.now, limit);
        self.begin_exchange(env, link, call, Some(inquiry), owner, Some(limit), false)
    }

    /// One attempt of a call that the core has admitted to this server; it waits for its turn for
    /// at most `patience`.
    pub(super) fn attempt(
        &mut self,
        env: &mut Env<'_>,
        link: LinkId,
        call: Call,
        inquiry: Inquiry,
        owner: ExchangeOwner,
        patience: Millis,
    ) -> ExchangeId {
        self.begin_exchange(env, link, call, Some(inquiry), owner, Some(patience), true)
    }

    /// Sees to it that the connection is there, as a call would: with a permit, once.
    pub(super) fn bring_up(
        &mut self,
        env: &mut Env<'_>,
        link: LinkId,
        within: Millis,
        owner: ExchangeOwner,
    ) -> ExchangeId {
        let server = self.links.get(link).map(|it| it.server);
        let name = server.map(|it| self.server_name(it)).unwrap_or_default();
        let call = Call::new(&name, Replayability::Connect, env.now, within);
        self.begin_exchange(env, link, call, None, owner, None, false)
    }

    /// The same for a call that the core has admitted to this server.
    pub(super) fn bring(
        &mut self,
        env: &mut Env<'_>,
        link: LinkId,
        call: Call,
        owner: ExchangeOwner,
    ) -> ExchangeId {
        self.begin_exchange(env, link, call, None, owner, None, true)
    }

    #[expect(clippy::too_many_arguments, reason = "the four ways above meet here")]
    fn begin_exchange(
        &mut self,
        env: &mut Env<'_>,
        link: LinkId,
        call: Call,
        inquiry: Option<Inquiry>,
        owner: ExchangeOwner,
        patience: Option<Millis>,
        is_admitted: bool,
    ) -> ExchangeId {
        let server = self.links.get(link).map_or(self.no_server, |it| it.server);
        let until = call.deadline();
        let id = self.exchanges.insert(Exchange {
            link,
            server,
            inquiry,
            call,
            owner,
            stage: ExchangeStage::Turn { until: env.now.after(patience.unwrap_or_default()) },
            until,
            asked_at: env.now,
            waited: Millis::ZERO,
            is_admitted,
            has_turn: false,
            is_told: false,
            reply: None,
        });
        let needs_turn = patience.is_some();
        if !needs_turn {
            self.begin_carrying(env, id, true);
        } else if let Some(server) = self.servers.get_mut(server) {
            if server.turns > 0 && server.turn_queue.is_empty() {
                server.turns -= 1;
                if let Some(exchange) = self.exchanges.get_mut(id) {
                    exchange.has_turn = true;
                }
                self.begin_carrying(env, id, true);
            } else {
                server.turn_queue.push_back(id);
                self.schedule.arm(Task::Exchange(id), env.now.after(patience.unwrap_or_default()));
            }
        } else {
            self.begin_carrying(env, id, true);
        }
        id
    }

    /// Looks at an exchange that waits.
    pub(super) fn run_exchange(&mut self, env: &mut Env<'_>, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        match exchange.stage {
            ExchangeStage::Turn { until } => self.take_turn(env, id, until),
            ExchangeStage::Connecting(generation) => self.after_connect(env, id, generation),
            ExchangeStage::Sent { .. } => {}
        }
    }

    fn take_turn(&mut self, env: &mut Env<'_>, id: ExchangeId, until: Now) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let Some(server) = self.servers.get_mut(exchange.server) else {
            // A reload took it away: its link says so.
            return self.begin_carrying(env, id, true);
        };
        let is_first = server.turn_queue.front() == Some(&id);
        if is_first && server.turns > 0 {
            server.turn_queue.pop_front();
            server.turns -= 1;
            exchange.has_turn = true;
            if server.turns > 0
                && let Some(next) = server.turn_queue.front()
            {
                self.schedule.wake(Task::Exchange(*next));
            }
            self.schedule.disarm(Task::Exchange(id));
            return self.begin_carrying(env, id, true);
        }
        if env.now.reached(until) {
            server.turn_queue.retain(|it| *it != id);
            self.begin_carrying(env, id, false);
        }
    }

    /// Its turn has come, or has not.
    fn begin_carrying(&mut self, env: &mut Env<'_>, id: ExchangeId, is_turn: bool) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let waited = env.now.since(exchange.asked_at);
        exchange.waited = waited;
        let is_admitted = exchange.is_admitted;
        if exchange.inquiry.is_some() {
            exchange.call.waited(waited);
            exchange.until = exchange.call.deadline();
        }
        if !is_turn && !is_admitted {
            let busy = self.unavailable_at(id, Cause::Busy);
            let busy = Unavailable { code: Code::Busy, ..busy };
            return self.end_exchange(env, id, End::Unavailable(busy));
        }
        let next = self.with_call(env, id, |call, link, env| match (is_admitted, is_turn) {
            (true, true) => call.go(link, env.now, env.notes),
            (true, false) => call.no_turn(env.now),
            (false, _) => {
                let draw = env.random.draw();
                call.begin(env.core, link, env.now, draw, env.notes)
            }
        });
        self.carry(env, id, next);
    }

    /// Talks to the machine of a call, and of its link; one that is gone is closed.
    fn with_call<R: Default>(
        &mut self,
        env: &mut Env<'_>,
        id: ExchangeId,
        talk: impl FnOnce(&mut Call, &mut Link, &mut Env<'_>) -> R,
    ) -> R {
        let Some(exchange) = self.exchanges.get_mut(id) else { return R::default() };
        match self.links.get_mut(exchange.link) {
            Some(link) => talk(&mut exchange.call, &mut link.machine, env),
            None => {
                let mut gone = Link::new();
                gone.close();
                talk(&mut exchange.call, &mut gone, env)
            }
        }
    }

    /// Does what the machine of a call says, as far as it goes.
    fn carry(&mut self, env: &mut Env<'_>, id: ExchangeId, next: Action) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let link = exchange.link;
        let is_connect_only = exchange.inquiry.is_none();
        match next {
            Action::Connect(generation) => {
                exchange.stage = ExchangeStage::Connecting(generation);
                self.connect(env, link, generation);
                self.after_connect(env, id, generation);
            }
            Action::Wait(generation) => {
                exchange.stage = ExchangeStage::Connecting(generation);
                self.after_connect(env, id, generation);
            }
            Action::Send(_) if is_connect_only => self.end_exchange(env, id, End::Connected),
            Action::Send(generation) => {
                if exchange.is_told {
                    return self.forget_exchange(id);
                }
                self.send_exchange(env.now, id, generation);
            }
            Action::End(end) => self.end_exchange(env, id, end),
            Action::Nothing if is_connect_only => {
                let closing = self.unavailable_at(id, Cause::Closing);
                self.end_exchange(env, id, End::Unavailable(closing));
            }
            // The machine is told only what it waits for.
            Action::Nothing => self.end_exchange(env, id, End::Connected),
        }
    }

    /// Waits until an attempt has ended, and tells the call.
    fn after_connect(&mut self, env: &mut Env<'_>, id: ExchangeId, generation: Generation) {
        let Some(exchange) = self.exchanges.get(id) else { return };
        let (link, until) = (exchange.link, exchange.until);
        let settled = self.settled(link, generation);
        if settled.is_none() && !env.now.reached(until) {
            if let Some(link) = self.links.get_mut(link) {
                link.waiters.push(Task::Exchange(id));
            }
            return self.schedule.arm(Task::Exchange(id), until);
        }
        self.schedule.disarm(Task::Exchange(id));
        self.is_health_doubtful |= self.exchanges.get(id).is_some_and(|it| it.call.is_trial());
        let next = self.with_call(env, id, |call, link, env| match settled {
            Some(None) => call.connected(link, env.now, env.notes),
            Some(Some(failure)) => call.connect_failed(link, env.now, &failure, env.notes),
            None => call.timed_out(link, env.now, env.notes),
        });
        self.go_on(env, id, next);
    }

    /// The next step, unless the client may be told already.
    fn go_on(&mut self, env: &mut Env<'_>, id: ExchangeId, next: Action) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if exchange.is_told {
            return match next {
                Action::Connect(_) | Action::Wait(_) => self.carry(env, id, next),
                Action::Send(_) | Action::Nothing | Action::End(_) => self.forget_exchange(id),
            };
        }
        let known = exchange.call.verdict().filter(|_| exchange.inquiry.is_some());
        let Some(known) = known else { return self.carry(env, id, next) };
        // The client need not wait until it is known whether the server is to blame.
        exchange.is_told = true;
        let owner = std::mem::replace(&mut exchange.owner, ExchangeOwner::Nobody);
        let (server, had_turn) = (exchange.server, std::mem::take(&mut exchange.has_turn));
        if had_turn {
            self.give_turn_back(server);
        }
        self.count_exchange(server, known.code.word());
        self.tell_owner(env, owner, ExchangeEnd::Known(known));
        self.go_on(env, id, next);
    }

    fn send_exchange(&mut self, now: Now, id: ExchangeId, generation: Generation) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let asker = Asker::Exchange(id);
        let Some(link) = self.links.get_mut(exchange.link) else {
            let lost = ServerReply::Failed(Failure::session_lost());
            return self.replies.push_back((asker, lost));
        };
        link.sent_at = now;
        let Some((_, talk)) = link.talk.filter(|it| it.0 == generation) else {
            let lost = ServerReply::Failed(Failure::session_lost());
            return self.replies.push_back((asker, lost));
        };
        exchange.stage = ExchangeStage::Sent { talk };
        let within = exchange.call.deadline().since(now);
        let Some(inquiry) = exchange.inquiry.take() else { return };
        let origin = inquiry.origin;
        let client = origin.and_then(|it| self.calls.get(it)).map(|it| it.client);
        let client = client.and_then(|it| self.clients.get(it));
        let profile = client.map_or(&link.profile, |client| &client.profile);
        let profile = Arc::clone(profile);
        let params = inquiry.params.as_deref();
        let params = params.map_or_else(OutboundParams::none, OutboundParams::Text);
        let method = inquiry.method;
        let out = Outbound { method, params, profile, origin, within, asker };
        self.send_request(now, talk, out);
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.inquiry = Some(inquiry);
        }
    }

    /// The request of an exchange was answered, or will not be.
    pub(super) fn exchange_replied(
        &mut self,
        env: &mut Env<'_>,
        id: ExchangeId,
        reply: ServerReply,
    ) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let link = exchange.link;
        let spoken = match exchange.stage {
            ExchangeStage::Sent { talk } => self.connections.get(talk).map(|it| it.era),
            ExchangeStage::Turn { .. } | ExchangeStage::Connecting(_) => None,
        };
        let spoken = spoken.unwrap_or_else(|| self.era_of(link));
        let reply = self.doubted(link, reply, spoken);
        if matches!(reply, ServerReply::Answer(_))
            && let Some(link) = self.links.get_mut(link)
        {
            link.heard_at = env.now;
        }
        let meaning = match &reply {
            ServerReply::Answer(Ok(_)) => Ok(health::of_answer(None)),
            ServerReply::Answer(Err(error)) => Ok(meaning_of(error)),
            ServerReply::Failed(failure) => Err(*failure),
        };
        let was_trial = self.exchanges.get(id).is_some_and(|it| it.call.is_trial());
        self.is_health_doubtful |= was_trial;
        let next = self.with_call(env, id, |call, link, env| match meaning {
            Ok(meaning) => call.answered(link, env.now, meaning, env.notes),
            Err(Failure { cause: Cause::TimedOut(_), delivery: Delivery::Maybe, .. }) => {
                call.timed_out(link, env.now, env.notes)
            }
            Err(failure) => call.broken(link, env.now, &failure, env.notes),
        });
        // A call that noticed a loss told the machine of the link.
        if matches!(next, Action::Connect(_) | Action::Wait(_))
            && let Some(server) = self.links.get(link).map(|it| it.server)
        {
            self.schedule.wake(Task::Monitor(server));
        }
        let is_origin = |it: &Exchange| it.inquiry.as_ref().is_some_and(|it| it.origin.is_some());
        let has_origin = self.exchanges.get(id).is_some_and(is_origin);
        let answer = match reply {
            ServerReply::Answer(Ok(result)) if has_origin => Some(Ok(self.told_new(link, result))),
            ServerReply::Answer(answer) => Some(answer),
            ServerReply::Failed(_) => None,
        };
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.reply = answer;
        }
        self.go_on(env, id, next);
    }

    /// A client's result, which says so if it is the first of a session that was regained.
    fn told_new(&mut self, link: LinkId, result: Bytes) -> Bytes {
        if self.is_stateless(link) {
            return result;
        }
        let machine = self.links.get_mut(link).map(|it| &mut it.machine);
        if machine.is_some_and(Link::tell_new) { say_new(result) } else { result }
    }

    fn end_exchange(&mut self, env: &mut Env<'_>, id: ExchangeId, end: End) {
        let Some(exchange) = self.exchanges.remove(id) else { return };
        self.schedule.disarm(Task::Exchange(id));
        let Exchange { server, call, owner, waited, has_turn, is_told, reply, .. } = exchange;
        if has_turn {
            self.give_turn_back(server);
        }
        if is_told {
            return;
        }
        if exchange.inquiry.is_some() {
            let outcome = match (&end, &reply) {
                (End::Unavailable(it), _) => it.code.word(),
                (_, Some(reply)) => outcome_word(reply),
                (_, None) => Code::BackendUnavailable.word(),
            };
            self.count_exchange(server, outcome);
        }
        let call = Box::new(call);
        self.tell_owner(env, owner, ExchangeEnd::Ended { call, end, reply, waited });
    }

    fn forget_exchange(&mut self, id: ExchangeId) {
        if let Some(exchange) = self.exchanges.remove(id) {
            self.schedule.disarm(Task::Exchange(id));
            self.is_health_doubtful |= exchange.call.is_trial();
            if exchange.has_turn {
                self.give_turn_back(exchange.server);
            }
        }
    }

    /// Nobody wants it any more: its server is told, the permit and the turn return.
    pub(super) fn cancel_exchange(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(id) else { return };
        match exchange.stage {
            ExchangeStage::Turn { .. } => {
                let server = exchange.server;
                if let Some(server) = self.servers.get_mut(server) {
                    server.turn_queue.retain(|it| *it != id);
                    // It may have been the one that was told of a free turn.
                    if let Some(next) = server.turn_queue.front().filter(|_| server.turns > 0) {
                        self.schedule.wake(Task::Exchange(*next));
                    }
                }
            }
            ExchangeStage::Sent { talk } => self.give_up_all_of(talk, Asker::Exchange(id)),
            ExchangeStage::Connecting(_) => {}
        }
        self.forget_exchange(id);
    }

    fn count_exchange(&mut self, server: ServerId, outcome: &'static str) {
        let server = self.server_name(server);
        self.out.push(Effect::Count(Metric::CallEnded { server, outcome }));
    }

    fn unavailable_at(&self, id: ExchangeId, cause: Cause) -> Unavailable {
        let server = self.exchanges.get(id).map_or(self.no_server, |it| it.server);
        self.unavailable(server, cause)
    }

    fn tell_owner(&mut self, env: &mut Env<'_>, owner: ExchangeOwner, end: ExchangeEnd) {
        match owner {
            ExchangeOwner::Call(call) => self.call_exchanged(env, call, end),
            ExchangeOwner::Before(call) => self.schedule.wake(Task::Call(call)),
            ExchangeOwner::Join(join) => self.join_exchanged(env, join, end),
            ExchangeOwner::BeforeJoin(join) => self.schedule.wake(Task::Join(join)),
            ExchangeOwner::Keepalive(link) => self.keepalive_reconnected(env, link, end),
            ExchangeOwner::Check(link) => self.checked(link, end),
            ExchangeOwner::Nobody => {}
        }
    }
}

impl ExchangeEnd {
    /// Whether the connection, or an answer, is there; why not.
    pub(super) fn reached(self) -> Result<(), Unavailable> {
        match self {
            Self::Ended { end: End::Answered | End::Connected, .. } => Ok(()),
            Self::Ended { end: End::Unavailable(it), .. } | Self::Known(it) => Err(it),
        }
    }
}

impl Default for Action {
    /// Nothing to do: there is no call.
    fn default() -> Self {
        Self::Nothing
    }
}

/// How an answer ended its call.
pub(super) fn outcome_kind(reply: &Result<Bytes, Bytes>) -> OutcomeKind {
    let Err(error) = reply else { return OutcomeKind::Success };
    match meaning_of(error) {
        Meaning::Ended(kind) => kind,
        Meaning::SessionLost => OutcomeKind::Transport,
    }
}

/// The word for an answer in metrics.
fn outcome_word(reply: &Result<Bytes, Bytes>) -> &'static str {
    let Err(error) = reply else { return "success" };
    match meaning_of(error) {
        Meaning::Ended(kind) => kind.word(),
        Meaning::SessionLost => "transport",
    }
}

/// What an `error` says of its server.
pub(super) fn meaning_of(error: &[u8]) -> Meaning {
    let read = read_error(error);
    health::of_answer(read.as_ref().map(|error| (error.code, error.message.as_str())))
}
