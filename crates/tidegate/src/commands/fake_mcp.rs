//! `tidegate __fake-mcp`: a scripted MCP server as a program, for tests.
//!
//! Hidden: it is no part of what a user is promised. It talks on stdin and stdout until its input
//! ends or its script makes it die. With `--listen` it prints its url as one line instead, and
//! answers there until its stdin closes. Scripts are [`tidegate_fakes::fake_mcp`]'s.

use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, serve_stdio};

use super::fake::read_script;
use crate::exit::Exit;
use crate::printer::Printer;

/// Answer like an MCP server, as a script says, until stdin closes
#[derive(Debug, Args)]
pub(crate) struct FakeMcpArgs {
    /// What it is, as JSON; none: it has one tool, `echo`
    #[arg(long, value_name = "JSON")]
    script: Option<String>,
    /// The same, from a file
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    script_file: Option<PathBuf>,
    /// Listen here instead of talking on stdin and stdout; port 0: a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

/// Talks until the end.
pub(crate) fn run(args: &FakeMcpArgs, printer: &Printer) -> Exit {
    let text = match (&args.script, &args.script_file) {
        (Some(text), _) => Ok(Some(text.clone().into_bytes())),
        (None, Some(path)) => read_script(path).map(Some),
        (None, None) => Ok(None),
    };
    let read = |text: Option<Vec<u8>>| match text {
        Some(text) => McpScript::from_json(&text),
        None => Ok(McpScript::default()),
    };
    let script = match text.and_then(read) {
        Ok(script) => script,
        Err(complaint) => {
            printer.error(&complaint);
            return Exit::Unreadable;
        }
    };
    match args.listen {
        Some(address) => listen(address, script, printer),
        None => {
            match serve_stdio(script, BufReader::new(io::stdin()), io::stdout(), io::stderr()) {
                Ok(false) => Exit::Done,
                Ok(true) => Exit::No,
                Err(error) => {
                    printer.error(&format!("cannot talk on stdin and stdout: {error}"));
                    Exit::CannotStart
                }
            }
        }
    }
}

fn listen(address: SocketAddr, script: McpScript, printer: &Printer) -> Exit {
    let server = match FakeMcpServer::start_at(address, script) {
        Ok(server) => server,
        Err(error) => {
            printer.error(&format!("cannot listen on `{address}`: {error}"));
            return Exit::CannotStart;
        }
    };
    printer.result(&server.url());
    // An error here means that nobody holds the other end any more, which is the end too.
    drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
    server.stop();
    Exit::Done
}
