//! `tidegate sim --from-live` and `--from-history`: what a gateway did, as a scenario.
//!
//! | what happened | exit code |
//! |---|---|
//! | the scenario was written | 0 |
//! | nothing can be replayed, the token was refused, the file exists | 1 |
//! | the history cannot be read as one | 3 |
//! | no gateway answers | 4 |

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use tidegate_console::incident::{ScenarioText, scenario};
use tidegate_journal::api::incident::IncidentView;

use super::SimArgs;
use crate::commands::admin::{self, AdminArgs};
use crate::exit::Exit;
use crate::printer::Printer;

/// Writes the scenario.
pub(super) fn run(args: &SimArgs, printer: &Printer) -> Exit {
    let recorded = match (&args.which.from_live, &args.which.from_history) {
        (Some(span), _) => live(span.as_written(), args, printer),
        (None, Some(path)) => history(path, args, printer),
        (None, None) => Err(Exit::Usage),
    };
    recorded.and_then(|text| write(&text, args, printer)).unwrap_or_else(|exit| exit)
}

fn live(span: &str, args: &SimArgs, printer: &Printer) -> Result<ScenarioText, Exit> {
    let whom = AdminArgs { admin: args.admin.clone(), config: args.config.clone() };
    let gateway = admin::find(&whom, printer)?;
    let path = format!("/api/incident?last={span}");
    let incident: IncidentView =
        gateway.client.get(&path).map_err(|error| gateway.explain(&error, printer))?;
    scenario(&incident).map_err(|problem| {
        printer.error(&problem);
        printer.hint("`--from-live SPAN` takes a longer or a shorter time");
        Exit::No
    })
}

#[cfg(not(feature = "history"))]
fn history(_: &Path, _: &SimArgs, printer: &Printer) -> Result<ScenarioText, Exit> {
    printer.error("this program was built without the feature `history`");
    Err(Exit::Usage)
}

#[cfg(feature = "history")]
fn history(path: &Path, args: &SimArgs, printer: &Printer) -> Result<ScenarioText, Exit> {
    use tidegate_config::redact::redacted;
    use tidegate_config::source::read_file;
    use tidegate_console::history;
    use tidegate_console::words::calm;

    use super::moment::SimMoment;
    use crate::find;

    let Ok(config) = find::config_file(args.config.as_deref()) else {
        printer.error("a history does not hold the config that served");
        printer.hint("name it: `tidegate sim --from-history FILE --config tidegate.yaml`");
        return Err(Exit::Usage);
    };
    let source = read_file(&config).ok();
    let environment = tidegate_config::secret::ProcessEnvironment;
    let loaded = source.and_then(|it| tidegate_config::load(&it, &environment).config);
    let Some(loaded) = loaded else {
        printer.error(&format!("`{}` cannot be used as the config", config.display()));
        printer.hint(&format!("`tidegate check {}` says why", config.display()));
        return Err(Exit::Unreadable);
    };
    let file = serde_json::to_value(&loaded.file).unwrap_or_default();
    let moment = |at: &Option<SimMoment>| match at {
        None => Ok(None),
        Some(SimMoment::Unix(ms)) => Ok(Some(*ms)),
        Some(SimMoment::Span(_)) => {
            printer.error("the time of a history is a moment such as `2026-11-17T14:02Z`");
            Err(Exit::Usage)
        }
    };
    let between = (moment(&args.from)?, moment(&args.to)?);
    let unreadable = |problem: String| {
        printer.error(&format!("`{}`: {}", path.display(), calm(&problem)));
        printer.hint("`history.file` of the config names the file of a gateway");
        Exit::Unreadable
    };
    let found = history::read(path, between, redacted("", file)).map_err(unreadable)?;
    let mut text = scenario(&found.incident).map_err(|problem| {
        printer.error(&problem);
        Exit::No
    })?;
    text.notes.extend(found.notes);
    Ok(text)
}

fn write(text: &ScenarioText, args: &SimArgs, printer: &Printer) -> Result<Exit, Exit> {
    let name = match &args.output {
        None if args.format.json => {
            let ScenarioText { yaml, requests, notes } = text;
            let told = json!({ "requests": requests, "notes": notes, "scenario": yaml });
            printer.result(&format!("{told:#}"));
            return Ok(Exit::Done);
        }
        None => {
            printer.result(&text.yaml);
            "FILE".to_owned()
        }
        Some(path) => {
            let file = OpenOptions::new().write(true).create_new(true).open(path);
            let written = file.and_then(|mut file| file.write_all(text.yaml.as_bytes()));
            if let Err(error) = written {
                printer.error(&format!("`{}` cannot be written: {error}", path.display()));
                printer.hint("`-o FILE` names a file that does not exist yet");
                return Err(Exit::No);
            }
            path.display().to_string()
        }
    };
    if args.format.json {
        let told = json!({ "file": name, "requests": text.requests, "notes": text.notes });
        printer.result(&format!("{told:#}"));
        return Ok(Exit::Done);
    }
    text.notes.iter().for_each(|note| printer.note(note));
    let requests = text.requests;
    printer.note(&format!("{requests} requests; next: tidegate sim --replay {name}"));
    Ok(Exit::Done)
}
