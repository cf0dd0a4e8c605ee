//! The LLM data plane: one request, from its head to the last byte of its answer.
//!
//! A tour, in the order a request meets it:
//! - [`inbound`]: a client's request, read whole and understood as far as routing needs.
//! - [`forward`]: the life of a request; [`own_request`]: the same for one of the gateway's own.
//! - `upstream_request`: what goes upstream; `headers`: which headers cross; `timers`: how long
//!   each step may take.
//! - `attempt`: one attempt up to commitment, with `classified`; `committed_body`: the answer on
//!   its way after it.
//! - `request_context`: the only door from the data plane to the core.
//! - [`answer`]: answers of our own, and what is added to everybody's.
//!
//! Nothing here decides about health or routing: that is the core's.

pub mod answer;
mod attempt;
mod classified;
mod committed_body;
mod conversion;
pub mod forward;
mod headers;
pub mod inbound;
pub mod own_request;
pub mod refused;
mod request_context;
mod timers;
mod upstream_request;
