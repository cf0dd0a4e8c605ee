//! The fake provider over real sockets, seen by a client that trusts nothing.
//!
//! `client.rs` is that client: it keeps what came, byte for byte, and how the connection ended.

mod client;
mod control;
mod dialects;
mod faults;
mod life;
