//! One thread of the data plane: accepts connections and serves them until told to stop.
//!
//! [`client_io`] has the limits on waiting for a client, [`head_scan`] an eye on its bytes.

mod client_io;
mod head_scan;

use std::cell::Cell;
use std::net::TcpListener;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;

use self::client_io::AnsweringGuard;
pub(crate) use self::client_io::{Answering, ClientIo};
use crate::{
    data::{self, ClientBody},
    gateway::{Gateway, Worker},
    task,
};

/// How often kept connections are looked at: they are idle for up to a minute.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// After a failed `accept` (out of descriptors, mostly), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How far a gateway is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// No new connections; what is under way is finished.
    Draining,
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
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let worker = Rc::new(Worker::new(gateway));
    let open = Rc::new(Cell::new(0_usize));
    let pool = Rc::clone(&worker.pool);
    task::spawn("sweep of connections", async move {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            pool.sweep();
        }
    });
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if open.get() < limits.connections => {
                    serve(&worker, stream, limits, Open::new(&open), phase.clone());
                }
                // Past the limit a connection is closed at once: better than one that hangs.
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            () = reached(phase.clone(), Phase::Draining) => break,
        }
    }
    drop(listener);
    worker.pool.clear();
    while open.get() > 0 && *phase.borrow() < Phase::Stopped {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
            () = reached(phase.clone(), Phase::Stopped) => break,
        }
    }
    Ok(())
}

fn serve(
    worker: &Rc<Worker>,
    stream: TcpStream,
    limits: ThreadLimits,
    open: Open,
    phase: watch::Receiver<Phase>,
) {
    // Tokens must not wait for acknowledgements; failing to say so is no reason to hang up.
    drop(stream.set_nodelay(true));
    let worker = Rc::clone(worker);
    task::spawn("client connection", async move {
        let _open = open;
        let answering = Answering::default();
        let service = service_fn(|request| {
            let worker = Rc::clone(&worker);
            let guard = answering.begin();
            // A connection has room for this future for as long as it lives: it is a pointer, so
            // that what answering takes is gone when the answer has begun.
            Box::pin(async move {
                let response = data::answer(&worker, request).await;
                let served = response.map(|body| Served { body, _guard: guard });
                Ok::<_, std::convert::Infallible>(served)
            })
        });
        let io = ClientIo::new(stream, answering.clone());
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_header_size(limits.header_bytes)
            .max_buf_size(limits.header_bytes.max(8192))
            .serve_connection(TokioIo::new(io), service);
        tokio::pin!(connection);
        tokio::select! {
            // A client that breaks its connection is its own affair.
            _ = connection.as_mut() => {}
            () = reached(phase, Phase::Draining) => {
                connection.as_mut().graceful_shutdown();
                drop(connection.await);
            }
        }
    });
}

/// An answer's body; its connection is answering until it is gone.
struct Served {
    body: ClientBody,
    _guard: AnsweringGuard,
}

impl Body for Served {
    type Data = <ClientBody as Body>::Data;
    type Error = <ClientBody as Body>::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Counts a connection while it is open.
struct Open(Rc<Cell<usize>>);

impl Open {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
