//! Google's Gemini API: `generateContent` and `streamGenerateContent`.
//!
//! What is particular here:
//! - The path names the model and whether to stream ([`crate::gemini`]), so bodies say neither.
//! - Keys may be written in camel case or in snake case, and a list of one may be written without
//!   its brackets; `spelling` brings both to one form before anything is read.
//! - Tools and answers take a subset of JSON schema; `schema` rewrites what it refuses.
//! - Signatures (`thoughtSignature`) stand beside calls and text and are base64; `signature`.

pub mod error;
mod logprobs;
mod media_type;
pub mod reply_in;
pub mod reply_out;
pub mod request_in;
pub mod request_out;
mod schema;
pub(super) mod signature;
pub(super) mod spelling;
pub mod stream_in;
pub mod stream_out;
pub(super) mod thinking;
mod usage;
