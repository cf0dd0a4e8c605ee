//! Expectations against a run: every one that is written is checked, every failure is a sentence
//! that says what was wanted, what came, and at which step.

use std::collections::BTreeSet;

use tidegate_core::time::Millis;

use super::{
    Action, Mcp,
    file::{ExpectFile, KeepaliveExpectFile, StepExpectFile},
    stage::Run,
    trace::{CallTrace, KeepaliveTotals, McpStep, Totals},
};
use crate::form::Failure;

/// Every expectation that does not hold.
pub(super) fn judge(scenario: &Mcp, run: &Run) -> Vec<Failure> {
    let mut judge = Judge { run, failures: Vec::new() };
    for (number, (step, came)) in (1..).zip(scenario.program.iter().zip(&run.steps)) {
        let place = format!("step {number} ({} {})", came.step, came.what);
        let is_search = matches!(step.action, Action::Find { .. });
        judge.tools(&step.expect, came, &place, is_search);
        for call in &came.calls {
            judge.call(&step.expect, call, &place);
        }
    }
    judge.states(&scenario.expect);
    judge.counts(&scenario.expect);
    judge.invariants();
    judge.failures
}

struct Judge<'a> {
    run: &'a Run,
    failures: Vec<Failure>,
}

impl Judge<'_> {
    fn check(&mut self, holds: bool, expectation: &str, sentence: impl FnOnce() -> String) {
        // Calls that were made at once fail alike: told once.
        let is_told = |it: &Failure| it.expectation == expectation;
        if !holds && !self.failures.iter().any(is_told) {
            let expectation = expectation.to_owned();
            self.failures.push(Failure { expectation, sentence: sentence() });
        }
    }

    fn tools(&mut self, expect: &StepExpectFile, came: &McpStep, place: &str, is_search: bool) {
        if let (Some(wanted), Some(got)) = (expect.good_match, came.good_match) {
            self.check(wanted == got, &format!("{place} good_match"), || {
                format!("good_match: {place}: wanted {wanted}, got {got}")
            });
        }
        let (Some(wanted), Some(got)) = (&expect.tools, &came.tools) else { return };
        // A search has an order of its own; a list is a set.
        let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
        let is_same = if is_search { wanted == got } else { set(wanted) == set(got) };
        self.check(is_same, &format!("{place} tools"), || {
            format!("tools: {place}: wanted {}, got {}", list(wanted), list(got))
        });
    }

    fn call(&mut self, expect: &StepExpectFile, call: &CallTrace, place: &str) {
        let got = described(call);
        if let Some(wanted) = expect.ok {
            self.check(call.error.is_none() == wanted, &format!("{place} ok"), || {
                let wanted = if wanted { "an answer" } else { "an error" };
                format!("ok: {place}: wanted {wanted}, got {got}")
            });
        }
        if let Some(wanted) = expect.asked {
            self.check(call.asked == wanted, &format!("{place} asked"), || {
                let wanted = if wanted { "a question" } else { "no question" };
                format!("asked: {place}: wanted {wanted}, got {got}")
            });
        }
        if let Some(wanted) = expect.error {
            self.check(call.error == Some(wanted), &format!("{place} error"), || {
                format!("error: {place}: wanted {}, got {got}", wanted.word())
            });
        }
        if let Some(wanted) = &expect.names {
            let named = call.server.as_deref().filter(|_| call.error.is_some());
            self.check(named == Some(wanted), &format!("{place} names"), || {
                format!("names: {place}: wanted an error that names `{wanted}`, got {got}")
            });
        }
        if let Some(wanted) = &expect.by {
            let by = call.attempts.last().filter(|it| it.cause.is_none() && call.error.is_none());
            let by = by.map(|it| &*it.server);
            self.check(by == Some(wanted), &format!("{place} by"), || {
                format!("by: {place}: wanted an answer by `{wanted}`, got {got}")
            });
        }
        if let Some(wanted) = &expect.cause {
            self.check(call.cause.as_ref() == Some(wanted), &format!("{place} cause"), || {
                format!("cause: {place}: wanted `{wanted}`, got {got}")
            });
        }
    }

    fn states(&mut self, expect: &ExpectFile) {
        for (id, wanted) in &expect.breaker {
            let got = self.run.breakers.get(id.as_str());
            self.check(got == Some(wanted), &format!("breaker {id}"), || {
                let got = got.map_or("no such server", |word| word.word());
                format!("breaker: at the end, `{id}`: wanted {}, got {got}", wanted.word())
            });
        }
        for (id, wanted) in &expect.health {
            let got = self.run.health.get(id.as_str());
            self.check(got == Some(wanted), &format!("health {id}"), || {
                let got = got.map_or("no such server", |word| word.word());
                format!("health: at the end, `{id}`: wanted {}, got {got}", wanted.word())
            });
        }
    }

    fn counts(&mut self, expect: &ExpectFile) {
        let totals = |id: &str| self.run.totals.get(id).copied().unwrap_or_default();
        let again = |(id, wanted): (&String, &u64)| {
            ("reinitialised", id.clone(), *wanted, totals(id).reinitialised)
        };
        let requests =
            |(id, wanted): (&String, &u64)| ("requests", id.clone(), *wanted, totals(id).requests);
        let told = |(session, wanted): (&String, &u64)| {
            let got = self.run.list_changed.get(session).copied().unwrap_or_default();
            ("list_changed", session.clone(), *wanted, got)
        };
        let mut counts: Vec<(&str, String, u64, u64)> = Vec::new();
        counts.extend(expect.reinitialised.iter().map(again));
        counts.extend(expect.requests.iter().map(requests));
        counts.extend(expect.list_changed.iter().map(told));
        for (id, wanted) in &expect.keepalive {
            counts.extend(keepalives(id, wanted, &totals(id)));
        }
        for (key, whose, wanted, got) in counts {
            self.check(wanted == got, &format!("{key} {whose}"), || {
                format!("{key}: over the whole program, `{whose}`: wanted {wanted}, got {got}")
            });
        }
    }

    /// Code that breaks an invariant fails every scenario that shows it.
    fn invariants(&mut self) {
        for it in &self.run.violations {
            self.check(false, it.invariant, || {
                let at = tidegate_config::duration::written(Millis(it.at.0));
                format!("invariant {} broken at {at}: {}", it.invariant, it.sentence)
            });
        }
    }
}

fn keepalives(
    id: &str,
    wanted: &KeepaliveExpectFile,
    totals: &Totals,
) -> Vec<(&'static str, String, u64, u64)> {
    let KeepaliveTotals { attempts, successes, failures, auto_disabled } = totals.keepalive;
    let counts = [
        ("keepalive.attempts", wanted.attempts, attempts),
        ("keepalive.successes", wanted.successes, successes),
        ("keepalive.failures", wanted.failures, failures),
        ("keepalive.auto_disabled", wanted.auto_disabled, auto_disabled),
    ];
    let written = counts.into_iter().filter_map(|(key, wanted, got)| Some((key, wanted?, got)));
    written.map(|(key, wanted, got)| (key, id.to_owned(), wanted, got)).collect()
}

fn described(call: &CallTrace) -> String {
    if call.asked {
        return "a question".to_owned();
    }
    let Some(error) = call.error else {
        let by = call.attempts.last().map(|it| format!(" by `{}`", it.server));
        return format!("an answer{}", by.unwrap_or_default());
    };
    let server = call.server.as_ref().map(|it| format!(" of `{it}`")).unwrap_or_default();
    let cause = call.cause.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("{}{server}{cause}", error.word())
}

fn list(names: &[String]) -> String {
    format!("[{}]", names.join(", "))
}
