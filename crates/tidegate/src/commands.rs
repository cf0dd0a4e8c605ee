//! One module per verb, each with its arguments and a `run` function.
//!
//! A verb asks a library, hands what it says to the printer and picks the exit code. Whatever is
//! more than that belongs into the library.

pub(crate) mod act;
mod admin;
pub(crate) mod check;
pub(crate) mod child;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fake;
pub(crate) mod fake_mcp;
pub(crate) mod help;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod tools;
