//! How far a gateway is on its way out, as every thread and connection of it sees.

use tokio::sync::watch;

/// How far a gateway is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// No new connections; what is under way is finished.
    Draining,
    /// The drain is over: what is still under way says so and ends.
    Ending,
    /// Over.
    Stopped,
}

/// Waits until the gateway is at least in this phase (or gone).
pub async fn reached(mut phase: watch::Receiver<Phase>, wanted: Phase) {
    drop(phase.wait_for(|phase| *phase >= wanted).await);
}
