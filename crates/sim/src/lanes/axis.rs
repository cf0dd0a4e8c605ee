//! The time axis above the rows: labels at round moments, never touching one another.

use tidegate_config::duration::written;
use tidegate_core::time::{Millis, Now};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Distances between labels that people count in.
const STEPS: [u64; 26] = [
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    7 * DAY,
    30 * DAY,
    365 * DAY,
    3650 * DAY,
    36_500 * DAY,
];

/// A label every this many columns at the most.
const APART: u64 = 9;

/// The column of a moment; the last moment is in the last column.
pub(super) fn column(from: Now, to: Now, columns: usize, at: Now) -> usize {
    let span = u128::from(to.since(from).0.max(1));
    let place = u128::from(at.since(from).0) * columns as u128 / span;
    (place as usize).min(columns.saturating_sub(1))
}

/// One line: labels above the columns where their moments are.
pub(super) fn draw(from: Now, to: Now, indent: usize, columns: usize) -> String {
    let span = to.since(from).0.max(1);
    let least = span.saturating_mul(APART) / columns as u64;
    let last = STEPS[STEPS.len() - 1];
    let step = STEPS.into_iter().find(|step| *step >= least).unwrap_or(last);
    let mut line = " ".repeat(indent);
    let mut moment = from.0.div_ceil(step) * step;
    while moment <= to.0 {
        let label = written(Millis(moment));
        let place = indent + column(from, to, columns, Now(moment));
        // The label of the end stands before its column, or it would leave the width.
        let place = place.min((indent + columns).saturating_sub(label.len()));
        if place == 0 || place > line.len() || line.trim().is_empty() && place >= line.len() {
            line.push_str(&" ".repeat(place.saturating_sub(line.len())));
            line.push_str(&label);
        }
        moment = moment.saturating_add(step);
    }
    line
}
