//! Form 2: a timeline of traffic. A placeholder with the functions that `scenario.rs` calls.

use serde_json::Value;
use tidegate_config::source::Source;
use tidegate_config::{diagnostic::Diagnostic, document::Document};

use crate::{
    codes,
    scenario::{Failure, Origin, RenderOptions},
};

/// A scenario of this form.
#[derive(Clone, Debug)]
pub struct Timeline;

/// What its run gave.
#[derive(Clone, Debug)]
pub struct TimelineReport;

impl Timeline {
    /// Decodes and checks a file.
    #[must_use]
    pub fn read(
        document: &Document,
        source: &Source,
        origin: &Origin,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let _ = source;
        let _ = (document, origin);
        (None, vec![Diagnostic::error(&codes::FORM_NOT_BUILT, "this form is not built yet")])
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        ""
    }

    /// Its line for humans.
    #[must_use]
    pub fn about(&self) -> &str {
        ""
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self, seed: u64) -> TimelineReport {
        let _ = seed;
        TimelineReport
    }
}

impl TimelineReport {
    /// The expectations that did not hold.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &[]
    }

    /// The command that gives this report again.
    #[must_use]
    pub fn replay(&self) -> String {
        String::new()
    }

    /// Its text.
    #[must_use]
    pub fn render(&self, options: &RenderOptions) -> String {
        let _ = options;
        String::new()
    }

    /// Its JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Null
    }
}
