//! The auditor of a fleet: what must hold between replicas.
//!
//! | number | what is checked |
//! |---|---|
//! | I22 | what is heard opens and closes no breaker, and leaves no request without a candidate |
//! | I23 | what one replica told of a window or exclusion, all respect once it has reached them |
//! | I25 | an opening that a hint hastened is not told; nothing that was heard is told again |
//!
//! Like the auditor of one replica it keeps books of its own: what was told, and when it arrives
//! where. I21 needs no books: what never arrives is never handed to a core.

use std::collections::BTreeMap;

use tidegate_core::{
    breaker::{BreakerChange, OpenCause},
    hint::{BreakerOf, Excluded, Fact, Hint, Subject},
    names::Fingerprint,
    plan::Plan,
    read::Read,
    settings::Settings,
    time::Now,
    transition::{Change, Notes, Scope, Transition},
};

use super::{VIOLATIONS_MAX, Violation};

/// Checks what must hold between the replicas of one run on one route.
#[derive(Debug)]
pub struct FleetAuditor {
    /// The names of each candidate and of its keys; `None` = it is not shared.
    candidates: Vec<CandidateNames>,
    /// The threshold of each breaker that is told of, by its owner.
    thresholds: BTreeMap<(Scope, String), u32>,
    /// Breakers whose opening was hastened, with the failures of the replica's own since.
    hastened: BTreeMap<(u32, Scope, String), u32>,
    /// Breakers by their names.
    owners: BTreeMap<BreakerOf, String>,
    told: Vec<ToldMark>,
    /// The highest version with which an exclusion was healed.
    healed: BTreeMap<Subject, u64>,
    violations: Vec<Violation>,
}

#[derive(Debug)]
struct CandidateNames {
    id: String,
    backend: Option<Fingerprint>,
    keys: Vec<Option<Fingerprint>>,
}

/// A window or an exclusion that was told.
#[derive(Debug)]
struct ToldMark {
    subject: Subject,
    version: u64,
    until: Now,
    /// From when on each replica knows it; `None` = it does not hear of it.
    known_from: Vec<Option<Now>>,
}

impl FleetAuditor {
    /// An auditor of a fleet of which every replica has these settings, for requests of one route.
    #[must_use]
    pub fn new(settings: &Settings, route: usize) -> Self {
        let first = |names: &[Fingerprint]| names.first().copied();
        let candidate = |backend: usize| {
            let it = &settings.backends[backend];
            let keys = it.keys.iter().map(|&key| first(&settings.keys[key].fleet_names));
            let mut keys: Vec<_> = keys.collect();
            if keys.is_empty() {
                keys.push(first(&it.fleet_names));
            }
            CandidateNames { id: it.id.clone(), backend: first(&it.fleet_names), keys }
        };
        let members = settings.routes[route].tiers.iter().flatten();
        let mut thresholds = BTreeMap::new();
        let mut owners = BTreeMap::new();
        for it in &settings.backends {
            let name = first(&it.fleet_names).map(BreakerOf::Backend);
            owners.extend(name.map(|name| (name, it.id.clone())));
            thresholds.insert((Scope::Backend, it.id.clone()), it.health.failure_threshold);
        }
        for it in &settings.endpoints {
            let name = first(&it.fleet_names).map(BreakerOf::Endpoint);
            owners.extend(name.map(|name| (name, it.id.clone())));
            thresholds.insert((Scope::Endpoint, it.id.clone()), it.health.failure_threshold);
        }
        Self {
            candidates: members.map(|it| candidate(it.backend)).collect(),
            thresholds,
            hastened: BTreeMap::new(),
            owners,
            told: Vec::new(),
            healed: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// What changed at a replica, before what it tells is handed to [`Self::on_told`].
    pub fn on_transitions(&mut self, replica: u32, transitions: &[Transition]) {
        for it in transitions {
            let Change::Breaker { breaker, .. } = &it.change else { continue };
            let key = (replica, it.scope, it.backend.to_string());
            match breaker {
                BreakerChange::Opened { cause: OpenCause::Suspected(strikes), .. } => {
                    self.hastened.insert(key, *strikes);
                }
                BreakerChange::Opened { .. } => {
                    let threshold = self.thresholds.get(&(it.scope, key.2.clone()));
                    let threshold = threshold.copied().unwrap_or(1);
                    let strikes = self.hastened.get(&key).map(|strikes| strikes + 1);
                    match strikes.filter(|strikes| *strikes < threshold) {
                        Some(strikes) => self.hastened.insert(key, strikes),
                        None => self.hastened.remove(&key),
                    };
                }
                BreakerChange::Closed { .. } => {
                    self.hastened.remove(&key);
                }
                BreakerChange::Extended { .. } => {}
            }
        }
    }

    /// A replica tells something.
    pub fn on_told(&mut self, now: Now, replica: u32, hints: &[Hint]) {
        for hint in hints {
            let Fact::Opened { of, .. } = &hint.fact else { continue };
            let scope = match of {
                BreakerOf::Backend(_) => Scope::Backend,
                BreakerOf::Endpoint(_) => Scope::Endpoint,
            };
            let Some(owner) = self.owners.get(of).cloned() else { continue };
            if self.hastened.contains_key(&(replica, scope, owner.clone())) {
                self.violate("I25", now, || {
                    let number = replica + 1;
                    format!("replica {number} told of `{owner}`, whose opening a hint hastened")
                });
            }
        }
    }

    /// A hint is under way, and reaches each replica when `deliveries` says.
    pub fn on_sent(&mut self, now: Now, from: u32, hint: &Hint, deliveries: &[Option<Now>]) {
        let subject = hint.fact.subject();
        let version = hint.stamp.version;
        let remaining = match hint.fact {
            Fact::Window { remaining, .. } => remaining,
            Fact::Exclusion { remaining: Some(remaining), .. } => remaining,
            Fact::Exclusion { remaining: None, .. } => {
                let healed = self.healed.entry(subject).or_default();
                *healed = (*healed).max(version);
                self.told.retain(|it| it.subject != subject || it.version >= version);
                return;
            }
            Fact::Action { .. } | Fact::Reset { .. } | Fact::Opened { .. } | Fact::Pin { .. } => {
                return;
            }
        };
        self.told.retain(|it| !now.reached(it.until));
        if self.healed.get(&subject).is_some_and(|healed| *healed > version) {
            return;
        }
        let mut known_from = deliveries.to_vec();
        known_from[from as usize] = Some(now);
        self.told.push(ToldMark { subject, version, until: now.after(remaining), known_from });
    }

    /// A replica heard something.
    pub fn on_heard(&mut self, now: Now, replica: u32, hint: &Hint, notes: &Notes) {
        let number = replica + 1;
        let is_by_hand = matches!(hint.fact, Fact::Action { .. } | Fact::Reset { .. });
        let is_breaker = |it: &&Transition| matches!(it.change, Change::Breaker { .. });
        if let Some(it) = notes.transitions.iter().find(is_breaker).filter(|_| !is_by_hand) {
            let id = it.backend.clone();
            self.violate("I22", now, || {
                format!("a hint changed the breaker of `{id}` at {number}")
            });
        }
        if !notes.hints.is_empty() {
            self.violate("I25", now, || format!("replica {number} told what it had heard"));
        }
    }

    /// A replica's plan gave an attempt.
    pub fn on_attempt(&mut self, now: Now, replica: u32, plan: &Plan) {
        if self.told.is_empty() {
            return;
        }
        let Some(attempt) = plan.attempts().iter().last().filter(|it| it.rank.is_clear()) else {
            return;
        };
        let Some(names) = self.candidates.get(usize::from(attempt.candidate)) else { return };
        let Some(backend) = names.backend else { return };
        let key = names.keys.get(usize::from(attempt.key)).copied().flatten();
        let is_about = |subject: Subject| match subject {
            Subject::Window { backend: told, key: of } => told == backend && Some(of) == key,
            Subject::Exclusion(Excluded::Key(of)) => Some(of) == key,
            Subject::Exclusion(Excluded::Pair { backend: told, key: of }) => {
                told == backend && Some(of) == key
            }
            Subject::Exclusion(Excluded::Model(told)) => told == backend,
            Subject::Action(..) | Subject::Reset(_) | Subject::Opened(_) | Subject::Pin(_) => false,
        };
        // What arrives in this very moment may be heard after the choice.
        let knows = |it: &ToldMark| it.known_from[replica as usize].is_some_and(|from| from < now);
        let is_ignored =
            |it: &&ToldMark| !now.reached(it.until) && knows(it) && is_about(it.subject);
        if let Some(until) = self.told.iter().find(is_ignored).map(|it| it.until.0) {
            let (id, number) = (names.id.clone(), replica + 1);
            self.violate("I23", now, || {
                format!(
                    "replica {number} used `{id}`, which the fleet knew to be out until {until}ms"
                )
            });
        }
    }

    /// A request of a replica is over; `reads` is what its last choice saw.
    pub fn on_finish(&mut self, now: Now, replica: u32, plan: &Plan, reads: &[Read]) {
        if !plan.attempts().is_empty() || now.reached(plan.deadline()) {
            return;
        }
        if let Some(read) = reads.iter().find(|it| !it.is_limited && !it.is_over_limit) {
            let id = plan.route().backend(read.candidate).id().clone();
            let number = replica + 1;
            self.violate("I22", now, || {
                format!("replica {number} sent a request nowhere, though it could ask `{id}`")
            });
        }
    }

    /// What was broken, in the order it was seen.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn violate(&mut self, invariant: &'static str, at: Now, sentence: impl FnOnce() -> String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { invariant, at, sentence: sentence() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_core::{
        core::Core,
        hint::{Haste, Stamp},
        mark::MarkReason,
        names::{FleetSettings, HashKey, ReplicaId},
        plan::RequestSpec,
        settings::{
            Abilities, BackendSettings, HealthSettings, MemberSettings, Membership, RouteSettings,
        },
        time::Millis,
    };

    use super::*;

    const NAME: Fingerprint = Fingerprint([7; 16]);

    fn settings() -> Settings {
        let backend = BackendSettings {
            id: "a/x".to_owned(),
            identity: "a/x".to_owned(),
            endpoint: None,
            keys: Vec::new(),
            health: HealthSettings::default(),
            first_content_within: Millis(1_000),
            answer_within: Millis(1_000),
            abilities: Abilities::default(),
            fleet_names: vec![NAME],
        };
        let member = MemberSettings { backend: 0, weight: 1, membership: Membership::Active };
        let route = RouteSettings { tiers: vec![vec![member]], ..RouteSettings::default() };
        let fleet = FleetSettings { replica: ReplicaId(1), hash_keys: vec![HashKey([1; 16])] };
        Settings {
            backends: vec![backend],
            routes: vec![route],
            fleet: Some(fleet),
            ..Settings::default()
        }
    }

    fn window(version: u64) -> Hint {
        let (backend, key, reason) = (NAME, NAME, MarkReason::RateLimited);
        let fact = Fact::Window { backend, key, remaining: Millis(100), reason };
        Hint {
            age: Millis::ZERO,
            stamp: Stamp { version, writer: ReplicaId(1) },
            fact,
            haste: Haste::AtOnce,
        }
    }

    /// The numbers of what is broken when a core that never heard of a window is asked.
    fn broken_at(now: u64) -> Vec<&'static str> {
        let settings = settings();
        let core = Core::new(&settings, 1);
        let mut auditor = FleetAuditor::new(&settings, 0);
        auditor.on_sent(Now(10), 0, &window(0), &[None, Some(Now(15)), None]);
        let route = Arc::clone(&core.routes()[0]);
        let mut plan = core.begin(&route, Now(now), &RequestSpec::default());
        let mut notes = Notes::default();
        drop(plan.next(Now(now), 0, &mut notes));
        for replica in 1..3 {
            auditor.on_attempt(Now(now), replica, &plan);
        }
        auditor.violations().iter().map(|it| it.invariant).collect()
    }

    #[test]
    fn a_window_that_was_told_must_be_respected_from_its_arrival_to_its_end() {
        assert_eq!(broken_at(15), [""; 0]);
        assert_eq!(broken_at(16), ["I23"]);
        assert_eq!(broken_at(109), ["I23"]);
        assert_eq!(broken_at(110), [""; 0]);
    }

    fn opened(cause: OpenCause) -> Transition {
        let from = tidegate_core::breaker::State::Closed;
        let breaker = BreakerChange::Opened { from, until: Now(50), cause, reopens: 0 };
        Transition {
            at: Now(20),
            backend: "a/x".into(),
            scope: Scope::Backend,
            change: Change::Breaker { breaker, generation: 1, evidence: None, status: None },
            is_heard: false,
        }
    }

    #[test]
    fn a_hastened_opening_must_not_be_told() {
        let (of, cause) = (BreakerOf::Backend(NAME), OpenCause::TrialFailed);
        let fact = Fact::Opened { of, remaining: Millis(30), cause };
        let hint = Hint { fact, ..window(1) };
        for (causes, is_right) in [
            (vec![OpenCause::ConsecutiveFailures(3)], true),
            (vec![OpenCause::Suspected(1)], false),
            (vec![OpenCause::Suspected(1), OpenCause::TrialFailed], false),
            (vec![OpenCause::Suspected(1), OpenCause::TrialFailed, OpenCause::TrialFailed], true),
        ] {
            let mut auditor = FleetAuditor::new(&settings(), 0);
            for cause in causes {
                auditor.on_transitions(0, &[opened(cause)]);
            }
            auditor.on_told(Now(20), 0, &[hint]);
            assert_eq!(auditor.violations().is_empty(), is_right);
        }
    }

    #[test]
    fn a_hint_must_change_no_breaker_and_cause_no_hint() {
        let mut auditor = FleetAuditor::new(&settings(), 0);
        let transitions = vec![opened(OpenCause::ConsecutiveFailures(3))];
        let notes = Notes { transitions, hints: vec![window(0)], ..Notes::default() };
        auditor.on_heard(Now(20), 1, &window(0), &notes);
        let broken: Vec<_> = auditor.violations().iter().map(|it| it.invariant).collect();
        assert_eq!(broken, ["I22", "I25"]);
    }
}
