//! Tests of the auditor: a sound run pleases it, and each kind of lie is noticed.
//!
//! The core cannot be made to break its rules from outside, so the lies are told to the auditor:
//! transitions that did not happen, or that are kept from it.

use std::sync::Arc;

use tidegate_core::{
    breaker::{CloseCause, OpenCause, State},
    outcome::Outcome,
    permit::Permit,
    plan::{RequestSpec, Step},
    settings::{BackendSettings, HealthSettings, MemberSettings, Membership, RouteSettings},
    time::Millis,
    transition::Notes,
};

use super::*;

fn settings() -> Settings {
    let backend = |id: &str| BackendSettings {
        id: id.to_owned(),
        identity: id.to_owned(),
        endpoint: None,
        keys: Vec::new(),
        health: HealthSettings::default(),
        first_content_within: Millis::seconds(125),
        answer_within: Millis::minutes(10),
        abilities: Default::default(),
        fleet_names: Vec::new(),
    };
    let member =
        |backend| vec![MemberSettings { backend, weight: 1, membership: Membership::Active }];
    let route = RouteSettings {
        name: "r".to_owned(),
        tiers: vec![member(0), member(1)],
        ..RouteSettings::default()
    };
    Settings {
        backends: vec![backend("a"), backend("b")],
        routes: vec![route],
        max_pins: 100,
        ..Settings::default()
    }
}

/// A core and its auditor, and who tells whom.
struct Stage {
    core: Core,
    auditor: Auditor,
    notes: Notes,
    now: Now,
}

impl Stage {
    fn new() -> Self {
        let settings = settings();
        Self {
            core: Core::new(&settings, 7),
            auditor: Auditor::new(&settings, 0),
            notes: Notes::default(),
            now: Now::ZERO,
        }
    }

    fn begin(&mut self) -> Plan {
        let route = Arc::clone(&self.core.routes()[0]);
        self.auditor.on_request(self.now);
        self.core.begin(&route, self.now, &RequestSpec::default())
    }

    fn next(&mut self, plan: &mut Plan) -> Option<(Permit, AuditedAttempt)> {
        let Step::Attempt(permit) = plan.next(self.now, 1, &mut self.notes) else { return None };
        let reads = &self.notes.reads;
        let chosen = Chosen { now: self.now, plan, reads, pin_before: None, pin_after: None };
        Some((permit, self.auditor.on_attempt(&chosen)))
    }

    fn report(
        &mut self,
        plan: &mut Plan,
        (permit, audited): (Permit, AuditedAttempt),
        status: u16,
    ) {
        plan.report(self.now, permit, &Outcome::answered(status), &mut self.notes);
        let attempt = *plan.attempts().iter().last().expect("it was reported");
        let transitions = std::mem::take(&mut self.notes.transitions);
        self.auditor.on_report(self.now, audited, &attempt, &transitions);
    }

    /// A request whose attempts end with these statuses.
    fn request(&mut self, statuses: &[u16]) {
        let mut plan = self.begin();
        for status in statuses {
            let held = self.next(&mut plan).expect("another attempt");
            self.report(&mut plan, held, *status);
        }
        self.auditor.on_finish(self.now, &plan);
    }

    fn tell(&mut self, id: &str, breaker: BreakerChange, generation: u64) {
        let change = Change::Breaker { breaker, generation, evidence: None, status: None };
        let (at, scope) = (self.now, Scope::Backend);
        self.auditor.on_transitions(&[Transition {
            at,
            backend: id.into(),
            scope,
            change,
            is_heard: false,
        }]);
    }

    fn broken(&self) -> Vec<&'static str> {
        self.auditor.violations().iter().map(|it| it.invariant).collect()
    }
}

fn opened(until: u64) -> BreakerChange {
    let (from, cause) = (State::Closed, OpenCause::ConsecutiveFailures(3));
    BreakerChange::Opened { from, until: Now(until), reopens: 0, cause }
}

const CLOSED: BreakerChange =
    BreakerChange::Closed { from: State::HalfOpen, cause: CloseCause::TrialsPassed(3) };

#[test]
fn a_sound_run_pleases_it() {
    let mut stage = Stage::new();
    for _ in 0..3 {
        stage.request(&[500, 200]);
    }
    stage.request(&[200]);
    stage.now = Now(31_000);
    for _ in 0..4 {
        stage.request(&[200]);
    }
    stage.auditor.at_end(stage.now, &stage.core);
    assert_eq!(stage.broken(), [""; 0]);
}

#[test]
fn a_change_that_was_not_told_is_noticed() {
    let mut stage = Stage::new();
    for _ in 0..3 {
        let mut plan = stage.begin();
        let (permit, audited) = stage.next(&mut plan).expect("an attempt");
        plan.report(stage.now, permit, &Outcome::answered(500), &mut stage.notes);
        let attempt = *plan.attempts().iter().last().expect("it was reported");
        stage.auditor.on_report(stage.now, audited, &attempt, &[]);
    }
    stage.request(&[200]);
    assert_eq!(stage.broken(), ["I17"]);
}

#[test]
fn a_request_to_a_backend_that_was_told_open_is_noticed() {
    let mut stage = Stage::new();
    stage.tell("a", opened(60_000), 1);
    stage.request(&[200]);
    assert_eq!(stage.broken(), ["I17", "I6"]);
}

#[test]
fn a_deadline_that_moves_earlier_is_noticed() {
    let mut stage = Stage::new();
    stage.tell("a", opened(60_000), 1);
    stage.tell("a", BreakerChange::Extended { until: Now(59_999) }, 1);
    assert_eq!(stage.broken(), ["I11"]);
}

#[test]
fn an_opening_without_a_new_generation_is_noticed() {
    let mut stage = Stage::new();
    stage.tell("a", opened(60_000), 1);
    stage.tell("a", opened(90_000), 1);
    assert_eq!(stage.broken(), ["I4"]);
}

#[test]
fn a_stale_report_that_changes_a_breaker_is_noticed() {
    let mut stage = Stage::new();
    let mut plan = stage.begin();
    let (permit, audited) = stage.next(&mut plan).expect("an attempt");
    stage.tell("a", opened(60_000), 1);
    plan.report(stage.now, permit, &Outcome::answered(200), &mut stage.notes);
    let attempt = *plan.attempts().iter().last().expect("it was reported");
    let change =
        Change::Breaker { breaker: CLOSED, generation: 1, evidence: None, status: Some(200) };
    let (at, scope, is_heard) = (stage.now, Scope::Backend, false);
    let lie = Transition { at, backend: "a".into(), scope, change, is_heard };
    stage.auditor.on_report(stage.now, audited, &attempt, &[lie]);
    assert_eq!(stage.broken(), ["I4"]);
}

#[test]
fn a_client_fault_that_changes_a_breaker_is_noticed() {
    let mut stage = Stage::new();
    let mut plan = stage.begin();
    let (permit, audited) = stage.next(&mut plan).expect("an attempt");
    plan.report(stage.now, permit, &Outcome::answered(404), &mut stage.notes);
    let attempt = *plan.attempts().iter().last().expect("it was reported");
    let breaker = opened(60_000);
    let change = Change::Breaker { breaker, generation: 1, evidence: None, status: Some(404) };
    let (at, scope, is_heard) = (stage.now, Scope::Backend, false);
    let lie = Transition { at, backend: "a".into(), scope, change, is_heard };
    stage.auditor.on_report(stage.now, audited, &attempt, &[lie]);
    assert_eq!(stage.broken(), ["I5"]);
}

#[test]
fn trials_that_pass_without_closing_are_noticed() {
    let mut stage = Stage::new();
    for _ in 0..3 {
        stage.request(&[500, 200]);
    }
    stage.now = Now(30_000);
    for _ in 0..3 {
        let mut plan = stage.begin();
        let (permit, audited) = stage.next(&mut plan).expect("a trial");
        plan.report(stage.now, permit, &Outcome::answered(200), &mut stage.notes);
        let attempt = *plan.attempts().iter().last().expect("it was reported");
        stage.notes.transitions.clear();
        stage.auditor.on_report(stage.now, audited, &attempt, &[]);
    }
    assert_eq!(stage.broken(), ["I18"]);
}

#[test]
fn a_permit_that_never_ended_is_noticed() {
    let mut stage = Stage::new();
    let mut plan = stage.begin();
    let _held = stage.next(&mut plan).expect("an attempt");
    stage.auditor.at_end(stage.now, &stage.core);
    assert_eq!(stage.broken(), ["I3"]);
}

#[test]
fn a_request_that_outlives_its_deadline_is_noticed() {
    let mut stage = Stage::new();
    let plan = stage.begin();
    stage.auditor.on_finish(plan.deadline().after(Millis(1)), &plan);
    assert_eq!(stage.broken(), ["I7"]);
}

#[test]
fn a_pin_that_moves_without_a_reason_is_noticed() {
    let mut stage = Stage::new();
    let mut plan = stage.begin();
    let Step::Attempt(_permit) = plan.next(stage.now, 1, &mut stage.notes) else {
        panic!("a healthy core gives an attempt")
    };
    let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    let reads = &stage.notes.reads;
    let chosen =
        Chosen { now: stage.now, plan: &plan, reads, pin_before: Some(&b), pin_after: Some(&a) };
    stage.auditor.on_attempt(&chosen);
    assert_eq!(stage.broken(), ["I20"]);
}

#[test]
fn hops_beyond_the_budget_are_noticed() {
    let mut stage = Stage::new();
    stage.auditor.budget = BudgetSettings { ratio: 0.0, floor: 1, ..BudgetSettings::default() };
    for _ in 0..3 {
        stage.request(&[500, 500]);
    }
    assert_eq!(stage.broken(), [""; 0], "a first hop to a healthy backend is free");
    for _ in 0..2 {
        stage.request(&[500, 500]);
    }
    assert_eq!(stage.broken(), ["I19"]);
}

#[test]
fn a_second_visit_and_a_visit_after_content_are_noticed() {
    let mut stage = Stage::new();
    stage.auditor.max_attempts = 1;
    stage.request(&[500, 200]);
    assert_eq!(stage.broken(), ["I7"]);
}
