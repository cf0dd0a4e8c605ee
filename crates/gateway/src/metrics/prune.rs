//! Takes away the series of what a reload dropped.
//!
//! Why it exists: a gateway that is reloaded for months would otherwise show every target it ever
//! had, and a board would go on drawing it.
//!
//! Rules kept here:
//! - A series goes when one of its labels names a route, target, provider or key that the config
//!   does not have any more. Words of closed sets, and the stand-ins for unknown names, stay.
//! - What comes back by a later reload begins at zero, as after a restart.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};

use super::{
    families::Families,
    table::{DIRECT, OTHER},
};
use crate::live::Live;

/// The names that the config has.
#[derive(Debug)]
struct Known {
    routes: BTreeSet<String>,
    backends: BTreeSet<String>,
    providers: BTreeSet<String>,
}

impl Known {
    fn of(live: &Live) -> Self {
        Self {
            routes: live.file.routes.keys().cloned().collect(),
            backends: live.core.backends().iter().map(|it| it.id().to_string()).collect(),
            providers: live.file.providers.keys().cloned().collect(),
        }
    }

    fn has(&self, kind: Name, value: &str) -> bool {
        let is_target = self.backends.contains(value) || value == OTHER;
        match kind {
            Name::Route => self.routes.contains(value) || value == DIRECT || value == OTHER,
            Name::Target => is_target,
            // A key is called `provider#number`.
            Name::Any => {
                let provider = value.split_once('#').map_or(value, |(provider, _)| provider);
                is_target || self.providers.contains(provider)
            }
        }
    }
}

/// What a label names.
#[derive(Clone, Copy, Debug)]
enum Name {
    Route,
    Target,
    /// A target, an endpoint, a server or a key.
    Any,
}

const ROUTE: (&str, Name) = ("route", Name::Route);
const TARGET: (&str, Name) = ("target", Name::Target);
const BACKEND: (&str, Name) = ("backend", Name::Any);

/// Takes them away.
pub(super) fn prune(families: &Families, live: &Live) {
    let known = &Known::of(live);
    let hop = [ROUTE, ("from", Name::Target), ("to", Name::Target)];
    keep(&families.transitions, &[BACKEND], known);
    keep(&families.probes, &[BACKEND], known);
    keep(&families.attempts, &[ROUTE, TARGET], known);
    keep(&families.tokens, &[ROUTE, TARGET], known);
    keep(&families.started, &[TARGET], known);
    keep(&families.finished, &[TARGET], known);
    keep(&families.hold_overflow, &[TARGET], known);
    keep(&families.resends, &[TARGET], known);
    keep(&families.first_token_seconds, &[TARGET], known);
    keep(&families.requests, &[ROUTE], known);
    keep(&families.client_failures, &[ROUTE], known);
    keep(&families.request_seconds, &[ROUTE], known);
    keep(&families.relaxed, &[ROUTE], known);
    keep(&families.budget_spent, &[ROUTE], known);
    keep(&families.failovers, &hop, known);
}

/// Keeps the series of a family whose names are all known.
fn keep<T>(family: &MetricVec<T>, names: &[(&str, Name)], known: &Known)
where
    T: MetricVecBuilder,
    MetricVec<T>: Collector,
{
    let order: Vec<String> =
        family.desc().iter().flat_map(|it| it.variable_labels.clone()).collect();
    for collected in family.collect() {
        for series in collected.get_metric() {
            let labels: BTreeMap<_, _> =
                series.get_label().iter().map(|it| (it.name(), it.value())).collect();
            let is_known = |(label, kind): &(&str, Name)| {
                labels.get(label).is_none_or(|value| known.has(*kind, value))
            };
            if names.iter().all(is_known) {
                continue;
            }
            let values: Vec<&str> =
                order.iter().filter_map(|it| labels.get(&**it)).copied().collect();
            // Gone meanwhile is gone.
            drop(family.remove_label_values(&values));
        }
    }
}
