//! `tidegate init`: writes a first config, from keys in the environment or another product's file.
//!
//! What the config holds is decided by [`tidegate_init`]; this module asks the environment and a
//! local Ollama, writes the file and says what became of everything.
//!
//! | what happened | exit code |
//! |---|---|
//! | the config is written | 0 |
//! | nothing was found to put into it, the file exists already, or it cannot be written | 1 |
//! | the file after `--from` cannot be read, or is no config of a known product | 3 |

mod ollama;
mod report;
mod write;

use std::path::PathBuf;

use clap::Args;
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::{Source, read_file};
use tidegate_init::draft::Draft;
use tidegate_init::{Note, OllamaModels, from_environment, import, known_variables};

use self::report::InitReport;
use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate init                         for the keys that are set, and a local Ollama
  tidegate init --from config.yaml      for a LiteLLM config
  tidegate init --from .vscode/mcp.json for the MCP servers of a client
  tidegate init -o -                    only print it

Next: `tidegate check`";

/// Write a first config, from API keys or another product's file
///
/// The keys are looked for in the environment, and a local Ollama is asked for its models. Keys
/// are written as references (env:NAME), never as values. A file is not overwritten without
/// `--force`. Exit code 0: written; 1: nothing to write, or a file is in the way; 3: the file after
/// `--from` cannot be read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// Another product's file: a LiteLLM config.yaml, or the mcpServers JSON of Claude Desktop,
    /// Claude Code, Cursor or VS Code
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Where to write; `-` prints the config
    #[arg(short, long, value_name = "FILE", default_value = "tidegate.yaml")]
    output: PathBuf,
    /// Overwrite a file that exists
    #[arg(long)]
    force: bool,
    /// Print one JSON document about what was written and what was not
    #[arg(long)]
    json: bool,
}

/// What there is to write, and what to say about it.
struct Plan {
    draft: Draft,
    /// Where it comes from, in words.
    origin: String,
    notes: Vec<Note>,
}

/// Why nothing is written: the words, what to do next, and the exit code.
struct Failure {
    problem: String,
    hint: String,
    exit: Exit,
}

/// Writes the config.
pub(crate) fn run(args: &InitArgs, printer: &Printer) -> Exit {
    match write_config(args, printer) {
        Ok(report) => {
            report.print(args.json, printer);
            Exit::Done
        }
        Err(failure) => {
            if args.json {
                let problem = serde_json::json!({ "written": false, "problem": failure.problem });
                printer.result(&format!("{problem:#}"));
            } else {
                printer.error(&failure.problem);
                printer.hint(&failure.hint);
            }
            failure.exit
        }
    }
}

fn write_config(args: &InitArgs, printer: &Printer) -> Result<InitReport, Failure> {
    let Plan { draft, origin, mut notes } = match &args.from {
        Some(path) => plan_from_file(path)?,
        None => plan_from_environment(printer)?,
    };
    let finished = draft.finish(&ProcessEnvironment).map_err(|errors| {
        let problem = errors.first().map_or("nothing to serve", |error| &error.message);
        for note in notes.drain(..) {
            printer.note(&report::line(&origin, &note));
        }
        Failure {
            problem: format!("nothing of `{origin}` makes a config: {problem}"),
            hint: "`tidegate help config` shows a whole config".to_owned(),
            exit: Exit::No,
        }
    })?;
    notes.extend(finished.notes.iter().cloned());
    notes.sort_by_key(|note| note.line);
    let is_printed = args.output.as_os_str() == "-";
    if !is_printed {
        write::write(&args.output, &finished.text, args.force)?;
    }
    let file = (!is_printed).then(|| args.output.clone());
    Ok(InitReport { file, origin, finished, notes })
}

fn plan_from_file(path: &std::path::Path) -> Result<Plan, Failure> {
    let unreadable = |problem: String, hint: &str| Failure {
        problem,
        hint: hint.to_owned(),
        exit: Exit::Unreadable,
    };
    let source: Source = read_file(path).map_err(|problem| {
        unreadable(problem.to_string(), "name a LiteLLM config.yaml or an mcpServers JSON file")
    })?;
    let imported = import(&source).map_err(|refusal| {
        let hint = "`tidegate init --help` lists the files that can be read";
        unreadable(format!("`{}`: {refusal}", source.name()), hint)
    })?;
    let origin = source.name().to_owned();
    Ok(Plan { draft: imported.draft, origin, notes: imported.notes })
}

fn plan_from_environment(printer: &Printer) -> Result<Plan, Failure> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let models: Option<OllamaModels> = ollama::ask();
    let Some((draft, found)) = from_environment(is_set, models.as_ref()) else {
        let variables: Vec<_> = known_variables().collect();
        return Err(Failure {
            problem: "no key of a known provider is set, and no local Ollama answers".to_owned(),
            hint: format!(
                "set one of {}; or try `tidegate serve`, which without a config serves a demo",
                variables.join(", ")
            ),
            exit: Exit::No,
        });
    };
    for key in found {
        printer.note(&format!("found {}: provider `{}`", key.variable, key.provider));
    }
    if let Some(models) = &models {
        printer.note(&format!("found Ollama at {}: {} models", models.url, models.models.len()));
    }
    Ok(Plan { draft, origin: "the environment".to_owned(), notes: Vec::new() })
}
