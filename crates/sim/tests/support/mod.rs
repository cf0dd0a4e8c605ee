//! What the tests of sequences share: a file's text in, its trace out.

use tidegate_config::{diagnostic::Diagnostic, source::Source};
use tidegate_sim::{
    scenario::{Report, Scenario, load},
    sequence::SequenceReport,
};

/// The scenario of a text that has no error.
pub fn sound(text: &str) -> Scenario {
    let (scenario, problems) = load(&Source::new("t.yaml", text));
    assert!(!problems.iter().any(Diagnostic::is_error), "{text}\n{problems:?}");
    scenario.expect("a file without an error is a scenario")
}

/// The report of a sequence.
pub fn run(text: &str, seed: u64) -> SequenceReport {
    match sound(text).run(seed) {
        Report::Sequence(report) => *report,
        Report::Timeline(_) | Report::Mcp(_) => panic!("not a sequence: {text}"),
    }
}
