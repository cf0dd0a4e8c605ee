//! A running gateway: its threads, and what a request meets first.
//!
//! - [`server`]: starts, reloads and stops; `listen` binds, `worker` serves a listener.
//! - `ingress`: what a client's request meets, up to the plane that answers it.
//! - `fleet`: this gateway as one replica of several; `peers`: its MCP sessions and theirs.
//! - [`connect`]: asks everything a config leads to, once.

pub mod connect;
mod fleet;
mod ingress;
mod listen;
mod peers;
pub mod server;
mod worker;
