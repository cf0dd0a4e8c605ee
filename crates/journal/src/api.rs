//! The JSON of the operator's API, as types: what the admin listener answers and what its clients
//! read. `docs/api/*.schema.json` are made from these types.
//!
//! Rules kept here:
//! - Fields are added, never renamed or removed; readers ignore what they do not know.
//! - A moment is `*_unix_ms`; `at` beside it counts from the gateway's start. A span is `*_ms`.
//! - What is not there is null; a key is always present.
//! - Nothing here can hold a body, a header or a secret (I13).

pub mod actions;
pub mod decision;
pub mod events;
pub mod explain;
pub mod fleet;
pub mod incident;
pub mod schema;
pub mod snapshot;
pub mod timeline;
