//! What the doctor found: a category, how bad it is, words, and how to mend it.

use serde_json::{Value, json};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Good,
    Warning,
    Bad,
}

/// One thing that was looked at.
#[derive(Debug)]
pub(super) struct Finding {
    category: &'static str,
    pub(super) level: Level,
    words: String,
    fix: Option<String>,
}

impl Finding {
    pub(super) fn good(category: &'static str, words: impl Into<String>) -> Self {
        Self { category, level: Level::Good, words: words.into(), fix: None }
    }

    pub(super) fn warning(category: &'static str, words: impl Into<String>) -> Self {
        Self { category, level: Level::Warning, words: words.into(), fix: None }
    }

    pub(super) fn bad(category: &'static str, words: impl Into<String>) -> Self {
        Self { category, level: Level::Bad, words: words.into(), fix: None }
    }

    /// The same with what to do about it.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into()).filter(|fix| !fix.is_empty());
        self
    }

    /// The finding in JSON.
    pub(super) fn json(&self) -> Value {
        let level = match self.level {
            Level::Good => "good",
            Level::Warning => "warning",
            Level::Bad => "bad",
        };
        json!({ "category": self.category, "level": level, "words": self.words, "fix": self.fix })
    }
}

/// The findings by category, each with a mark, and the fix below what needs one.
pub(super) fn text(findings: &[Finding], is_ascii: bool) -> String {
    let mut out = String::new();
    let mut category = "";
    for finding in findings {
        if finding.category != category {
            category = finding.category;
            out.push_str(&format!("{category}\n"));
        }
        let mark = match (finding.level, is_ascii) {
            (Level::Good, false) => "√",
            (Level::Good, true) => "ok",
            (Level::Warning, false) => "‼",
            (Level::Warning, true) => "!!",
            (Level::Bad, false) => "×",
            (Level::Bad, true) => "x",
        };
        out.push_str(&format!("  {mark} {}\n", finding.words));
        if let Some(fix) = &finding.fix {
            out.push_str(&format!("      fix: {fix}\n"));
        }
    }
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let (bad, warnings) = (count(Level::Bad), count(Level::Warning));
    let verdict = match (bad, warnings) {
        (0, 0) => "everything is in order".to_owned(),
        (0, warnings) => format!("the gateway can serve; {warnings} to look at"),
        (bad, warnings) => format!("{bad} to mend, {warnings} to look at"),
    };
    format!("{out}{verdict}\n")
}
