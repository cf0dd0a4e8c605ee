//! One thread of the data plane: accepts connections and serves them until told to stop.

use std::cell::Cell;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::{
    data,
    gateway::{Gateway, Worker},
    task,
};

/// A client that has not sent its request head by then is not going to.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
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
        let service = service_fn(|request| {
            let worker = Rc::clone(&worker);
            async move { Ok::<_, std::convert::Infallible>(data::answer(&worker, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(limits.header_bytes.max(8192))
            .serve_connection(TokioIo::new(stream), service);
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
