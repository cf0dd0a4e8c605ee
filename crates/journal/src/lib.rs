//! The record of what the gateway did, and why.
//!
//! - [`decision`]: one request as data; [`choice_trace`] is the part that choices leave behind, and
//!   [`mcp`] makes one of an MCP call. [`event`]: everything else that happens.
//! - [`journal`]: the last fifteen minutes of both in memory, numbered for streams; [`inbox`] is
//!   where threads hand decisions over, [`figures`] what is counted from them.
//! - [`moments`]: the order in which the core was asked and told, for exact replays.
//! - [`render`] turns records into the types of [`api`], whose schemas are in `docs/api`.
//!   [`question`] says which decisions somebody asks for.
//! - [`trace_context`]: which trace a request belongs to, and the ids of its spans.
//! - [`record_queue`]: the way to files, which never holds up a request: the [`audit`] log and,
//!   with the feature `history`, the history file.
//!
//! Rules of the crate: no body, no header, no secret is in any record (I13); every table, ring and
//! queue has a bound (I14).

pub mod api;
pub mod audit;
pub mod choice_trace;
pub mod decision;
pub mod event;
pub mod figures;
mod histogram;
#[cfg(feature = "history")]
pub mod history;
pub mod inbox;
pub mod journal;
pub mod mcp;
pub mod moments;
pub mod question;
pub mod record_queue;
pub mod render;
pub mod request_id;
pub mod result;
mod ring;
mod rolling;
mod stats;
pub mod trace_context;
