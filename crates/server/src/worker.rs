//! One thread of the data plane: serves its listener until told to stop, and keeps its connections
//! to providers in order.

use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::{
    connection::{HeadLimits, Listener, Service},
    data,
    gateway::{Gateway, Worker},
    task,
};

/// How often kept connections are looked at: they are idle for up to a minute.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How often streams are told that the drain is over: those that begin meanwhile must hear it too.
const END_STEP: Duration = Duration::from_millis(10);

/// How far a gateway is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// No new connections; what is under way is finished.
    Draining,
    /// The drain is over: what is still under way says so and ends.
    Ending,
    /// Over.
    Stopped,
}

/// Waits until the gateway is at least in this phase (or gone).
pub(crate) async fn reached(mut phase: watch::Receiver<Phase>, wanted: Phase) {
    drop(phase.wait_for(|phase| *phase >= wanted).await);
}

/// What one thread needs to know of the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadLimits {
    pub(crate) connections: usize,
    pub(crate) header_bytes: usize,
}

/// Runs a thread's accept loop, and then its drain.
pub(crate) async fn run(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    limits: ThreadLimits,
    phase: watch::Receiver<Phase>,
) -> std::io::Result<()> {
    let worker = Rc::new(Worker::new(gateway));
    let pool = Rc::clone(&worker.pool);
    task::spawn("sweep of connections", async move {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            pool.sweep();
        }
    });
    let certificates = Arc::clone(&worker.gateway.tls.data);
    let answering = Rc::clone(&worker);
    let service = Service {
        handler: Rc::new(move |request| {
            let worker = Rc::clone(&answering);
            Box::pin(async move { data::answer(&worker, request).await })
        }),
        limits: HeadLimits { bytes: limits.header_bytes },
        phase: phase.clone(),
        certificates,
    };
    let mut listener = Listener::new(listener, limits.connections, service)?;
    listener.accept().await;
    worker.pool.clear();
    let ending = async {
        reached(phase, Phase::Ending).await;
        loop {
            worker.end_streams();
            tokio::time::sleep(END_STEP).await;
        }
    };
    tokio::select! {
        () = listener.drained() => {}
        () = ending => {}
    }
    Ok(())
}
