//! What the tests of timelines share.

use tidegate_config::{diagnostic::Diagnostic, source::Source};
use tidegate_sim::{
    builtin,
    scenario::{Scenario, load},
};

/// The scenario of a text that has no error.
pub fn sound(text: &str) -> Scenario {
    let (scenario, problems) = load(&Source::new("t.yaml", text));
    assert!(!problems.iter().any(Diagnostic::is_error), "{text}\n{problems:?}");
    scenario.expect("a file without an error is a scenario")
}

/// An example whose file has `from` replaced by `to`.
pub fn changed(name: &str, from: &str, to: &str) -> Scenario {
    let text = builtin::get(name).expect("an example").text;
    assert!(text.contains(from), "{name} has no `{from}`");
    sound(&text.replace(from, to))
}
