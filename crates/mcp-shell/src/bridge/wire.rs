//! The way to the gateway: where it is, its connections, and patience with one that restarts.
//!
//! Rules kept here:
//! - A request that was not sent because nobody listens is tried again for [`PATIENCE`] while the
//!   gateway was there a moment ago: one that restarts is back by then. One that stays away costs
//!   that time once, not per request.
//! - A client's first word is worth that patience too: many clients give a server up for good when
//!   it is not answered, and both may have been started together.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response};
use tidegate_core::time::Millis;
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_net::upstream::{Pool, SplicedBody, UpstreamBody};
use tidegate_runtime::clock::Clock;
use tokio::time::sleep;

use crate::{
    guest::Gate,
    http::{
        HttpPlace, HttpTransport,
        conversation::{ConnectionUse, HttpConversation},
    },
    transport::{EventSender, Events, Failure},
};

/// A gateway is reached at once or not at all.
const CONNECT_WITHIN: Millis = Millis::seconds(5);
/// How long a gateway that was there may take to come back.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The way to one gateway.
#[derive(Debug)]
pub(super) struct Wire {
    place: Rc<HttpPlace>,
    pub(super) pool: Rc<Pool>,
    clock: Clock,
    /// Where it is, for people.
    pub(super) url: String,
    /// It answered when it was last asked.
    was_there: Cell<bool>,
}

/// How much a request is worth waiting for a gateway that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// A client's first word.
    First,
    /// Any other.
    Usual,
}

impl Wire {
    pub(super) fn new(gate: &Gate, url: &str) -> Self {
        Self {
            place: gate.place(),
            pool: Rc::default(),
            clock: Clock::start(),
            url: url.to_owned(),
            was_there: Cell::new(false),
        }
    }

    /// A transport for one session.
    pub(super) fn transport(&self) -> (HttpTransport, Events) {
        let (place, pool) = (Rc::clone(&self.place), Rc::clone(&self.pool));
        let (teller, events) = EventSender::alone();
        (HttpTransport::open(place, pool, self.clock, CONNECT_WITHIN, teller), events)
    }

    /// What requests without a session share.
    pub(super) fn without_session(&self) -> Rc<HttpConversation> {
        // Nothing comes but answers, so nobody hears events.
        let (events, _) = EventSender::alone();
        let (place, pool) = (Rc::clone(&self.place), Rc::clone(&self.pool));
        Rc::new(HttpConversation::new(place, pool, self.clock, CONNECT_WITHIN, events))
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        talk: &HttpConversation,
        worth: Worth,
        build: impl Fn() -> Request<SplicedBody>,
    ) -> Result<Response<UpstreamBody>, Failure> {
        let mut left = PATIENCE;
        loop {
            let failure = match talk.send(ConnectionUse::Calls, &build).await {
                Ok(response) => {
                    self.was_there.set(true);
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            if !is_nobody_there(&failure) {
                return Err(failure);
            }
            let is_worth_it = worth == Worth::First || self.was_there.get();
            if !is_worth_it || left.is_zero() {
                self.was_there.set(false);
                return Err(failure);
            }
            left = left.saturating_sub(LOOK_EVERY);
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Nobody listens there, and nothing was sent.
fn is_nobody_there(failure: &Failure) -> bool {
    let is_refused = matches!(failure.cause, Cause::ConnectionRefused | Cause::ConnectionFailed);
    failure.delivery == Delivery::Not && is_refused
}
