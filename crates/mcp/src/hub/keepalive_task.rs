//! Keeping one connection alive: what the schedule ([`crate::keepalive`]) asks for is sent.
//!
//! Rules kept here:
//! - Real traffic postpones it; it never delays a call, since calls do not know of it.
//! - It ends at once with its link, also while an answer is being waited for.
//! - Only a link that clients use is kept alive; the gateway's own is probed.
//!
//! Also here: whether a server without sessions is still there when a session opens, which has
//! nothing else to go by. One that has answered anything within `answered_within` is not asked, and
//! sessions that open together share one question.

use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_core::{
    outcome::Outcome,
    time::{Millis, Now},
};

use super::connection::{Asker, Outbound, ServerReply};
use super::effect::{Effect, LogLine, Metric};
use super::exchange::{ExchangeEnd, ExchangeOwner, Inquiry};
use super::ids::{ConnectionId, ExchangeId, LinkId};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    call::{Replayability, Unavailable},
    cause::Cause,
    health::{self, Standing},
    keepalive::{Due, Ended, Keepalive, Method, Reason, Sign, sign_of},
    link::LinkState,
    message::{Params, read_error},
    stateless::discover,
};

/// A link that is kept alive.
pub(super) struct KeptAlive {
    schedule: Keepalive,
    /// The traffic that has been noticed: when something was sent, and heard.
    seen: (Now, Now),
    under_way: UnderWay,
}

#[derive(Clone, Copy)]
enum UnderWay {
    Nothing,
    Sent(ConnectionId),
    Reconnecting(ExchangeId),
}

impl KeptAlive {
    /// It has switched itself off for a while.
    pub(super) fn is_off(&self) -> bool {
        self.schedule.is_disabled()
    }
}

impl Hub {
    /// Starts to keep a link alive, if clients use it and it is so configured. Twice is harmless.
    pub(super) fn keep_alive(&mut self, env: &mut Env<'_>, id: LinkId) {
        let is_stateless = self.is_stateless(id);
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(server) = self.servers.get(link.server) else { return };
        let settings = server.settings.keepalive;
        let is_used = link.owner.is_some() || server.is_shared_child() || is_stateless;
        if !settings.method.is_sent(is_stateless) || !is_used || link.keepalive.is_some() {
            return;
        }
        let schedule = Keepalive::new(settings, env.now, env.random.draw());
        let seen = (link.sent_at, link.heard_at);
        let kept = KeptAlive { schedule, seen, under_way: UnderWay::Nothing };
        if let Some(at) = kept.schedule.next_wakeup() {
            self.schedule.arm(Task::Keepalive(id), at);
        }
        link.keepalive = Some(Box::new(kept));
    }

    /// No keepalive any more, from this moment on.
    pub(super) fn stop_keepalive(&mut self, id: LinkId) {
        let kept = self.links.get_mut(id).and_then(|it| it.keepalive.take());
        let Some(kept) = kept else { return };
        self.schedule.disarm(Task::Keepalive(id));
        match kept.under_way {
            UnderWay::Nothing => {}
            UnderWay::Sent(talk) => self.give_up_all_of(talk, Asker::Keepalive(id)),
            UnderWay::Reconnecting(exchange) => self.cancel_exchange(exchange),
        }
    }

    /// Looks whether one is due.
    pub(super) fn run_keepalive(&mut self, env: &mut Env<'_>, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(server) = self.servers.get(link.server) else { return };
        let name = Arc::clone(&server.name);
        let Some(kept) = link.keepalive.as_mut() else { return };
        let traffic = (link.sent_at, link.heard_at);
        let seen = std::mem::replace(&mut kept.seen, traffic);
        // Real traffic postpones the next one.
        if traffic.1 > seen.1 {
            kept.schedule.heard(traffic.1, env.random.draw());
        } else if traffic.0 > seen.0 {
            kept.schedule.sent(traffic.0, env.random.draw());
        }
        let standing = health::standing(env.core, &name, env.now);
        let is_open = matches!(standing, Standing::Unhealthy(Cause::CircuitOpen, _));
        let state = link.machine.state();
        let is_counted = kept.schedule.is_counted();
        let due = kept.schedule.tick(env.now, env.random.draw(), state, is_open);
        if due != Due::Nothing && !is_counted {
            self.out.push(Effect::Count(Metric::KeepaliveAttempt(Arc::clone(&name))));
        }
        match due {
            Due::Nothing => {}
            Due::Refused => {
                self.out.push(Effect::Count(Metric::KeepaliveFailure(name, Reason::Open)));
            }
            Due::Send(until) => self.send_keepalive(env, id, until),
            Due::Reconnect => self.reconnect(env, id),
        }
        if state != LinkState::Closed {
            self.arm_keepalive(id);
        }
    }

    fn arm_keepalive(&mut self, id: LinkId) {
        let kept = self.links.get(id).and_then(|it| it.keepalive.as_ref());
        if let Some(at) = kept.and_then(|it| it.schedule.next_wakeup()) {
            self.schedule.arm(Task::Keepalive(id), at);
        }
    }

    /// Sends what the config asks for.
    fn send_keepalive(&mut self, env: &mut Env<'_>, id: LinkId, until: Now) {
        let Some(talk) = self.ready_talk(id) else {
            return self.keepalive_ended(env, id, Err(Reason::Lost));
        };
        let ping = self.ping_method(id);
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(server) = self.servers.get(link.server) else { return };
        if let Some(kept) = link.keepalive.as_mut() {
            kept.under_way = UnderWay::Sent(talk);
        }
        let call = server.settings.keepalive_call.clone();
        let call = call.filter(|_| server.settings.keepalive.method == Method::Tool);
        let (within, profile) = (until.since(env.now), Arc::clone(&link.profile));
        let asker = Asker::Keepalive(id);
        let params = call.and_then(|it| RawValue::from_string(it).ok());
        let method = if params.is_some() { "tools/call" } else { ping };
        let params = Params::parse(params.as_deref()).unwrap_or_default();
        let out = Outbound::own(method, params, profile, within, asker);
        self.send_request(env.now, talk, out);
    }

    /// What was sent was answered, or was not.
    pub(super) fn keepalive_replied(&mut self, env: &mut Env<'_>, id: LinkId, reply: ServerReply) {
        let kept = self.links.get(id).and_then(|it| it.keepalive.as_ref());
        let Some(UnderWay::Sent(talk)) = kept.map(|it| it.under_way) else { return };
        let spoken = self.connections.get(talk).map(|it| it.era);
        let spoken = spoken.unwrap_or_else(|| self.era_of(id));
        let sign = match self.doubted(id, reply, spoken) {
            ServerReply::Answer(Ok(_)) => sign_of(Ok(None)),
            ServerReply::Answer(Err(error)) => {
                let error = read_error(&error);
                sign_of(Ok(error.as_ref().map(|it| (it.code, it.message.as_str()))))
            }
            ServerReply::Failed(failure) => sign_of(Err(&failure)),
        };
        match sign {
            Sign::Alive => self.keepalive_ended(env, id, Ok(())),
            Sign::Failed(reason) => self.keepalive_ended(env, id, Err(reason)),
            Sign::Lost => {
                if let Some(generation) = self.generation_of(id, talk) {
                    self.link_lost(id, generation);
                }
                self.reconnect(env, id);
            }
        }
    }

    /// Makes the connection again, by the link's single flight and with a permit.
    fn reconnect(&mut self, env: &mut Env<'_>, id: LinkId) {
        let Some(server) = self.links.get(id).map(|it| it.server) else { return };
        let limit = self.servers.get(server).map(|it| it.initialize_within());
        let owner = ExchangeOwner::Keepalive(id);
        let exchange = self.bring_up(env, id, limit.unwrap_or_default(), owner);
        if self.exchanges.get(exchange).is_some()
            && let Some(kept) = self.links.get_mut(id).and_then(|it| it.keepalive.as_mut())
        {
            kept.under_way = UnderWay::Reconnecting(exchange);
        }
    }

    pub(super) fn keepalive_reconnected(
        &mut self,
        env: &mut Env<'_>,
        id: LinkId,
        end: ExchangeEnd,
    ) {
        self.keepalive_ended(env, id, end.reached().map_err(|_| Reason::Lost));
    }

    fn keepalive_ended(&mut self, env: &mut Env<'_>, id: LinkId, result: Result<(), Reason>) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(server) = self.servers.get(link.server) else { return };
        let name = Arc::clone(&server.name);
        let Some(kept) = link.keepalive.as_mut() else { return };
        kept.under_way = UnderWay::Nothing;
        kept.seen = (link.sent_at, link.heard_at);
        match kept.schedule.ended(env.now, env.random.draw(), result) {
            Ended::Nothing => {}
            Ended::Success(took) => {
                self.out.push(Effect::Count(Metric::KeepaliveSuccess(name, took)));
            }
            Ended::Failure(reason) => {
                self.out.push(Effect::Count(Metric::KeepaliveFailure(name, reason)));
            }
            Ended::Disabled { reason, is_charged } => {
                let generation = link.machine.generation();
                let server = Arc::clone(&name);
                self.out.push(Effect::Count(Metric::KeepaliveFailure(Arc::clone(&name), reason)));
                self.out.push(Effect::Count(Metric::KeepaliveDisabled(Arc::clone(&name))));
                self.out.push(Effect::Log(LogLine::KeepaliveOff { server, reason }));
                self.link_lost(id, generation);
                if is_charged {
                    let outcome = Outcome::unanswered(reason.outcome());
                    health::charge(env.core, &name, env.now, &outcome, env.notes);
                    self.is_health_doubtful = true;
                }
            }
        }
        self.arm_keepalive(id);
    }

    /// Whether the server still answers, if it speaks the stateless era and has not said a word
    /// for `within`; none while that is being asked. Whoever asks is looked at again.
    pub(super) fn still_answers(
        &mut self,
        env: &mut Env<'_>,
        id: LinkId,
        within: Millis,
        (task, has_waited): (Task, bool),
    ) -> Option<Result<(), Unavailable>> {
        let is_ready = self.ready_talk(id).is_some();
        let is_stateless = is_ready && self.is_stateless(id);
        let Some(link) = self.links.get_mut(id) else { return Some(Ok(())) };
        if let Some(waiters) = &mut link.check {
            waiters.push(task);
            return None;
        }
        if has_waited {
            return Some(link.checked.clone().unwrap_or(Ok(())));
        }
        if !is_stateless || env.now.since(link.heard_at) < within {
            return Some(Ok(()));
        }
        link.check = Some(vec![task]);
        let inquiry = Inquiry { method: discover::METHOD, params: None, origin: None };
        // It goes on if the first of those who wait leaves.
        self.ask(env, id, inquiry, Replayability::Repeatable, ExchangeOwner::Check(id));
        None
    }

    pub(super) fn checked(&mut self, id: LinkId, end: ExchangeEnd) {
        let Some(link) = self.links.get_mut(id) else { return };
        link.checked = Some(end.reached());
        if let Some(waiters) = link.check.take() {
            self.schedule.wake_all(waiters);
        }
    }
}
