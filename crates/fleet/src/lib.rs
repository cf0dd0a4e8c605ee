//! What several gateways share, through a store that may vanish (`state:`).
//!
//! - [`identity`]: who a replica is; [`seal`]: the keys that are derived from the fleet's secret.
//! - [`fleet`]: what other threads hold: they tell hints, and ask for what is known of the others.
//! - [`connection`]: the fleet's thread, with the writer, the reader and the heartbeat; `link` and
//!   `scripts` are how the store is asked, `layout` where things are in it, `codec` how hints are
//!   written, `outbox` what waits to be, `reply` how answers are taken apart, `marker` how it is
//!   seen that the store has lost its data.
//! - [`sessions`]: records of MCP sessions, for whichever replica is asked.
//! - [`peer`]: the way from one replica to another, for requests of such sessions.
//! - [`check`]: the store asked once, for `check --connect`.
//!
//! Rules of the crate:
//! - It decides nothing. What another replica learned goes to `Core::hear`; what this one learned
//!   comes from the core as hints.
//! - No request of the LLM plane waits for the store, and no other wait is longer than
//!   `state.timeout`.
//! - What is in the store is sealed, and named by HMACs: whoever reads it learns nothing, and
//!   whoever writes it is not believed.
#![warn(missing_docs)]

pub mod check;
mod codec;
pub mod connection;
pub mod fleet;
pub mod heartbeat;
pub mod identity;
mod layout;
pub mod link;
mod marker;
mod outbox;
pub mod peer;
mod record_access;
mod reply;
mod scripts;
pub mod seal;
mod session_record;
pub mod sessions;
pub mod stats;
