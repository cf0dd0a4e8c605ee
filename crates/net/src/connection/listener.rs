//! Accepts the connections of one listener until the drain, and then waits for them. A set of
//! connections may also be given its members by other threads ([`handover`](super::handover)).

use std::net::TcpListener;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use tidegate_runtime::{
    dormant::Dormant,
    phase::{Phase, reached},
    task,
};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::handover::{HandOver, Home, MovedConnection};
use super::table::{Seat, Table};
use super::{Activity, Service};

/// After a failed `accept` (out of descriptors, mostly), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long the drain waits for requests that are on their way.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);
/// How often the drain looks whether the last connection has ended.
const DRAIN_STEP: Duration = Duration::from_millis(10);

/// A listener and the connections it has accepted.
pub struct Listener {
    socket: Option<tokio::net::TcpListener>,
    /// Those that were accepted or given.
    pub connections: Rc<ConnectionSet>,
}

impl Listener {
    /// A listener of at most so many connections at a time.
    pub fn new(socket: TcpListener, connections: usize, service: Service) -> std::io::Result<Self> {
        let socket = Some(tokio::net::TcpListener::from_std(socket)?);
        Ok(Self { socket, connections: ConnectionSet::new(connections, service) })
    }

    /// Serves until the drain begins. The port is free then.
    pub async fn accept(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        let connections = &self.connections;
        let draining = reached(connections.phase(), Phase::Draining);
        tokio::pin!(draining);
        loop {
            tokio::select! {
                accepted = socket.accept() => match accepted {
                    Ok((stream, _)) => connections.add(stream),
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                () = &mut draining => break,
            }
        }
        // Whoever has connected and was not taken yet would be cut off in its request.
        let Ok(socket) = socket.into_std() else { return };
        while let Ok((stream, _)) = socket.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                connections.add(stream);
            }
        }
    }
}

/// Connections that one thread serves, so many at a time.
pub struct ConnectionSet {
    service: Service,
    table: Rc<Table>,
}

impl ConnectionSet {
    #[must_use]
    pub fn new(max: usize, service: Service) -> Rc<Self> {
        Rc::new(Self { service, table: Table::new(max) })
    }

    /// Serves a connection that was accepted, if there is room for it.
    fn add(&self, stream: TcpStream) {
        let Some(seat) = self.table.admit() else { return };
        // Tokens must not wait for acknowledgements; failing to say so is no reason to hang up.
        drop(stream.set_nodelay(true));
        let service = self.service.clone();
        self.spawn(seat, async move |activity| service.serve(stream, activity).await);
    }

    /// Goes on with a connection of another thread, if there is room for it.
    pub fn adopt(&self, moved: MovedConnection) {
        let Some(seat) = self.table.admit() else { return };
        let MovedConnection { stream, first, home, seat: held } = moved;
        let Ok(stream) = TcpStream::from_std(stream) else { return };
        let home = home.map(|Home { rule, to }| HandOver { rule, after: 0, to, home: None });
        let own = self.service.clone();
        let service = Service { hand_over: home.or(own.hand_over), ..own };
        self.spawn(seat, async move |activity| {
            service.go_on(stream, first, activity).await;
            drop(held);
        });
    }

    fn spawn(&self, seat: Seat, serve: impl AsyncFnOnce(&Rc<Activity>) + 'static) {
        task::spawn("client connection", async move {
            let activity = Rc::clone(&seat.activity);
            let evicted = pin!(activity.evicted());
            let evicted = Dormant::new(evicted);
            tokio::select! {
                biased;
                () = serve(&activity) => {}
                () = evicted => {}
            }
            drop(seat);
        });
    }

    /// Waits until no connection has a request that is still to be read, once none is accepted any
    /// more; for a second, because whoever sends one slowly holds nobody up.
    pub async fn settled(&self) {
        let settled = async {
            while self.table.awaits_request() {
                tokio::time::sleep(DRAIN_STEP).await;
            }
        };
        tokio::select! {
            () = settled => {}
            // Whoever is still heard of later is answered as well as can be.
            () = tokio::time::sleep(SETTLED_WITHIN) => {}
            () = reached(self.phase(), Phase::Ending) => {}
        }
    }

    /// Waits until the last connection has ended, or the gateway has stopped.
    pub async fn drained(&self) {
        while !self.table.is_empty() && *self.service.phase.borrow() < Phase::Stopped {
            tokio::select! {
                () = tokio::time::sleep(DRAIN_STEP) => {}
                () = reached(self.phase(), Phase::Stopped) => return,
            }
        }
    }

    fn phase(&self) -> watch::Receiver<Phase> {
        self.service.phase.clone()
    }
}
