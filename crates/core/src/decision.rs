//! The record of one request: what was read, what was chosen, how it ended.
//!
//! There is no global order of events between backends, so a decision does not say "the state at
//! a time": it carries the reads themselves, with `now`, the draw, the cursor and the generations
//! seen. [`Decision::replay`] makes every choice again from the record alone.
//!
//! Recording copies and allocates; it is for journals, traces and tests, beside the hot path.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    attempt::{Attempt, Finish},
    choice::select,
    plan::Plan,
    read::Read,
    time::Now,
    transition::Notes,
};

/// One request from its first choice to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The route it walked.
    pub route: Arc<str>,
    /// When it began.
    pub began: Now,
    /// Its attempts, in order.
    pub choices: Vec<Choice>,
    /// How it ended; `None` while it runs.
    pub finish: Option<Finish>,
}

/// One attempt, and everything its choice depended on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The chosen backend's name.
    pub backend: Arc<str>,
    /// How it was chosen and how it ended.
    pub attempt: Attempt,
    /// What was read of every candidate.
    pub reads: Vec<Read>,
}

impl Decision {
    /// The record of a plan that has made no choice yet.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        Self {
            route: Arc::clone(plan.route().name()),
            began: plan.began(),
            choices: Vec::new(),
            finish: None,
        }
    }

    /// Takes down the latest choice: call it after every `next` that gave an attempt.
    pub fn chose(&mut self, plan: &Plan, notes: &Notes) {
        if let Some(attempt) = plan.attempts().iter().last() {
            self.choices.push(Choice {
                backend: Arc::clone(plan.route().backend(attempt.candidate).id()),
                attempt: *attempt,
                reads: notes.reads.clone(),
            });
        }
    }

    /// Takes down the end, and how each attempt ended.
    pub fn ended(&mut self, plan: &Plan, finish: Finish) {
        for (choice, attempt) in self.choices.iter_mut().zip(plan.attempts().iter()) {
            choice.attempt = *attempt;
        }
        self.finish = Some(finish);
    }

    /// Makes every choice again from the record: the candidates chosen, in order.
    #[must_use]
    pub fn replay(&self) -> Vec<Option<u16>> {
        let again = |choice: &Choice| {
            let attempt = &choice.attempt;
            let selection = select(&choice.reads, &attempt.circumstances, |_| attempt.cursor);
            selection.map(|selection| choice.reads[selection.index].candidate)
        };
        self.choices.iter().map(again).collect()
    }
}
