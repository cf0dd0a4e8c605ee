//! Connections of both sides, as bytes and HTTP: nothing here knows what a request is about.
//!
//! - [`connection`]: a client's, on whichever listener; [`read_body`]: its request's
//!   body; [`client_body`]: the answer's; [`passed`]: requests that come round in a loop.
//! - [`upstream`]: those to providers and servers, TLS, one pool per thread.
//! - [`query`]: query strings; [`secret`]: random text that nobody can guess.

pub mod client_body;
pub mod connection;
pub mod passed;
pub mod query;
pub mod read_body;
pub mod secret;
pub mod upstream;
