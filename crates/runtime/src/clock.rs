//! The only file of the shell that makes moments: everything else gets them from here, and clippy
//! refuses `Instant::now` and `SystemTime::now` of the standard library and of tokio elsewhere.
//!
//! The core counts milliseconds since the gateway started, on the monotonic clock; wall-clock time
//! is read only to render it and to understand HTTP dates, so a jump of it changes no decision.
//!
//! A task that is polled sees one moment during its turn ([`during_one_turn`]): a request asks for
//! the time more than twenty times, and reading the clock that often takes longer than the choice
//! of a target. A turn ends whenever the task waits, so no wait is measured by an old moment.

use std::cell::Cell;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tidegate_core::time::Now;

/// Time since the gateway started.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    started_unix_ms: u64,
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
    pub fn start() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), started_unix_ms: unix.as_millis() as u64 }
    }

    /// A clock that starts now and believes that it is another time: what a process sees after the
    /// clock of its machine was set.
    #[must_use]
    pub fn start_at(unix_ms: u64) -> Self {
        Self { started_unix_ms: unix_ms, ..Self::start() }
    }

    /// The moment, as the core wants it.
    #[must_use]
    pub fn now(&self) -> Now {
        let now = TURN.with(|turn| turn.asked(&turn.system, system_now));
        Now(now.saturating_duration_since(self.started).as_millis() as u64)
    }

    /// The wall-clock time, for HTTP dates.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
    pub fn unix_ms(&self) -> u64 {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        unix.as_millis() as u64
    }

    /// A moment of the core's as wall-clock time, in milliseconds since 1970.
    #[must_use]
    pub fn unix_ms_of(&self, moment: Now) -> u64 {
        self.started_unix_ms.saturating_add(moment.0)
    }
}

/// The wall-clock time, to be rendered.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
pub fn wall_now() -> SystemTime {
    SystemTime::now()
}

/// The moment on the clock of tokio's timers, which tests can pause: what limits on waiting are
/// counted from.
#[must_use]
pub fn timer_now() -> tokio::time::Instant {
    TURN.with(|turn| turn.asked(&turn.timers, read_timers))
}

/// Does something during which time stands still: a turn of a task. Turns do not nest.
pub fn during_one_turn<T>(act: impl FnOnce() -> T) -> T {
    // Ends the turn also when it panics.
    let turn = TurnGuard::begin();
    let done = act();
    drop(turn);
    done
}

#[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
fn system_now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
fn read_timers() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

thread_local! {
    static TURN: Turn = const {
        Turn { is_under_way: Cell::new(false), system: Cell::new(None), timers: Cell::new(None) }
    };
}

/// What the clocks said when they were first asked during this thread's turn. They are two: tests
/// can pause the one of the timers.
struct Turn {
    is_under_way: Cell<bool>,
    system: Cell<Option<Instant>>,
    timers: Cell<Option<tokio::time::Instant>>,
}

impl Turn {
    fn asked<T: Copy>(&self, known: &Cell<Option<T>>, read: fn() -> T) -> T {
        if let Some(now) = known.get() {
            return now;
        }
        let now = read();
        if self.is_under_way.get() {
            known.set(Some(now));
        }
        now
    }
}

struct TurnGuard;

impl TurnGuard {
    fn begin() -> Self {
        TURN.with(|turn| turn.is_under_way.set(true));
        Self
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        TURN.with(|turn| {
            turn.is_under_way.set(false);
            turn.system.set(None);
            turn.timers.set(None);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the clocks until both have moved on.
    fn wait_for_another_moment() {
        let (system, timers) = (system_now(), read_timers());
        while system_now() == system || read_timers() == timers {}
    }

    #[test]
    fn time_stands_still_during_a_turn_and_goes_on_after_it() {
        let moments = || {
            let first = (TURN.with(|turn| turn.asked(&turn.system, system_now)), timer_now());
            wait_for_another_moment();
            (first, (TURN.with(|turn| turn.asked(&turn.system, system_now)), timer_now()))
        };
        let (first, second) = during_one_turn(moments);
        assert_eq!(first, second);
        let (third, fourth) = moments();
        assert!(third.0 > second.0 && third.1 > second.1, "the turn is over");
        assert!(fourth.0 > third.0 && fourth.1 > third.1, "outside of a turn every look is new");
        assert!(during_one_turn(timer_now) > fourth.1, "a turn begins with a look of its own");
    }

    #[test]
    fn a_turn_that_panics_is_over() {
        let panicked = std::panic::catch_unwind(|| {
            during_one_turn(|| {
                let _ = timer_now();
                panic!("in the middle");
            })
        });
        assert!(panicked.is_err());
        let first = timer_now();
        wait_for_another_moment();
        assert!(timer_now() > first);
    }
}
