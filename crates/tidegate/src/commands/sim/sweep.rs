//! `--seeds N`: many seeds of each scenario, and each distinct failure once.
//!
//! The progress line is drawn only on a terminal and is gone when the work is done.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::thread::available_parallelism;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde_json::{Value, json};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::seeds::{DistinctFailure, run_seeds};

use super::{SimArgs, counted, mark};
use crate::exit::Exit;
use crate::printer::Printer;

/// Count, rate and time left, in one line.
const LINE: &str = "{msg} {pos}/{len} seeds  {rate} per second  {eta} left";

/// Runs `count` seeds of each scenario from the given one on, and prints what failed.
pub(super) fn sweep(scenarios: &[Scenario], args: &SimArgs, count: u64, printer: &Printer) -> Exit {
    let seeds = args.seed..args.seed.saturating_add(count);
    let threads = available_parallelism().map_or(1, usize::from);
    let mut swept = Vec::new();
    for scenario in scenarios {
        let bar = progress_bar(count, scenario.name(), printer);
        swept.push((scenario, run_seeds(scenario, seeds.clone(), threads, || bar.inc(1))));
        bar.finish_and_clear();
    }
    if args.format.json {
        let documents: Vec<Value> = swept
            .iter()
            .map(|(scenario, failures)| document(scenario, args.seed, count, failures))
            .collect();
        let only = <[Value; 1]>::try_from(documents);
        printer.result(&only.map_or_else(Value::from_iter, |[document]| document).to_string());
    } else {
        let texts: Vec<String> = swept
            .iter()
            .map(|(scenario, failures)| text(scenario, count, failures, printer))
            .collect();
        printer.result(&texts.concat());
    }
    let all_held = swept.iter().all(|(_, failures)| failures.is_empty());
    if all_held { Exit::Done } else { Exit::No }
}

fn progress_bar(count: u64, name: &str, printer: &Printer) -> ProgressBar {
    let is_shown = io::stderr().is_terminal() && !printer.is_quiet();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    // A whole number: fractions of a seed tell nobody anything.
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        let _ = write!(out, "{:.0}", state.per_sec());
    };
    let style = ProgressStyle::with_template(LINE).expect("the template is well formed");
    let style = style.with_key("rate", rate);
    ProgressBar::with_draw_target(Some(count), target)
        .with_style(style)
        .with_message(name.to_owned())
}

fn text(
    scenario: &Scenario,
    count: u64,
    failures: &[DistinctFailure],
    printer: &Printer,
) -> String {
    let name = scenario.name();
    let seeds = counted(usize::try_from(count).unwrap_or(usize::MAX), "seed");
    if failures.is_empty() {
        return format!("{name}: {seeds}, every expectation held\n");
    }
    let distinct = counted(failures.len(), "distinct failure");
    let mut text = format!("{name}: {seeds}, {distinct}\n");
    for it in failures {
        let mark = mark(printer);
        let share = format!("{} of {seeds}, first seed {}", it.count, it.seed);
        text.push_str(&format!("  {mark} {} ({share})\n", it.failure.sentence));
        text.push_str(&format!("    replay: {}\n", it.replay));
    }
    text
}

fn document(scenario: &Scenario, first: u64, count: u64, failures: &[DistinctFailure]) -> Value {
    let failures = failures.iter().map(|it| {
        json!({
            "expectation": it.failure.expectation,
            "sentence": it.failure.sentence,
            "seed": it.seed,
            "count": it.count,
            "replay": it.replay,
        })
    });
    json!({
        "scenario": scenario.name(),
        "first_seed": first,
        "seeds": count,
        "failures": Value::from_iter(failures),
    })
}
