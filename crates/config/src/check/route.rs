//! Routes: tiers, targets, weights, patterns.

use std::collections::BTreeMap;

use tidegate_text::glob::Glob;

use super::{Check, Unknown};
use crate::{
    codes::config as codes,
    diagnostic::quoted,
    document::NodeKind,
    file::{Pick, RouteFile},
    glob,
    path::KeyPath,
};

/// More hops than this bound nothing: no route has so many targets and keys.
const MAX_SENSIBLE_HOPS: u32 = 100;

impl<'a> Check<'a> {
    pub(super) fn routes(&mut self) {
        let file: &'a _ = self.file;
        for (name, route) in &file.routes {
            let path = KeyPath::from("routes").key(name);
            if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
                let message = format!("{} is not a usable name for a route", quoted(name));
                let diagnostic = self.error(&codes::BAD_NAME, &path, message);
                self.report(diagnostic.at_key(self.document, &path).help("use no spaces"));
            }
            self.tiers(&path, name, route);
            self.weights(&path, route);
            self.values(&path, route);
        }
        self.patterns();
        if let Some(route) = &file.default_route {
            self.route_exists(&KeyPath::from("default_route"), route);
        }
    }

    fn tiers(&mut self, path: &KeyPath, name: &str, route: &'a RouteFile) {
        let tiers = path.key("tiers");
        if route.tiers.is_empty() {
            let message = format!("route {} has no tiers", quoted(name));
            self.report(
                self.error(&codes::EMPTY_ROUTE, &tiers, message).help("add `[provider/model]`"),
            );
        }
        let mut seen: BTreeMap<&str, KeyPath> = BTreeMap::new();
        for (tier, targets) in route.tiers.iter().enumerate() {
            if targets.is_empty() {
                let message = format!("tier {tier} of route {} is empty", quoted(name));
                self.report(self.error(&codes::EMPTY_ROUTE, &tiers.index(tier), message));
            }
            for (at, target) in targets.iter().enumerate() {
                let place = tiers.index(tier).index(at);
                self.target_exists(&place, name, target);
                if let Some(first) = seen.get(target.as_str()) {
                    let message = format!("route {} has {} twice", quoted(name), quoted(target));
                    let first = format!("first written at `{first}`");
                    self.report(self.error(&codes::DUPLICATE_TARGET, &place, message).help(first));
                } else {
                    seen.insert(target, place);
                }
            }
        }
        if let [only] = seen.keys().collect::<Vec<_>>().as_slice() {
            let message = format!(
                "route {} has a single target: when {} is down, nothing can answer",
                quoted(name),
                quoted(only)
            );
            self.report(
                self.warning(&codes::SINGLE_TARGET, &tiers, message)
                    .at_key(self.document, &tiers)
                    .help("add a tier with a target of another provider"),
            );
        }
    }

    fn target_exists(&mut self, place: &KeyPath, route: &str, target: &str) {
        let providers = KeyPath::from("providers");
        let (provider, model) = target.split_once('/').unwrap_or((target, ""));
        if !self.has(&providers, provider) && self.has(&KeyPath::from("routes"), target) {
            let message = format!(
                "a tier of route {} names a route instead of a target: {}",
                quoted(route),
                quoted(target)
            );
            self.report(
                self.error(&codes::UNKNOWN_TARGET, place, message)
                    .label("a tier holds targets, written `provider/model`")
                    .help(format!("write the targets of {} here", quoted(target))),
            );
        } else if !self.has(&providers, provider) {
            self.unknown(Unknown {
                code: &codes::UNKNOWN_TARGET,
                path: place,
                name: provider,
                section: providers,
                message: format!(
                    "route {} names a target that does not exist: {}",
                    quoted(route),
                    quoted(target)
                ),
                label: "no provider has this name",
            });
        } else if model.is_empty() {
            let message = format!(
                "route {} names a provider without a model: {}",
                quoted(route),
                quoted(target)
            );
            self.report(
                self.error(&codes::UNKNOWN_TARGET, place, message)
                    .label("expected `provider/model`")
                    .help(format!(
                        "write the model after a slash: {}",
                        quoted(&format!("{provider}/MODEL"))
                    )),
            );
        }
    }

    fn weights(&mut self, path: &KeyPath, route: &'a RouteFile) {
        let weights = path.key("weights");
        for target in route.weights.keys() {
            if !route.tiers.iter().flatten().any(|known| known == target) {
                let message = format!(
                    "`{weights}` names a target that the route does not have: {}",
                    quoted(target)
                );
                let place = weights.key(target);
                let known = route.tiers.iter().flatten().map(String::as_str);
                let help = crate::suggest::did_you_mean(target, known, "the route has");
                let diagnostic = self.error(&codes::UNKNOWN_WEIGHT, &place, message);
                self.report(diagnostic.at_key(self.document, &place).maybe_help(help));
            }
        }
        let is_unused = route.pick != Pick::Weighted && !self.pick_is_bad(path, route.pick);
        if !route.weights.is_empty() && is_unused {
            let message = format!("`{weights}` has an effect only with `pick: weighted`");
            let diagnostic = self.warning(&codes::NO_EFFECT, &weights, message);
            self.report(diagnostic.at_key(self.document, &weights));
        }
    }

    /// Whether `pick` says something else than was understood: it is misspelt.
    fn pick_is_bad(&self, path: &KeyPath, understood: Pick) -> bool {
        match self.document.node(&path.key("pick")).map(|node| &node.kind) {
            None | Some(NodeKind::Null) => false,
            Some(NodeKind::Scalar { text, .. }) => {
                serde_json::to_value(understood).is_ok_and(|word| word != text.as_str())
            }
            Some(NodeKind::Seq(_) | NodeKind::Map(_)) => true,
        }
    }

    fn values(&mut self, path: &KeyPath, route: &'a RouteFile) {
        if route.max_hops > MAX_SENSIBLE_HOPS {
            let message = format!("`{path}.max_hops` of {} bounds nothing", route.max_hops);
            self.report(
                self.warning(&codes::MANY_HOPS, &path.key("max_hops"), message)
                    .help("8 is the default, and enough for most routes"),
            );
        }
        let share = route.patience_share;
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("`{path}.patience_share` of {share} is no share");
            self.report(
                self.error(&codes::BAD_SETTING, &path.key("patience_share"), message)
                    .label("must be more than 0 and at most 1")
                    .help("1 keeps every attempt until the client's patience ends"),
            );
        }
        let zeros = [
            ("deadline", route.deadline.millis(), path.key("deadline")),
            (
                "retry_budget.window",
                route.retry_budget.window.millis(),
                path.key("retry_budget").key("window"),
            ),
        ];
        for (key, value, place) in zeros {
            if value.0 == 0 {
                let message = format!("`{path}.{key}` is zero");
                self.report(
                    self.error(&codes::BAD_SETTING, &place, message)
                        .label("must be longer than zero"),
                );
            }
        }
    }

    /// Patterns that are bad, or that another route overrides.
    fn patterns(&mut self) {
        let file: &'a _ = self.file;
        let mut earlier: Vec<(&str, &str, Glob)> = Vec::new();
        for (name, route) in &file.routes {
            for (at, text) in route.matches.iter().enumerate() {
                let place = KeyPath::from("routes").key(name).key("match").index(at);
                let glob = match glob::parse(text) {
                    Ok(glob) => glob,
                    Err(problem) => {
                        let message = format!("`{place}`: {problem}");
                        self.report(self.error(&codes::BAD_GLOB, &place, message));
                        continue;
                    }
                };
                let named = file.routes.keys().find(|other| *other != name && glob.matches(other));
                let taken = earlier.iter().find(|(_, known, by)| {
                    known == text || (glob.is_literal() && by.matches(text))
                });
                let overridden = match (named, taken) {
                    (Some(other), _) => {
                        Some(format!("the name {other:?} leads to the route of that name"))
                    }
                    (None, Some((other, ..))) => {
                        Some(format!("route {other:?} comes first and takes these names"))
                    }
                    (None, None) => None,
                };
                if let Some(why) = overridden {
                    let message = format!(
                        "the pattern {} of route {} overlaps with another route",
                        quoted(text),
                        quoted(name)
                    );
                    self.report(
                        self.warning(&codes::OVERLAPPING_MATCH, &place, message)
                            .label(why.replace('"', "`")),
                    );
                }
                earlier.push((name, text, glob));
            }
        }
    }
}
