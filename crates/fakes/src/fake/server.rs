//! A fake on a socket and a thread of its own: support for tests and benches.
//!
//! Rules kept here:
//! - It listens on loopback, on a port that the system gives, or on a given one (to come back where
//!   it was).
//! - Stopping ends everything at once, answers in mid-stream too, as if the process had been
//!   killed; when `stop` returns, no thread and no descriptor of it is left.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tidegate_runtime::task;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::calls::{Call, Counts};
use super::script::Script;
use super::{Fake, serve_and_reset};

/// Connections that may wait to be accepted: a burst of a load test.
const BACKLOG: i32 = 4096;

/// After a failed accept (out of descriptors), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A fake provider that listens on loopback. Dropping it stops it.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
    fake: Arc<Fake>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeServer {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// If the system gives no loopback port or no thread: a test cannot go on without.
    #[must_use]
    pub fn start(script: Script) -> Self {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::start_at(anywhere, script).expect("loopback has a free port and a thread can start")
    }

    /// Starts one at this address: where another one has been, for instance.
    ///
    /// # Errors
    /// If the address is taken, or no thread can be started.
    pub fn start_at(address: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        let fake = Arc::new(Fake::with_control(script));
        let (stop, stopped) = oneshot::channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let served = Arc::clone(&fake);
        let thread =
            std::thread::Builder::new().name("fake-provider".to_owned()).spawn(move || {
                let tasks = LocalSet::new();
                tasks.block_on(&runtime, accept(listener, served, stopped));
            })?;
        Ok(Self { address, fake, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens, without a path: `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The calls it received, oldest first, as many as its script keeps.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.fake.calls()
    }

    /// How many calls it received, has under way, and was left with.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.fake.counts()
    }

    /// Forgets the calls; the counts go on.
    pub fn forget_calls(&self) {
        self.fake.forget_calls();
    }

    /// Sets another script, from its first step and phase. Calls under way are not changed.
    pub fn set_script(&self, script: Script) {
        self.fake.set_script(script);
    }

    /// Ends it and everything under way at once, and waits until all of it is gone.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of its thread has been printed already; there is nobody to tell here.
            drop(thread.join());
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

async fn accept(listener: TcpListener, fake: Arc<Fake>, mut stopped: oneshot::Receiver<()>) {
    let listener = tokio::net::TcpListener::from_std(listener)
        .expect("the listener does not block and the runtime has io");
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Small writes must not wait for acknowledgements; failing to say so is no reason to stop.
        drop(stream.set_nodelay(true));
        task::spawn("fake connection", serve_and_reset(stream, Arc::clone(&fake), reset));
    }
}

/// Makes the coming close a reset.
fn reset(stream: &TcpStream) {
    drop(stream.set_zero_linger());
}
