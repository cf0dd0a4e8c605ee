//! One thread of the data plane: serves its listener until told to stop, and keeps its connections
//! to providers in order.
//!
//! A connection over which MCP is spoken goes to the MCP thread while there are seats there
//! ([`McpSeats`]): a call then wakes no other thread. The others are served here and their requests
//! handed over, so that the HTTP of many clients is spread over all cores.

use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use tidegate_config::file::LimitsFile;
use tidegate_gateway::{gateway::Gateway, worker::Worker};
use tidegate_mcp_shell::McpHandle;
use tidegate_net::connection::{
    Answering, ConnectionSet, HeadLimits, Listener, Service,
    handover::{HandOver, Home, MovedConnections, Way, way},
};
use tidegate_runtime::{
    phase::{Phase, Settled, Settling, reached},
    task,
};
use tokio::sync::watch;

use crate::ingress::{self, Ingress};

/// How often kept connections are looked at: they are idle for up to a minute.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How often streams are told that the drain is over: those that begin meanwhile must hear it too.
const END_STEP: Duration = Duration::from_millis(10);

/// Clients' connections that the MCP thread serves itself, at most. More would keep it from what
/// only it can do, and many calls at a time wake threads seldom.
const MCP_SEATS: usize = 32;
/// Which part of all connections they may be.
const MCP_PART: usize = 8;
/// Requests that a connection has had answered before it goes there: whoever opens a session, makes
/// one call and closes never gets there.
const MCP_AFTER: u64 = 3;

/// What one thread needs to know of the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadLimits {
    pub(crate) connections: usize,
    pub(crate) header_bytes: usize,
    /// Connections that the MCP thread has of its own.
    pub(crate) mcp_seats: usize,
}

impl ThreadLimits {
    /// Of so many threads that share what a config allows with the MCP thread.
    pub(crate) fn of(limits: &LimitsFile, threads: usize) -> Self {
        let connections = limits.connections as usize;
        let mcp_seats = MCP_SEATS.min(connections / MCP_PART);
        Self {
            connections: (connections - mcp_seats).div_ceil(threads),
            header_bytes: limits.headers.0 as usize,
            mcp_seats,
        }
    }
}

/// What answers clients on a thread with this worker.
fn service(
    worker: &Rc<Worker>,
    mcp: McpHandle,
    limits: ThreadLimits,
    phase: watch::Receiver<Phase>,
    hand_over: Option<HandOver>,
) -> Service {
    let certificates = Arc::clone(&worker.gateway.tls.data);
    let ingress = Rc::new(Ingress { worker: Rc::clone(worker), mcp });
    Service {
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
        phase,
        certificates,
        hand_over,
    }
}

/// Runs a thread's accept loop, and then its drain.
pub(crate) async fn run(
    gateway: Arc<Gateway>,
    (mcp, to_mcp): (McpHandle, Way),
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
    let (home, mut coming_home) = way(limits.mcp_seats);
    let home = Some(Home { rule: |request| !is_mcp(request), to: home });
    let hand_over = HandOver { rule: is_mcp_call, after: MCP_AFTER, to: to_mcp, home };
    let service = service(&worker, mcp, limits, phase.clone(), Some(hand_over));
    let mut listener = Listener::new(listener, limits.connections, service)?;
    let connections = Rc::clone(&listener.connections);
    task::spawn("connections that come home", async move {
        while let Some(moved) = coming_home.next().await {
            connections.adopt(moved);
        }
    });
    listener.accept().await;
    listener.connections.settled().await;
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
        () = listener.connections.drained() => {}
        () = ending => {}
    }
    Ok(())
}

/// Clients' connections on the MCP thread.
pub(crate) struct McpSeats {
    connections: Rc<ConnectionSet>,
}

impl McpSeats {
    /// Serves connections that arrive from the workers. Those that come until all of these have
    /// settled are settled before `settling` ends.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        mcp: McpHandle,
        limits: ThreadLimits,
        phase: watch::Receiver<Phase>,
        (mut arriving, (mut settled, settling)): (MovedConnections, (Settled, Settling)),
    ) -> Self {
        let service = service(worker, mcp, limits, phase, None);
        let connections = ConnectionSet::new(limits.mcp_seats, service);
        let set = Rc::clone(&connections);
        task::spawn("connections of mcp clients", async move {
            loop {
                tokio::select! {
                    Some(moved) = arriving.next() => set.adopt(moved),
                    () = settled.wait() => break,
                }
            }
            // What a worker sent before it had settled is here by now.
            while let Some(moved) = arriving.take() {
                set.adopt(moved);
            }
            set.settled().await;
            drop(settling);
        });
        Self { connections }
    }

    /// Waits until the last connection has ended, or the gateway has stopped.
    pub(crate) async fn drained(&self) {
        self.connections.drained().await;
    }
}

fn is_mcp(request: &Request<()>) -> bool {
    request.uri().path() == tidegate_mcp_shell::PATH
}

/// A call is short. A stream would keep a seat for as long as its client listens.
fn is_mcp_call(request: &Request<()>) -> bool {
    is_mcp(request) && request.method() == Method::POST
}
