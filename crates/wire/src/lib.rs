//! The wire formats of LLM APIs, as pure functions over bytes.
//!
//! The server carries bytes; this crate knows what they say. It opens no socket, reads no clock,
//! and on the hot path builds no tree, copies no body and allocates nothing.
//!
//! A tour, in the order a request meets it:
//! - [`operation::Operation`]: what the client asks for, and [`dialect::Dialect`]: what it speaks,
//!   both by the path; [`gemini`]: the paths that also name the model.
//! - [`head::RequestHead`]: what must be known of the body to choose a target, read from JSON or
//!   from a [`form`].
//! - [`splice::Spliced`]: the same body with the target's own model name.
//! - [`classify`]: the class of an answer, by status, headers and body; [`retry_after`]: when it
//!   says to come back; [`body`]: whether a 200 is an error in disguise.
//! - [`sniff`]: whether an answer is a stream of events.
//! - [`sse::Splitter`]: the frames of a stream; [`watch::Watch`]: what they say of content, end
//!   and [`usage`]; [`events::EventReader`]: both, and what of it may be released.
//! - [`response_id`]: by which id an answer can be continued.
//! - [`mask`]: our own secrets, taken out of what a provider says.
//! - [`error_body`]: what the gateway itself says when it cannot help, in the client's dialect.
//! - [`prospect`]: what would become of requests at a target, before any has come.
//! - [`convert`]: requests and answers that change their dialect on the way.
//!
//! Everything reads JSON through one checking cursor, [`json`].
//!
//! Same-dialect traffic never goes through [`convert`], which is the one place that builds trees.

pub mod body;
mod choices;
pub mod classify;
pub mod convert;
pub mod dialect;
pub mod error_body;
mod error_fields;
mod error_key;
pub mod events;
pub mod form;
pub mod frame;
pub mod gemini;
pub mod head;
pub mod json;
pub mod mask;
pub mod operation;
pub mod prospect;
pub mod response_id;
pub mod retry_after;
pub mod sniff;
pub mod splice;
pub mod sse;
mod template;
pub mod usage;
pub mod watch;
