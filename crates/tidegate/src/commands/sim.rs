//! `tidegate sim`: runs scenarios through the production core on a fake clock.
//!
//! Here are only the arguments and the exit code; what a scenario means and how a report looks is
//! the simulator crate's. [`simulate`] is the whole boundary.

use std::path::PathBuf;

use clap::Args;
use tidegate_config::duration::Duration;

use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate sim                            the example `cascade`
  tidegate sim halfopen                   a built-in example; `--list` shows all
  tidegate sim --file outage.yaml --json  a scenario of your own, for a script
  tidegate sim brownout --seeds 1000      one outage, many draws

Next: `tidegate help scenarios`";

/// What would happen in this outage?
///
/// Exit code 0: every expectation held; 1: one failed; 3: a file cannot be read or has problems.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimArgs {
    #[command(flatten)]
    which: Which,
    /// Run a timeline with the routes and health settings of this config file
    #[arg(short, long, value_name = "CONFIG")]
    config: Option<PathBuf>,
    /// Seed of every random draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Run this many seeds, from `--seed` on, and show each distinct failure once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Show a timeline from this simulated time on
    #[arg(long, value_name = "TIME", value_parser = Duration::parse)]
    from: Option<Duration>,
    /// Show a timeline up to this simulated time
    #[arg(long, value_name = "TIME", value_parser = Duration::parse)]
    to: Option<Duration>,
    #[command(flatten)]
    format: FormatArgs,
    /// Show every step; with `--json` as JSON lines
    #[arg(long)]
    trace: bool,
}

/// Which scenarios to run; nothing: the example `cascade`.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Which {
    /// A built-in example
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// A built-in example
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
    /// A scenario file; may be given several times
    #[arg(long, value_name = "FILE", num_args = 1..)]
    file: Vec<PathBuf>,
    /// Every built-in example
    #[arg(long)]
    all: bool,
    /// List the built-in examples instead of running one
    #[arg(long)]
    list: bool,
}

impl Which {
    /// Whether the user left the choice to us.
    fn is_nothing(&self) -> bool {
        let is_named = self.name.is_some() || self.example.is_some() || !self.file.is_empty();
        !is_named && !self.all && !self.list
    }
}

/// How the report looks; nothing: the graph.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct FormatArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Print a table, one row per request
    #[arg(long)]
    table: bool,
    /// Print the graph (the default)
    #[arg(long)]
    graph: bool,
}

/// Runs the scenarios that were asked for.
pub(crate) fn run(args: &SimArgs, printer: &Printer) -> Exit {
    if args.which.is_nothing() {
        printer.note("running the example `cascade`; `tidegate sim --list` shows the others");
    }
    simulate(args, printer)
}

/// Hands the arguments to the simulator and prints its reports.
fn simulate(args: &SimArgs, printer: &Printer) -> Exit {
    printer.detail(&format!("{args:?}"));
    printer.error("the simulator is not part of this build");
    Exit::CannotStart
}
