//! `tidegate sim`: runs scenarios through the production core on a fake clock.
//!
//! Here are the arguments, the reading of files and the exit code; what a scenario means and how a
//! report looks is the simulator crate's.
//!
//! Rules kept here:
//! - Reports are the result (stdout); problems of files, failed expectations and replay lines are
//!   talk (stderr).
//! - If any file has an error, every problem of every file is shown and nothing is run.
//!
//! | what happened | exit code |
//! |---|---|
//! | every expectation held | 0 |
//! | one failed | 1 |
//! | no such example, or flags that do not fit together | 2 |
//! | a file cannot be read or has an error | 3 |

mod gather;
mod moment;
mod record;
mod replay;
mod sweep;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use tidegate_core::time::Now;
use tidegate_sim::builtin;
use tidegate_sim::scenario::{Format, RenderOptions, Report, Scenario};

use self::moment::SimMoment;
use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate sim                            the example `cascade`
  tidegate sim halfopen                   a built-in example; `--list` shows all
  tidegate sim --file outage.yaml --json  a scenario of your own, for a script
  tidegate sim brownout --seeds 1000      one outage, many draws
  tidegate sim --all -c tidegate.yaml     every outage against your own routes
  tidegate sim --print brownout           the source of an example, to start from
  tidegate sim --from-live 15m -o i.yaml  what a gateway did, as a scenario
  tidegate sim --replay i.yaml -c b.yaml  the same under another config

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
    /// Show a timeline from this simulated time on; of a history, the first moment
    #[arg(long, value_name = "TIME", value_parser = SimMoment::parse)]
    from: Option<SimMoment>,
    /// Show a timeline up to this simulated time; of a history, the last moment
    #[arg(long, value_name = "TIME", value_parser = SimMoment::parse)]
    to: Option<SimMoment>,
    /// Write a recording into this new file; none: to stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The gateway of `--from-live`; none: TIDEGATE_ADMIN_URL, else `admin.listen` of the config
    #[arg(long, value_name = "URL", requires = "from_live")]
    admin: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
    /// Draw a lane for every replica of a simulated fleet
    #[arg(long)]
    per_replica: bool,
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
    /// Print the source of a built-in example instead of running it
    #[arg(long, value_name = "NAME")]
    print: Option<String>,
    /// Write the last minutes of a running gateway as a scenario with exact arrivals
    #[arg(long, value_name = "SPAN", num_args = 0..=1, default_missing_value = "15m",
          value_parser = tidegate_config::duration::Duration::parse)]
    from_live: Option<tidegate_config::duration::Duration>,
    /// The same from a history file; `--from` and `--to` say which time
    #[arg(long, value_name = "FILE")]
    from_history: Option<PathBuf>,
    /// Play a recording again; with `--config` under other settings, and show what differs
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

impl Which {
    /// Whether the user left the choice to us.
    fn is_nothing(&self) -> bool {
        let is_named = self.name.is_some() || self.example.is_some() || !self.file.is_empty();
        let is_record = self.from_live.is_some() || self.from_history.is_some();
        let is_other = self.all || self.list || self.print.is_some() || self.replay.is_some();
        !is_named && !is_other && !is_record
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
    if args.which.list {
        return list(args, printer);
    }
    if let Some(name) = &args.which.print {
        return print(name, args, printer);
    }
    if args.which.from_live.is_some() || args.which.from_history.is_some() {
        return record::run(args, printer);
    }
    if let Some(path) = &args.which.replay {
        return replay::run(path, args, printer);
    }
    if args.output.is_some() {
        printer.error("`-o` is for recordings: `--from-live` or `--from-history`");
        return Exit::Usage;
    }
    if args.which.is_nothing() {
        printer.note("running the example `cascade`; `tidegate sim --list` shows the others");
    }
    let scenarios = match gather::gather(args, printer) {
        Ok(scenarios) => scenarios,
        Err(exit) => return exit,
    };
    match args.seeds {
        Some(count) => sweep::sweep(&scenarios, args, count, printer),
        None => simulate(&scenarios, args, printer),
    }
}

/// The examples and what each shows.
fn list(args: &SimArgs, printer: &Printer) -> Exit {
    let examples: Vec<(&str, String)> = builtin::all()
        .map(|it| (it.name, it.scenario().map(|it| it.about().to_owned()).unwrap_or_default()))
        .collect();
    if args.format.json {
        let examples = examples.iter().map(|(name, about)| json!({"name": name, "about": about}));
        printer.result(&Value::from_iter(examples).to_string());
        return Exit::Done;
    }
    let width = examples.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        examples.iter().map(|(name, about)| format!("{name:<width$}  {about}")).collect();
    printer.result(&lines.join("\n"));
    Exit::Done
}

/// The source of an example, as its file has it.
fn print(name: &str, args: &SimArgs, printer: &Printer) -> Exit {
    let builtin = match gather::builtin(name, printer) {
        Ok(builtin) => builtin,
        Err(exit) => return exit,
    };
    if args.format.json {
        printer.result(&json!({"name": builtin.name, "source": builtin.text}).to_string());
    } else {
        printer.result(builtin.text);
        printer.note("save it to a file, change it, and run it: `tidegate sim --file FILE`");
    }
    Exit::Done
}

/// Runs each scenario once and prints its report.
fn simulate(scenarios: &[Scenario], args: &SimArgs, printer: &Printer) -> Exit {
    let options = options(args, printer);
    let began = moment();
    let reports: Vec<Report> = scenarios.iter().map(|scenario| scenario.run(args.seed)).collect();
    let took = began.elapsed();
    match reports.as_slice() {
        several @ [_, _, ..] if args.format.json && !args.trace => {
            printer.result(&Value::from_iter(several.iter().map(Report::to_json)).to_string());
        }
        reports => {
            let texts: Vec<String> = reports.iter().map(|it| it.render(&options)).collect();
            // JSON lines follow each other; pictures are set apart.
            printer.result(&texts.join(if args.format.json { "" } else { "\n" }));
        }
    }
    if !args.format.json {
        // On stderr: the report itself is the same for the same seed, byte for byte.
        printer.note(&format!("simulated in {} ms", took.as_millis().max(1)));
    }
    let is_alone = reports.len() == 1;
    let mut failed = 0;
    for (scenario, report) in scenarios.iter().zip(&reports) {
        if !report.failures().is_empty() {
            printer.talk(&failures(scenario, report, printer));
            failed += 1;
        } else if is_alone && !args.format.json {
            printer.note(&format!("{}: every expectation held", scenario.name()));
        }
    }
    if !is_alone && !args.format.json {
        printer.note(&total(reports.len(), failed));
    }
    if failed == 0 { Exit::Done } else { Exit::No }
}

/// The line that closes a run of several scenarios.
fn total(count: usize, failed: usize) -> String {
    let scenarios = counted(count, "scenario");
    match failed {
        0 => format!("{scenarios}: every expectation of each held"),
        _ => format!("{scenarios}: {} passed, {failed} failed", count - failed),
    }
}

/// The moment.
fn moment() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "how long a simulation took is told, not used")]
    Instant::now()
}

/// Each failed expectation, and how to see it again.
fn failures(scenario: &Scenario, report: &Report, printer: &Printer) -> String {
    let mark = mark(printer);
    let count = counted(report.failures().len(), "expectation");
    let mut text = format!("{}: {count} failed\n", scenario.name());
    for failure in report.failures() {
        text.push_str(&format!("  {mark} {}\n", failure.sentence));
    }
    text.push_str(&format!("replay: {}\n", report.replay()));
    text
}

/// The mark of what failed.
fn mark(printer: &Printer) -> &'static str {
    if printer.is_ascii() { "x" } else { "✗" }
}

/// `1 expectation`, `2 expectations`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn options(args: &SimArgs, printer: &Printer) -> RenderOptions {
    let format = match &args.format {
        FormatArgs { json: true, .. } => Format::Json,
        FormatArgs { table: true, .. } => Format::Table,
        FormatArgs { .. } => Format::Graph,
    };
    let moment = |at: &Option<SimMoment>, otherwise| {
        at.as_ref().and_then(SimMoment::simulated).unwrap_or(otherwise)
    };
    RenderOptions {
        format,
        width: printer.width(),
        ascii: printer.is_ascii(),
        colour: printer.has_colour(),
        trace: args.trace,
        per_replica: args.per_replica,
        from: moment(&args.from, Now::ZERO),
        to: moment(&args.to, Now::NEVER),
    }
}
