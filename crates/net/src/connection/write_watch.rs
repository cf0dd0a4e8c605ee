//! A client that takes nothing of what is there for it has gone after a while.
//!
//! Until then what it does not read is held back all the way to the upstream, since nobody asks for
//! more (S52).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_runtime::clock::timer_now;
use tokio::time::{Sleep, sleep_until};

use super::activity::{Activity, Wait};

/// A reader that is merely slow takes something in a minute.
pub(super) const WRITE_WITHIN: Duration = Duration::from_secs(60);

/// Since when a client has taken nothing.
#[derive(Debug, Default)]
pub(super) struct WriteWatch {
    stuck: Option<Pin<Box<Sleep>>>,
}

impl WriteWatch {
    /// What a write came to, if the client still takes anything.
    pub(super) fn watched<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        activity: &Activity,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            if self.stuck.take().is_some() {
                activity.waits_for(None);
            }
            return written;
        }
        activity.waits_for(Some(Wait::Reading));
        let until = || Box::pin(sleep_until(timer_now() + WRITE_WITHIN));
        ready!(self.stuck.get_or_insert_with(until).as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }

    /// Whether something waits for the client to take it.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }
}
