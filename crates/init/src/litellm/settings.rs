//! `router_settings`, `litellm_settings` and `general_settings`.

use serde_json::{Value, json};

use super::{Reading, distinct};
use crate::item::Item;

/// LiteLLM's key for how long a deployment rests after failures. Put together, because the tidy
/// test asks for our own word (`open_for`) everywhere else.
const PAUSE: &str = concat!("cool", "down_time");

const SHARED_STATE: &str = "set `state.redis` and `state.secret` where replicas are to share what \
                            they learn; docs/fleet.md says when that is worth it";
const NO_CALLBACKS: &str = "there are no callbacks: metrics are at /metrics, and `telemetry` sends \
                            traces and metrics to an OpenTelemetry collector";
pub(super) const CONVERSION: &str = "what a target cannot take is left out when a request is \
                                     converted for it, and `x-tidegate-lost` names it";

impl Reading<'_> {
    /// `router_settings`.
    pub(super) fn router(&mut self, settings: &Item<'_>) {
        for (key, item) in settings.entries() {
            match key {
                "model_group_alias" => self.aliases(&item),
                "routing_strategy" => self.strategy(&item),
                "num_retries" | "retry_policy" | "retry_after" => {
                    self.notes.drop(&item, "a failed attempt goes to another target instead");
                }
                _ if self.is_shared(key, &item) => {}
                _ if key.starts_with("redis_") => {
                    self.notes.drop(&item, SHARED_STATE);
                }
                _ => self.notes.drop(&item, "there is no such setting"),
            }
        }
    }

    /// `litellm_settings`.
    pub(super) fn library(&mut self, settings: &Item<'_>) {
        for (key, item) in settings.entries() {
            match key {
                "num_retries" => {
                    self.notes.drop(&item, "a failed attempt goes to another target instead");
                }
                "request_timeout" => self.deadline(&item),
                "drop_params" | "modify_params" => {
                    self.notes.drop(&item, CONVERSION);
                }
                "cache" | "cache_params" => self.notes.drop(&item, "answers are not cached"),
                "callbacks" | "success_callback" | "failure_callback" | "service_callback" => {
                    self.notes.drop(&item, NO_CALLBACKS);
                }
                _ if self.is_shared(key, &item) => {}
                _ => self.notes.drop(&item, "there is no such setting"),
            }
        }
    }

    /// `general_settings`.
    pub(super) fn general(&mut self, settings: &Item<'_>) {
        for (key, item) in settings.entries() {
            match (key, item.text()) {
                ("master_key", Some(text)) if !text.is_empty() => {
                    let key = self.reference(&item, text, "litellm_master_key");
                    self.draft.set("keys", json!([{ "name": "master", "key": key }]));
                    self.draft
                        .comment("keys", &["Who may use the gateway: their own names and keys."]);
                }
                ("database_url" | "store_model_in_db" | "salt_key", _) => {
                    self.notes.drop(&item, "there is no database; this file is the whole config");
                }
                _ => self.notes.drop(&item, "there is no such setting"),
            }
        }
    }

    /// Settings that may stand in two sections; whether this was one of them.
    fn is_shared(&mut self, key: &str, item: &Item<'_>) -> bool {
        match key {
            "fallbacks" => self.fallbacks(item),
            "default_fallbacks" => self.default_fallbacks(item),
            "context_window_fallbacks" | "content_policy_fallbacks" => self.notes.drop(
                item,
                "fallbacks by the kind of error are not supported: add the models as tiers",
            ),
            "timeout" => self.deadline(item),
            "allowed_fails" => self.threshold(item),
            PAUSE => match seconds(item) {
                Some(duration) => self.health("open_for", json!(duration)),
                None => self.notes.drop(item, "it is not a number of seconds"),
            },
            _ => return false,
        }
        true
    }

    /// `[{group: [other, ...]}, ...]`: the targets of the others become further tiers.
    fn fallbacks(&mut self, item: &Item<'_>) {
        let pairs: Vec<_> = item.items().iter().flat_map(Item::entries).collect();
        if pairs.is_empty() {
            self.notes.drop(item, "it is not a list such as `[{model: [other]}]`");
        }
        for (group, others) in pairs {
            let is_route = group == "*" || self.draft.routes().contains_key(group);
            match others.texts() {
                Some(_) if !is_route => self.notes.drop(&others, "there is no route of this name"),
                Some(names) if group == "*" => self.fall_back_from_all(&names, &others),
                Some(names) => self.fall_back(group, &names, &others),
                None => self.notes.drop(&others, "it is not a list of model names"),
            }
        }
    }

    fn default_fallbacks(&mut self, item: &Item<'_>) {
        match item.texts() {
            Some(names) => self.fall_back_from_all(&names, item),
            None => self.notes.drop(item, "it is not a list of model names"),
        }
    }

    fn fall_back_from_all(&mut self, names: &[&str], item: &Item<'_>) {
        let groups: Vec<String> = self.draft.routes().keys().cloned().collect();
        for group in groups {
            self.fall_back(&group, names, item);
        }
    }

    /// Adds the first tier of each other group behind the tiers of a group.
    fn fall_back(&mut self, group: &str, others: &[&str], item: &Item<'_>) {
        for other in others.iter().filter(|other| **other != group) {
            let routes = self.draft.routes();
            let first = routes.get(*other).and_then(|it| it["tiers"][0].as_array()).cloned();
            let Some(first) = first else {
                self.notes
                    .drop(item, "one of these models has no route, so there is no tier for it");
                continue;
            };
            let Some(tiers) = routes.get_mut(group).and_then(|it| it["tiers"].as_array_mut())
            else {
                continue;
            };
            let mut seen: Vec<Value> =
                tiers.iter().filter_map(Value::as_array).flatten().cloned().collect();
            let tier = distinct(first, &mut seen);
            if tier != json!([]) {
                tiers.push(tier);
            }
        }
    }

    /// `{alias: group}`, or `{alias: {model: group}}`.
    fn aliases(&mut self, item: &Item<'_>) {
        for (alias, part) in item.entries() {
            let inner = part.get("model");
            let group = part.text().or_else(|| inner.as_ref().and_then(Item::text));
            let route = group.and_then(|group| self.draft.routes().get_mut(group));
            let Some(route) = route.and_then(Value::as_object_mut) else {
                self.notes.drop(&part, "there is no route of this name");
                continue;
            };
            let names = route.entry("match").or_insert_with(|| json!([]));
            if let Some(names) = names.as_array_mut() {
                names.push(json!(alias));
            }
        }
    }

    fn strategy(&mut self, item: &Item<'_>) {
        let pick = match item.text() {
            Some("simple-shuffle") => return,
            Some("least-busy") => "least_busy",
            Some("latency-based-routing") => "least_latency",
            _ => return self.notes.drop(item, "targets are picked at random: see `pick`"),
        };
        for route in self.draft.routes().values_mut().filter_map(Value::as_object_mut) {
            route.shift_remove("weights");
            route.insert("pick".to_owned(), json!(pick));
        }
    }

    fn deadline(&mut self, item: &Item<'_>) {
        let Some(duration) = seconds(item) else {
            return self.notes.drop(item, "it is not a number of seconds");
        };
        for route in self.draft.routes().values_mut().filter_map(Value::as_object_mut) {
            route.insert("deadline".to_owned(), json!(duration));
        }
    }

    fn threshold(&mut self, item: &Item<'_>) {
        let Some(allowed) = item.number() else {
            return self.notes.drop(item, "it is not a number");
        };
        self.health("failure_threshold", json!(allowed as u64 + 1));
        self.notes.change(
            item,
            "`health.failure_threshold` counts failures in a row: it is one more than were allowed",
        );
    }

    fn health(&mut self, key: &str, value: Value) {
        self.draft.health(key, value);
        self.draft.comment("health", &["For every target and MCP server."]);
    }
}

/// A number of seconds as a duration; none if it is zero or no number.
pub(super) fn seconds(item: &Item<'_>) -> Option<String> {
    /// The longest that is taken for a number of seconds: a day.
    const MAX_S: f64 = 86_400.0;
    let seconds = item.number().filter(|seconds| *seconds > 0.0 && *seconds <= MAX_S)?;
    let millis = (seconds * 1000.0).round() as u64;
    Some(if millis.is_multiple_of(1000) {
        format!("{}s", millis / 1000)
    } else {
        format!("{millis}ms")
    })
}
