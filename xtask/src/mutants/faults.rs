//! The faults themselves: which there are and where, as `cargo mutants --list` tells them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{docs, install};

/// A place in a file; both count from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// From a place up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: Position,
    pub(super) end: Position,
}

/// The function that a fault is in.
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// Its name without the path.
    pub(super) name: String,
    /// `-> impl Trait`: versions of its body would differ in type.
    pub(super) is_opaque: bool,
    pub(super) extent: Extent,
}

/// A change of the code that a test should notice.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The file, the place and the change, in words.
    pub(super) name: String,
    pub(super) file: String,
    /// None where it is in a constant.
    pub(super) function: Option<Function>,
    pub(super) extent: Extent,
    pub(super) replacement: String,
}

/// Lists the faults of a crate, without those in its tests.
pub(super) fn list(program: &Path, words: &[&str]) -> anyhow::Result<Vec<Fault>> {
    let mut list = Command::new(program);
    list.args(["mutants", "--list", "--json", "--exclude", "**/tests.rs"]).args(words);
    let done = list.current_dir(docs::root()).output().context("cannot start cargo mutants")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "cargo mutants cannot list the faults: {said}");
    let listed: Value = serde_json::from_slice(&done.stdout).context("the list is not JSON")?;
    let listed = listed.as_array().context("the list is no array")?;
    let mut tests_start: BTreeMap<String, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for fault in listed {
        let fault = fault_of(fault).context("a fault without its parts")?;
        if !tests_start.contains_key(&fault.file) {
            let line = tests_line(&install::read(&docs::root().join(&fault.file))?);
            tests_start.insert(fault.file.clone(), line);
        }
        if fault.extent.start.line < tests_start[&fault.file] {
            faults.push(fault);
        }
    }
    Ok(faults)
}

/// The line on which a file's tests begin. `cargo mutants` knows `cfg(test)` alone, not
/// `cfg(all(test, not(loom)))`.
fn tests_line(source: &str) -> usize {
    let lines: Vec<&str> = source.lines().collect();
    let are_tests = |two: &[&str]| two[0].starts_with("#[cfg(all(test") && two[1].ends_with("{");
    lines.windows(2).position(are_tests).map_or(usize::MAX, |index| index + 1)
}

fn fault_of(listed: &Value) -> Option<Fault> {
    let text = |name: &str| Some(listed[name].as_str()?.to_owned());
    let function = match &listed["function"] {
        Value::Null => None,
        function => Some(Function {
            name: function["function_name"].as_str()?.rsplit("::").next()?.to_owned(),
            is_opaque: function["return_type"].as_str()?.contains("impl "),
            extent: extent(&function["span"])?,
        }),
    };
    Some(Fault {
        name: text("name")?,
        file: text("file")?,
        function,
        extent: extent(&listed["span"])?,
        replacement: text("replacement")?,
    })
}

fn extent(span: &Value) -> Option<Extent> {
    let place = |end: &Value| {
        let number = |name: &str| usize::try_from(end[name].as_u64()?).ok();
        Some(Position { line: number("line")?, column: number("column")? })
    };
    Some(Extent { start: place(&span["start"])?, end: place(&span["end"])? })
}
