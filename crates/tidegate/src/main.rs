//! `tidegate`: the binary. It reads arguments, calls a library, prints, and ends with an exit
//! code; it decides nothing itself.
//!
//! The tour: [`cli`] says what can be typed, [`commands`] holds one module per verb, [`printer`]
//! is the only file that prints, [`exit`] lists every exit code, [`find`] looks for the config
//! file, [`wrap`] fits prose to the terminal, [`asking`] is a sign of life, [`memory`] names the
//! allocator.
//!
//! A verb is a function from its arguments and the printer to an [`exit::Exit`]. Results go to
//! stdout, talk to stderr.

mod asking;
mod cli;
mod commands;
mod exit;
mod find;
#[cfg(feature = "jemalloc")]
mod memory;
mod printer;
mod wrap;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::printer::Printer;

fn main() -> ExitCode {
    let report = |text: &str| Printer::plain().talk(text);
    exit::catch_bug(run, report).into()
}

/// Reads the command line and runs the verb it names.
fn run() -> Exit {
    match Cli::try_parse() {
        Ok(cli) => {
            // A gateway has requests to finish first, a bridge a session, a warden a program: they
            // listen to signals themselves.
            let listens = match &cli.command {
                Command::Serve(_) | Command::Mcp(_) | Command::Child(_) => true,
                // It has a screen to leave.
                Command::Status(args) => args.is_watch(),
                _ => false,
            };
            if !listens {
                exit::end_when_interrupted();
            }
            let printer = cli.look.printer();
            printer.exit(cli.command.run(&printer))
        }
        Err(error) => answer_parser(&error),
    }
}

/// Help and version are results; anything else the parser says is a usage error.
fn answer_parser(error: &clap::Error) -> Exit {
    let printer = Printer::plain();
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            printer.result(&text);
            printer.exit(Exit::Done)
        }
        _ => {
            printer.talk(&text);
            Exit::Usage
        }
    }
}
