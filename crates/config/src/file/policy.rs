//! A scenario's `policy`: the keys of `health` (but `probe`) and a few of a route, in one map.
//!
//! The health keys are listed again here and not flattened in, because flattening would cost the
//! decoder its spans; a test holds both lists to each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_core::settings::{HealthSettings, RouteSettings};

use super::{
    health::{HealthFile, show_defaults},
    route::{LastResortFile, OnAuthErrorWord, PinWord, RetryBudgetFile},
};
use crate::duration::Duration;

/// What a scenario changes about health and failover; what is left out is as in production.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = show_defaults)]
#[expect(missing_docs, reason = "the keys of HealthFile, where each is explained")]
pub struct PolicyFile {
    pub failure_threshold: Option<u32>,
    pub failure_ratio: Option<f64>,
    pub min_samples: Option<u32>,
    pub window: Option<Duration>,
    pub strike_memory: Option<Duration>,
    pub open_for: Option<Duration>,
    pub open_growth: Option<f64>,
    pub open_jitter: Option<f64>,
    pub open_max: Option<Duration>,
    pub recovery_threshold: Option<u32>,
    pub trial_permits: Option<u32>,
    pub promotion_hold: Option<Duration>,
    pub rate_limit_window: Option<Duration>,
    pub auth_window: Option<Duration>,
    pub exhausted_window: Option<Duration>,
    pub model_gone_window: Option<Duration>,
    /// Hops beyond the first attempt; 0: no failover.
    pub max_hops: Option<u32>,
    /// The budget of hops that are not free.
    pub retry_budget: Option<RetryBudgetFile>,
    /// How many attempts may go past the breaker or exclusion of one target.
    pub last_resort: Option<LastResortFile>,
    /// What a rejected key means for the request.
    pub on_auth_error: Option<OnAuthErrorWord>,
    /// What a pin follows.
    pub pin: Option<PinWord>,
}

impl PolicyFile {
    /// The health part as a layer.
    #[must_use]
    pub fn health(&self) -> HealthFile {
        HealthFile {
            failure_threshold: self.failure_threshold,
            failure_ratio: self.failure_ratio,
            min_samples: self.min_samples,
            window: self.window.clone(),
            strike_memory: self.strike_memory.clone(),
            open_for: self.open_for.clone(),
            open_growth: self.open_growth,
            open_jitter: self.open_jitter,
            open_max: self.open_max.clone(),
            recovery_threshold: self.recovery_threshold,
            trial_permits: self.trial_permits,
            promotion_hold: self.promotion_hold.clone(),
            rate_limit_window: self.rate_limit_window.clone(),
            auth_window: self.auth_window.clone(),
            exhausted_window: self.exhausted_window.clone(),
            model_gone_window: self.model_gone_window.clone(),
            probe: None,
        }
    }

    /// The health settings it adds up to over production's defaults.
    #[must_use]
    pub fn health_settings(&self) -> HealthSettings {
        HealthFile::resolve(&[&self.health()])
    }

    /// Puts the route part into a route's settings.
    pub fn apply_to(&self, route: &mut RouteSettings) {
        if let Some(max_hops) = self.max_hops {
            route.max_hops = max_hops;
        }
        if let Some(budget) = &self.retry_budget {
            route.budget = budget.settings();
        }
        if let Some(last_resort) = &self.last_resort {
            route.last_resort = last_resort.settings();
        }
        if let Some(word) = self.on_auth_error {
            route.on_auth_error = word.into();
        }
        if let Some(word) = self.pin {
            route.pin = word.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<T: JsonSchema>() -> Vec<String> {
        let schema = schemars::schema_for!(T).to_value();
        let properties = schema["properties"].as_object().expect("a struct has properties");
        properties.keys().cloned().collect()
    }

    #[test]
    fn policy_has_every_health_key_but_probe() {
        let mut health = keys::<HealthFile>();
        health.retain(|key| key != "probe");
        let policy = keys::<PolicyFile>();
        assert_eq!(policy[..health.len()], health);
        let of_route = ["max_hops", "retry_budget", "last_resort", "on_auth_error", "pin"];
        assert_eq!(policy[health.len()..], of_route);
    }

    #[test]
    fn every_policy_key_reaches_the_settings() {
        let yaml = "{failure_threshold: 9, failure_ratio: 0.9, min_samples: 9, window: 9s, \
             strike_memory: 9s, open_for: 9s, open_growth: 9, open_jitter: 0.9, open_max: 99s, \
             recovery_threshold: 9, trial_permits: 9, promotion_hold: 9s, rate_limit_window: 9s, \
             auth_window: 9s, exhausted_window: 9s, model_gone_window: 9s}";
        let source = crate::source::Source::new("t", yaml);
        let document = crate::document::parse(&source).document.expect("YAML");
        let (policy, problems) = crate::shape::decode::<PolicyFile>(&document);
        assert!(problems.is_empty(), "{problems:?}");
        let settings = policy.expect("a policy").health_settings();
        let defaults = serde_json::to_value(HealthSettings::default()).expect("numbers");
        let changed = serde_json::to_value(settings).expect("numbers");
        for (key, default) in defaults.as_object().expect("a map") {
            assert_ne!(changed[key], *default, "{key} was lost");
        }
    }
}
