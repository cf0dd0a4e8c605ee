//! The shell around the core: sockets, clocks and tasks. It carries bytes and decides nothing
//! about health or routing.
//!
//! A tour, in the order a request meets it:
//! - [`server`]: a running gateway, its threads; `listen` binds, `worker` serves a listener, and
//!   `connection` one connection of it.
//! - `data`: the data plane. `data/forward.rs` is the life of a request; `data/attempt.rs` one
//!   attempt up to commitment, `data/passage.rs` what follows it; `data/journey.rs` is the door to
//!   the core.
//! - `live`: the config at work; `provider` what an upstream request needs; `caller` who may ask.
//! - `upstream`: connections, TLS, pools.
//! - [`certificates`]: what the listeners present, and how it is renewed.
//! - `control`, `admin`, `probe`, `metrics`, `report`, [`reload`]: the operator's
//!   side.
//! - [`connect`]: asks everything a config leads to, once; [`guest`]: a client of a gateway's MCP.
//! - [`bridge`], [`private`]: a client that speaks over pipes; a gateway of its own.
//! - [`child`]: the process between the gateway and a server's program.
//! - [`fake`], `demo`: a scripted provider, for the demo, tests and benches.
//! - [`clock`] and [`rng`]: the only files that read clocks and make random numbers.

mod admin;
mod caller;
pub mod certificates;
pub mod child;
pub mod clock;
pub mod connect;
mod connection;
mod control;
mod data;
pub mod demo;
pub mod fake;
pub mod fake_mcp;
mod gateway;
mod listen;
mod live;
pub mod log;
mod mcp;
mod metrics;
mod percent;
pub mod private;
mod probe;
mod provider;
mod query;
pub mod reload;
mod report;
pub mod rng;
pub mod server;
mod task;
#[cfg(test)]
mod test_bed;
mod upstream;
mod worker;

pub use crate::mcp::{bridge, guest};
