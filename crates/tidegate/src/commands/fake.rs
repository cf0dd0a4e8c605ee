//! `tidegate __fake`: a scripted provider as a process of its own, for tests in other languages.
//!
//! Hidden: it is no part of what a user is promised. It prints its url as one line on stdout and
//! answers until its stdin closes, so that it is gone with whoever started it, or until a signal
//! ends it. Scripts, fault words in model names and the control endpoints are
//! [`tidegate_fakes::fake`]'s.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_fakes::fake::{FakeServer, Script};

use crate::exit::Exit;
use crate::printer::Printer;

/// Answer like a provider, as a script says, until stdin closes
#[derive(Debug, Args)]
pub(crate) struct FakeArgs {
    /// Where to listen; port 0: a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The name it answers with, where no script says another
    #[arg(long, value_name = "NAME", default_value = "fake", conflicts_with = "script")]
    name: String,
    /// What it does, as JSON; none: it answers well
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

/// A script is written by hand; one that is longer is some other file.
const MAX_SCRIPT: u64 = 4 << 20;

/// Starts, answers, stops.
pub(crate) fn run(args: &FakeArgs, printer: &Printer) -> Exit {
    let script = match &args.script {
        None => Script::default().named(&args.name),
        Some(path) => match read_script(path).and_then(|text| Script::from_json(&text)) {
            Ok(script) => script,
            Err(complaint) => {
                printer.error(&format!("`{}`: {complaint}", path.display()));
                return Exit::Unreadable;
            }
        },
    };
    let server = match FakeServer::start_at(args.listen, script) {
        Ok(server) => server,
        Err(error) => {
            printer.error(&format!("cannot listen on `{}`: {error}", args.listen));
            return Exit::CannotStart;
        }
    };
    printer.result(&server.url());
    // An error here means that nobody holds the other end any more, which is the end too.
    drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
    server.stop();
    Exit::Done
}

/// The text of a script.
pub(super) fn read_script(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut text = Vec::new();
    let length = file
        .take(MAX_SCRIPT + 1)
        .read_to_end(&mut text)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if length as u64 > MAX_SCRIPT {
        return Err(format!("a script has at most {MAX_SCRIPT} bytes"));
    }
    Ok(text)
}
