//! A scenario, whatever its form: loading, running, and what every report has.
//!
//! The form is told by the file's top-level keys: `services` is form 1 (a sequence of requests),
//! `backends` form 2 (a timeline of traffic), `servers` with `program` form 3 (MCP sessions). A
//! form is a module with the same few functions, and this file only passes on.
//!
//! Rules kept here:
//! - A scenario is returned only if its file has no error; warnings do not stop it.
//! - Same scenario and seed, same report; same report and options, same bytes.

use serde_json::Value;
use tidegate_config::{
    diagnostic::Diagnostic,
    document::{Document, parse},
    path::KeyPath,
    source::Source,
};

pub use crate::form::{Failure, Format, Origin, RenderOptions};
use crate::{
    codes,
    mcp::{Mcp, McpReport},
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
    let message = format!("`{}` is not a scenario of a known form", source.name());
    let diagnostic = Diagnostic::error(&codes::UNKNOWN_FORM, message)
        .help("a sequence of requests has `services` and `program`")
        .help("a timeline of traffic has `backends`, `traffic` and `for`")
        .help("an MCP scenario has `servers` and `program`")
        .help("`tidegate help scenarios` shows each");
    (None, vec![diagnostic])
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
            let expected = "TG100 `dir/t.yaml` is not a scenario of a known form";
            assert_eq!(problems(text), [expected], "{text}");
        }
    }
}
