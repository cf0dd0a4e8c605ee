//! The stateless era of the protocol (2026-07-28): no session, every request says for itself who
//! asks, in which version and with which capabilities.
//!
//! - [`Envelope`]: what a request says of its sender, in `_meta`, and the headers that repeat it.
//! - [`heading`], [`mirror`]: those headers: the method, the name, and arguments that a tool wants
//!   to see there.
//! - [`dress`]: results as either era writes them. [`discover`]: who somebody is.
//! - [`listen`]: what a client wants to hear of its own accord. [`input`]: what a server needs to
//!   know before it can answer.
//!
//! Which era somebody speaks is found out in [`crate::greeting`].

pub mod discover;
pub mod dress;
mod envelope;
pub mod heading;
pub mod input;
pub mod listen;
pub mod mirror;

pub use self::envelope::{Envelope, Refused, belongs, stands_alone};

use crate::message::reserved;

/// The revision.
pub const VERSION: &str = reserved::STATELESS_VERSION;

/// In `_meta`: the revision a request is written in.
pub const PROTOCOL_VERSION: &str = reserved::PROTOCOL_VERSION;
/// In `_meta`: which program asks.
pub const CLIENT_INFO: &str = reserved::CLIENT_INFO;
/// In `_meta`: what the asker can be asked.
pub const CLIENT_CAPABILITIES: &str = reserved::CLIENT_CAPABILITIES;
/// In `_meta`: which log lines the asker wants to hear of this request.
pub const LOG_LEVEL: &str = reserved::LOG_LEVEL;
/// In the `_meta` of a result: which program answers.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// In the `_meta` of what a subscription brings: the id of the request that asked for it.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A header does not say what the body says.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that its sender did not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The revision is not spoken.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The HTTP status that goes with an error.
#[must_use]
pub const fn status_of(code: i64) -> u16 {
    use crate::message::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
    match code {
        METHOD_NOT_FOUND => 404,
        PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS => 400,
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION => 400,
        _ => 200,
    }
}
