//! Moments and waits of tests.

use std::time::{Duration, Instant};

/// Longer than anything that is meant to come, on a busy machine too.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for something that another thread is about to do; fails if it does not.
///
/// # Panics
/// If it has not come about within [`PATIENCE`].
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = now() + PATIENCE;
    while !is_so() {
        assert!(now() < until, "it never came about: {what}");
        pause(Duration::from_millis(2));
    }
}

/// Gives other threads time.
pub fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "other threads need the time, not this one")]
    std::thread::sleep(time);
}

/// The moment; tests of limits on waiting measure how long a client waited.
pub fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "how long a client waits is what is tested")]
    Instant::now()
}

/// Milliseconds, for short.
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
