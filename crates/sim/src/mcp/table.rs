//! The table: one row per step, then the final states and what was counted.

use super::{
    graph::{result, title},
    trace::{McpStep, McpTrace},
};
use crate::{
    paint::Paint,
    sequence::glyphs::{Glyphs, clean},
};

const HEADS: [&str; 5] = ["#", "at", "step", "what", "result"];

/// The table of a trace.
pub(super) fn table(trace: &McpTrace, glyphs: &Glyphs) -> String {
    let rows: Vec<[String; 5]> =
        (1..).zip(&trace.steps).map(|(number, step)| row(number, step, glyphs)).collect();
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([HEADS[column].len()]).max().unwrap_or(0)
        })
        .collect();
    let mut out = title(trace);
    out.push_str(&line(&HEADS.map(str::to_owned), &widths));
    for row in &rows {
        out.push_str(&line(row, &widths));
    }
    let breakers = trace.final_breakers.iter().map(|(id, it)| (&**id, it.word().to_owned()));
    out.push_str(&format!("final breakers: {}\n", list(breakers)));
    let health = trace.final_health.iter().map(|(id, it)| (&**id, it.word().to_owned()));
    out.push_str(&format!("final health:   {}\n", list(health)));
    let again = trace.totals.iter().map(|(id, it)| (&**id, it.reinitialised.to_string()));
    out.push_str(&format!("reinitialised:  {}\n", list(again)));
    let keepalives = trace.totals.iter().map(|(id, it)| {
        let it = it.keepalive;
        let counts = (it.attempts, it.successes, it.failures, it.auto_disabled);
        let (sent, answered, failed, disabled) = counts;
        (&**id, format!("{sent} sent, {answered} answered, {failed} failed, {disabled} disabled"))
    });
    out.push_str(&format!("keepalive:      {}\n", list(keepalives)));
    out
}

fn row(number: usize, step: &McpStep, glyphs: &Glyphs) -> [String; 5] {
    let result = result(step, glyphs, Paint::default());
    [
        number.to_string(),
        tidegate_config::duration::written(tidegate_core::time::Millis(step.at_ms)),
        step.step.to_owned(),
        clean(&step.what).into_owned(),
        if result.is_empty() { "-".to_owned() } else { result },
    ]
}

fn line(cells: &[String; 5], widths: &[usize]) -> String {
    let cells: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    format!("{}\n", cells.join("  ").trim_end())
}

fn list<'a>(entries: impl Iterator<Item = (&'a str, String)>) -> String {
    let entries: Vec<String> = entries.map(|(id, text)| format!("{}={text}", clean(id))).collect();
    entries.join("  ")
}
