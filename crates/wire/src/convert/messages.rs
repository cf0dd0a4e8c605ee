//! Anthropic Messages: `POST /v1/messages`.

pub mod reply_in;
pub mod reply_out;
pub mod request_in;
pub mod request_out;
mod schema;
mod settings;
pub mod stream_in;
pub mod stream_out;
