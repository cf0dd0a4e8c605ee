//! An answer as a stream of events, in no dialect.
//!
//! Order that every reader keeps and every writer may rely on:
//!
//! ```text
//! Start (Text | Refusal | Thinking | ThinkingSeal | Logprobs | tool call)* Stop End
//! tool call = ToolCallStart ToolCallDelta* ToolCallEnd
//! Error, in place of anything after which nothing follows
//! ```
//!
//! Rules:
//! - Tool calls never interleave: a reader of a dialect that numbers its calls holds back a call
//!   that begins before the one before it has ended (within [`HELD_LIMIT`]).
//! - Text and thinking have no explicit blocks: a run of the same kind is one block, and a
//!   [`StreamEvent::ThinkingSeal`] ends the thinking before it. Writers open and close blocks.
//! - [`StreamEvent::Usage`] may come anywhere after `Start` and before `End`; counts only grow.
//! - `Stop` comes once, after all content. `End` or `Error` comes at most once and nothing follows;
//!   a stream that breaks off has neither, and its writer then writes no terminator.
//! - A delta is never empty.

use serde_json::Value;

use crate::frame::Frame;

use super::api_error::ApiError;
use super::fault::ReplyFault;
use super::part::Seal;
use super::reply::{StopReason, TokenUsage};

/// How many bytes of tool calls a reader holds back before it calls the stream broken.
pub const HELD_LIMIT: usize = 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The answer begins.
    Start {
        /// The provider's id of it.
        id: String,
        /// The model that answers.
        model: String,
        /// When, where the dialect says it.
        created_unix_s: Option<u64>,
    },
    /// More text.
    Text(String),
    /// More of a refusal.
    Refusal(String),
    /// More thinking.
    Thinking(String),
    /// Proves the thinking before it, or is hidden thinking itself ([`Seal::is_content`]).
    ThinkingSeal(Seal),
    /// A tool call begins.
    ToolCallStart {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// Gemini's signature of it.
        seal: Option<Seal>,
        /// Whether its deltas are free text and not JSON.
        is_free_text: bool,
    },
    /// More of its arguments.
    ToolCallDelta(String),
    /// It is complete.
    ToolCallEnd,
    /// Probabilities of tokens, as in [`super::reply::Reply::logprobs`].
    Logprobs(Vec<Value>),
    /// What it has cost so far.
    Usage(TokenUsage),
    /// The model stopped.
    Stop(StopReason),
    /// The stream ended as its dialect wants.
    End,
    /// The stream ended with an error of the provider's.
    Error(ApiError),
}

/// Reads the events of one dialect's stream.
pub trait ReadStream {
    /// Reads one whole frame and appends what it says.
    ///
    /// # Errors
    /// The frame is not JSON, or breaks the dialect's order beyond repair.
    fn read(&mut self, frame: &Frame<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ReplyFault>;

    /// The body ended cleanly: appends what is owed where the dialect may end without its last
    /// formal event (Gemini has none; Chat may lack `[DONE]`). Appends nothing if the stream was
    /// cut, or has ended already.
    fn finish(&mut self, events: &mut Vec<StreamEvent>);
}

/// Writes the events of one dialect's stream.
pub trait WriteStream {
    /// Appends the frames that tell this event. After `End` or `Error` it appends nothing.
    fn write(&mut self, event: StreamEvent, out: &mut Vec<u8>);
}
