//! `tidegate check [FILE]`: every problem of a config file at once, and what the file means.
//!
//! The findings are the result, so they go to stdout, problems and summary alike. Only a file
//! that cannot be read as YAML at all gives no findings: then stderr says why.
//!
//! A sound file is also played through the outages that come with the program (`predict`); what
//! becomes of them changes no exit code.
//!
//! Nothing is connected to without `--connect`, and then only by a file that is sound.
//!
//! | the file | exit code |
//! |---|---|
//! | is sound, warnings or not | 0 |
//! | is YAML and has an error | 1 |
//! | is sound, and with `--connect` something it names cannot be reached, refuses its key or is not at its url | 1 |
//! | cannot be read: missing, a directory, not UTF-8, not YAML | 3 |

mod connect;
mod dialects;
mod model;
mod predict;
mod report;

use std::path::PathBuf;

use clap::Args;
use tidegate_config::diagnostic::Diagnostic;
use tidegate_config::render::{Look, render_all};
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::{Source, read_file};
use tidegate_gateway::certificates;

use self::report::Report;
use crate::exit::Exit;
use crate::find::{self, NotFound};
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate check                  ./tidegate.yaml, else the user's config folder
  tidegate check prod.yaml
  tidegate check --connect        and can everything it names be reached?
  tidegate check --json | jq .problems

Next: `tidegate help config`";

/// Is this config sound?
///
/// Offline, unless `--connect` is given. Exit code 0: sound, warnings or not; 1: it has errors, or
/// something cannot be reached or used; 3: it cannot be read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The config file; none: TIDEGATE_CONFIG, else tidegate.yaml here, else in the user's config
    /// folder
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The config file, as other verbs take it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Then ask every provider and MCP server it names: can they be reached, what do they offer?
    #[arg(long)]
    connect: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Finds, reads and checks the file, and prints what was found.
pub(crate) fn run(args: &CheckArgs, printer: &Printer) -> Exit {
    let named = args.file.as_deref().or(args.config.as_deref());
    let path = match find::config_file(named) {
        Ok(path) => path,
        Err(missing) => return no_file(args, &missing, printer),
    };
    printer.detail(&format!("reading {}", path.display()));
    match read_file(&path) {
        Ok(source) => check(args, &source, printer),
        Err(problem) => {
            let source = Source::new(path.display().to_string(), "");
            let report = Report::unread(source.name(), problem.diagnostic());
            unreadable(args, &source, &report, printer)
        }
    }
}

fn check(args: &CheckArgs, source: &Source, printer: &Printer) -> Exit {
    let mut loaded = tidegate_config::load(source, &ProcessEnvironment);
    if let Some(config) = &loaded.config {
        // Whether a certificate and its key fit takes cryptography, and whether a model can be
        // used the engine that runs it: the format leaves both alone.
        let mut problems = certificates::problems(source, config, &ProcessEnvironment);
        problems.extend(model::problem(source, config));
        if !problems.is_empty() {
            loaded.config = None;
            loaded.diagnostics.extend(problems);
        }
    }
    let is_unreadable = loaded.is_unreadable();
    let is_sound = loaded.config.is_some();
    let mut report = Report::of(source, loaded);
    if is_sound {
        report.predictions = predict::predict(source);
    }
    if is_unreadable {
        return unreadable(args, source, &report, printer);
    }
    if args.connect && report.errors() == 0 {
        return connect::run(args.json, source, &report, printer);
    }
    if args.json {
        printer.result(&format!("{:#}", report.json(source)));
    } else {
        printer.result(&findings(source, &report, printer));
    }
    if report.errors() > 0 { Exit::No } else { Exit::Done }
}

/// Problems, a blank line, the summary.
fn findings(source: &Source, report: &Report, printer: &Printer) -> String {
    let look = Look { color: printer.has_colour(), ascii: printer.is_ascii() };
    let problems = render_all(source, &report.problems, look);
    let gap = if problems.is_empty() { "" } else { "\n" };
    let summary = report.summary(printer.width(), printer.is_ascii());
    format!("{problems}{gap}{}", printer.fitted(summary))
}

fn unreadable(args: &CheckArgs, source: &Source, report: &Report, printer: &Printer) -> Exit {
    if args.json {
        printer.result(&format!("{:#}", report.json(source)));
    } else {
        let look = Look { color: printer.has_colour(), ascii: printer.is_ascii() };
        printer.talk(&render_all(source, &report.problems, look));
    }
    Exit::Unreadable
}

fn no_file(args: &CheckArgs, missing: &NotFound, printer: &Printer) -> Exit {
    let message = missing.message();
    if args.json {
        let source = Source::new("tidegate.yaml", "");
        let problem = Diagnostic::error(&tidegate_config::codes::UNREADABLE, message);
        let report = Report::unread(source.name(), problem);
        printer.result(&format!("{:#}", report.json(&source)));
    } else {
        printer.error(&message);
        match &missing.look_alike {
            Some(path) => printer.hint(&format!("`tidegate check {}` checks it", path.display())),
            None => printer.hint(
                "`tidegate check FILE` checks another file; `tidegate help config` shows one",
            ),
        }
    }
    Exit::Unreadable
}
