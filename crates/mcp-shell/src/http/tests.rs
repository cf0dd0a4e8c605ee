//! Conversations with small servers that follow a script, over real sockets.

mod answers;
pub(crate) mod bed;
mod lifetimes;
mod refusals;
mod sessions;
mod streams;
