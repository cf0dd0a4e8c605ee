//! A scenario, whatever its form: loading, running, and what every report has.
//!
//! The form is told by the file's top-level keys: `services` is form 1 (a sequence of requests),
//! `backends` form 2 (a timeline of traffic), `servers` with `program` form 3 (MCP sessions). A
//! form is a module with the same few functions, and this file only passes on.
//!
//! Rules kept here:
//! - A scenario is returned only if its file has no error; warnings do not stop it.
//! - Same scenario and seed, same report; same report and options, same bytes.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_config::{
    diagnostic::{Diagnostic, Problems},
    document::{Document, parse},
    path::KeyPath,
    shape,
    source::Source,
};
use tidegate_core::time::Now;

use crate::{
    codes,
    mcp::{Mcp, McpReport},
    paint::Paint,
    sequence::{Sequence, SequenceReport},
    timeline::{Timeline, TimelineReport},
};

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// Form 1: a sequence of requests.
    Sequence(Box<Sequence>),
    /// Form 2: a timeline of traffic.
    Timeline(Box<Timeline>),
    /// Form 3: MCP sessions.
    Mcp(Box<Mcp>),
}

/// What a run of a scenario gave.
#[derive(Clone, Debug)]
pub enum Report {
    /// Of form 1.
    Sequence(Box<SequenceReport>),
    /// Of form 2.
    Timeline(Box<TimelineReport>),
    /// Of form 3.
    Mcp(Box<McpReport>),
}

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

/// Reads a scenario file of any form: the scenario if it has no error, and every problem.
#[must_use]
pub fn load(source: &Source) -> (Option<Scenario>, Vec<Diagnostic>) {
    load_from(source, &Origin::File(source.name().to_owned()))
}

/// [`load`] for a text whose origin is not its file.
#[must_use]
pub fn load_from(source: &Source, origin: &Origin) -> (Option<Scenario>, Vec<Diagnostic>) {
    let parsed = parse(source);
    let mut problems = parsed.problems;
    let scenario = parsed.document.and_then(|document| {
        let (scenario, found) = read(&document, source, origin);
        problems.extend(found);
        scenario
    });
    (scenario.filter(|_| !problems.iter().any(Diagnostic::is_error)), problems)
}

fn read(
    document: &Document,
    source: &Source,
    origin: &Origin,
) -> (Option<Scenario>, Vec<Diagnostic>) {
    let has = |key: &str| document.node(&KeyPath::from(key)).is_some();
    if has("services") {
        let (sequence, problems) = Sequence::read(document, source, origin);
        return (sequence.map(|it| Scenario::Sequence(Box::new(it))), problems);
    }
    if has("backends") {
        let (timeline, problems) = Timeline::read(document, source, origin);
        return (timeline.map(|it| Scenario::Timeline(Box::new(it))), problems);
    }
    if has("servers") && has("program") {
        let (mcp, problems) = Mcp::read(document, source, origin);
        return (mcp.map(|it| Scenario::Mcp(Box::new(it))), problems);
    }
    let diagnostic =
        Diagnostic::error(&codes::UNKNOWN_FORM, "this is not a scenario of a known form")
            .help("a sequence of requests has `services` and `program`")
            .help("a timeline of traffic has `backends`, `traffic` and `for`")
            .help("an MCP scenario has `servers` and `program`")
            .help("`tidegate help scenarios` shows each");
    (None, vec![diagnostic])
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

impl Scenario {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Sequence(sequence) => sequence.name(),
            Self::Timeline(timeline) => timeline.name(),
            Self::Mcp(mcp) => mcp.name(),
        }
    }

    /// Its line for humans; empty if it has none.
    #[must_use]
    pub fn about(&self) -> &str {
        match self {
            Self::Sequence(sequence) => sequence.about(),
            Self::Timeline(timeline) => timeline.about(),
            Self::Mcp(mcp) => mcp.about(),
        }
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self, seed: u64) -> Report {
        match self {
            Self::Sequence(sequence) => Report::Sequence(Box::new(sequence.run(seed))),
            Self::Timeline(timeline) => Report::Timeline(Box::new(timeline.run(seed))),
            Self::Mcp(mcp) => Report::Mcp(Box::new(mcp.run(seed))),
        }
    }
}

impl Report {
    /// The expectations that did not hold.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        match self {
            Self::Sequence(report) => report.failures(),
            Self::Timeline(report) => report.failures(),
            Self::Mcp(report) => report.failures(),
        }
    }

    /// The command that gives this report again.
    #[must_use]
    pub fn replay(&self) -> String {
        match self {
            Self::Sequence(report) => report.replay().to_owned(),
            Self::Timeline(report) => report.replay(),
            Self::Mcp(report) => report.replay().to_owned(),
        }
    }

    /// Its text, ending in a newline.
    #[must_use]
    pub fn render(&self, options: &RenderOptions) -> String {
        match self {
            Self::Sequence(report) => report.render(options),
            Self::Timeline(report) => report.render(options),
            Self::Mcp(report) => report.render(options),
        }
    }

    /// Its stable JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Sequence(report) => report.to_json(),
            Self::Timeline(report) => report.to_json(),
            Self::Mcp(report) => report.to_json(),
        }
    }
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

    /// `code message` of each problem.
    fn problems(text: &str) -> Vec<String> {
        let (scenario, problems) = load(&Source::new("dir/t.yaml", text));
        assert!(scenario.is_none());
        problems.iter().map(|it| format!("{} {}", it.code.id, it.message)).collect()
    }

    #[test]
    fn a_file_of_no_known_form_is_told_what_the_forms_look_like() {
        for text in ["", "a: 1\n", "program: []\n", "servers: {}\n"] {
            assert_eq!(problems(text), ["TG100 this is not a scenario of a known form"], "{text}");
        }
    }

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
