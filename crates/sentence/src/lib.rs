//! A sentence model: what turns a text into a vector, by a file that the operator names.
//!
//! - `wordpiece`: a text as the numbers that the model reads.
//! - `encoder`: the model, run while the caller waits, by `engine`. It needs the feature `onnx`;
//!   without, loading fails and says so (`load_error`).
//! - `tiny`: a model of a few words, for tests.
//!
//! The file is an ONNX export of a BERT that gives one vector per piece, such as all-MiniLM-L6-v2;
//! `tokenizer.json` stands beside it. No clock, no task and no network: who loads and when is the
//! caller's business, and so is what to do when it fails.

mod encoder;
#[cfg(feature = "onnx")]
mod engine;
mod load_error;
#[cfg(feature = "tiny")]
pub mod tiny;
// Without the engine nobody reads a vocabulary but the tests.
#[cfg(any(feature = "onnx", test))]
mod wordpiece;

pub use encoder::Encoder;
pub use load_error::LoadError;
