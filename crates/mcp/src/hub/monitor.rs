//! Keeping an eye on one server: the gateway's own connection to it, its lists, its probes.
//!
//! ```text
//!   connecting ─▶ lists ─▶ watching ◀─▶ a probe is under way
//! ```
//! Rules kept here:
//! - A probe is a `ping` (`server/discover` in the stateless era, which has none) over the
//!   connection that is there; it makes one where there is none, and never a second one. A
//!   program that every session has for itself is probed over a session's connection, and not at
//!   all without one; for its lists it is started once, at the beginning.
//! - What a probe finds is told to the core as it is: rejected credentials, a 429 with its time, a
//!   timeout, a refused connection.
//! - A probe needs no permit: it goes on while the breaker is open, and heals it.
//! - A shared program that ended is started again, when its supervisor allows.

use std::sync::Arc;

use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    probe::{ProbeSettings, Tick},
    time::{Millis, Now},
};

use super::connection::{Asker, Outbound, ServerReply};
use super::effect::{Effect, Metric};
use super::event::RequestToken;
use super::exchange::meaning_of;
use super::ids::{ConnectionId, LinkId, ServerId};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    cause::Cause,
    health::{Failure, Reply as Meaning, backend_id},
    link::{Generation, LinkState, Want},
    message::{METHOD_NOT_FOUND, Params, read_error},
    session::Contact,
};

/// How long after a probe the core may wait for the next one, beside its interval and its timeout.
const SLACK: Millis = Millis(250);
/// A shared program that could not be started for a reason that passes is tried again after this.
const REVIVE_AFTER: Millis = Millis(250);

/// What a probe found: nothing wrong, or this.
type Found = Result<(), Failure>;

/// How far the look at a server has come, and the probe that is under way.
#[derive(Default)]
pub(super) struct Look {
    stage: LookStage,
    probe: Option<Probe>,
    revived_at: Option<Now>,
}

#[derive(Clone, Copy, Default)]
enum LookStage {
    /// It cannot be used, or has not been looked at.
    #[default]
    Off,
    Connecting {
        generation: Generation,
        until: Now,
    },
    Lists {
        until: Now,
    },
    Watching,
}

struct Probe {
    link: LinkId,
    until: Now,
    is_scheduled: bool,
    stage: ProbeStage,
}

#[derive(Clone, Copy)]
enum ProbeStage {
    /// The connection is being made, before the question or after it.
    Reviving {
        generation: Generation,
        until: Now,
        is_last: bool,
    },
    Asked(ConnectionId),
}

/// What making a connection again comes to.
enum Revived {
    There,
    Closed,
    Waiting(Generation),
}

impl Hub {
    /// Begins to keep an eye on a server.
    pub(super) fn begin_look(&mut self, env: &mut Env<'_>, id: ServerId) {
        let Some(server) = self.servers.get_mut(id) else { return };
        let Some(home) = server.home.filter(|_| server.is_usable()) else { return };
        if server.clock.next_due().is_some() {
            // The first look is the first probe.
            server.clock.tick(env.now, Default::default());
        }
        let until = env.now.after(server.initialize_within());
        match self.revive(env, home) {
            Revived::There => self.look_connected(env, id, Ok(())),
            Revived::Closed => self.look_connected(env, id, Err(closed())),
            Revived::Waiting(generation) => {
                if let Some(server) = self.servers.get_mut(id) {
                    server.look.stage = LookStage::Connecting { generation, until };
                }
                self.run_monitor(env, id);
            }
        }
    }

    /// Makes a connection if it is not there, without asking the core.
    fn revive(&mut self, env: &mut Env<'_>, link: LinkId) -> Revived {
        let Some(kept) = self.links.get_mut(link) else { return Revived::Closed };
        match kept.machine.want() {
            Want::Use(_) => Revived::There,
            Want::Closed => Revived::Closed,
            Want::Wait(generation) => Revived::Waiting(generation),
            Want::Connect(generation) => {
                self.connect(env, link, generation);
                Revived::Waiting(generation)
            }
        }
    }

    /// The end of an attempt; none while it is under way.
    fn revived(
        &mut self,
        now: Now,
        link: LinkId,
        (generation, until, limit): (Generation, Now, Millis),
        task: Task,
    ) -> Option<Found> {
        match self.settled(link, generation) {
            Some(Some(failure)) => Some(Err(failure)),
            Some(None) => {
                let state = self.links.get(link).map(|it| it.machine.state());
                Some(if state == Some(LinkState::Ready) { Ok(()) } else { Err(closed()) })
            }
            None if now.reached(until) => {
                Some(Err(Failure::of(Cause::TimedOut(limit), OutcomeKind::Timeout)))
            }
            None => {
                if let Some(link) = self.links.get_mut(link) {
                    link.waiters.push(task);
                }
                self.schedule.arm_by(task, until);
                None
            }
        }
    }

    /// Looks at a server.
    pub(super) fn run_monitor(&mut self, env: &mut Env<'_>, id: ServerId) {
        let Some(server) = self.servers.get(id) else { return };
        match server.look.stage {
            LookStage::Off => {}
            LookStage::Connecting { generation, until } => {
                let Some(home) = server.home else { return };
                let limit = server.initialize_within();
                let attempt = (generation, until, limit);
                if let Some(found) = self.revived(env.now, home, attempt, Task::Monitor(id)) {
                    self.look_connected(env, id, found);
                }
            }
            LookStage::Lists { until } => {
                let Some(home) = server.home else { return };
                let profile = Arc::clone(&self.own_profile);
                let is_known = self.lists_known(id, home, &profile, Task::Monitor(id));
                if is_known || env.now.reached(until) {
                    return self.first_look_over(env, id, Ok(()));
                }
                self.schedule.arm(Task::Monitor(id), until);
            }
            LookStage::Watching => self.watch(env, id),
        }
    }

    fn look_connected(&mut self, env: &mut Env<'_>, id: ServerId, found: Found) {
        let Some(server) = self.servers.get_mut(id) else { return };
        if found.is_err() {
            return self.first_look_over(env, id, found);
        }
        let until = env.now.after(server.call_timeout);
        server.look.stage = LookStage::Lists { until };
        self.run_monitor(env, id);
    }

    fn first_look_over(&mut self, env: &mut Env<'_>, id: ServerId, found: Found) {
        let Some(server) = self.servers.get_mut(id) else { return };
        self.schedule.disarm(Task::Monitor(id));
        server.look.stage = LookStage::Watching;
        server.contact = contact(found.is_ok());
        server.was_reached = found.is_ok();
        server.first_look = Some(found.map_err(|failure| failure.cause));
        let is_probed = server.clock.next_due().is_some();
        let (is_own_child, home) = (server.is_own_child(), server.home);
        let waiting = self.waiting_clients();
        self.schedule.wake_all(waiting);
        if is_probed {
            self.learn(env, id, found);
            self.end_tick(env.now, id);
        }
        if let Some(home) = home {
            self.keep_alive(env, home);
            if is_own_child {
                self.close_link(home);
                if let Some(server) = self.servers.get_mut(id) {
                    server.home = None;
                }
            }
        }
        self.watch(env, id);
    }

    /// Starts a shared program that ended, and probes when it is time.
    fn watch(&mut self, env: &mut Env<'_>, id: ServerId) {
        let Some(server) = self.servers.get(id) else { return };
        let home = server.home.filter(|_| server.is_shared_child());
        let state = home.and_then(|home| self.links.get(home)).map(|it| it.machine.state());
        let mut restart = None;
        if let (Some(home), Some(LinkState::Down)) = (home, state) {
            let pause = server.look.revived_at.map(|at| at.after(REVIVE_AFTER));
            let at = server.may_start_at(env.now).max(pause.unwrap_or(Now::ZERO));
            if env.now.reached(at) {
                if let Some(server) = self.servers.get_mut(id) {
                    server.look.revived_at = Some(env.now);
                }
                // What became of it shows in the link's state.
                if let Revived::Waiting(_) = self.revive(env, home)
                    && let Some(link) = self.links.get_mut(home)
                {
                    link.waiters.push(Task::Monitor(id));
                }
                let still = self.links.get(home).map(|it| it.machine.state());
                restart = (still == Some(LinkState::Down)).then(|| env.now.after(REVIVE_AFTER));
            } else {
                restart = Some(at);
            }
        }
        let Some(server) = self.servers.get_mut(id) else { return };
        let contact = env.core.contact(&backend_id(&server.name));
        let is_due = server.clock.tick(env.now, contact) == Tick::Probe;
        if is_due {
            self.begin_probe(env, id, true);
        }
        let Some(server) = self.servers.get(id) else { return };
        let due = server.clock.next_due_given(contact);
        // One that is under way looks again when it ends.
        let due = due.filter(|at| server.look.probe.is_none() || !env.now.reached(*at));
        match [due, restart].into_iter().flatten().min() {
            Some(at) => self.schedule.arm(Task::Monitor(id), at),
            None => self.schedule.disarm(Task::Monitor(id)),
        }
    }

    /// An operator wants a server probed now.
    pub(super) fn probe(&mut self, env: &mut Env<'_>, token: RequestToken, name: &str) {
        let named = |id: &ServerId| self.servers.get(*id).is_some_and(|it| *it.name == *name);
        let Some(id) = self.server_order.iter().copied().find(named) else {
            return self.out.push(Effect::ProbeAnswer { token, passed: None });
        };
        if let Some(server) = self.servers.get_mut(id) {
            server.probe_tokens.push(token);
        }
        self.begin_probe(env, id, false);
    }

    fn begin_probe(&mut self, env: &mut Env<'_>, id: ServerId, is_scheduled: bool) {
        let Some(server) = self.servers.get_mut(id) else { return };
        if let Some(probe) = &mut server.look.probe {
            probe.is_scheduled |= is_scheduled;
            return;
        }
        let limit = server.settings.probe.timeout;
        let Some(link) = self.link_to_probe(id) else {
            // Without a session there may be nothing to probe over.
            let Some(server) = self.servers.get_mut(id) else { return };
            for token in std::mem::take(&mut server.probe_tokens) {
                self.out.push(Effect::ProbeAnswer { token, passed: None });
            }
            if is_scheduled {
                server.was_reached = true;
                self.end_tick(env.now, id);
            }
            return;
        };
        let until = env.now.after(limit);
        let stage = ProbeStage::Reviving { generation: Generation(0), until, is_last: false };
        let probe = Probe { link, until, is_scheduled, stage };
        if let Some(server) = self.servers.get_mut(id) {
            server.look.probe = Some(probe);
        }
        self.schedule.arm(Task::ProbeEnd(id), until);
        if self.ready_talk(link).is_some() {
            return self.ask_probe(env, id, link);
        }
        self.revive_for_probe(env, id, link, false);
    }

    /// The connection that a probe goes over.
    fn link_to_probe(&mut self, id: ServerId) -> Option<LinkId> {
        let server = self.servers.get(id)?;
        if !server.is_own_child() {
            return server.home;
        }
        let clients = self.open_clients();
        let mut links = clients.into_iter().filter_map(|it| self.peek_link(it, id));
        links.find(|link| self.ready_talk(*link).is_some())
    }

    fn revive_for_probe(&mut self, env: &mut Env<'_>, id: ServerId, link: LinkId, is_last: bool) {
        match self.revive(env, link) {
            Revived::There if is_last => self.probe_over(env, id, Ok(())),
            Revived::There => self.ask_probe(env, id, link),
            Revived::Closed => self.probe_over(env, id, Err(closed())),
            Revived::Waiting(generation) => {
                let Some(server) = self.servers.get_mut(id) else { return };
                let until = env.now.after(server.initialize_within());
                if let Some(probe) = &mut server.look.probe {
                    probe.stage = ProbeStage::Reviving { generation, until, is_last };
                }
                self.run_probe(env, id);
            }
        }
    }

    /// Looks at a probe that is under way.
    pub(super) fn run_probe(&mut self, env: &mut Env<'_>, id: ServerId) {
        let Some(server) = self.servers.get(id) else { return };
        let Some(probe) = &server.look.probe else { return };
        let (link, probe_until, stage) = (probe.link, probe.until, probe.stage);
        let limit = server.initialize_within();
        if let ProbeStage::Reviving { generation, until, is_last } = stage {
            let attempt = (generation, until, limit);
            match self.revived(env.now, link, attempt, Task::ProbeEnd(id)) {
                Some(Ok(())) if !is_last => return self.ask_probe(env, id, link),
                Some(found) => return self.probe_over(env, id, found),
                None => {}
            }
        }
        if env.now.reached(probe_until) {
            if let ProbeStage::Asked(talk) = stage {
                self.give_up_all_of(talk, Asker::Probe(id));
            }
            let limit = self.servers.get(id).map(|it| it.settings.probe.timeout);
            let cause = Cause::TimedOut(limit.unwrap_or_default());
            return self.probe_over(env, id, Err(Failure::of(cause, OutcomeKind::Timeout)));
        }
        self.schedule.arm_by(Task::ProbeEnd(id), probe_until);
    }

    fn ask_probe(&mut self, env: &mut Env<'_>, id: ServerId, link: LinkId) {
        let Some(talk) = self.ready_talk(link) else {
            let broken = Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport);
            return self.probe_over(env, id, Err(broken));
        };
        let Some(server) = self.servers.get_mut(id) else { return };
        let within = server.call_timeout;
        let Some(probe) = &mut server.look.probe else { return };
        probe.stage = ProbeStage::Asked(talk);
        self.schedule.arm(Task::ProbeEnd(id), probe.until);
        let Some(profile) = self.links.get(link).map(|it| Arc::clone(&it.profile)) else { return };
        let (method, params) = (self.ping_method(link), Params::default());
        let out = Outbound::own(method, params, profile, within, Asker::Probe(id));
        self.send_request(env.now, talk, out);
    }

    /// A probe was answered, or will not be.
    pub(super) fn probe_replied(&mut self, env: &mut Env<'_>, id: ServerId, reply: ServerReply) {
        let Some(probe) = self.servers.get(id).and_then(|it| it.look.probe.as_ref()) else {
            return;
        };
        let ProbeStage::Asked(talk) = probe.stage else { return };
        let link = probe.link;
        let spoken = self.connections.get(talk).map(|it| it.era);
        let spoken = spoken.unwrap_or_else(|| self.era_of(link));
        let is_stateless = spoken == crate::era::Era::Stateless;
        let failure = match self.doubted(link, reply, spoken) {
            ServerReply::Answer(Ok(_)) => return self.probe_over(env, id, Ok(())),
            ServerReply::Answer(Err(error))
                if is_stateless || meaning_of(&error) == Meaning::SessionLost =>
            {
                Failure::session_lost()
            }
            // A server with sessions need not know `ping`.
            ServerReply::Answer(Err(error)) if is_unknown(&error) => {
                return self.probe_over(env, id, Ok(()));
            }
            ServerReply::Answer(Err(_)) => Failure::of(Cause::Malformed, OutcomeKind::ServerError),
            ServerReply::Failed(failure) => failure,
        };
        if failure.ends_conversation()
            && let Some(generation) = self.generation_of(link, talk)
        {
            self.link_lost(link, generation);
            if failure.is_session_loss {
                // A session that the server forgot is no fault by itself.
                return self.revive_for_probe(env, id, link, true);
            }
        }
        self.probe_over(env, id, Err(failure));
    }

    fn probe_over(&mut self, env: &mut Env<'_>, id: ServerId, found: Found) {
        self.schedule.disarm(Task::ProbeEnd(id));
        let Some(server) = self.servers.get_mut(id) else { return };
        let Some(probe) = server.look.probe.take() else { return };
        let passed = found.is_ok();
        for token in std::mem::take(&mut server.probe_tokens) {
            self.out.push(Effect::ProbeAnswer { token, passed: Some(passed) });
        }
        if probe.is_scheduled {
            server.was_reached |= passed;
        }
        self.learn(env, id, found);
        if probe.is_scheduled {
            self.end_tick(env.now, id);
        }
        self.schedule.wake(Task::Monitor(id));
    }

    /// A probe has ended. A server that none has reached since the start is asked again soon.
    fn end_tick(&mut self, now: Now, id: ServerId) {
        let Some(server) = self.servers.get_mut(id) else { return };
        match server.was_reached {
            true => server.clock.ended(),
            false => server.clock.ended_unreached(now),
        }
    }

    /// What the core is told of a probe.
    fn learn(&mut self, env: &mut Env<'_>, id: ServerId, found: Found) {
        let Some(server) = self.servers.get_mut(id) else { return };
        let passed = found.is_ok();
        // The next probe has ended by then, whichever phase it is in.
        let ProbeSettings { every, timeout, .. } = server.settings.probe;
        let next_in = Millis(every.0.saturating_add(timeout.0).saturating_add(SLACK.0));
        let backend = backend_id(&server.name);
        env.core.server_probed(env.now, &backend, &outcome_of(&found), next_in, env.notes);
        server.contact = contact(passed);
        let server = Arc::clone(&server.name);
        self.out.push(Effect::Count(Metric::Probed { server, passed }));
        self.is_health_doubtful = true;
    }
}

const fn contact(is_reached: bool) -> Contact {
    if is_reached { Contact::Reached } else { Contact::Failed }
}

/// What the core is told of a probe. A program that is not started again for a while has failed,
/// although nobody was asked; what we lack ourselves says nothing about a server.
fn outcome_of(found: &Found) -> Outcome {
    match found {
        Ok(()) => Outcome::unanswered(OutcomeKind::Success),
        Err(Failure {
            cause: Cause::ProcessExited | Cause::CannotStart | Cause::CrashLoop,
            ..
        }) => Outcome::unanswered(OutcomeKind::Transport),
        Err(failure) => failure.told(),
    }
}

fn is_unknown(error: &[u8]) -> bool {
    read_error(error).is_some_and(|error| error.code == METHOD_NOT_FOUND)
}

const fn closed() -> Failure {
    Failure::of(Cause::Closing, OutcomeKind::Cancelled)
}
