//! How servers join a session.
//!
//! ```text
//!   era known? ─▶ connection ─▶ still answers? ─▶ lists known? ─▶ joined
//!       ▲            │ a place among the programs may be free in a moment: again
//!       └────────────┴─ in a group: the next member
//! ```
//! A client shares the gateway's link to a program that all share, and to a server without
//! sessions; to every other it has one of its own. In a group one member is used, the others are
//! reached when needed: a session opens with the member that the core chooses; if that cannot be
//! reached, with the next one. The group is out only if none can.
//!
//! The session machine decides ([`crate::session`]); here its words become connections.

use std::sync::Arc;

use tidegate_core::time::{Millis, Now};

use super::exchange::{ExchangeEnd, ExchangeOwner, Inquiry};
use super::ids::{ClientId, ExchangeId, JoinId, LinkId, ServerId};
use super::profile::ClientProfile;
use super::schedule::Task;
use super::server::ServerGroup;
use super::{Env, Hub};
use crate::{
    call::{Call, Code, End, Replayability, Unavailable},
    cause::Cause,
    group_call::{GroupCall, GroupStep},
    health,
    link::LinkState,
    raw::quoted,
    session::{Contact, News},
};

/// How often a place among the programs is asked for: those of the lists are short-lived.
const PLACE_AFTER: Millis = Millis(200);

/// A server, or one of a group, on its way into a session.
pub(super) struct Join {
    client: ClientId,
    group: Arc<ServerGroup>,
    profile: Arc<ClientProfile>,
    /// The way through a group.
    group_call: Option<GroupCall>,
    /// The member that is tried.
    server: ServerId,
    link: Option<LinkId>,
    stage: JoinStage,
    /// The members that are tried after one was connected and silent.
    others: Option<Others>,
    /// Until when a place among the programs is asked for.
    full_until: Option<Now>,
}

struct Others {
    next: usize,
    silent: ServerId,
    why: Unavailable,
}

enum JoinStage {
    /// It is being looked at.
    Busy,
    /// In a group: the core is asked for a member.
    Member,
    /// The era is found out; then the connection is made, for a call that was admitted or not.
    Era(EraWait, Option<Box<Call>>),
    Bringing(ExchangeId),
    /// There was no place for a program.
    Full(Now),
    Check {
        has_waited: bool,
    },
    Lists {
        is_second: bool,
        until: Now,
    },
}

/// Finding out which era a server speaks before a client without a session has a link to it.
#[derive(Clone, Copy, Default)]
pub(super) enum EraWait {
    #[default]
    Start,
    /// The gateway's own link asks as well, when it is first made.
    Home(Now),
    Lane(ExchangeId),
}

impl Hub {
    /// Makes a client's connection to a server, and lets the server join when it is there and its
    /// lists are known.
    pub(super) fn connect_slot(&mut self, env: &mut Env<'_>, client: ClientId, slot: usize) {
        let Some(group) = self.group_at(client, slot) else { return };
        let Some(kept) = self.clients.get(client) else { return };
        let profile = Arc::clone(&kept.profile);
        let Some(&first) = group.members.first() else { return };
        let (group_call, stage, link) = match group.alone() {
            Some(server) => {
                // A link that is there at once remembers what the client says before it is made.
                let must_ask = self.servers.get(server).is_some_and(|it| it.must_ask_era(&profile));
                let link = if must_ask { None } else { self.own_link(env.now, client, server) };
                (None, JoinStage::Era(EraWait::Start, None), link)
            }
            None => {
                let limit = self.initialize_within(&group);
                let group_call =
                    GroupCall::new(&group.name, Replayability::Connect, env.now, limit);
                let stays = self.stays_at(client, &group);
                (Some(group_call.staying_at(stays)), JoinStage::Member, None)
            }
        };
        let (others, full_until) = (None, None);
        let join = Join {
            client,
            group,
            profile,
            group_call,
            server: first,
            link,
            stage,
            others,
            full_until,
        };
        let id = self.joins.insert(join);
        self.run_join(env, id);
    }

    /// Looks at a server on its way into a session.
    pub(super) fn run_join(&mut self, env: &mut Env<'_>, id: JoinId) {
        loop {
            let Some(join) = self.joins.get_mut(id) else { return };
            let (client, server) = (join.client, join.server);
            let stage = std::mem::replace(&mut join.stage, JoinStage::Busy);
            if self.is_dead(client) {
                if let JoinStage::Bringing(exchange) = stage {
                    self.cancel_exchange(exchange);
                }
                self.joins.remove(id);
                return self.schedule.disarm(Task::Join(id));
            }
            let next = match stage {
                JoinStage::Busy => return,
                JoinStage::Member => match self.next_member(env, id) {
                    Some(stage) => stage,
                    None => return,
                },
                JoinStage::Era(mut wait, call) => {
                    if !self.join_link(env, id, &mut wait) {
                        self.put_stage(id, JoinStage::Era(wait, call));
                        return;
                    }
                    self.schedule.disarm(Task::Join(id));
                    let link = self.joins.get(id).and_then(|it| it.link);
                    let Some(link) = link else { return self.no_link(env, id) };
                    return self.join_bring(env, id, link, call);
                }
                JoinStage::Bringing(exchange) => {
                    if self.exchanges.get(exchange).is_some() {
                        self.put_stage(id, JoinStage::Bringing(exchange));
                    }
                    return;
                }
                JoinStage::Full(at) => {
                    if !env.now.reached(at) {
                        self.schedule.arm(Task::Join(id), at);
                        self.put_stage(id, JoinStage::Full(at));
                        return;
                    }
                    JoinStage::Era(EraWait::Start, None)
                }
                JoinStage::Check { has_waited } => {
                    let within = self.settings.answered_within;
                    let link = self.joins.get(id).and_then(|it| it.link);
                    let waits = (Task::Join(id), has_waited);
                    let answers = match link {
                        Some(link) => self.still_answers(env, link, within, waits),
                        None => Some(Ok(())),
                    };
                    match answers {
                        None => {
                            self.put_stage(id, JoinStage::Check { has_waited: true });
                            return;
                        }
                        Some(Ok(())) => {
                            let timeout = self.servers.get(server).map(|it| it.call_timeout);
                            let until = env.now.after(timeout.unwrap_or_default());
                            JoinStage::Lists { is_second: false, until }
                        }
                        Some(Err(why)) => match self.join_silent(env, id, why) {
                            Some(stage) => stage,
                            None => return,
                        },
                    }
                }
                JoinStage::Lists { is_second, until } => {
                    match self.join_lists(env, id, is_second, until) {
                        Some(stage) => stage,
                        None => return,
                    }
                }
            };
            self.put_stage(id, next);
        }
    }

    /// Ends what is on its way to a client that has ended: what it waits for may never come.
    pub(super) fn end_joins(&mut self, env: &mut Env<'_>, client: ClientId) {
        let own = self.joins.iter().filter(|(_, it)| it.client == client).map(|(id, _)| id);
        let own: Vec<JoinId> = own.collect();
        own.into_iter().for_each(|id| self.run_join(env, id));
    }

    fn put_stage(&mut self, id: JoinId, stage: JoinStage) {
        if let Some(join) = self.joins.get_mut(id) {
            join.stage = stage;
        }
    }

    /// Asks the core for the next member of a group; none if the way is over.
    fn next_member(&mut self, env: &mut Env<'_>, id: JoinId) -> Option<JoinStage> {
        let join = self.joins.get_mut(id)?;
        let group = Arc::clone(&join.group);
        let group_call = join.group_call.as_mut()?;
        let draw = env.random.draw();
        match group_call.next(env.core, env.now, draw, env.notes) {
            GroupStep::At(name, call) => {
                let Some(server) = self.member_named(&group, &name) else {
                    self.join_over(env, id, Err(closing(&group)));
                    return None;
                };
                let join = self.joins.get_mut(id)?;
                (join.server, join.link) = (server, None);
                Some(JoinStage::Era(EraWait::Start, Some(Box::new(call))))
            }
            GroupStep::Over(End::Unavailable(it)) => {
                self.join_over(env, id, Err(it));
                None
            }
            GroupStep::Over(End::Answered | End::Connected) => {
                self.join_over(env, id, Err(closing(&group)));
                None
            }
        }
    }

    /// The client's link to the member that is tried; false while its era is not known.
    fn join_link(&mut self, env: &mut Env<'_>, id: JoinId, wait: &mut EraWait) -> bool {
        let Some(join) = self.joins.get(id) else { return false };
        if join.link.is_some() {
            return true;
        }
        let (client, server) = (join.client, join.server);
        let (task, owner) = (Task::Join(id), ExchangeOwner::BeforeJoin(id));
        match self.member_link(env, (client, server), wait, task, owner) {
            Some(link) => {
                if let Some(join) = self.joins.get_mut(id) {
                    join.link = link;
                }
                true
            }
            None => false,
        }
    }

    /// A client's link to a server, once the server's era is known; none inside if the server is
    /// not in the config any more.
    #[expect(clippy::option_option, reason = "the outer one says whether it is known")]
    pub(super) fn member_link(
        &mut self,
        env: &mut Env<'_>,
        (client, server): (ClientId, ServerId),
        wait: &mut EraWait,
        task: Task,
        owner: ExchangeOwner,
    ) -> Option<Option<LinkId>> {
        if let Some(link) = self.link_to(env.now, client, server) {
            return Some(Some(link));
        }
        let Some(profile) = self.clients.get(client).map(|it| Arc::clone(&it.profile)) else {
            return Some(None);
        };
        if !self.is_era_known(env, server, &profile, wait, task, owner) {
            return None;
        }
        let Some(link) = self.own_link(env.now, client, server) else { return Some(None) };
        let is_shared = self.servers.get(server).is_some_and(|it| it.is_shared_child());
        let level = self.clients.get(client).and_then(|it| it.level.clone());
        if let Some(level) = level
            && !is_shared
            && !self.is_stateless(link)
            && let Some(link) = self.links.get_mut(link)
        {
            link.level = Some(level);
        }
        Some(Some(link))
    }

    /// Finds out whether a server speaks the stateless era, if a client does and nobody has asked
    /// yet. Nothing is known afterwards if the answer was unclear. False while it is being asked.
    fn is_era_known(
        &mut self,
        env: &mut Env<'_>,
        id: ServerId,
        profile: &ClientProfile,
        wait: &mut EraWait,
        task: Task,
        owner: ExchangeOwner,
    ) -> bool {
        let Some(server) = self.servers.get(id) else { return true };
        let (within, timeout) = (server.initialize_within(), server.connect_timeout);
        if let EraWait::Lane(exchange) = *wait {
            return self.exchanges.get(exchange).is_none();
        }
        if !server.must_ask_era(profile) {
            return true;
        }
        if let Some(home) = server.home {
            if matches!(wait, EraWait::Start) {
                *wait = EraWait::Home(env.now.after(within));
            }
            let EraWait::Home(until) = *wait else { return true };
            let Some(link) = self.links.get_mut(home) else { return true };
            let machine = &link.machine;
            let has_ended = machine.state() == LinkState::Ready
                || machine.failure(machine.generation()).is_some();
            if !has_ended && !env.now.reached(until) {
                link.waiters.push(task);
                self.schedule.arm(task, until);
                return false;
            }
        }
        let Some(lane) = self.lane(env.now, id) else { return true };
        let exchange = self.bring_up(env, lane, timeout, owner);
        *wait = EraWait::Lane(exchange);
        self.exchanges.get(exchange).is_none()
    }

    /// Makes the connection.
    fn join_bring(&mut self, env: &mut Env<'_>, id: JoinId, link: LinkId, call: Option<Box<Call>>) {
        let Some(join) = self.joins.get(id) else { return };
        let within = self.servers.get(join.server).map(|it| it.initialize_within());
        let owner = ExchangeOwner::Join(id);
        let exchange = match call {
            Some(call) => self.bring(env, link, *call, owner),
            None => self.bring_up(env, link, within.unwrap_or_default(), owner),
        };
        if self.exchanges.get(exchange).is_some() {
            self.put_stage(id, JoinStage::Bringing(exchange));
        }
    }

    /// The connection is there, or is not.
    pub(super) fn join_exchanged(&mut self, env: &mut Env<'_>, id: JoinId, end: ExchangeEnd) {
        let Some(join) = self.joins.get_mut(id) else { return };
        let server = join.server;
        if join.others.is_none()
            && let Some(group_call) = &mut join.group_call
        {
            let ExchangeEnd::Ended { call, end, .. } = end else { return };
            let is_there = end == End::Connected;
            let ended = group_call.ended(*call, end);
            if let Some(server) = self.servers.get_mut(server)
                && !is_there
            {
                server.contact = Contact::Failed;
            }
            match ended {
                Some(End::Unavailable(it)) => return self.join_over(env, id, Err(it)),
                Some(End::Answered | End::Connected) => {
                    self.put_stage(id, JoinStage::Check { has_waited: false });
                }
                None => self.put_stage(id, JoinStage::Member),
            }
            return self.schedule.wake(Task::Join(id));
        }
        match end.reached() {
            Ok(()) => self.put_stage(id, JoinStage::Check { has_waited: false }),
            Err(why) if join.others.is_some() => match self.join_silent(env, id, why) {
                Some(stage) => self.put_stage(id, stage),
                None => return,
            },
            Err(why) => {
                let timeout = self.servers.get(server).map(|it| it.connect_timeout);
                let Some(join) = self.joins.get_mut(id) else { return };
                let until = env.now.after(timeout.unwrap_or_default());
                let until = *join.full_until.get_or_insert(until);
                if why.cause != Cause::TooManyChildren || env.now.reached(until) {
                    return self.join_over(env, id, Err(why));
                }
                join.stage = JoinStage::Full(env.now.after(PLACE_AFTER));
            }
        }
        self.schedule.wake(Task::Join(id));
    }

    fn no_link(&mut self, env: &mut Env<'_>, id: JoinId) {
        let Some(join) = self.joins.get(id) else { return };
        if join.others.is_some() {
            // The next one may be there.
            let others = join.others.as_ref().map(|it| it.why.clone());
            let Some(why) = others else { return };
            if let Some(stage) = self.join_silent(env, id, why) {
                self.put_stage(id, stage);
                self.schedule.wake(Task::Join(id));
            }
            return;
        }
        if join.group_call.is_some() {
            let group = Arc::clone(&join.group);
            return self.join_over(env, id, Err(closing(&group)));
        }
        self.joins.remove(id);
    }

    /// A connection was there and its server is silent: another member may answer. None if there
    /// is no other.
    fn join_silent(
        &mut self,
        env: &mut Env<'_>,
        id: JoinId,
        why: Unavailable,
    ) -> Option<JoinStage> {
        let join = self.joins.get_mut(id)?;
        let server = join.server;
        if let Some(server) = self.servers.get_mut(server) {
            server.contact = Contact::Failed;
        }
        if join.group_call.is_none() {
            self.join_over(env, id, Err(why));
            return None;
        }
        let others =
            join.others.get_or_insert(Others { next: 0, silent: server, why: why.clone() });
        others.why = why;
        while let Some(&member) = join.group.members.get(others.next) {
            others.next += 1;
            if member != others.silent {
                (join.server, join.link) = (member, None);
                return Some(JoinStage::Era(EraWait::Start, None));
            }
        }
        let why = others.why.clone();
        self.join_over(env, id, Err(why));
        None
    }

    /// The lists of the server that is to join; none if it has joined or they are waited for.
    fn join_lists(
        &mut self,
        env: &mut Env<'_>,
        id: JoinId,
        is_second: bool,
        until: Now,
    ) -> Option<JoinStage> {
        let join = self.joins.get(id)?;
        let (server, profile) = (join.server, Arc::clone(&join.profile));
        let link = join.link?;
        let is_known = self.lists_known(server, link, &profile, Task::Join(id));
        if !is_known && !env.now.reached(until) {
            self.schedule.arm(Task::Join(id), until);
            self.put_stage(id, JoinStage::Lists { is_second, until });
            return None;
        }
        if is_second {
            self.schedule.disarm(Task::Join(id));
            self.join_over(env, id, Ok(()));
            return None;
        }
        // Whoever fetched them may have left in the middle of it.
        self.fetch_missing(env, server, link, &profile);
        let timeout = self.servers.get(server).map(|it| it.call_timeout);
        let until = env.now.after(timeout.unwrap_or_default());
        Some(JoinStage::Lists { is_second: true, until })
    }

    /// A server, or its group, has joined, or will not.
    fn join_over(&mut self, env: &mut Env<'_>, id: JoinId, brought: Result<(), Unavailable>) {
        let Some(join) = self.joins.remove(id) else { return };
        self.schedule.disarm(Task::Join(id));
        let Join { client, group, server, link, group_call, .. } = join;
        let is_ok = brought.is_ok();
        if let Some(server) = self.servers.get_mut(server).filter(|_| is_ok || group_call.is_none())
        {
            server.contact = if is_ok { Contact::Reached } else { Contact::Failed };
        }
        if self.is_dead(client) {
            return;
        }
        if is_ok {
            match group_call {
                Some(_) => self.stay_at(env, client, &group, server),
                None => link.into_iter().for_each(|link| self.keep_alive(env, link)),
            }
        }
        // A reload may have moved it.
        let Some(slot) = group.members.iter().find_map(|it| self.slot_of(client, *it)) else {
            return;
        };
        let Some(kept) = self.clients.get_mut(client) else { return };
        let news = match brought {
            Ok(()) => kept.session.connected(env.now, slot),
            Err(it) => kept.session.connect_failed(env.now, slot, it.cause),
        };
        if news == News::Changed {
            self.tell_changes(client);
        }
        self.note_record(client);
        self.client_turned(client);
    }

    /// A look at a server's health: it may join, or with `visibility: live` come and go.
    pub(super) fn follow(&mut self, env: &mut Env<'_>, client: ClientId, slot: usize) {
        let Some(group) = self.group_at(client, slot) else { return };
        if !self.is_usable(&group) || !self.may_use(client, slot) {
            return;
        }
        let standing = health::standing(env.core, &group.name, env.now);
        let Some(kept) = self.clients.get_mut(client).filter(|it| !it.is_over) else { return };
        match kept.session.follow(env.now, slot, standing) {
            News::Connect => self.connect_slot(env, client, slot),
            News::Changed => self.tell_changes(client),
            News::Nothing => {}
        }
    }

    /// Tells a client that its lists have changed, once the changes have settled.
    pub(super) fn tell_changes(&mut self, client: ClientId) {
        let kept = self.clients.get(client);
        if let Some(at) = kept.and_then(|it| it.session.list_changed_at()) {
            self.schedule.arm(Task::TellLists(client), at);
        }
    }

    /// The changes have settled.
    pub(super) fn run_tell_lists(&mut self, env: &mut Env<'_>, client: ClientId) {
        let Some(kept) = self.clients.get_mut(client) else { return };
        if !kept.session.tell_list_changed(env.now) {
            return;
        }
        let catalogue = self.catalogue_of(client);
        let has_resources = !catalogue.resources().is_empty() || !catalogue.templates().is_empty();
        self.notify_client(client, "notifications/tools/list_changed", None);
        if has_resources {
            self.notify_client(client, "notifications/resources/list_changed", None);
        }
        if !catalogue.prompts().is_empty() {
            self.notify_client(client, "notifications/prompts/list_changed", None);
        }
    }

    /// The member of a group that holds a client's state. A client without a session has none.
    pub(super) fn stays_at(&self, client: ClientId, group: &ServerGroup) -> Option<Arc<str>> {
        let kept = self.clients.get(client).filter(|it| !it.profile.is_stateless())?;
        let slot = kept.slots.iter().find(|it| it.group.name == group.name)?;
        slot.stays.and_then(|it| self.servers.get(it)).map(|it| Arc::clone(&it.name))
    }

    /// A client's state is at that member from here on. What it had told the old one is told to the
    /// new one; only the connection in use is kept alive.
    pub(super) fn stay_at(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        group: &ServerGroup,
        member: ServerId,
    ) {
        let Some(kept) = self.clients.get_mut(client) else { return };
        let slot = kept.slots.iter_mut().find(|it| it.group.name == group.name);
        let Some(slot) = slot else { return };
        let before = slot.stays.replace(member);
        self.note_record(client);
        let Some(new) = self.link_to(env.now, client, member) else { return };
        self.keep_alive(env, new);
        let Some(old) = before.filter(|it| *it != member) else { return };
        let Some(old) = self.link_to(env.now, client, old) else { return };
        let Some(link) = self.links.get(old) else { return };
        let wanted = link.subscriptions.clone();
        if link.owner.is_some() {
            self.rest(old);
        }
        for uri in wanted {
            let is_new =
                self.links.get_mut(new).is_some_and(|it| it.subscriptions.insert(uri.clone()));
            if is_new {
                let params = Some(format!(r#"{{"uri":{}}}"#, quoted(&uri)).into());
                let inquiry = Inquiry { method: "resources/subscribe", params, origin: None };
                let replayability = Replayability::Repeatable;
                self.ask(env, new, inquiry, replayability, ExchangeOwner::Nobody);
            }
        }
    }
}

fn closing(group: &ServerGroup) -> Unavailable {
    let (server, cause) = (group.name.to_string(), Cause::Closing);
    Unavailable { server, cause, retry_after: None, code: Code::BackendUnavailable }
}
