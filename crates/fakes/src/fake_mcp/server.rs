//! A fake MCP server on a socket and a thread of its own: support for tests and benches.
//!
//! Rules kept here:
//! - It listens on loopback, on a port that the system gives, or on a given one.
//! - Crashing closes the listener and cuts every connection; when `crash` returns, nobody listens
//!   and no connection is left. `restart` listens on the same port again, without a memory of
//!   sessions; counts and what was received stay.
//! - When `stop` returns, no thread and no descriptor of it is left.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, mpsc as threads};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tidegate_runtime::task;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::http::serve;
use super::record::{McpCounts, Received};
use super::script::McpScript;
use super::tool::Tool;
use super::{FakeMcp, Life, run_outages};

/// Connections that may wait to be accepted: a burst of a load test.
const BACKLOG: i32 = 4096;

/// After a failed accept (out of descriptors), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A fake MCP server that listens on loopback. Dropping it stops it.
#[derive(Debug)]
pub struct FakeMcpServer {
    address: SocketAddr,
    fake: Arc<FakeMcp>,
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is told, and whom it tells that it is done.
enum Order {
    Crash(threads::Sender<()>),
    Restart(threads::Sender<()>),
}

impl FakeMcpServer {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// If the system gives no loopback port or no thread: a test cannot go on without.
    #[must_use]
    pub fn start(script: McpScript) -> Self {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::start_at(anywhere, script).expect("loopback has a free port and a thread can start")
    }

    /// Starts one at this address.
    ///
    /// # Errors
    /// If the address is taken, or no thread can be started.
    pub fn start_at(address: SocketAddr, script: McpScript) -> io::Result<Self> {
        let place = reserve(address)?;
        let address = place.local_addr()?.as_socket().unwrap_or(address);
        let listener = listen(address)?;
        let fake = FakeMcp::new(script);
        let (orders, ordered) = mpsc::unbounded_channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let served = Arc::clone(&fake);
        let thread = std::thread::Builder::new().name("fake-mcp".to_owned()).spawn(move || {
            let _place = place;
            let tasks = LocalSet::new();
            tasks.block_on(&runtime, accept(listener, address, served, ordered));
        })?;
        Ok(Self { address, fake, orders: Some(orders), thread: Some(thread) })
    }

    /// Its endpoint: `http://127.0.0.1:40123/mcp`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The messages it received, oldest first, as many as its script keeps.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.fake.record.received()
    }

    /// The messages of one method it received.
    #[must_use]
    pub fn received_of(&self, method: &str) -> Vec<Received> {
        let mut all = self.received();
        all.retain(|it| it.method.as_deref() == Some(method));
        all
    }

    /// The methods a client sent, by the name it introduced itself with; GET and DELETE likewise.
    #[must_use]
    pub fn sent_by(&self, client: &str) -> Vec<String> {
        let of_client = |it: &Received| it.client.as_deref() == Some(client);
        let method = |it: Received| it.method.unwrap_or(it.verb);
        self.received().into_iter().filter(of_client).map(method).collect()
    }

    /// Forgets the messages; the counts go on.
    pub fn forget_received(&self) {
        self.fake.record.forget();
    }

    /// How much there was of what.
    #[must_use]
    pub fn counts(&self) -> McpCounts {
        let sessions = self.fake.talks().len() as u64;
        let listening = self.fake.listeners().len() as u64;
        McpCounts { sessions, listening, ..self.fake.record.counts() }
    }

    /// What its clients did against the protocol, in words.
    #[must_use]
    pub fn breaches(&self) -> Vec<String> {
        self.fake.record.breaches()
    }

    /// Sets another script and tells every client that all lists have changed.
    pub fn set_script(&self, script: McpScript) {
        self.fake.set_script(script);
    }

    /// Changes the script without telling anybody.
    pub fn change(&self, change: impl FnOnce(&mut McpScript)) {
        let mut script = McpScript::clone(&self.fake.script.load());
        change(&mut script);
        self.fake.script.store(Arc::new(script));
    }

    /// Changes the tools and tells every client.
    pub fn change_tools(&self, change: impl FnOnce(&mut Vec<Tool>)) {
        self.fake.change_tools(change);
    }

    /// Sends a notification to every client, on the stream that belongs to no request.
    pub fn tell_all(&self, method: &str, params: Option<Value>) {
        self.fake.tell_all(method, params);
    }

    /// Ends every stream of `subscriptions/listen` in good order.
    pub fn end_listening(&self) {
        self.fake.end_listening();
    }

    /// Forgets every session; connections stay.
    pub fn lose_sessions(&self) {
        self.fake.lose_sessions();
    }

    /// Dies: nobody listens any more, and every connection is cut.
    pub fn crash(&self) {
        self.order(Order::Crash);
    }

    /// Comes back on the same port, without a memory of sessions.
    pub fn restart(&self) {
        self.order(Order::Restart);
    }

    /// Ends it and everything under way at once, and waits until all of it is gone.
    pub fn stop(self) {
        drop(self);
    }

    fn order(&self, order: fn(threads::Sender<()>) -> Order) {
        let (done, is_done) = threads::channel();
        if let Some(orders) = &self.orders {
            drop(orders.send(order(done)));
        }
        // A thread that is gone does nothing any more, which is what a crash asks for.
        let _ = is_done.recv();
    }
}

impl Drop for FakeMcpServer {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // A panic of its thread has been printed already; there is nobody to tell here.
            drop(thread.join());
        }
    }
}

/// A socket at the address that does not listen: connections are refused, and while the server is
/// down nobody else can take its port.
fn reserve(address: SocketAddr) -> io::Result<Socket> {
    // One that somebody else serves must not be shared with them by accident.
    drop(socket(address, false)?);
    socket(address, true)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address, true)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn socket(address: SocketAddr, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if is_shared {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

async fn accept(
    listener: TcpListener,
    address: SocketAddr,
    fake: Arc<FakeMcp>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    task::spawn("fake outages", run_outages(Arc::clone(&fake)));
    let mut life = fake.life.subscribe();
    let mut listener = Some(into_tokio(listener));
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                None => return,
                Some(Order::Crash(done)) => {
                    fake.go_down();
                    listener = None;
                    while fake.record.counts().connections > 0 {
                        tokio::task::yield_now().await;
                    }
                    let _ = done.send(());
                }
                Some(Order::Restart(done)) => {
                    listener = Some(again(listener, address).await);
                    fake.come_up();
                    let _ = done.send(());
                }
            },
            changed = life.changed() => {
                drop(changed);
                let is_up = *life.borrow_and_update() == Life::Up;
                listener = if is_up { Some(again(listener, address).await) } else { None };
            }
            accepted = next(listener.as_ref()) => match accepted {
                Ok((stream, _)) => {
                    // Small writes must not wait for acknowledgements; failing to say so is no
                    // reason to stop.
                    drop(stream.set_nodelay(true));
                    task::spawn("fake connection", serve(stream, Arc::clone(&fake)));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

async fn next(
    listener: Option<&tokio::net::TcpListener>,
) -> io::Result<(tokio::net::TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Listens again where it was.
async fn again(
    listener: Option<tokio::net::TcpListener>,
    address: SocketAddr,
) -> tokio::net::TcpListener {
    if let Some(listener) = listener {
        return listener;
    }
    loop {
        match listen(address) {
            Ok(listener) => return into_tokio(listener),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn into_tokio(listener: TcpListener) -> tokio::net::TcpListener {
    tokio::net::TcpListener::from_std(listener)
        .expect("the listener does not block and the runtime has io")
}
