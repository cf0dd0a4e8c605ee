//! The simulator: scenario files run through the production core on a fake clock.
//!
//! It answers, before it happens, what the routing will do. There is no second implementation of
//! any rule here: a scenario becomes core settings and a world, every request walks the core's own
//! plan, and only what the backends do is made up.
//!
//! A tour, in the order a file meets it:
//! - [`scenario`]: which of the forms a file has, and what all forms share (origin, report,
//!   rendering); [`builtin`] holds the examples that come with the binary.
//! - [`sequence`], form 1: a short program of requests and advances, judged step by step.
//! - [`timeline`], form 2: traffic over time, judged by numbers.
//! - [`mcp`], form 3: sessions of MCP clients, and servers that die, hang and forget.
//! - [`audit`]: the invariants, checked after every step; [`lanes`]: time drawn as lanes.
//! - [`paint`]: what colours mean.
//! - [`seeds`]: many seeds of one scenario at once.
//! - [`rng`]: the one place that makes random draws, from a seed.
//! - [`codes`]: the pages of the problems that only scenario files can have.
//!
//! Rules kept everywhere: same file and seed, same bytes; no sockets, no clocks, no sleeping, no
//! global state; a report is a value and renderers are pure functions of it.
#![warn(missing_docs)]

pub mod audit;
pub mod builtin;
pub mod codes;
mod form;
pub mod lanes;
pub mod mcp;
pub mod paint;
pub mod rng;
pub mod scenario;
pub mod seeds;
pub mod sequence;
pub mod timeline;
