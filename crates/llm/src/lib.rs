//! The LLM data plane: one request, from its head to the last byte of its answer.
//!
//! A tour, in the order a request meets it:
//! - [`inbound`]: a client's request, read whole and understood as far as routing needs.
//! - [`forward`]: the life of a request; [`inner`]: the same for a request of the gateway's own.
//! - `request`: what goes upstream; `headers`: which headers cross; `timers`: how long each step
//!   may take.
//! - `attempt`: one attempt up to commitment, with `hold` and `classified`; `passage`: the answer
//!   on its way after it.
//! - `journey`: the only door from the data plane to the core.
//! - [`answer`]: answers of our own, and what is added to everybody's.
//!
//! Nothing here decides about health or routing: that is the core's.

pub mod answer;
mod attempt;
mod classified;
pub mod forward;
mod headers;
mod hold;
pub mod inbound;
pub mod inner;
mod journey;
mod passage;
mod request;
mod timers;
