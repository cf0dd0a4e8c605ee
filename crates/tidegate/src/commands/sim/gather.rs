//! Which scenarios were asked for, loaded; or the exit code that says why there are none.

use std::path::{Path, PathBuf};

use tidegate_config::render::{Look, render_all};
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::{Source, read_file, read_scenario};
use tidegate_config::suggest;
use tidegate_sim::builtin::{self, Builtin};
use tidegate_sim::scenario::{Scenario, load};

use super::SimArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// The example that runs when nothing is named.
const DEFAULT: &str = "cascade";

/// Loads what the arguments name.
pub(super) fn gather(args: &SimArgs, printer: &Printer) -> Result<Vec<Scenario>, Exit> {
    let which = &args.which;
    let scenarios = if !which.file.is_empty() {
        files(&which.file, printer)?
    } else if which.all {
        builtin::all().filter_map(|it| it.scenario()).collect()
    } else {
        let named = which.name.as_deref().or(which.example.as_deref());
        vec![example(named.unwrap_or(DEFAULT), printer)?]
    };
    match &args.config {
        Some(path) if which.all => recast(timelines_of(scenarios, printer), path, printer),
        Some(path) => recast(scenarios, path, printer),
        None => Ok(scenarios),
    }
}

/// The scenarios that a config can be put under; how many cannot is said.
fn timelines_of(scenarios: Vec<Scenario>, printer: &Printer) -> Vec<Scenario> {
    let all = scenarios.len();
    let mut timelines = scenarios;
    timelines.retain(|it| matches!(it, Scenario::Timeline(_)));
    printer.note(&format!(
        "running the {} timelines with this config; the other {} examples name their backends in \
         their own files",
        timelines.len(),
        all - timelines.len(),
    ));
    timelines
}

/// Timelines with the routes and health settings of a config.
pub(super) fn recast(
    scenarios: Vec<Scenario>,
    path: &Path,
    printer: &Printer,
) -> Result<Vec<Scenario>, Exit> {
    if scenarios.iter().any(|it| !matches!(it, Scenario::Timeline(_))) {
        printer.error(
            "`--config` is for timelines: other scenarios name who is asked in their own file",
        );
        printer.hint("`tidegate sim brownout -c FILE` runs a timeline with a config");
        return Err(Exit::Usage);
    }
    let (source, config, problems) = match read_file(path) {
        Ok(source) => {
            let loaded = tidegate_config::load(&source, &ProcessEnvironment);
            (source, loaded.config, loaded.diagnostics)
        }
        Err(problem) => {
            (Source::new(path.display().to_string(), ""), None, vec![problem.diagnostic()])
        }
    };
    if !problems.is_empty() {
        printer.talk(&render_all(&source, &problems, look(printer)));
    }
    let config = config.ok_or(Exit::Unreadable)?;
    let cast = |scenario: Scenario| match scenario {
        Scenario::Timeline(timeline) => {
            let cast = timeline.with_config(source.name(), &config);
            cast.map(|timeline| Scenario::Timeline(Box::new(timeline)))
        }
        Scenario::Sequence(_) | Scenario::Mcp(_) => Ok(scenario),
    };
    let cast: Result<Vec<Scenario>, String> = scenarios.into_iter().map(cast).collect();
    cast.map_err(|message| {
        printer.error(&format!("`{}`: {message}", source.name()));
        Exit::Unreadable
    })
}

fn look(printer: &Printer) -> Look {
    Look { color: printer.has_colour(), ascii: printer.is_ascii() }
}

fn example(name: &str, printer: &Printer) -> Result<Scenario, Exit> {
    let scenario = builtin(name, printer)?.scenario();
    Ok(scenario.expect("every example is loaded by a test"))
}

/// The example of a name, or what to type instead.
pub(super) fn builtin(name: &str, printer: &Printer) -> Result<&'static Builtin, Exit> {
    if let Some(builtin) = builtin::get(name) {
        return Ok(builtin);
    }
    printer.error(&format!("there is no example `{name}`"));
    let names = builtin::all().map(|it| it.name);
    let nearest = suggest::nearest(name, names).map(|it| format!("did you mean `{it}`? "));
    let nearest = nearest.unwrap_or_default();
    let file = if Path::new(name).exists() {
        format!("; `tidegate sim --file {name}` runs a file")
    } else {
        String::new()
    };
    printer.hint(&format!("{nearest}`tidegate sim --list` shows all examples{file}"));
    Err(Exit::Usage)
}

/// Loads every file; if one has an error, every problem of every file is shown and none is run.
pub(super) fn files(paths: &[PathBuf], printer: &Printer) -> Result<Vec<Scenario>, Exit> {
    let (mut scenarios, mut texts) = (Vec::new(), Vec::new());
    for path in paths {
        let (source, scenario, problems) = match read_scenario(path) {
            Ok(source) => {
                let (scenario, problems) = load(&source);
                (source, scenario, problems)
            }
            Err(problem) => {
                let source = Source::new(path.display().to_string(), "");
                (source, None, vec![problem.diagnostic()])
            }
        };
        if !problems.is_empty() {
            texts.push(render_all(&source, &problems, look(printer)));
        }
        scenarios.extend(scenario);
    }
    if !texts.is_empty() {
        printer.talk(&texts.join("\n"));
    }
    if scenarios.len() < paths.len() {
        printer.hint("`tidegate help scenarios` shows the format; nothing was run");
        return Err(Exit::Unreadable);
    }
    Ok(scenarios)
}
