//! `health`: how backends are judged, in layers.
//!
//! The block may stand at the top level, under a provider, a target and an MCP server; every key
//! is optional in each, and the innermost one that is written wins. [`HealthFile::resolve`] is the
//! one place that knows the layering; the values' own rules are the core's
//! ([`HealthSettings::problems`]).
//!
//! One default depends on another key: an unwritten `open_max` is at least `open_for`.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_core::{probe::ProbeSettings, settings::HealthSettings, time::Millis};

use crate::duration::{Duration, written};

/// How backends are judged; each key that is left out comes from the block outside of this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = show_defaults)]
pub struct HealthFile {
    /// Failures in a row that open the breaker.
    #[schemars(example = 5)]
    pub failure_threshold: Option<u32>,
    /// Share of failed attempts (0 to 1) that opens the breaker; 0 switches this rule off.
    #[schemars(example = 0.5)]
    pub failure_ratio: Option<f64>,
    /// Ended attempts inside `window` that are needed before the share is judged.
    #[schemars(example = 20)]
    pub min_samples: Option<u32>,
    /// How far back the share of failures looks.
    #[schemars(example = &"30s")]
    pub window: Option<Duration>,
    /// How long a failure counts towards `failure_threshold`; 0s: until a success.
    #[schemars(example = &"10m")]
    pub strike_memory: Option<Duration>,
    /// How long an opened breaker stays open.
    #[schemars(example = &"60s")]
    pub open_for: Option<Duration>,
    /// Factor on `open_for` for every time it re-opens without having closed; at least 1.
    #[schemars(example = 2.0)]
    pub open_growth: Option<f64>,
    /// Up to this share (0 to 1) of the open time is added at random.
    #[schemars(example = 0.1)]
    pub open_jitter: Option<f64>,
    /// The longest a breaker stays open, before jitter. Left out, it is at least `open_for`.
    #[schemars(example = &"10m")]
    pub open_max: Option<Duration>,
    /// Trials in a row that have to succeed before the breaker closes.
    #[schemars(example = 1)]
    pub recovery_threshold: Option<u32>,
    /// Trials that a half-open breaker admits at once.
    #[schemars(example = 1)]
    pub trial_permits: Option<u32>,
    /// For how long a recovered target leaves sessions pinned to a lower tier where they are.
    #[schemars(example = &"60s")]
    pub promotion_hold: Option<Duration>,
    /// How long a target and key rest after a 429 that does not say when to come back.
    #[schemars(example = &"30s")]
    pub rate_limit_window: Option<Duration>,
    /// How long a key rests that the provider rejected.
    #[schemars(example = &"30s")]
    pub auth_window: Option<Duration>,
    /// How long a key rests whose quota or credit is used up.
    #[schemars(example = &"5m")]
    pub exhausted_window: Option<Duration>,
    /// How long a target rests whose model does not exist.
    #[schemars(example = &"5m")]
    pub model_gone_window: Option<Duration>,
    /// Requests the gateway makes by itself to learn about the backend.
    pub probe: Option<ProbeFile>,
}

impl HealthFile {
    /// The settings that layers add up to, outermost first; later ones win.
    #[must_use]
    pub fn resolve(layers: &[&Self]) -> HealthSettings {
        let defaults = HealthSettings::default();
        let open_for = time(layers, |layer| &layer.open_for, defaults.open_for);
        HealthSettings {
            failure_threshold: pick(layers, |l| l.failure_threshold, defaults.failure_threshold),
            failure_ratio: pick(layers, |l| l.failure_ratio, defaults.failure_ratio),
            min_samples: pick(layers, |l| l.min_samples, defaults.min_samples),
            window: time(layers, |l| &l.window, defaults.window),
            strike_memory: time(layers, |l| &l.strike_memory, defaults.strike_memory),
            open_for,
            open_growth: pick(layers, |l| l.open_growth, defaults.open_growth),
            open_jitter: pick(layers, |l| l.open_jitter, defaults.open_jitter),
            open_max: time(layers, |l| &l.open_max, defaults.open_max.max(open_for)),
            recovery_threshold: pick(layers, |l| l.recovery_threshold, defaults.recovery_threshold),
            trial_permits: pick(layers, |l| l.trial_permits, defaults.trial_permits),
            promotion_hold: time(layers, |l| &l.promotion_hold, defaults.promotion_hold),
            rate_limit_window: time(layers, |l| &l.rate_limit_window, defaults.rate_limit_window),
            auth_window: time(layers, |l| &l.auth_window, defaults.auth_window),
            exhausted_window: time(layers, |l| &l.exhausted_window, defaults.exhausted_window),
            model_gone_window: time(layers, |l| &l.model_gone_window, defaults.model_gone_window),
        }
    }
}

/// The innermost value that is written.
fn pick<T>(layers: &[&HealthFile], key: impl Fn(&HealthFile) -> Option<T>, default: T) -> T {
    layers.iter().rev().find_map(|layer| key(layer)).unwrap_or(default)
}

fn time(
    layers: &[&HealthFile],
    key: impl Fn(&HealthFile) -> &Option<Duration>,
    default: Millis,
) -> Millis {
    pick(layers, |layer| key(layer).as_ref().map(Duration::millis), default)
}

/// Writes the core's defaults into the schema, so that they stand in one place only.
pub(super) fn show_defaults(schema: &mut Schema) {
    let defaults =
        serde_json::to_value(HealthSettings::default()).expect("settings of numbers serialize");
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (key, property) in properties {
        let Some(default) = defaults.get(key) else { continue };
        // A duration's property refers to the type of durations; a number's names its type.
        let is_number =
            property.get("type").is_some_and(|types| !types.to_string().contains("string"));
        property["default"] = match default.as_u64() {
            Some(millis) if !is_number => json!(written(Millis(millis))),
            _ => default.clone(),
        };
    }
}

/// Requests the gateway makes by itself to learn about a backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = show_probe_defaults)]
pub struct ProbeFile {
    /// How often; 0s: never.
    #[schemars(example = &"30s")]
    pub every: Option<Duration>,
    /// How long an answer may take.
    #[schemars(example = &"3s")]
    pub timeout: Option<Duration>,
    /// Whether a probe's result also counts for the breakers of the provider's targets.
    #[schemars(example = true)]
    pub heals: Option<bool>,
    /// What is asked for; from the url's origin if it starts with `/`. Absent: by api.
    #[schemars(example = &"/api/tags")]
    pub path: Option<String>,
    /// Probes pause when nobody has used the backend for this long.
    #[schemars(example = &"1h")]
    pub pause_after: Option<Duration>,
}

impl ProbeFile {
    /// The settings that layers add up to, outermost first; later ones win.
    #[must_use]
    pub fn resolve(layers: &[&Self]) -> ProbeSettings {
        let mut settings = ProbeSettings::default();
        for layer in layers {
            let time =
                |key: &Option<Duration>, so_far| key.as_ref().map_or(so_far, Duration::millis);
            settings.every = time(&layer.every, settings.every);
            settings.timeout = time(&layer.timeout, settings.timeout);
            settings.pause_after = time(&layer.pause_after, settings.pause_after);
            settings.heals = layer.heals.unwrap_or(settings.heals);
        }
        settings
    }

    /// What is asked for, if a layer says.
    #[must_use]
    pub fn path_of<'a>(layers: &[&'a Self]) -> Option<&'a str> {
        layers.iter().rev().find_map(|layer| layer.path.as_deref())
    }
}

fn show_probe_defaults(schema: &mut Schema) {
    let defaults = ProbeSettings::default();
    let shown = [
        ("every", json!(written(defaults.every))),
        ("timeout", json!(written(defaults.timeout))),
        ("heals", json!(defaults.heals)),
        ("pause_after", json!(written(defaults.pause_after))),
    ];
    for (key, default) in shown {
        if let Some(property) = schema.pointer_mut(&format!("/properties/{key}")) {
            property["default"] = default;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(yaml: &str) -> HealthFile {
        let source = crate::source::Source::new("t", yaml);
        let document = crate::document::parse(&source).document.expect("YAML");
        let (health, problems) = crate::shape::decode(&document);
        assert!(problems.is_empty(), "{problems:?}");
        health.expect("a health block")
    }

    #[test]
    fn nothing_written_is_the_cores_default() {
        assert_eq!(HealthFile::resolve(&[]), HealthSettings::default());
        assert_eq!(HealthFile::resolve(&[&HealthFile::default()]), HealthSettings::default());
    }

    #[test]
    fn the_innermost_layer_that_says_something_wins() {
        let top = health("failure_threshold: 5\nopen_for: 10s\n");
        let target = health("open_for: 60s\n");
        let settings = HealthFile::resolve(&[&top, &HealthFile::default(), &target]);
        assert_eq!(settings.failure_threshold, 5);
        assert_eq!(settings.open_for, Millis::seconds(60));
    }

    #[test]
    fn an_unwritten_open_max_is_at_least_open_for() {
        let long = health("open_for: 20m\n");
        assert_eq!(HealthFile::resolve(&[&long]).open_max, Millis::minutes(20));
        assert!(HealthFile::resolve(&[&long]).problems().is_empty());
        let written = health("open_for: 20m\nopen_max: 1m\n");
        assert_eq!(HealthFile::resolve(&[&written]).problems()[0].key, "open_max");
    }

    #[test]
    fn probe_layers_merge_key_by_key() {
        let top = ProbeFile { heals: Some(true), ..ProbeFile::default() };
        let inner = ProbeFile { path: Some("/x".into()), ..ProbeFile::default() };
        let settings = ProbeFile::resolve(&[&top, &inner]);
        assert!(settings.heals);
        assert_eq!(ProbeFile::path_of(&[&inner, &top]), Some("/x"));
        assert_eq!(settings.every, Millis::seconds(30));
    }
}
