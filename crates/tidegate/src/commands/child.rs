//! `tidegate __child`: stands between the gateway and the program of an MCP server, and sees to
//! it that the program and all it started are gone when the gateway is.
//!
//! Hidden: the gateway starts it; its stdin must be a socket. What it does is
//! [`tidegate_mcp_shell::child`]'s.

use std::ffi::OsString;

use clap::Args;

use crate::exit::Exit;

/// Run a program until it ends or the socket on stdin does
#[derive(Debug, Args)]
pub(crate) struct ChildArgs {
    /// The program and its arguments, as they are: no shell reads them
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    argv: Vec<OsString>,
}

/// Runs it. Nothing is printed: stdout and stderr are the program's, and the gateway is told over
/// the socket.
pub(crate) fn run(args: &ChildArgs) -> Exit {
    match tidegate_mcp_shell::child::stand_by(&args.argv) {
        Ok(()) => Exit::Done,
        Err(_) => Exit::CannotStart,
    }
}
