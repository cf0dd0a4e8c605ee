//! The MCP gateway: one MCP server made of many.
//!
//! All of it runs on one thread of its own, on state that nothing else touches: no locks, one
//! order of events. The data plane's threads hand requests over (`door`) and stream the answers.
//!
//! - `door`: from an HTTP request on a worker's thread to the MCP thread and back.
//! - `transport`: one conversation with one server as raw messages; `http` and `stdio` carry them.
//!
//! Left to `tidegate_mcp`: what messages mean, what a session sees, when a connection is lost and
//! whether a call may be replayed. Left to the core: health.

mod door;
pub(crate) mod http;
pub(crate) mod stdio;
mod stream;
pub(crate) mod transport;

pub(crate) use self::door::{Door, Knocks, PATH, line};
