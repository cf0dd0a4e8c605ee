//! OpenAI's Responses API.
//!
//! What is particular here:
//! - A conversation is a list of items: messages, calls, results and reasoning stand side by side.
//!   Readers join them into turns, writers take turns apart.
//! - The server may keep state (`previous_response_id`, `conversation`, stored prompts and items).
//!   A request that refers to it cannot be served elsewhere and is refused.
//! - A stream repeats everything: each part when it is done, and the whole answer in its last
//!   event. So its writer keeps the answer, within a limit.

mod content;
pub(crate) mod item;
pub mod reply_in;
pub mod reply_out;
pub mod request_in;
pub mod request_out;
pub mod stream_in;
mod stream_item;
pub mod stream_out;
mod usage;
