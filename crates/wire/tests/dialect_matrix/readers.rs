//! A small reader of each dialect, written from the vendors' descriptions and sharing nothing with
//! the converters: what a provider of it is asked, and what a client of it sees.
//!
//! The readers of streams are strict. They accept the order of events that the dialect allows and
//! exactly one end, a terminator or an error event, and name the first thing that is wrong.

pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod messages;
pub(crate) mod responses;
