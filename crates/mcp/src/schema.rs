//! Whether arguments surely break a tool's JSON Schema.
//!
//! `call_tool` tells a model what is wrong with its arguments before a server is asked. A validator
//! of all of JSON Schema would be larger than the search that it serves; tools use a small part.
//!
//! Rules kept here:
//! - Only what surely breaks the schema is a problem. What cannot be decided passes: the server has
//!   the last word. So every rule has three answers, `Verdict`, and `not` turns only sure ones.
//! - Schema and arguments are somebody else's: work, depth, problems and their texts have bounds,
//!   and whatever lies beyond a bound is undecided.
//! - Drafts: 2020-12, and what older ones mean differently if the schema names one: a list of
//!   `items`, `$ref`, beside which nothing counts up to draft 7, and rules that came later.
//!
//! Not decided: patterns and what depends on them, formats, `contains`, `propertyNames`,
//! `dependentSchemas`, `unevaluated…`, references to elsewhere, to anchors, or dynamic ones.
//!
//! In here: `check` walks; `simple`, `shape` and `combined` hold the rules; `number` and `equal`
//! say when two values are the same; `place` and `problem` are what is told.

mod check;
mod combined;
mod equal;
mod number;
mod problem;
mod shape;
mod simple;
#[cfg(test)]
mod tests;
mod value_path;
mod verdict;

use serde_json::Value;

pub use self::problem::Problem;
use self::{check::Check, value_path::ValuePath, verdict::Verdict};

/// Problems that are told at once: a model mends a few at a time.
pub const PROBLEMS_MAX: usize = 5;

/// In what a value surely breaks a schema; empty if it fits, or if that cannot be said.
#[must_use]
pub fn problems(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut check = Check::new(schema);
    let verdict = check.visit(schema, value, &ValuePath::ROOT);
    let problems = check.told();
    debug_assert_eq!(verdict == Verdict::Breaks, !problems.is_empty(), "no verdict without words");
    problems
}
