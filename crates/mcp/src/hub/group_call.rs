//! A request that one of several equivalent servers answers.
//!
//! The group call decides ([`crate::group_call`]): whom to ask, and whether to go on after a
//! failure. Here each of its steps becomes a request over the client's link to that member.
//!
//! Rules kept here:
//! - A link to a member is made when the member is first needed.
//! - Once a member has answered, what follows (questions, more requests of the same call) stays
//!   with it.
//! - A session that goes on at another member has left its state behind, and its first result there
//!   says so, as after a session that was lost and regained.
//! - The client hears of the group; the log has every attempt with its member.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::time::Now;

use super::effect::{Effect, LogLine};
use super::exchange::{ExchangeEnd, ExchangeOwner};
use super::ids::{CallId, ClientId, ExchangeId, LinkId, ServerId};
use super::joining::EraWait;
use super::relay::{Answered, RelayStage, unavailable};
use super::schedule::Task;
use super::server::ServerGroup;
use super::{Env, Hub};
use crate::{
    call::{Call, End, say_new},
    cause::Cause,
    group_call::{Attempted, GroupCall, GroupStep},
    link::Link,
};

/// The way of a call through a group.
pub(super) struct GroupState {
    group_call: GroupCall,
    /// The last answer that a member gave, and over which link.
    answer: Option<(LinkId, Result<Bytes, Bytes>)>,
    /// The member that is to be asked, and the permit for it.
    member: Option<ServerId>,
    call: Option<Box<Call>>,
    wait: EraWait,
}

impl GroupState {
    /// The request that finds out a member's era.
    pub(super) fn era_exchange(&self) -> Option<ExchangeId> {
        if let EraWait::Lane(exchange) = self.wait { Some(exchange) } else { None }
    }
}

impl Hub {
    /// Has one member of a group answer.
    pub(super) fn begin_group(&mut self, env: &mut Env<'_>, id: CallId) -> Option<RelayStage> {
        let call = self.calls.get(id)?;
        let client = call.client;
        let route = call.relay.route.as_ref()?;
        let (group, replayability) = (Arc::clone(&route.group), route.replayability);
        let Some(limit) = self.members(&group).next().map(|it| it.call_timeout) else {
            let answered = Answered::Unavailable(unavailable(&group, Cause::Closing));
            self.answered(env, id, answered);
            return None;
        };
        let group_call = GroupCall::new(&group.name, replayability, env.now, limit);
        let group_call = group_call.staying_at(self.stays_at(client, &group));
        let wait = EraWait::Start;
        let state = GroupState { group_call, answer: None, member: None, call: None, wait };
        self.calls.get_mut(id)?.relay.group = Some(Box::new(state));
        Some(RelayStage::Member)
    }

    /// Asks the core for the next member, and sees to it that there is a link to it.
    pub(super) fn next_step(&mut self, env: &mut Env<'_>, id: CallId) -> Option<RelayStage> {
        let call = self.calls.get_mut(id)?;
        let client = call.client;
        let group = Arc::clone(&call.relay.route.as_ref()?.group);
        let state = call.relay.group.as_mut()?;
        if state.call.is_none() {
            let draw = env.random.draw();
            match state.group_call.next(env.core, env.now, draw, env.notes) {
                GroupStep::At(server, admitted) => {
                    state.call = Some(Box::new(admitted));
                    state.wait = EraWait::Start;
                    let member = self.member_named(&group, &server);
                    self.calls.get_mut(id)?.relay.group.as_mut()?.member = member;
                }
                GroupStep::Over(end) => {
                    self.group_over(env, id, end);
                    return None;
                }
            }
        }
        let state = self.calls.get_mut(id)?.relay.group.as_mut()?;
        let (member, mut wait) = (state.member, state.wait);
        let link = match member {
            Some(member) => {
                let (task, owner) = (Task::Call(id), ExchangeOwner::Before(id));
                let link = self.member_link(env, (client, member), &mut wait, task, owner);
                self.calls.get_mut(id)?.relay.group.as_mut()?.wait = wait;
                match link {
                    Some(link) => link,
                    None => {
                        self.put_relay(id, RelayStage::Member);
                        return None;
                    }
                }
            }
            None => None,
        };
        let Some(link) = link else { return self.step_gone(env, id) };
        self.calls.get_mut(id)?.relay.link = Some(link);
        if let Some(answered) = self.noted(id, link) {
            if let Some(member) = member {
                self.stay_at(env, client, &group, member);
            }
            self.answered(env, id, answered);
            return None;
        }
        self.prepare(env, id, link)
    }

    /// A reload took the member away: as a link that is closing.
    fn step_gone(&mut self, env: &mut Env<'_>, id: CallId) -> Option<RelayStage> {
        let call = self.calls.get_mut(id)?;
        let group = Arc::clone(&call.relay.route.as_ref()?.group);
        let state = call.relay.group.as_mut()?;
        let mut admitted = *state.call.take()?;
        let mut gone = Link::new();
        gone.close();
        admitted.go(&mut gone, env.now, env.notes);
        let closing = End::Unavailable(unavailable(&group, Cause::Closing));
        match state.group_call.ended(admitted, closing) {
            Some(end) => {
                self.group_over(env, id, end);
                None
            }
            None => Some(RelayStage::Member),
        }
    }

    /// Asks the member that was chosen.
    pub(super) fn attempt_step(&mut self, env: &mut Env<'_>, id: CallId) -> Option<RelayStage> {
        let inquiry = self.inquiry_of(id)?;
        let call = self.calls.get_mut(id)?;
        let link = call.relay.link?;
        let state = call.relay.group.as_mut()?;
        let (admitted, patience) = (*state.call.take()?, state.group_call.patience());
        let owner = ExchangeOwner::Call(id);
        let exchange = self.attempt(env, link, admitted, inquiry, owner, patience);
        self.asking(id, exchange)
    }

    /// A member has answered, or has not.
    pub(super) fn step_exchanged(
        &mut self,
        env: &mut Env<'_>,
        id: CallId,
        link: LinkId,
        end: ExchangeEnd,
    ) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(state) = call.relay.group.as_mut() else { return };
        match end {
            ExchangeEnd::Known(known) => {
                self.answered(env, id, Answered::Unavailable(known));
            }
            ExchangeEnd::Ended { call, end, reply, waited } => {
                state.group_call.waited(waited);
                state.answer = reply.map(|reply| (link, reply)).or(state.answer.take());
                match state.group_call.ended(*call, end) {
                    Some(end) => self.group_over(env, id, end),
                    None => {
                        self.put_relay(id, RelayStage::Member);
                        self.schedule.wake(Task::Call(id));
                    }
                }
            }
        }
    }

    /// The way through a group is over.
    fn group_over(&mut self, env: &mut Env<'_>, id: CallId, end: End) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let client = call.client;
        let Some(state) = call.relay.group.take() else { return };
        let Some(group) = call.relay.route.as_ref().map(|it| Arc::clone(&it.group)) else { return };
        call.relay.attempts = state.group_call.attempts().to_vec();
        self.note_attempts(&group.name, state.group_call.attempts());
        let stays = state.group_call.stays().and_then(|name| self.member_named(&group, &name));
        let is_moved =
            stays.is_some_and(|member| self.leaves_state(env.now, client, &group, member));
        if let Some(member) = stays {
            self.stay_at(env, client, &group, member);
        }
        let answered = match (end, state.answer) {
            (End::Answered, Some((link, reply))) => {
                let reply = if is_moved { reply.map(say_new) } else { reply };
                if let Some(call) = self.calls.get_mut(id) {
                    call.relay.link = Some(link);
                }
                return self.bridge(env, id, link, Answered::Reply(reply));
            }
            (End::Unavailable(unavailable), _) => Answered::Unavailable(unavailable),
            (End::Answered | End::Connected, _) => {
                Answered::Unavailable(unavailable(&group, Cause::Closing))
            }
        };
        self.answered(env, id, answered);
    }

    /// Whether a session that goes on at this member leaves state behind at another: what a server
    /// keeps in its sessions is not where the client is now.
    fn leaves_state(
        &mut self,
        now: Now,
        client: ClientId,
        group: &ServerGroup,
        member: ServerId,
    ) -> bool {
        let Some(kept) = self.clients.get(client).filter(|it| !it.profile.is_stateless()) else {
            return false;
        };
        let slot = kept.slots.iter().find(|it| it.group.name == group.name);
        let before = slot.and_then(|it| it.stays).filter(|it| *it != member);
        let before = before.and_then(|it| self.link_to(now, client, it));
        before.is_some_and(|link| !self.is_stateless(link))
    }

    /// Tells of a call that did not end where it began.
    fn note_attempts(&mut self, group: &Arc<str>, attempts: &[Attempted]) {
        if attempts.len() < 2 {
            return;
        }
        let told = |it: &Attempted| match (it.cause, it.outcome) {
            (Some(cause), _) => format!("{}: {cause}", it.server),
            (None, Some(outcome)) => format!("{}: {}", it.server, outcome.word()),
            (None, None) => format!("{}: answered", it.server),
        };
        let attempts: Vec<String> = attempts.iter().map(told).collect();
        let (server, what) = (Arc::clone(group), "a call went on");
        let detail = attempts.join("; ");
        self.out.push(Effect::Log(LogLine::Debug { server, what, detail }));
    }
}
