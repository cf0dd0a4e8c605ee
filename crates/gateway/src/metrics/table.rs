//! The series of the config's routes and targets, found once instead of on every request.
//!
//! Why it exists: looking a series up by its labels takes a lock that all threads share and hashes
//! every label. The table is made when a config is read; a count is a search in a small ordered map
//! and an atomic addition, without lock or allocation.
//!
//! Rules kept here:
//! - Label values are names of the config and nothing else (I15, S53). A name the table does not
//!   know, for example of a config that has just been replaced, is counted as [`OTHER`].
//! - The series of a route or target are made at its first request, all at once and at zero: a
//!   config of a thousand routes takes little memory, and a failure after the first request is an
//!   increase. They go when a reload drops their route or target (`prune.rs`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use prometheus::{Histogram, IntCounter};
use tidegate_core::outcome::OutcomeKind;
use tidegate_journal::result::{ClientFailure, RequestResult};

use super::families::Families;
use crate::live::Live;

/// Stands for every name that is not of the config.
pub(super) const OTHER: &str = "other";
/// The route label of requests that name their target.
pub(super) const DIRECT: &str = "direct";
/// What a provider says it counted.
pub(super) const TOKEN_KINDS: [&str; 3] = ["input", "output", "cached"];

/// The series of one config.
#[derive(Debug)]
pub(super) struct Table {
    /// Which config.
    pub(super) fingerprint: String,
    routes: BTreeMap<String, RouteEntry>,
    targets: BTreeMap<String, OnceLock<TargetSeries>>,
    other_route: RouteSeries,
    other_pair: PairSeries,
    other_target: TargetSeries,
}

/// What is known of a route before it is used.
#[derive(Debug, Default)]
struct RouteEntry {
    series: OnceLock<RouteSeries>,
    pairs: BTreeMap<String, OnceLock<PairSeries>>,
}

/// The series of one route.
#[derive(Debug)]
pub(super) struct RouteSeries {
    /// The route's name if it is known, else [`OTHER`].
    pub(super) label: String,
    pub(super) results: [IntCounter; RequestResult::ALL.len()],
    pub(super) failures: [IntCounter; ClientFailure::ALL.len()],
    pub(super) seconds: Histogram,
    pub(super) budget_spent: IntCounter,
}

/// The series of one target in one route.
#[derive(Debug)]
pub(super) struct PairSeries {
    pub(super) attempts: [IntCounter; OutcomeKind::ALL.len()],
    pub(super) tokens: [IntCounter; TOKEN_KINDS.len()],
}

/// The series of one target.
#[derive(Debug)]
pub(super) struct TargetSeries {
    /// The target's name if it is known, else [`OTHER`].
    pub(super) label: String,
    pub(super) first_token_seconds: Histogram,
    pub(super) started: IntCounter,
    pub(super) finished: IntCounter,
    pub(super) hold_overflow: IntCounter,
    pub(super) resends: IntCounter,
}

impl Table {
    /// A table that knows no name.
    pub(super) fn empty(families: &Families) -> Self {
        Self {
            fingerprint: String::new(),
            routes: BTreeMap::new(),
            targets: BTreeMap::new(),
            other_route: RouteSeries::new(families, OTHER),
            other_pair: PairSeries::new(families, OTHER, OTHER),
            other_target: TargetSeries::new(families, OTHER),
        }
    }

    /// The table of a config.
    pub(super) fn new(families: &Families, live: &Live) -> Self {
        // A direct request may ask any target, also the one that stands for all other models.
        let ids = live.core.backends().iter().map(|it| it.id().to_string());
        let ids: Vec<String> = ids.filter(|id| !id.starts_with("mcp:")).collect();
        let of_route = |members: &mut dyn Iterator<Item = String>| RouteEntry {
            series: OnceLock::new(),
            pairs: members.map(|target| (target, OnceLock::new())).collect(),
        };
        let routes = live.file.routes.iter();
        let mut routes: BTreeMap<String, RouteEntry> = routes
            .map(|(name, route)| {
                (name.clone(), of_route(&mut route.tiers.iter().flatten().cloned()))
            })
            .collect();
        let direct = of_route(&mut ids.iter().cloned());
        routes.entry(DIRECT.to_owned()).or_insert(direct);
        Self {
            fingerprint: live.fingerprint.clone(),
            routes,
            targets: ids.into_iter().map(|id| (id, OnceLock::new())).collect(),
            ..Self::empty(families)
        }
    }

    pub(super) fn route(&self, families: &Families, name: &str) -> &RouteSeries {
        let Some(entry) = self.routes.get(name) else { return &self.other_route };
        entry.series.get_or_init(|| RouteSeries::new(families, name))
    }

    pub(super) fn target(&self, families: &Families, id: &str) -> &TargetSeries {
        let Some(entry) = self.targets.get(id) else { return &self.other_target };
        entry.get_or_init(|| TargetSeries::new(families, id))
    }

    pub(super) fn pair(&self, families: &Families, route: &str, target: &str) -> &PairSeries {
        let known = self.routes.get(route).and_then(|it| it.pairs.get(target));
        let Some(entry) = known else { return &self.other_pair };
        entry.get_or_init(|| PairSeries::new(families, route, target))
    }
}

impl RouteSeries {
    fn new(families: &Families, name: &str) -> Self {
        Self {
            label: name.to_owned(),
            results: RequestResult::ALL
                .map(|it| families.requests.with_label_values(&[name, it.word()])),
            failures: ClientFailure::ALL
                .map(|it| families.client_failures.with_label_values(&[name, it.word()])),
            seconds: families.request_seconds.with_label_values(&[name]),
            budget_spent: families.budget_spent.with_label_values(&[name]),
        }
    }
}

impl PairSeries {
    fn new(families: &Families, route: &str, target: &str) -> Self {
        Self {
            attempts: OutcomeKind::ALL
                .map(|it| families.attempts.with_label_values(&[route, target, it.word()])),
            tokens: TOKEN_KINDS
                .map(|kind| families.tokens.with_label_values(&[route, target, kind])),
        }
    }
}

impl TargetSeries {
    fn new(families: &Families, target: &str) -> Self {
        Self {
            label: target.to_owned(),
            first_token_seconds: families.first_token_seconds.with_label_values(&[target]),
            started: families.started.with_label_values(&[target]),
            finished: families.finished.with_label_values(&[target]),
            hold_overflow: families.hold_overflow.with_label_values(&[target]),
            resends: families.resends.with_label_values(&[target]),
        }
    }
}
