//! The one way to start a task: named, on the thread that starts it, panics caught and told.
//!
//! Tasks live on a thread's own runtime and end with it; a connection's driver ends when both of
//! its sides are gone. So every task has an owner: the thread, or whoever holds an [`Owned`].

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use hyper::rt::Executor;
use tokio::task::AbortHandle;

use crate::clock;

/// Starts a task on this thread.
pub fn spawn(name: &'static str, future: impl Future<Output = ()> + 'static) {
    spawn_owned(name, future).detach();
}

/// Starts a task on this thread that ends with its owner.
pub fn spawn_owned(name: &'static str, future: impl Future<Output = ()> + 'static) -> Owned {
    // In a box of its own: the runtime moves a task several times, and some are kilobytes.
    let mut future = Box::pin(future);
    // What turns a panic into a line in the log instead of a silent end.
    let task = tokio::task::spawn_local(poll_fn(move |cx| {
        let turn = AssertUnwindSafe(|| clock::during_one_turn(|| future.as_mut().poll(cx)));
        let polled = catch_unwind(turn);
        polled.unwrap_or_else(|_| {
            tracing::error!(task = name, "a task panicked");
            Poll::Ready(())
        })
    }));
    Owned(Some(task.abort_handle()))
}

/// A task that is ended when this is dropped; what it holds is dropped at its next turn.
#[derive(Debug)]
pub struct Owned(Option<AbortHandle>);

impl Owned {
    /// Leaves the task to itself.
    pub fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Lets hyper start its own tasks on this thread.
#[derive(Clone, Copy, Debug)]
pub struct LocalExecutor;

impl<F: Future + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move { drop(future.await) });
    }
}
