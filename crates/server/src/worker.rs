//! One thread of the data plane: serves its listener until told to stop, and keeps its connections
//! to providers in order.

use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::{gateway::Gateway, worker::Worker};
use tidegate_mcp_shell::McpHandle;
use tidegate_net::connection::{Answering, HeadLimits, Listener, Service};
use tidegate_runtime::{
    phase::{Phase, Settling, reached},
    task,
};
use tokio::sync::watch;

use crate::ingress::{self, Ingress};

/// How often kept connections are looked at: they are idle for up to a minute.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How often streams are told that the drain is over: those that begin meanwhile must hear it too.
const END_STEP: Duration = Duration::from_millis(10);

/// What one thread needs to know of the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadLimits {
    pub(crate) connections: usize,
    pub(crate) header_bytes: usize,
}

/// Runs a thread's accept loop, and then its drain.
pub(crate) async fn run(
    gateway: Arc<Gateway>,
    mcp: McpHandle,
    listener: TcpListener,
    limits: ThreadLimits,
    (phase, settling): (watch::Receiver<Phase>, Settling),
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
    let ingress = Rc::new(Ingress { worker: Rc::clone(&worker), mcp });
    let service = Service {
        handler: Rc::new(move |request| {
            // The future has ten KiB, of which a request is the only part there is yet: made in its
            // place, nothing of it is copied there.
            let place = Box::new_uninit();
            let ingress = Rc::clone(&ingress);
            let answering = async move { ingress::answer(&ingress, request).await };
            Box::into_pin(Box::write(place, answering)) as Answering
        }),
        limits: HeadLimits { bytes: limits.header_bytes },
        is_cancelled_by_closing: tidegate_mcp_shell::is_cancelled_by_closing,
        phase: phase.clone(),
        certificates,
    };
    let mut listener = Listener::new(listener, limits.connections, service)?;
    listener.accept().await;
    listener.settled().await;
    drop(settling);
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
