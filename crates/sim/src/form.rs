//! What all forms of scenarios share: where one comes from, what a broken expectation is, how a
//! report is drawn, and how a file is read.
//!
//! Each form stands on it; `scenario` tells the forms apart and passes this on.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tidegate_config::{
    diagnostic::{Diagnostic, Problems},
    document::Document,
    shape,
};
use tidegate_core::time::Now;

use crate::paint::Paint;

/// Where a scenario comes from, for its default name and its replay line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file, by the path the user gave.
    File(String),
    /// An example, by name.
    Builtin(&'static str),
}

/// An expectation (or an invariant) that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What identifies it across seeds: the expectation without the numbers that came.
    pub expectation: String,
    /// What was wanted, what came, and when.
    pub sentence: String,
}

/// How a report is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines and lanes for a terminal.
    #[default]
    Graph,
    /// Rows.
    Table,
    /// One JSON document on one line.
    Json,
}

/// How a report is drawn, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// Which picture.
    pub format: Format,
    /// Columns to stay within, where the form adapts to them.
    pub width: usize,
    /// Draw with ASCII characters only.
    pub ascii: bool,
    /// Paint with the terminal's colours (graphs).
    pub colour: bool,
    /// Show every step (timelines).
    pub trace: bool,
    /// Draw a lane for every replica (timelines of fleets).
    pub per_replica: bool,
    /// The first moment to show (timelines).
    pub from: Now,
    /// The last moment to show (timelines).
    pub to: Now,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            format: Format::Graph,
            width: 80,
            ascii: false,
            colour: false,
            trace: false,
            per_replica: false,
            from: Now::ZERO,
            to: Now::NEVER,
        }
    }
}

impl RenderOptions {
    pub(crate) const fn paint(&self) -> Paint {
        Paint { is_on: self.colour }
    }
}

/// Decodes a file of one form and checks it: the file if there is no error, and every problem.
pub(crate) fn checked<F: DeserializeOwned + JsonSchema>(
    document: &Document,
    check: impl FnOnce(&F, &mut Problems),
) -> (Option<F>, Vec<Diagnostic>) {
    let (file, found) = shape::decode::<F>(document);
    let mut problems = Problems::default();
    problems.extend(found);
    if let Some(file) = &file {
        check(file, &mut problems);
    }
    let problems = problems.into_list();
    let is_sound = !problems.iter().any(Diagnostic::is_error);
    (file.filter(|_| is_sound), problems)
}

impl Origin {
    /// The name of a scenario that does not say one: the file's stem.
    #[must_use]
    pub fn stem(&self) -> String {
        match self {
            Self::Builtin(name) => (*name).to_owned(),
            Self::File(path) => {
                let stem = std::path::Path::new(path).file_stem();
                stem.map_or_else(|| path.clone(), |stem| stem.to_string_lossy().into_owned())
            }
        }
    }

    /// The command that runs it with a seed: `tidegate sim cascade --seed 7`.
    #[must_use]
    pub fn command(&self, seed: u64) -> String {
        match self {
            Self::Builtin(name) => format!("tidegate sim {name} --seed {seed}"),
            Self::File(path) => format!("tidegate sim --file {} --seed {seed}", shell_word(path)),
        }
    }
}

/// A text as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_line_survives_a_shell() {
        let line = |path: &str| Origin::File(path.to_owned()).command(3);
        assert_eq!(line("a/b.yaml"), "tidegate sim --file a/b.yaml --seed 3");
        assert_eq!(line("it's.yaml"), r"tidegate sim --file 'it'\''s.yaml' --seed 3");
        assert_eq!(Origin::Builtin("cascade").command(0), "tidegate sim cascade --seed 0");
    }

    #[test]
    fn a_file_without_a_name_is_called_by_its_stem() {
        assert_eq!(Origin::File("x/y/outage.yaml".to_owned()).stem(), "outage");
    }
}
