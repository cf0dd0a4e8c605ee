//! The only file of the shell that makes moments: everything else gets them from here, and clippy
//! refuses `Instant::now` and `SystemTime::now` of the standard library and of tokio elsewhere.
//!
//! The core counts milliseconds since the gateway started, on the monotonic clock; wall-clock time
//! is read only to render it and to understand HTTP dates, so a jump of it changes no decision.

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
        Now(self.started.elapsed().as_millis() as u64)
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
#[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
pub fn timer_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
