//! Scripted servers, for the demo, tests and benches: real sockets, no network needed.
//!
//! - [`fake`]: an LLM provider that answers, fails, stalls and breaks as its script says.
//! - [`fake_mcp`]: an MCP server in both eras and over every transport.
//! - [`demo`]: the scripts of the built-in demo.

pub mod demo;
pub mod fake;
pub mod fake_mcp;
