//! How far a gateway is on its way out, as every thread and connection of it sees.

use std::convert::Infallible;

use tokio::sync::{mpsc, watch};

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

/// Held by a thread of the data plane until, in the drain, it has read every request of the
/// connections that it took before.
#[derive(Clone, Debug)]
pub struct Settling(
    #[expect(dead_code, reason = "its end is what it says")] mpsc::Sender<Infallible>,
);

/// Hears when no thread reads a request any more that came before the drain.
#[derive(Debug)]
pub struct Settled(mpsc::Receiver<Infallible>);

/// One to hold by every thread, and one to wait for.
#[must_use]
pub fn settling() -> (Settling, Settled) {
    let (sender, receiver) = mpsc::channel(1);
    (Settling(sender), Settled(receiver))
}

impl Settled {
    /// Waits until every [`Settling`] has been dropped. Giving up in the middle loses nothing.
    pub async fn wait(&mut self) {
        // Nothing can be sent: only the end is heard.
        let _ = self.0.recv().await;
    }
}
