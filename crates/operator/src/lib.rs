//! The operator's side of a gateway.
//!
//! - [`control`]: the thread beside the data plane, which everything here runs on.
//! - `admin`: the admin listener; [`reload`]: reading the config again.
//! - [`probe`]: requests of the gateway's own that find out whether a provider is back.
//! - `certificate_watch`: certificates of the listeners, read again when their files change.

mod admin;
mod certificate_watch;
pub mod control;
pub mod probe;
pub mod reload;
