//! Which decisions somebody asks for.

use tidegate_core::time::Now;

use crate::{api::decision::DecisionShort, decision::Decision, request_id::SessionFingerprint};

/// A question for decisions; what is not said is not asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The route's name in records.
    pub route: Option<String>,
    /// A backend that was asked.
    pub backend: Option<String>,
    /// How an attempt ended.
    pub outcome: Option<String>,
    /// How the request went.
    pub result: Option<String>,
    /// Who asked.
    pub caller: Option<String>,
    /// `llm` or `mcp`.
    pub kind: Option<String>,
    /// The conversation.
    pub session: Option<SessionFingerprint>,
    /// Only those that are more than a plain answer of the first choice.
    pub is_notable: bool,
    /// Begun at this moment or later.
    pub since: Option<Now>,
    /// Begun before this moment.
    pub until: Option<Now>,
    /// The same moments as wall-clock time, where they were given so: they may be before the start.
    pub since_unix_ms: Option<u64>,
    /// The same.
    pub until_unix_ms: Option<u64>,
    /// With a smaller number.
    pub below: Option<u64>,
    /// With a larger number.
    pub above: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// A question for rows of the history file.
#[derive(Clone, Debug)]
pub struct OlderQuestion {
    /// What is asked for.
    pub question: Question,
    /// The moments of the question, as wall-clock time.
    pub since_unix_ms: Option<u64>,
    /// The same.
    pub until_unix_ms: Option<u64>,
    /// Rows of this process with a larger number are in memory, and left out.
    pub in_memory: Option<(String, u64)>,
    /// Rows with a smaller number.
    pub below_row: Option<i64>,
}

/// Decisions of the history file, newest first.
#[derive(Clone, Debug)]
pub struct OlderPage {
    /// The decisions.
    pub decisions: Vec<DecisionShort>,
    /// The row to go on below, if there is more.
    pub next_row: Option<i64>,
}

impl Question {
    /// Whether a decision is an answer.
    #[must_use]
    pub fn fits(&self, n: u64, decision: &Decision) -> bool {
        let is =
            |wanted: &Option<String>, has: &str| wanted.as_ref().is_none_or(|wanted| wanted == has);
        let kind = if decision.mcp.is_some() { "mcp" } else { "llm" };
        self.below.is_none_or(|below| n < below)
            && self.above.is_none_or(|above| n > above)
            && self.since.is_none_or(|since| decision.at >= since)
            && self.until.is_none_or(|until| decision.at < until)
            && is(&self.kind, kind)
            && is(&self.route, decision.route())
            && is(&self.caller, &decision.caller)
            && is(&self.result, decision.verdict.result.word())
            && self.session.is_none_or(|session| decision.session == Some(session))
            && (!self.is_notable || decision.is_notable())
            && self.fits_attempts(decision)
    }

    /// Backend and outcome are asked of the same attempt.
    fn fits_attempts(&self, decision: &Decision) -> bool {
        if self.backend.is_none() && self.outcome.is_none() {
            return true;
        }
        let fits = |backend: &str, target: &str, outcome: Option<&str>| {
            let named = |wanted: &String| wanted == backend || wanted == target;
            self.backend.as_ref().is_none_or(named)
                && self.outcome.as_ref().is_none_or(|wanted| Some(wanted.as_str()) == outcome)
        };
        let mut records = decision.records.iter();
        let mut calls = decision.mcp.iter().flat_map(|it| &it.attempts);
        records.any(|it| fits(&it.backend, &it.target, Some(it.outcome.word())))
            || calls.any(|it| fits(&it.backend, &it.backend, it.outcome.map(|it| it.word())))
    }
}
