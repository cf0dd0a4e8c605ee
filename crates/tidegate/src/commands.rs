//! One module per verb, each with its arguments and a `run` function.
//!
//! A verb asks a library, hands what it says to the printer and picks the exit code. Whatever is
//! more than that belongs into the library.

pub(crate) mod check;
pub(crate) mod child;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod fake;
pub(crate) mod fake_mcp;
pub(crate) mod help;
pub(crate) mod mcp;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod tools;

use crate::cli::Command;
use crate::exit::Exit;
use crate::printer::Printer;

/// Runs the verb that was typed.
pub(crate) fn run(command: &Command, printer: &Printer) -> Exit {
    match command {
        Command::Check(args) => check::run(args, printer),
        Command::Serve(args) => serve::run(args, printer),
        Command::Sim(args) => sim::run(args, printer),
        Command::Explain(args) => explain::run(args, printer),
        Command::Mcp(args) => mcp::run(args, printer),
        Command::Tools(args) => tools::run(args, printer),
        Command::Schema(args) => schema::run(args, printer),
        Command::Completions(args) => completions::run(args, printer),
        Command::Help(args) => help::run(args, printer),
        Command::Fake(args) => fake::run(args, printer),
        Command::FakeMcp(args) => fake_mcp::run(args, printer),
        Command::Child(args) => child::run(args),
    }
}
