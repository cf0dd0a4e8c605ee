//! The era without sessions: every request stands by itself, and its headers repeat a part of it.
//!
//! Rules kept here:
//! - A request is posted as it came. Dropping it closes its stream, which is how a gateway learns
//!   that nobody wants the answer.
//! - A stream that ends before its answer is not taken up again: this era has no such thing.

use std::rc::Rc;

use bytes::Bytes;
use http::HeaderMap;
use tidegate_mcp::message::Id;

use super::{
    exchange::{Exchange, GivenUp, Post},
    pipes::Out,
    trouble::Trouble,
    wire::{Wire, Worth},
};
use crate::mcp::http::conversation::Conversation;

/// A client's first word in this era.
const DISCOVER: &str = "server/discover";

/// The client's way to a gateway without a session.
pub(super) struct Stateless {
    wire: Rc<Wire>,
    out: Out,
    talk: Rc<Conversation>,
}

/// A request of the client's.
pub(super) struct Ask {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) message: Bytes,
    pub(super) headers: HeaderMap,
}

impl Stateless {
    pub(super) fn new(wire: Rc<Wire>, out: Out) -> Rc<Self> {
        Rc::new(Self { talk: wire.without_session(), wire, out })
    }

    /// Asks the gateway, and tells the client everything that comes of it.
    pub(super) async fn ask(&self, ask: Ask) {
        let id = ask.id.clone();
        if let Err(trouble) = self.exchange(ask).await {
            self.out.say(trouble.to_answer(&id, &self.wire.url)).await;
        }
    }

    async fn exchange(&self, ask: Ask) -> Result<(), Trouble> {
        let mut exchange = Exchange::begin(Post {
            wire: &self.wire,
            talk: &self.talk,
            message: ask.message,
            headers: ask.headers,
            worth: if ask.method == DISCOVER { Worth::First } else { Worth::Usual },
            wants: vec![ask.id],
            given_up: GivenUp::default(),
        })
        .await?;
        while let Some(message) = exchange.next().await? {
            self.out.say(message).await;
        }
        Ok(())
    }
}
