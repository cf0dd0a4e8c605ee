//! A program and everything it started: the processes a warden answers for.
//!
//! The program leads a process group of its own, which its children join unless they leave it on
//! purpose. On Linux the warden is also the one to whom orphans are handed, so even those that
//! left the group become its children when their parents end, and can be found.
//!
//! Rules kept here:
//! - A signal goes only to what cannot be another's by mistake: to the group while its leader is
//!   not reaped (its number cannot be given away), and to children of our own, which only we reap.
//! - The leader is reaped last, for that reason.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::event::poll;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use tidegate_core::time::Millis;
use tidegate_runtime::clock::Clock;

use super::word::End;

/// How long killed processes may take to vanish. One that waits for a dead disk does not, and the
/// warden does not wait for it for ever.
const VANISH_WITHIN: Millis = Millis::seconds(2);
/// How often that is looked at.
const LOOK_EVERY: Millis = Millis(5);

/// Makes orphans below this process its children. Where the system has no such thing, a process
/// that leaves its group escapes.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// A running program and what it started.
pub(super) struct Family {
    leader: Child,
    pid: Pid,
    end: Option<End>,
}

impl Family {
    /// Starts a program at the head of its own group, with a piped stdin. The rest is ours.
    pub(super) fn start(argv: &[OsString]) -> io::Result<(Self, ChildStdin)> {
        let (program, arguments) =
            argv.split_first().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        let mut leader =
            Command::new(program).args(arguments).stdin(Stdio::piped()).process_group(0).spawn()?;
        let pid = Pid::from_child(&leader);
        let input = leader.stdin.take().expect("stdin was asked to be a pipe");
        Ok((Self { leader, pid, end: None }, input))
    }

    pub(super) fn leader_id(&self) -> u32 {
        self.leader.id()
    }

    /// How the program itself ended, if it has. It is not reaped by looking.
    pub(super) fn leader_end(&mut self) -> Option<End> {
        if self.end.is_none() {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let status = waitid(WaitId::Pid(self.pid), look).ok().flatten();
            self.end = status.and_then(|status| {
                let code = status.exit_status().map(End::Code);
                code.or_else(|| status.terminating_signal().map(End::Signal))
            });
        }
        self.end
    }

    /// Whether the program and all it started have ended.
    pub(super) fn is_gone(&mut self) -> bool {
        self.leader_end().is_some() && self.others().all(|other| other.is_zombie)
    }

    /// Sends a signal to everything.
    pub(super) fn signal(&self, signal: Signal) {
        // Whoever ended in the meantime needs no signal.
        let _ = kill_process_group(self.pid, signal);
        for other in self.others().filter(|other| other.is_child && !other.is_zombie) {
            let _ = kill_process(other.pid, signal);
        }
    }

    /// Reaps what was handed to us and has ended.
    pub(super) fn reap_orphans(&self) {
        for other in self.others().filter(|other| other.is_child && other.is_zombie) {
            let _ = waitpid(Some(other.pid), WaitOptions::NOHANG);
        }
    }

    /// Ends everything at once and reaps it.
    pub(super) fn kill(&mut self) {
        let clock = Clock::start();
        // A killed parent's children become ours, so there can be something to kill every time.
        loop {
            self.signal(Signal::KILL);
            self.reap_orphans();
            let is_done = self.is_gone() && !self.others().any(|other| other.is_child);
            if is_done || clock.now().0 >= VANISH_WITHIN.0 {
                break;
            }
            let _ = poll(&mut [], Some(&super::timespec(LOOK_EVERY)));
        }
        drop(self.leader.try_wait());
    }

    /// Everybody but the leader: the members of its group, and our own children.
    fn others(&self) -> impl Iterator<Item = Relative> {
        let (leader, warden) = (self.pid, rustix::process::getpid());
        processes().into_iter().filter(move |it| it.pid != leader).filter_map(move |it| {
            let is_child = it.parent == Some(warden);
            let is_relative = is_child || it.group == Some(leader);
            is_relative.then_some(Relative { pid: it.pid, is_child, is_zombie: it.is_zombie })
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Relative {
    pid: Pid,
    is_child: bool,
    is_zombie: bool,
}

/// A process as the system lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    parent: Option<Pid>,
    group: Option<Pid>,
    is_zombie: bool,
}

/// Every process that can be seen; none where there is no `/proc`.
fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .filter_map(|entry| parse(&std::fs::read_to_string(entry.path().join("stat")).ok()?))
        .collect()
}

/// Reads a `stat` line: `7 (a name) S 1 7 …`. The name may hold anything, so what follows its last
/// bracket counts.
fn parse(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    let mut fields = rest.rsplit_once(") ")?.1.split(' ');
    let number = |text: Option<&str>| text?.parse().ok().map(Pid::from_raw);
    let pid = number(Some(pid))??;
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let (parent, group) = (number(fields.next())?, number(fields.next())?);
    Some(Process { pid, parent, group, is_zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_a_hostile_name() {
        let pid = |number| Pid::from_raw(number);
        let read = parse("12 (a) S 9 9 (b) Z 3 4 4 0 -1 0\n").expect("a stat line");
        let expected = Process {
            pid: pid(12).expect("not zero"),
            parent: pid(3),
            group: pid(4),
            is_zombie: true,
        };
        assert_eq!(read, expected);
        for bad in ["", "12", "12 (a", "12 (a) ", "x (a) S 1 1", "12 (a) S"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_among_those_that_can_be_seen() {
        let me = rustix::process::getpid();
        let seen = processes().into_iter().find(|it| it.pid == me).expect("it runs");
        assert!(!seen.is_zombie);
    }
}
