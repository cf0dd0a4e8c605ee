//! MCP as pure code: what messages say, what a session sees, what a connection is worth.
//!
//! The server carries bytes between clients and MCP servers; this crate decides what they mean. It
//! opens no socket, reads no clock, starts no task. Health is the core's business: this crate asks
//! it and reports to it. The simulator drives the same machines on a fake clock.
//!
//! A tour, in the order a call meets it:
//! - [`raw`], [`message`]: JSON-RPC as it came, with key order, numbers and unknown fields kept.
//! - [`era`], [`greeting`], [`stateless`]: which era of the protocol somebody speaks, and how that
//!   is found out; the one without sessions.
//! - [`listing`], [`names`], [`catalogue`]: what each server offers, under which name, and the
//!   union of it.
//! - [`freshness`]: when a server's lists are fetched again.
//! - [`session`]: which servers one client session sees; [`shares`]: how much one caller may use;
//!   [`replay`]: what is kept for a client that lost its connection; [`shared_session`]: what a
//!   fleet's store says of sessions that other replicas have.
//! - [`health`]: asking the core, and telling it how a call ended; [`cause`]: the fixed phrases.
//! - [`link`], [`call`]: one kept connection; one call over it, with at most one replay;
//!   [`group_call`]: the same call at one of several equivalent servers after another.
//! - [`hub`]: all of it as one machine: clients, servers, and everything between them.
//! - [`schema`]: whether arguments surely break a tool's schema.
//! - [`keepalive`], [`supervisor`]: idle connections; child processes that crash.

pub mod call;
pub mod catalogue;
pub mod cause;
pub mod era;
pub mod freshness;
pub mod greeting;
pub mod group_call;
pub mod health;
pub mod hub;
pub mod keepalive;
pub mod link;
pub mod listing;
pub mod message;
pub mod names;
pub mod raw;
pub mod replay;
pub mod schema;
pub mod session;
pub mod shared_session;
pub mod shares;
pub mod stateless;
pub mod supervisor;
