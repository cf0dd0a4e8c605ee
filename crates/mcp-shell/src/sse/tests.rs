//! Conversations with small servers that follow a script, over real sockets.

mod lifetimes;
mod messages;
mod opening;

use std::rc::Rc;

use serde_json::{Value, json};
use tidegate_config::file::ServerFile;
use tidegate_core::time::Millis;
use tidegate_net::upstream::Pool;
use tidegate_runtime::clock::Clock;

use super::SseTransport;
use crate::{
    http::tests::bed::{Piece, Server, place},
    transport::{ConnectionEvent, EventSender, Events, Failure},
};

/// The first event of a stream.
fn endpoint(address: &str) -> Piece {
    Piece::Say(format!("event: endpoint\ndata: {address}\n\n"))
}

/// A conversation with a server.
struct Talk {
    transport: SseTransport,
    events: Events,
    pool: Rc<Pool>,
}

impl Talk {
    async fn with(server: &Server) -> Self {
        Self::by(&server.file()).await.expect("it opens")
    }

    async fn by(file: &ServerFile) -> Result<Self, Failure> {
        let place = Rc::new(place(file).expect("a usable server"));
        let pool = Rc::new(Pool::default());
        let limit = Millis::seconds(5);
        let (teller, mut events) = EventSender::alone();
        let transport = SseTransport::open(place, Rc::clone(&pool), Clock::start(), limit, teller);
        match events.recv().await {
            Some(ConnectionEvent::Opened) => Ok(Self { transport, events, pool }),
            Some(ConnectionEvent::OpenFailed(failure)) => Err(failure),
            other => panic!("{other:?} instead of the beginning"),
        }
    }

    fn request(&self, call: u64, method: &str) {
        let message = json!({"jsonrpc": "2.0", "id": call, "method": method});
        self.transport.request(call, message.to_string().into());
    }

    fn notice(&self, method: &str) {
        let message = json!({"jsonrpc": "2.0", "method": method});
        self.transport.notice(message.to_string().into());
    }

    async fn event(&mut self) -> ConnectionEvent {
        self.events.recv().await.expect("the transport lives")
    }

    /// The next message, which belongs to no call's own stream.
    async fn message(&mut self) -> Value {
        match self.event().await {
            ConnectionEvent::Message { bytes, call: None } => {
                serde_json::from_slice(&bytes).expect("JSON")
            }
            other => panic!("{other:?} instead of a message"),
        }
    }

    async fn failure(&mut self, expected: u64) -> Failure {
        match self.event().await {
            ConnectionEvent::Unanswered { call, failure } if call == expected => failure,
            other => panic!("{other:?} instead of a failure of {expected}"),
        }
    }

    async fn closed(&mut self) -> Failure {
        match self.event().await {
            ConnectionEvent::Closed { failure, .. } => failure,
            other => panic!("{other:?} instead of the end"),
        }
    }
}
