//! Conversion between dialects: a request of one served by a provider of another.
//!
//! Each dialect is read into one small typed form and written from it, so that four dialects need
//! eight readers and writers of each kind and not twelve pairs. The form holds what at least two
//! dialects can say; what only one can say is carried under its own name or noted as lost.
//!
//! A tour:
//! - [`pair::DialectPair`]: the way in for callers; which pairs can be converted, and how.
//!   [`stream_converter::StreamConverter`]: the same for streams, chunk by chunk.
//! - [`chat`], [`messages`]: the dialects.
//! - [`request`]: the request ([`request::GenerationRequest`]), its messages, tools and settings.
//!   [`part`]: what a message consists of; each field says how every dialect spells it.
//! - [`reply`]: a whole answer; [`stream`]: an answer as events; [`api_error`]: an error answer.
//! - [`notes`]: what was lost, clamped or rewritten on the way. [`fault`]: why a request cannot be
//!   converted at all.
//! - [`history`]: what a request of the target's own dialect must not bring along.
//! - [`target`]: what a writer must know of the target; [`context`]: what a writer of answers must
//!   know of the request.
//! - [`embeddings`]: the same for vectors, between the two dialects that have them; `count`: for
//!   counts of tokens. [`exchange`]: one request and its answer, whatever it asks for.
//! - `bounds`, `mixed`, `instructions`, `names`, `ids`, `schema`, `servers`, `order`: what all
//!   dialects share: how long a field may be, fields of another dialect, what instructions may
//!   have, names of tools, ids and schemas that a vendor refuses, odd servers, the order of events.
//! - [`fields`]: reading JSON objects field by field, with a path for every complaint. `json_out`:
//!   writing them.
//!
//! Below each dialect's module stands one file per direction. `_in` reads the dialect into the
//! form, `_out` writes the form as the dialect:
//!
//! | file | reads or writes |
//! |---|---|
//! | `request_in` | a client's body → [`request::GenerationRequest`] |
//! | `request_out` | [`request::GenerationRequest`] → the body for a target |
//! | `reply_in` | a target's body → [`reply::Reply`] |
//! | `reply_out` | [`reply::Reply`] → the body for the client |
//! | `stream_in` | a target's events → [`stream::StreamEvent`]s |
//! | `stream_out` | [`stream::StreamEvent`]s → events for the client |
//!
//! Rules:
//! - Requests and answers that keep their dialect never come here and stay byte-exact.
//! - Nothing is lost silently: every field that is not carried leaves a note.
//! - Arbitrary bytes never panic; a request that cannot be read is the client's fault, an answer
//!   that cannot be read is the target's.
//! - No clock, no randomness, no I/O: times and identifiers come in as arguments.

pub mod api_error;
mod bounds;
pub mod chat;
pub mod context;
mod count;
pub mod embeddings;
pub mod exchange;
pub mod fault;
pub mod fields;
pub mod gemini;
pub mod history;
mod ids;
mod instructions;
pub mod json_in;
mod json_out;
pub mod messages;
mod mixed;
mod names;
pub mod notes;
mod order;
pub mod pair;
pub mod part;
pub mod reply;
pub mod request;
pub mod responses;
mod schema;
mod servers;
pub mod stream;
pub mod stream_converter;
pub mod target;
