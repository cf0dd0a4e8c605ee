//! OpenAI Chat Completions: `POST /v1/chat/completions`.
//!
//! The dialect of most servers that are not OpenAI's own, so the writers here keep to what all of
//! them understand, and the readers accept what they are known to add (`reasoning_content`,
//! `cache_control`, tool calls without an index).

pub mod reply_in;
pub mod reply_out;
pub mod request_in;
pub mod request_out;
pub mod stream_in;
pub mod stream_out;
mod tool_calls;
