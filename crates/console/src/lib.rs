//! The operator's view in a terminal: a client of the admin API, and its answers as text.
//!
//! A tour:
//! - [`client`]: asks a running gateway; [`events`] reads its stream of events.
//! - [`status`]: a snapshot as text; [`watch`] keeps one up to date from events.
//! - [`explain`]: why a backend is in its state, why a request went where it went, and where one
//!   would go.
//! - [`fleet`]: the replicas of a fleet.
//! - [`incident`]: a record as a scenario for the simulator.
//! - [`words`]: times, spans and names as people read them; [`look`]: width, colour and signs.
//!
//! Rules of the crate: it decides nothing about health or routing, it shows what the gateway says.
//! Texts that come from outside have no control characters when they are printed. Everything but
//! the client is a pure function of its arguments.

pub mod client;
pub mod events;
pub mod explain;
pub mod fleet;
#[cfg(feature = "history")]
pub mod history;
pub mod incident;
pub mod look;
pub mod status;
mod table;
pub mod watch;
pub mod words;
