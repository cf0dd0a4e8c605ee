//! Conversations with small servers that follow a script, over real sockets.

mod answers;
mod bed;
mod lifetimes;
mod refusals;
mod sessions;
mod streams;
