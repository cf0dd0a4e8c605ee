//! When a client that has closed its side of the connection is looked after.
//!
//! A client may say that it sends no more and still wait for its answer (RFC 9112, 9.6). One that
//! has gone altogether looks the same until something is written to it: then its system refuses.
//! So such a client is written something harmless now and then: an interim response before the
//! answer begins, a comment inside a stream of events. Both are skipped by every reader. An answer
//! that comes soon is sent as if nothing had happened.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_runtime::clock::timer_now;
use tokio::time::{Sleep, sleep_until};

/// An interim response, which a client of HTTP/1.1 has to expect at any time (RFC 9110, 15.2).
pub(super) const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// A comment, which every reader of events skips.
pub(super) const COMMENT: &[u8] = b":\n\n";

const FIRST_AFTER: Duration = Duration::from_millis(250);
const LATER_AT_MOST: Duration = Duration::from_secs(5);

/// The moments at which something is written, further apart each time.
#[derive(Debug)]
pub(super) struct Beats {
    timer: Pin<Box<Sleep>>,
    pause: Duration,
}

impl Beats {
    pub(super) fn new() -> Self {
        Self { timer: Box::pin(sleep_until(timer_now() + FIRST_AFTER)), pause: FIRST_AFTER }
    }

    /// Ready at each of the moments.
    pub(super) fn poll_beat(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.timer.as_mut().poll(cx));
        self.pause = (self.pause * 2).min(LATER_AT_MOST);
        self.timer.as_mut().reset(timer_now() + self.pause);
        Poll::Ready(())
    }
}
