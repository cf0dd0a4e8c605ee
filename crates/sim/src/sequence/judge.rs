//! Expectations against a run: every one that is written is checked, every failure is a sentence.
//!
//! A sentence says what was wanted, what came, and at which request. Expectations about the last
//! request fail if there is none, also an empty list: a program that asks nothing proves nothing.

use std::collections::BTreeSet;

use tidegate_core::time::Millis;

use super::{
    file::SequenceExpectFile,
    run::SequenceRun,
    trace::{RequestTrace, requests},
};
use crate::form::Failure;

/// Every expectation that does not hold.
pub(super) fn judge(expect: &SequenceExpectFile, run: &SequenceRun) -> Vec<Failure> {
    let mut judge = SequenceJudge { run, failures: Vec::new() };
    judge.last_request(expect);
    judge.pins(expect);
    judge.states(expect);
    judge.first_attempts(expect);
    judge.invariants();
    judge.failures
}

struct SequenceJudge<'a> {
    run: &'a SequenceRun,
    failures: Vec<Failure>,
}

impl SequenceJudge<'_> {
    fn check(&mut self, holds: bool, expectation: &str, sentence: impl FnOnce() -> String) {
        if !holds {
            let expectation = expectation.to_owned();
            self.failures.push(Failure { expectation, sentence: sentence() });
        }
    }

    fn last_request(&mut self, expect: &SequenceExpectFile) {
        let written = [
            ("final_status", expect.final_status.is_some()),
            ("attempts", expect.attempts.is_some()),
            ("attempts_contain", expect.attempts_contain.is_some()),
            ("attempts_exclude", expect.attempts_exclude.is_some()),
            ("pin", expect.pin.is_some()),
        ];
        let count = requests(&self.run.steps).count();
        let Some(last) = requests(&self.run.steps).last() else {
            for (key, _) in written.into_iter().filter(|(_, is_written)| *is_written) {
                let sentence = || format!("{key}: the program makes no request to look at");
                self.check(false, key, sentence);
            }
            return;
        };
        let place = place(count, last);
        if let Some(wanted) = expect.final_status {
            let got = last.final_status;
            self.check(u32::from(got) == wanted, "final_status", || {
                format!("final_status: {place}: wanted {wanted}, got {got}")
            });
        }
        self.attempts(expect, last, &place);
        if let Some(wanted) = &expect.pin {
            let got = &self.run.last_pin;
            self.check(**got == **wanted, "pin", || {
                let (wanted, got) = (pin(wanted), pin(got));
                format!("pin: at the end, after {place}: wanted {wanted}, got {got}")
            });
        }
    }

    fn attempts(&mut self, expect: &SequenceExpectFile, last: &RequestTrace, place: &str) {
        let got = list(last.attempts.iter());
        if let Some(wanted) = &expect.attempts {
            let holds = wanted.iter().map(String::as_str).eq(last.attempts.iter().map(|id| &**id));
            self.check(holds, "attempts", || {
                format!("attempts: {place}: wanted {}, got {got}", list(wanted.iter()))
            });
        }
        let tried = |id: &str| last.attempts.iter().any(|attempt| **attempt == *id);
        for id in expect.attempts_contain.iter().flatten() {
            self.check(tried(id), &format!("attempts_contain {id}"), || {
                format!("attempts_contain: {place}: wanted `{id}` among the attempts, got {got}")
            });
        }
        for id in expect.attempts_exclude.iter().flatten() {
            self.check(!tried(id), &format!("attempts_exclude {id}"), || {
                format!("attempts_exclude: {place}: wanted no attempt of `{id}`, got {got}")
            });
        }
    }

    fn pins(&mut self, expect: &SequenceExpectFile) {
        for (session, wanted) in &expect.pins {
            let mut asked = requests(&self.run.steps).zip(1_usize..);
            let last = asked.by_ref().filter(|(it, _)| it.session == *session).last();
            let key = format!("pins {session}");
            let name = session_name(session);
            match last {
                None => self.check(false, &key, || {
                    format!("pins: wanted {} for {name}, but it never asked", pin(wanted))
                }),
                Some((request, number)) => {
                    let got = &request.pin_after;
                    self.check(**got == **wanted, &key, || {
                        format!(
                            "pins: after request {number}, the last of {name}: wanted {}, got {}",
                            pin(wanted),
                            pin(got)
                        )
                    });
                }
            }
        }
    }

    fn states(&mut self, expect: &SequenceExpectFile) {
        for (id, wanted) in &expect.breaker {
            let got = self.run.breakers.get(id.as_str());
            self.check(got == Some(wanted), &format!("breaker {id}"), || {
                let got = got.map_or("unknown", |word| word.word());
                format!("breaker: at the end, `{id}`: wanted {}, got {got}", wanted.word())
            });
        }
        for (id, wanted) in &expect.health {
            let got = self.run.health.get(id.as_str());
            self.check(got == Some(wanted), &format!("health {id}"), || {
                let got = got.map_or("unknown", |word| word.word());
                format!("health: at the end, `{id}`: wanted {}, got {got}", wanted.word())
            });
        }
    }

    /// A core that breaks an invariant fails every scenario that shows it.
    fn invariants(&mut self) {
        for it in &self.run.violations {
            self.check(false, it.invariant, || {
                let at = tidegate_config::duration::written(Millis(it.at.0));
                format!("invariant {} broken at {at}: {}", it.invariant, it.sentence)
            });
        }
    }

    fn first_attempts(&mut self, expect: &SequenceExpectFile) {
        let Some(wanted) = &expect.distinct_first_attempts else { return };
        let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
        let firsts = requests(&self.run.steps).filter_map(|it| it.attempts.first());
        let got: BTreeSet<&str> = firsts.map(|id| &**id).collect();
        self.check(got == wanted, "distinct_first_attempts", || {
            let count = requests(&self.run.steps).count();
            format!(
                "distinct_first_attempts: over {count} requests: wanted {}, got {}",
                list(wanted.iter()),
                list(got.iter())
            )
        });
    }
}

/// `request 5 (session `s1`)`.
fn place(number: usize, request: &RequestTrace) -> String {
    if request.session.is_empty() {
        return format!("request {number}");
    }
    format!("request {number} (session `{}`)", request.session)
}

fn session_name(session: &str) -> String {
    if session.is_empty() { "no session".to_owned() } else { format!("session `{session}`") }
}

fn pin(id: &str) -> String {
    if id.is_empty() { "no pin".to_owned() } else { format!("`{id}`") }
}

fn list<T: AsRef<str>>(ids: impl Iterator<Item = T>) -> String {
    let ids: Vec<String> = ids.map(|id| id.as_ref().to_owned()).collect();
    format!("[{}]", ids.join(", "))
}
