//! `tidegate sim --replay FILE [--config CANDIDATE]`: a recording again, and under other settings.
//!
//! | what happened | exit code |
//! |---|---|
//! | it replays as recorded; with `--config`, the comparison was made | 0 |
//! | without `--config`: a request is decided otherwise | 1 |
//! | the file is no recording, or flags do not fit together | 2 |
//! | a file cannot be read or has an error | 3 |

use std::path::Path;

use tidegate_sim::paint::Paint;
use tidegate_sim::scenario::{Report, Scenario};
use tidegate_sim::timeline::TimelineReport;
use tidegate_sim::timeline::compare::Comparison;

use super::{SimArgs, gather};
use crate::exit::Exit;
use crate::printer::Printer;

/// Differences that are shown in full.
const SHOWN: usize = 3;

/// Plays the recording.
pub(super) fn run(path: &Path, args: &SimArgs, printer: &Printer) -> Exit {
    let scenario = match one(path, printer) {
        Ok(scenario) => scenario,
        Err(exit) => return exit,
    };
    let Some(before) = report(&scenario, args.seed) else { return Exit::Usage };
    let after = match &args.config {
        None => None,
        Some(config) => match gather::recast(vec![scenario], config, printer) {
            Ok(cast) => cast.first().and_then(|it| report(it, args.seed)),
            Err(exit) => return exit,
        },
    };
    let Some(comparison) = Comparison::of(&before, after.as_ref().unwrap_or(&before)) else {
        return Exit::Usage;
    };
    if args.format.json {
        let value = serde_json::to_value(&comparison).unwrap_or_default();
        printer.result(&format!("{value:#}"));
    } else if after.is_some() {
        let paint = Paint { is_on: printer.has_colour() };
        printer.result(&comparison.lines(paint).join("\n"));
    } else {
        printer.result(&before.render(&super::options(args, printer)));
        printer.result(&comparison.replayed.sentence());
        for it in comparison.replayed.different.iter().take(SHOWN) {
            printer.note(&format!("recorded: {}\nreplayed: {}", it.recorded, it.replayed));
        }
    }
    let replayed = &comparison.replayed;
    let is_exact = replayed.same == replayed.requests;
    if is_exact || after.is_some() { Exit::Done } else { Exit::No }
}

fn report(scenario: &Scenario, seed: u64) -> Option<Box<TimelineReport>> {
    match scenario.run(seed) {
        Report::Timeline(report) => Some(report),
        Report::Sequence(_) | Report::Mcp(_) => None,
    }
}

/// The recording in a file.
fn one(path: &Path, printer: &Printer) -> Result<Scenario, Exit> {
    let mut found = gather::files(&[path.to_owned()], printer)?;
    match found.pop() {
        Some(Scenario::Timeline(timeline)) if timeline.is_recorded() => {
            Ok(Scenario::Timeline(timeline))
        }
        _ => {
            printer.error(&format!("`{}` is not a recording", path.display()));
            printer.hint("`tidegate sim --from-live 15m -o FILE` writes one; `--file` runs others");
            Err(Exit::Usage)
        }
    }
}
