//! A client that speaks over pipes, and a gateway that is reached by HTTP: the bridge between.
//!
//! Desktop clients start a program and write messages to it, one a line. This is that program's
//! inside: what comes in is posted to a gateway's `/mcp`, and what the gateway says comes out.
//!
//! ```text
//!   client ── lines ──▶ pipes ──▶ router ──▶ session, stateless ──▶ exchange ──▶ gateway
//!   client ◀── lines ── pipes ◀────────────────────────────────── exchange ◀── gateway
//! ```
//! - `pipes`: lines in and out, on threads of their own.
//! - `client_router`: what becomes of a line; requests under way, and how they end.
//! - `session`: the era of sessions, with a new one when the gateway has forgotten the old;
//!   `standing`: what that one is told again.
//! - `stateless`: the era without; `headers`: what of a message its headers repeat; `mirrored`:
//!   which arguments of which tools.
//! - `exchange`: one POST and what comes back. `wire`: the way to the gateway.
//! - `trouble`: why there is no answer, as the client is told.
//!
//! Rules kept here:
//! - Messages pass as they came, in both directions and in both eras; only the ids of errors
//!   without one are filled in. What a message means is the gateway's business.
//! - Every request that came in whole is answered, unless its client gave it up.
//! - Everything is bounded: lines, requests under way, queues, and the time that the end takes.

mod client_router;
mod exchange;
mod headers;
mod mirrored;
mod pipes;
mod session;
mod standing;
mod stateless;
#[cfg(test)]
mod tests;
mod trouble;
mod wire;

use std::io::{Read, Write};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::timeout;

use self::{client_router::ClientRouter, wire::Wire};
use super::guest::{Gate, GuestError};

/// How long calls under way may go on after the client has said its last word.
const CALLS_WITHIN: Duration = Duration::from_secs(5);

/// A gateway that is there says so at once.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// A bridge at work, on a thread of its own.
#[derive(Debug)]
pub struct Bridge {
    thread: JoinHandle<Result<(), GuestError>>,
    stop: watch::Sender<bool>,
}

/// Whether a gateway answers at this url, whatever it says. Nothing is opened by asking.
///
/// # Errors
/// The url or the key cannot be used.
pub fn answers(url: &str, key: Option<&str>) -> Result<bool, GuestError> {
    let wire = Wire::new(&Gate::new(url, key)?, url);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| GuestError::NoRuntime(error.to_string()))?;
    let asked = async { timeout(ANSWERS_WITHIN, exchange::is_answered(&wire)).await };
    Ok(LocalSet::new().block_on(&runtime, asked).unwrap_or(false))
}

/// The client's side of a bridge.
pub struct Pipes {
    /// What the client writes; its end is the end of the bridge.
    pub input: Box<dyn Read + Send>,
    /// What the client reads.
    pub output: Box<dyn Write + Send>,
}

impl Bridge {
    /// Begins to carry messages between `pipes` and the gateway at `url`, which need not be there
    /// yet.
    ///
    /// # Errors
    /// The url or the key cannot be used, or there is no thread to be had.
    pub fn start(url: &str, key: Option<&str>, pipes: Pipes) -> Result<Self, GuestError> {
        // A place cannot move between threads, so this one is only tried out.
        Gate::new(url, key)?;
        let (url, key) = (url.to_owned(), key.map(str::to_owned));
        let (stop, stopped) = watch::channel(false);
        let run = move || {
            let gate = Gate::new(&url, key.as_deref())?;
            carry(Wire::new(&gate, &url), pipes, stopped)
        };
        let thread = std::thread::Builder::new().name("bridge".to_owned()).spawn(run);
        let thread = thread.map_err(|error| GuestError::NoRuntime(error.to_string()))?;
        Ok(Self { thread, stop })
    }

    /// Whether it has ended: the input did, or nobody reads the output any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it without waiting for calls under way; the gateway is told.
    ///
    /// # Errors
    /// It could not work at all.
    pub fn stop(self) -> Result<(), GuestError> {
        self.stop.send_replace(true);
        let gone = || GuestError::NoRuntime("the thread of the bridge panicked".to_owned());
        self.thread.join().unwrap_or_else(|_| Err(gone()))
    }
}

fn carry(wire: Wire, pipes: Pipes, stopped: watch::Receiver<bool>) -> Result<(), GuestError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| GuestError::NoRuntime(error.to_string()))?;
    let failed = |error: std::io::Error| GuestError::NoRuntime(error.to_string());
    let lines = pipes::read(pipes.input).map_err(failed)?;
    let (out, written) = pipes::write(pipes.output).map_err(failed)?;
    LocalSet::new().block_on(&runtime, async {
        let router = ClientRouter::new(Rc::new(wire), out);
        serve(&router, lines, stopped).await;
        drop(router);
        written.wait().await;
    });
    Ok(())
}

/// Serves a client until its input ends, its output breaks, or somebody says stop.
async fn serve(
    router: &Rc<ClientRouter>,
    mut lines: pipes::InputLines,
    mut stopped: watch::Receiver<bool>,
) {
    let until_the_end = async {
        while let Some(line) = lines.recv().await {
            router.take(line).await;
        }
        // Whoever closes its input may still read.
        router.calls_ended(CALLS_WITHIN).await;
    };
    tokio::select! {
        () = until_the_end => {}
        () = router.nobody_reads() => {}
        // Without its owner the bridge has no reason to go on either.
        _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
    }
    router.close().await;
}
