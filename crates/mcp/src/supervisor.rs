//! When a child process that ended may be started again.
//!
//! One supervisor per stdio server, whatever the number of its children: what crashes is the
//! program. Time and the draw for the jitter are arguments.
//!
//! Rules kept here:
//! - Each exit soon after the start doubles the pause before the next start, up to a bound; a child
//!   that has stayed up for a while starts the count anew.
//! - Several exits within a short time are a crash loop: a long pause, and a cause of its own. When
//!   it is over one start is allowed; another quick exit pauses again at once.
//! - An exit that we asked for is none: it is not reported.
//!
//! Left to others: starting, stopping, counting children against their limit; the breaker, which
//! hears of a start that fails as of any other connect.

use std::collections::VecDeque;

use tidegate_core::{
    draw::fraction,
    time::{Millis, Now},
};

use crate::cause::Cause;

/// How a program that ends is started again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RestartSettings {
    /// The pause after the first quick exit.
    pub first_pause: Millis,
    /// The longest ordinary pause.
    pub longest_pause: Millis,
    /// Up to this share is added to a pause at random, so that many children do not start in step.
    pub jitter: f64,
    /// A child that was up for this long has started well.
    pub stable_after: Millis,
    /// This many exits...
    pub loop_exits: usize,
    /// ...within this time are a crash loop...
    pub loop_within: Millis,
    /// ...and pause the program for this long.
    pub loop_pause: Millis,
}

impl Default for RestartSettings {
    fn default() -> Self {
        Self {
            // Short enough that a client's next call after a crash finds the child back.
            first_pause: Millis(250),
            longest_pause: Millis::seconds(30),
            jitter: 0.2,
            stable_after: Millis::seconds(60),
            // With pauses of 0.25, 0.5, 1 and 2 s, five exits at once take some 4 s.
            loop_exits: 5,
            loop_within: Millis::seconds(60),
            loop_pause: Millis::seconds(60),
        }
    }
}

/// Whether a child may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It may.
    Now,
    /// Not before a time.
    Later {
        /// When it may.
        at: Now,
        /// What a call hears until then.
        cause: Cause,
    },
}

/// The restart policy of one program.
#[derive(Clone, Debug)]
pub struct Supervisor {
    settings: RestartSettings,
    /// The latest exits, at most `loop_exits` of them.
    exits: VecDeque<Now>,
    quick_exits: u32,
    not_before: Now,
    is_looping: bool,
}

impl Supervisor {
    /// A program that has not been started yet.
    #[must_use]
    pub fn new(settings: RestartSettings) -> Self {
        let exits = VecDeque::new();
        Self { settings, exits, quick_exits: 0, not_before: Now::ZERO, is_looping: false }
    }

    /// Whether a child may be started now.
    #[must_use]
    pub fn may_start(&self, now: Now) -> Start {
        if now.reached(self.not_before) {
            return Start::Now;
        }
        let cause = if self.is_looping { Cause::CrashLoop } else { Cause::ProcessExited };
        Start::Later { at: self.not_before, cause }
    }

    /// A child that was started at `started` ended by itself, or could not be started at all
    /// (then `started` is `now`).
    pub fn exited(&mut self, started: Now, now: Now, draw: u64) -> Start {
        let settings = self.settings;
        if now.since(started) >= settings.stable_after {
            self.quick_exits = 0;
            self.is_looping = false;
        }
        self.exits.push_back(now);
        while self.exits.len() > settings.loop_exits.max(1) {
            self.exits.pop_front();
        }
        let is_full = self.exits.len() >= settings.loop_exits.max(1);
        let first = self.exits.front().copied().unwrap_or(now);
        let is_loop = is_full && now.since(first) < settings.loop_within;
        // Once it has looped, one quick exit is enough: the long pause has aged the others.
        self.is_looping = is_loop || self.is_looping;
        let pause = if self.is_looping { settings.loop_pause } else { self.pause() };
        self.quick_exits = self.quick_exits.saturating_add(1);
        let jitter = pause.scaled(settings.jitter * fraction(draw));
        self.not_before = self.not_before.max(now.after(pause).after(jitter));
        self.may_start(now)
    }

    /// Whether it is paused because it keeps ending.
    #[must_use]
    pub fn is_crash_loop(&self, now: Now) -> bool {
        self.is_looping && !now.reached(self.not_before)
    }

    fn pause(&self) -> Millis {
        let doubled = 2_u64.saturating_pow(self.quick_exits);
        let pause = Millis(self.settings.first_pause.0.saturating_mul(doubled));
        pause.min(self.settings.longest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervisor() -> Supervisor {
        let settings = RestartSettings { jitter: 0.0, ..RestartSettings::default() };
        Supervisor::new(settings)
    }

    fn at(start: Start) -> (u64, Cause) {
        match start {
            Start::Now => panic!("it may start"),
            Start::Later { at, cause } => (at.0, cause),
        }
    }

    #[test]
    fn the_pause_doubles_with_each_quick_exit() {
        let mut supervisor = supervisor();
        assert_eq!(supervisor.may_start(Now(0)), Start::Now);
        for pause in [250, 500, 1000, 2000] {
            let now = supervisor.not_before;
            let (next, cause) = at(supervisor.exited(now, now, 0));
            assert_eq!((next - now.0, cause), (pause, Cause::ProcessExited));
        }
    }

    #[test]
    fn a_child_that_stayed_up_starts_the_count_anew() {
        let mut supervisor = supervisor();
        supervisor.exited(Now(0), Now(0), 0);
        supervisor.exited(Now(250), Now(250), 0);
        let (next, _) = at(supervisor.exited(Now(750), Now(60_750), 0));
        assert_eq!(next, 61_000);
        assert_eq!(supervisor.may_start(Now(61_000)), Start::Now);
    }

    #[test]
    fn five_exits_within_a_minute_are_a_crash_loop_with_a_pause() {
        let mut supervisor = supervisor();
        let mut now = Now(0);
        for _ in 0..4 {
            supervisor.exited(now, now, 0);
            now = supervisor.not_before;
        }
        let (next, cause) = at(supervisor.exited(now, now, 0));
        assert_eq!((next - now.0, cause), (60_000, Cause::CrashLoop));
        assert!(supervisor.is_crash_loop(now));
        let now = Now(next);
        assert_eq!(supervisor.may_start(now), Start::Now);
        assert!(!supervisor.is_crash_loop(now));
        let (next, cause) = at(supervisor.exited(now, now, 0));
        assert_eq!((next - now.0, cause), (60_000, Cause::CrashLoop), "one chance, then again");
        let started = Now(next);
        let (_, cause) = at(supervisor.exited(started, started.after(Millis::minutes(2)), 0));
        assert_eq!(cause, Cause::ProcessExited, "it had stayed up");
    }

    #[test]
    fn pauses_are_bounded_and_jittered_upwards_only() {
        let settings = RestartSettings { loop_exits: 1000, ..RestartSettings::default() };
        let mut supervisor = Supervisor::new(settings);
        for _ in 0..100 {
            let now = supervisor.not_before;
            supervisor.exited(now, now, u64::MAX);
            let pause = supervisor.not_before.since(now);
            assert!(pause >= Millis(250) && pause <= Millis(36_000), "{pause:?}");
        }
    }

    #[test]
    fn an_exit_never_brings_the_next_start_forward() {
        let mut supervisor = supervisor();
        for _ in 0..5 {
            supervisor.exited(Now(0), Now(0), 0);
        }
        let (before, _) = at(supervisor.may_start(Now(1)));
        // A sibling that had been up for long ends during the pause.
        supervisor.exited(Now(0), Now(59_999), 0);
        assert!(supervisor.not_before.0 >= before);
    }
}
