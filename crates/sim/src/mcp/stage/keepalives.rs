//! Keepalives: the production schedule of each connection, answered by the world.

use std::sync::Arc;

use indexmap::IndexMap;
use tidegate_core::{outcome::Outcome, time::Millis};
use tidegate_mcp::{
    cause::Cause,
    health::{self, Standing},
    keepalive::{Due, Ended, Keepalive, Reason},
    link::LinkState,
};

use super::{Event, LineId, Stage, lines::Line};
use crate::mcp::{
    trace::{StepKeepalives, Totals},
    world::Mode,
};

/// The end of a keepalive that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pinged {
    line: LineId,
    number: u64,
    result: Result<(), Reason>,
}

impl Stage<'_> {
    /// A connection was made, or made again.
    pub(super) fn keepalive_starts(&mut self, line: LineId, server: usize) {
        let settings = self.servers[server].plan.keepalive;
        let draw = self.rng.draw();
        let now = self.now;
        let Some(it) = self.lines.get_mut(&line) else { return };
        match &mut it.keepalive {
            Some(keepalive) => keepalive.heard(now, draw),
            None => it.keepalive = Some(Keepalive::new(settings, now, draw)),
        }
        self.keepalive_next(line);
    }

    /// Traffic went out.
    pub(super) fn keepalive_postponed(&mut self, line: LineId) {
        self.with_keepalive(line, |keepalive, now, draw| keepalive.sent(now, draw));
    }

    /// Traffic was answered.
    pub(super) fn keepalive_heard(&mut self, line: LineId) {
        self.with_keepalive(line, |keepalive, now, draw| keepalive.heard(now, draw));
    }

    pub(super) fn keepalive_due(&mut self, line: LineId) {
        let Some(server) = self.server_of(line) else { return };
        let name = self.servers[server].name();
        let is_open = matches!(
            health::standing(&self.core, &name, self.now),
            Standing::SlotTaken | Standing::Unhealthy(Cause::CircuitOpen, _)
        );
        let Some(state) = self.lines.get(&line).map(|it| it.link.state()) else { return };
        let due = self.with_keepalive(line, |it, now, draw| it.tick(now, draw, state, is_open));
        match due {
            None | Some(Due::Nothing) => {}
            Some(Due::Refused) => self.totals(&name).keepalive.failures += 1,
            Some(Due::Reconnect) => {
                self.totals(&name).keepalive.attempts += 1;
                self.bring_up(line);
            }
            Some(Due::Send(deadline)) => {
                self.totals(&name).keepalive.attempts += 1;
                self.ping(line, server, deadline.since(self.now));
            }
        }
    }

    /// One is sent: answered after the server's delay, too late, or met by a server that does not
    /// know the conversation, which is then made again.
    fn ping(&mut self, line: LineId, server: usize, within: Millis) {
        self.audit_reach(line);
        let number = self.next_number();
        let Some(it) = self.lines.get_mut(&line) else { return };
        it.ping = number;
        let world = &self.servers[server].world;
        let is_known = it.epoch == world.epoch;
        let (after, result) = match world.mode {
            Mode::Up if !is_known => {
                let generation = it.link.generation();
                it.link.lost(generation);
                self.bring_up(line);
                return;
            }
            Mode::Up if world.delay < within => (world.delay, Ok(())),
            Mode::Up | Mode::Silent => (within, Err(Reason::Timeout)),
            Mode::Down => (Millis::ZERO, Err(Reason::Error)),
        };
        let pinged = Pinged { line, number, result };
        self.put(self.now.after(after), Event::KeepaliveEnds(pinged));
    }

    /// Its server died: one that is under way fails.
    pub(super) fn keepalive_breaks(&mut self, line: LineId) {
        let Some(it) = self.lines.get(&line) else { return };
        if it.keepalive.as_ref().is_some_and(Keepalive::is_under_way) {
            let pinged = Pinged { line, number: it.ping, result: Err(Reason::Error) };
            self.put(self.now, Event::KeepaliveEnds(pinged));
        }
    }

    pub(super) fn keepalive_ends(&mut self, pinged: Pinged) {
        let Pinged { line, number, result } = pinged;
        if self.lines.get(&line).is_some_and(|it| it.ping == number) {
            self.keepalive_reconnected(line, result);
        }
    }

    /// One that was under way ended; what that means is the schedule's to say.
    pub(super) fn keepalive_reconnected(&mut self, line: LineId, result: Result<(), Reason>) {
        let Some(server) = self.server_of(line) else { return };
        let name = self.servers[server].name();
        let ended = self.with_keepalive(line, |it, now, draw| it.ended(now, draw, result));
        let totals = &mut self.totals(&name).keepalive;
        match ended {
            None | Some(Ended::Nothing) => {}
            Some(Ended::Success(_)) => totals.successes += 1,
            Some(Ended::Failure(_)) => totals.failures += 1,
            Some(Ended::Disabled { is_charged, reason }) => {
                totals.failures += 1;
                totals.auto_disabled += 1;
                if let Some(it) = self.lines.get_mut(&line) {
                    it.link.lost(it.link.generation());
                }
                if is_charged {
                    self.notes.transitions.clear();
                    let outcome = Outcome::unanswered(reason.outcome());
                    health::charge(&self.core, &name, self.now, &outcome, &mut self.notes);
                    self.audit_transitions(server);
                }
            }
        }
    }

    /// The keepalives since an earlier count, of servers that have something to show.
    pub(super) fn keepalives_since(
        &self,
        before: &IndexMap<Arc<str>, Totals>,
    ) -> IndexMap<Arc<str>, StepKeepalives> {
        let of_server = |(name, totals): (&Arc<str>, &Totals)| {
            let earlier = before.get(name).copied().unwrap_or_default();
            let is_its_own = |it: &&Line| it.server == *name;
            let is_disabled =
                |it: &&Line| it.keepalive.as_ref().is_some_and(Keepalive::is_disabled);
            let disabled = self.lines.values().filter(is_its_own).filter(is_disabled).count();
            let step = totals.keepalive.since(earlier.keepalive, disabled as u64);
            (step != StepKeepalives::default()).then(|| (Arc::clone(name), step))
        };
        self.totals.iter().filter_map(of_server).collect()
    }

    fn with_keepalive<T>(
        &mut self,
        line: LineId,
        act: impl FnOnce(&mut Keepalive, tidegate_core::time::Now, u64) -> T,
    ) -> Option<T> {
        let draw = self.rng.draw();
        let it = self.lines.get_mut(&line)?.keepalive.as_mut()?;
        let result = act(it, self.now, draw);
        self.keepalive_next(line);
        Some(result)
    }

    /// Stale entries of the agenda are harmless: a schedule that is not due says so. No moment is
    /// put there twice.
    fn keepalive_next(&mut self, line: LineId) {
        let Some(it) = self.lines.get(&line) else { return };
        if it.link.state() == LinkState::Closed {
            return;
        }
        let next = it.keepalive.as_ref().and_then(Keepalive::next_wakeup);
        if let Some(at) = next.filter(|_| it.due != next) {
            self.put(at, Event::KeepaliveDue(line));
            if let Some(it) = self.lines.get_mut(&line) {
                it.due = next;
            }
        }
    }
}
