//! The table: one row per request, then the final states. Columns are as wide as they need to be.

use super::{
    glyphs::{Glyphs, clean},
    graph::{session, title},
    trace::{RequestTrace, StepTrace, Trace},
};

const HEADS: [&str; 5] = ["#", "session", "attempts", "status", "pin"];

/// The table of a trace.
pub(super) fn table(trace: &Trace, glyphs: &Glyphs) -> String {
    let rows: Vec<[String; 5]> =
        trace.requests().zip(1..).map(|(request, number)| row(number, request, glyphs)).collect();
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([HEADS[column].len()]).max().unwrap_or(0)
        })
        .collect();
    let mut out = title(trace);
    out.push_str(&line(&HEADS.map(str::to_owned), &widths));
    let mut rows = rows.iter();
    for step in &trace.steps {
        match step {
            StepTrace::Advance(span) => out.push_str(&format!("-- advance {span} --\n")),
            StepTrace::Trace(_) => out.extend(rows.next().map(|row| line(row, &widths))),
        }
    }
    let breakers = trace.final_breakers.iter().map(|(id, word)| (&**id, word.word()));
    out.push_str(&format!("final breakers: {}\n", states(breakers)));
    let health = trace.final_health.iter().map(|(id, word)| (&**id, word.word()));
    out.push_str(&format!("final health:   {}\n", states(health)));
    out
}

fn row(number: usize, request: &RequestTrace, glyphs: &Glyphs) -> [String; 5] {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { clean(text).into() };
    let attempts: Vec<_> = request.attempts.iter().map(|id| clean(id)).collect();
    [
        number.to_string(),
        session(request),
        or_dash(&attempts.join(&format!(" {} ", glyphs.arrow))),
        request.final_status.to_string(),
        or_dash(&request.pin_after),
    ]
}

fn line(cells: &[String; 5], widths: &[usize]) -> String {
    let cells: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    format!("{}\n", cells.join("  ").trim_end())
}

fn states<'a>(states: impl Iterator<Item = (&'a str, &'static str)>) -> String {
    let states: Vec<String> = states.map(|(id, word)| format!("{}={word}", clean(id))).collect();
    states.join("  ")
}
