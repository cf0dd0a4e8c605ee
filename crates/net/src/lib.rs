//! Connections of both sides, as bytes and HTTP: nothing here knows what a request is about.
//!
//! - [`connection`]: a client's, on whichever listener; [`read_body`]: its request's
//!   body; [`client_body`]: the answer's; [`passed`]: requests that come round in a loop.
//! - [`upstream`]: those to providers and servers, TLS, one pool per thread.
//! - `chunked`, `fields`: bodies in chunks and headers that frame them, read alike on both sides.
//! - [`query`]: query strings; [`secret`]: random text that nobody can guess.

mod chunked;
pub mod client_body;
pub mod connection;
mod fields;
#[cfg(test)]
mod mangled;
pub mod passed;
pub mod query;
pub mod read_body;
pub mod secret;
pub mod upstream;
