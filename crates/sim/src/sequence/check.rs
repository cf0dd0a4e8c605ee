//! What is wrong with a sequence's file beyond its shape: rules between keys and values.
//!
//! Every check adds what it finds and goes on, so that all problems of a file are shown at once.
//! Where `services` itself could not be decoded no id can be judged, and ids are left alone.

use std::collections::BTreeMap;

use tidegate_config::{
    codes::config::BAD_SETTING,
    diagnostic::{Diagnostic, Problems, quoted},
    document::{Document, NodeKind},
    path::{KeyPath, Step},
    source::Source,
    suggest,
};
use tidegate_core::route::MEMBERS_MAX;

use super::{
    file::{FaultFile, FaultStepFile, SequenceExpectFile, SequenceFile, SequenceStepFile},
    tactic::{self, TierLayout},
};
use crate::codes;

/// Requests times services: what a trace holds. A million is a hundred megabytes, and hours of
/// reading.
const MAX_STATES: usize = 1_000_000;

/// Statuses that can end a request.
const STATUSES: std::ops::RangeInclusive<u32> = 200..=599;

/// Adds everything that is wrong with the file.
pub(super) fn check(
    file: &SequenceFile,
    document: &Document,
    source: &Source,
    problems: &mut Problems,
) {
    let mut check = SequenceCheck { document, source, problems, known: Vec::new() };
    check.names(file);
    check.tactics(file);
    check.services(file);
    for (id, fault) in &file.faults {
        let path = KeyPath::from("faults").key(id.as_str());
        check.id_key(id, &path);
        check.fault(fault, &path);
    }
    if let Some(pin) = &file.seed_pin {
        let id = format!("{}/{}", pin.provider, pin.model);
        check.id(&id, &KeyPath::from("seed_pin").key("model"));
    }
    check.policy(file);
    check.expect(&file.expect);
}

struct SequenceCheck<'a> {
    document: &'a Document,
    source: &'a Source,
    problems: &'a mut Problems,
    /// The ids of the services; empty if they are not known.
    known: Vec<String>,
}

impl SequenceCheck<'_> {
    fn add(&mut self, diagnostic: Diagnostic, path: &KeyPath) {
        self.problems.add(diagnostic.at(self.document, path));
    }

    fn names(&mut self, file: &SequenceFile) {
        if file.rule_uuid.is_some() && file.name.is_some() {
            let problem =
                Diagnostic::error(&codes::TWO_NAMES, "both `rule_uuid` and `name` are written")
                    .label("the second name")
                    .help("keep one of them");
            self.add(problem, &KeyPath::from("name"));
        }
    }

    fn tactics(&mut self, file: &SequenceFile) {
        if let Some(word) = file.tactic.as_deref().filter(|word| TierLayout::parse(word).is_none())
        {
            let message = format!("`tactic`: {} is not a tactic", quoted(word));
            let problem = Diagnostic::error(&codes::UNKNOWN_TACTIC, message)
                .label("expected `tier` or `random`")
                .maybe_help(suggest::did_you_mean(word.trim(), TierLayout::WORDS, "known tactics"));
            self.add(problem, &KeyPath::from("tactic"));
        }
        let within = file.within_tier_tactic.as_deref();
        if let Some(word) = within.filter(|word| tactic::parse_within(word).is_none()) {
            let message =
                format!("`within_tier_tactic`: {} is not known, `random` is used", quoted(word));
            let words = tactic::WITHIN.iter().map(|(word, _)| *word);
            let problem = Diagnostic::warning(&codes::RETIRED_TACTIC, message)
                .label("taken as `random`")
                .maybe_help(suggest::did_you_mean(word.trim(), words, "known tactics"));
            self.add(problem, &KeyPath::from("within_tier_tactic"));
        }
    }

    fn services(&mut self, file: &SequenceFile) {
        let path = KeyPath::from("services");
        let Some(services) = &file.services else {
            let node = self.document.node(&path).map(|node| &node.kind);
            if matches!(node, Some(NodeKind::Null)) {
                self.no_services(&path);
            }
            return;
        };
        if services.is_empty() {
            return self.no_services(&path);
        }
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        for (index, service) in services.iter().enumerate() {
            let path = path.index(index);
            for (key, value) in [("provider", &service.provider), ("model", &service.model)] {
                if value.is_empty() {
                    let message = format!("`{}` is empty", path.key(key));
                    self.add(Diagnostic::error(&codes::EMPTY_NAME, message), &path.key(key));
                }
            }
            let id = service.id();
            match first.get(&id) {
                Some(first) => self.duplicate(&id, index, *first),
                None => {
                    first.insert(id.clone(), index);
                    self.known.push(id);
                }
            }
        }
        self.size(file, services.len());
    }

    fn no_services(&mut self, path: &KeyPath) {
        let problem = Diagnostic::error(&codes::EMPTY_LIST, "`services` is empty")
            .label("at least one service is needed")
            .help("write one as `- { provider: openai, model: gpt-5.4 }`");
        self.add(problem, path);
    }

    fn duplicate(&mut self, id: &str, index: usize, first: usize) {
        let services = KeyPath::from("services");
        let first = self.document.span_of(&services.index(first).key("model"));
        let place = first.map(|span| format!("first written at {}", self.source.location(span)));
        let message = format!("the service {} stands twice", quoted(id));
        let problem = Diagnostic::error(&codes::DUPLICATE_SERVICE, message)
            .label("written again here")
            .maybe_help(place);
        self.add(problem, &services.index(index).key("model"));
    }

    fn size(&mut self, file: &SequenceFile, services: usize) {
        let is_request = |step: &&SequenceStepFile| matches!(step, SequenceStepFile::Request(_));
        let requests = file.program.iter().filter(is_request).count();
        if services > MEMBERS_MAX {
            let message = format!("{services} services: the most is {MEMBERS_MAX}");
            self.add(Diagnostic::error(&codes::TOO_MUCH_WORK, message), &KeyPath::from("services"));
        } else if requests.saturating_mul(services) > MAX_STATES {
            let message = format!(
                "{requests} requests of {services} services: the most is {MAX_STATES} of both \
                 multiplied"
            );
            self.add(Diagnostic::error(&codes::TOO_MUCH_WORK, message), &KeyPath::from("program"));
        }
    }

    fn fault(&mut self, fault: &FaultFile, path: &KeyPath) {
        let (path, count) = match fault {
            FaultFile::Short(statuses) => (path.clone(), statuses.len()),
            FaultFile::Long(script) => (path.key("steps"), script.steps.len()),
        };
        if count == 0 {
            let message = format!("`{path}` is empty");
            let problem = Diagnostic::error(&codes::EMPTY_LIST, message)
                .label("at least one step is needed")
                .help("a service without an entry under `faults` always answers 200");
            self.add(problem, &path);
        }
        match fault {
            FaultFile::Short(statuses) => {
                for (index, status) in statuses.iter().enumerate() {
                    self.status(*status, &path.index(index));
                }
            }
            FaultFile::Long(script) => {
                for (index, step) in script.steps.iter().enumerate() {
                    self.step(step, &path.index(index));
                }
            }
        }
    }

    fn step(&mut self, step: &FaultStepFile, path: &KeyPath) {
        let Some(status) = step.status else { return };
        self.status(status, &path.key("status"));
        if status != 0 && step.error.is_some() {
            let message = format!("`{path}` has both `status` and `error`");
            let problem = Diagnostic::error(&codes::STATUS_AND_ERROR, message)
                .label("either it answers or it fails")
                .help("keep one of them");
            self.add(problem, &path.key("error"));
        }
    }

    fn status(&mut self, status: u32, path: &KeyPath) {
        if status != 0 && !STATUSES.contains(&status) {
            let message = format!("`{path}`: `{status}` is not a usable HTTP status");
            let problem = Diagnostic::error(&codes::BAD_STATUS, message)
                .label("expected a number from 200 to 599");
            self.add(problem, path);
        }
    }

    fn policy(&mut self, file: &SequenceFile) {
        for problem in file.policy.health_settings().problems() {
            let path = KeyPath::from("policy").key(problem.key);
            let message = format!("`{path}` {}", problem.rule);
            self.add(Diagnostic::error(&BAD_SETTING, message), &path);
        }
    }

    fn expect(&mut self, expect: &SequenceExpectFile) {
        let root = KeyPath::from("expect");
        if let Some(status) = expect.final_status {
            self.status(status, &root.key("final_status"));
        }
        let lists = [
            ("attempts", &expect.attempts),
            ("attempts_contain", &expect.attempts_contain),
            ("attempts_exclude", &expect.attempts_exclude),
            ("distinct_first_attempts", &expect.distinct_first_attempts),
        ];
        for (key, ids) in lists {
            for (index, id) in ids.iter().flatten().enumerate() {
                self.id(id, &root.key(key).index(index));
            }
        }
        if let Some(id) = expect.pin.as_ref().filter(|id| !id.is_empty()) {
            self.id(id, &root.key("pin"));
        }
        for (session, id) in expect.pins.iter().filter(|(_, id)| !id.is_empty()) {
            self.id(id, &root.key("pins").key(session.as_str()));
        }
        for id in expect.breaker.keys() {
            self.id_key(id, &root.key("breaker").key(id.as_str()));
        }
        for id in expect.health.keys() {
            self.id_key(id, &root.key("health").key(id.as_str()));
        }
    }

    /// An id that is a value.
    fn id(&mut self, id: &str, path: &KeyPath) {
        if let Some(problem) = self.unknown(id, path) {
            self.add(problem, path);
        }
    }

    /// An id that is a key.
    fn id_key(&mut self, id: &str, path: &KeyPath) {
        if let Some(problem) = self.unknown(id, path) {
            self.problems.add(problem.at_key(self.document, path));
        }
    }

    fn unknown(&self, id: &str, path: &KeyPath) -> Option<Diagnostic> {
        if self.known.is_empty() || self.known.iter().any(|known| known == id) {
            return None;
        }
        let message =
            format!("`{}` names a service that does not exist: {}", section(path), quoted(id));
        let known = self.known.iter().map(String::as_str);
        Some(
            Diagnostic::error(&codes::UNKNOWN_SERVICE, message)
                .label("no service has this id")
                .maybe_help(suggest::did_you_mean(id, known, "services")),
        )
    }
}

/// The part of a path that a reader looks for: `faults`, `seed_pin` or `expect.breaker`.
fn section(path: &KeyPath) -> KeyPath {
    let is_expect = path.steps().first() == Some(&Step::Key("expect".to_owned()));
    let depth = if is_expect { 2 } else { 1 };
    let mut section = path.clone();
    while section.steps().len() > depth {
        section = section.parent();
    }
    section
}
