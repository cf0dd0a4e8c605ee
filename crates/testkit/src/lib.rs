//! Gateways and clients for tests: everything over real sockets, every wait with a deadline.
//!
//! - [`gate`]: a running gateway inside the test's own process.
//! - [`http`]: a raw HTTP/1.1 client; [`exchange`]: one request on a connection of its own, with
//!   events; [`mcp`]: an MCP client over it, [`visitor`]: one without a session.
//! - [`dialects`]: random configs, and requests of every dialect.
//! - [`store`]: a real `redis-server` of a test's own.
//! - [`time`]: moments and waits of tests; [`machine`]: what they run on.

pub mod dialects;
pub mod exchange;
pub mod gate;
pub mod http;
pub mod machine;
pub mod mcp;
pub mod store;
pub mod time;
pub mod visitor;
