//! The MCP gateway over real sockets: a client written by hand on one side, scripted servers on
//! the other.
//!
//! `bed.rs` starts gateways, `client.rs` and `wire.rs` are the client. Every other file is one
//! subject; a test's name is the claim it proves.

mod acceptance;
mod access;
mod bad_input;
mod bad_servers;
mod bed;
mod catalogue;
mod connecting;
mod eras;
mod eras_bad;
mod fake;
mod fake_eras;
mod fleet;
mod front;
mod keepalive;
mod life;
mod limits;
mod lost;
mod probes;
mod questions;
mod relay;
mod replicas;
mod search;
mod shares;
mod stale;
mod streams;

use tidegate_testkit::visitor;
