//! The way from one replica to another: requests for sessions that the other one has.
//!
//! ```text
//!   asker ── TCP, Noise NNpsk0 ──▶ listener: who are you? ── the instance ──▶
//!   asker ── head, body ─────────▶ owner
//!   asker ◀─ head, pieces, end ─── owner          or "not mine"
//! ```
//! The handshake is the `snow` crate's; the pre-shared key is derived from the fleet's secret, so
//! that only a replica of the same fleet gets past it, in either direction. The owner's half of it
//! carries its instance: a request is sent only to the run of the replica that it is meant for.
//! After an answer that came whole the connection is kept for the next request (`pool.rs`).
//!
//! Rules kept here:
//! - The listener serves nothing but requests of other replicas, and never hands one on.
//! - Connections that have not proved themselves are few, short-lived and small; where there are
//!   too many, the oldest one makes room.
//! - Every wait has a deadline, every message a bound.
//! - An asker knows whether its request was handed over: what was not sent can be sent again.

mod ask;
mod channel;
mod pool;
mod primitives;
mod serve;
#[cfg(test)]
mod tests;
mod url;

pub use self::{
    ask::{PeerAsker, PeerReply, PeerTrouble, who_is_at},
    channel::PeerKeys,
    serve::{Answering, PeerHandler, Reply, ReplyPieces, serve},
    url::{PeerAddress, UrlProblem},
};

use bytes::Bytes;

/// A request as it travels: what its head says is the business of whoever reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAsk {
    /// Its head.
    pub head: Vec<u8>,
    /// Its body.
    pub body: Bytes,
}

/// A part of the body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Some of it.
    Bytes(Bytes),
    /// Nothing follows.
    End,
}
