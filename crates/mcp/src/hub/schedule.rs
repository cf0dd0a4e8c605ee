//! What is to be looked at: at once, or at a moment.
//!
//! Everything in the Hub that waits is looked at again when something it waits for has changed, or
//! when its time has come. A look that finds nothing new is harmless, so nothing is ever taken out
//! of the line, and a task that has gone meanwhile is simply not found.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidegate_core::time::Now;

use super::ids::{CallId, ClientId, ConnectionId, ExchangeId, JoinId, LinkId, ReaderId, ServerId};
use super::profile::ProfileKey;

/// Something that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// A client's request.
    Call(CallId),
    /// A server on its way into a session.
    Join(JoinId),
    /// A request to a server.
    Exchange(ExchangeId),
    /// The answer to a request over a connection is due.
    Answer(ConnectionId, u64),
    /// A connection whose last requests may still be answered.
    Retire(ConnectionId),
    /// The lists of a server for one profile.
    Fetch(ServerId, ProfileKey),
    /// The gateway's own eye on a server.
    Monitor(ServerId),
    /// A probe of a server is to be over.
    ProbeEnd(ServerId),
    /// A program that is started after a pause.
    Start(LinkId),
    /// An idle connection.
    Keepalive(LinkId),
    /// What a server without sessions is asked to tell: its lists, or else its resources.
    Listening(LinkId, bool),
    /// A client is told that its lists changed.
    TellLists(ClientId),
    /// A client's last calls may still be answered.
    Ending(ClientId),
    /// A stream that has been silent.
    Silence(ReaderId),
    /// Sessions that nobody uses, and calls that nobody comes back for.
    Reap,
    /// What stands against a server ends by itself.
    Health,
}

/// What is to be looked at.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    ready: VecDeque<Task>,
    by_time: BTreeSet<(Now, Task)>,
    by_task: BTreeMap<Task, Now>,
}

impl Schedule {
    /// At once.
    pub(super) fn wake(&mut self, task: Task) {
        self.ready.push_back(task);
    }

    /// All of them, at once.
    pub(super) fn wake_all(&mut self, tasks: impl IntoIterator<Item = Task>) {
        self.ready.extend(tasks);
    }

    /// At a moment, and not at the one that was said before.
    pub(super) fn arm(&mut self, task: Task, at: Now) {
        if let Some(before) = self.by_task.insert(task, at) {
            if before == at {
                return;
            }
            self.by_time.remove(&(before, task));
        }
        self.by_time.insert((at, task));
    }

    /// At a moment, or at an earlier one that was said before.
    pub(super) fn arm_by(&mut self, task: Task, at: Now) {
        if self.by_task.get(&task).is_none_or(|before| at < *before) {
            self.arm(task, at);
        }
    }

    /// At no moment.
    pub(super) fn disarm(&mut self, task: Task) {
        if let Some(before) = self.by_task.remove(&task) {
            self.by_time.remove(&(before, task));
        }
    }

    /// The next that is to be looked at now.
    pub(super) fn next(&mut self, now: Now) -> Option<Task> {
        if let Some(task) = self.ready.pop_front() {
            return Some(task);
        }
        let &(at, task) = self.by_time.first()?;
        if !now.reached(at) {
            return None;
        }
        self.disarm(task);
        Some(task)
    }

    /// The earliest moment that was said.
    pub(super) fn next_wakeup(&self) -> Option<Now> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_moment_comes_first_and_each_task_has_one() {
        let mut schedule = Schedule::default();
        schedule.arm(Task::Reap, Now(50));
        schedule.arm(Task::Health, Now(20));
        schedule.arm(Task::Reap, Now(10));
        schedule.arm_by(Task::Health, Now(30));
        assert_eq!(schedule.next_wakeup(), Some(Now(10)));
        assert_eq!(schedule.next(Now(9)), None);
        assert_eq!(schedule.next(Now(25)), Some(Task::Reap));
        assert_eq!(schedule.next(Now(25)), Some(Task::Health));
        assert_eq!((schedule.next(Now(99)), schedule.next_wakeup()), (None, None));
    }

    #[test]
    fn what_is_ready_comes_before_what_is_due() {
        let mut schedule = Schedule::default();
        schedule.arm(Task::Reap, Now(1));
        schedule.wake(Task::Health);
        assert_eq!(schedule.next(Now(5)), Some(Task::Health));
        schedule.disarm(Task::Reap);
        assert_eq!(schedule.next(Now(5)), None);
    }
}
