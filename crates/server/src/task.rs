//! The one way to start a task: named, on the thread that starts it, panics caught and told.
//!
//! Tasks live on a thread's own runtime and end with it; a connection's driver ends when both of
//! its sides are gone. So every task has an owner: the thread.

use std::future::Future;

use hyper::rt::Executor;

/// Starts a task on this thread.
pub(crate) fn spawn(name: &'static str, future: impl Future<Output = ()> + 'static) {
    let task = tokio::task::spawn_local(future);
    // The watcher is what turns a panic into a line in the log instead of a silent end.
    tokio::task::spawn_local(async move {
        if let Err(error) = task.await
            && error.is_panic()
        {
            tracing::error!(task = name, "a task panicked");
        }
    });
}

/// Lets hyper start its own tasks on this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F: Future + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move { drop(future.await) });
    }
}
