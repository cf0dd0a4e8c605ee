//! `timeouts`: how long each part of an attempt may take, in layers (provider, then target).

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_core::time::Millis;

use crate::duration::{Duration, written};

/// How long each part of an attempt may take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = show_defaults)]
pub struct TimeoutsFile {
    /// Until the connection stands, TLS included.
    #[schemars(example = &"5s")]
    pub connect: Option<Duration>,
    /// Of a stream: from the end of the request to the first content.
    #[schemars(example = &"120s")]
    pub first_content: Option<Duration>,
    /// Without a stream: from the end of the request to the response head.
    #[schemars(example = &"5m")]
    pub answer: Option<Duration>,
    /// Between two events with content, or two pieces of a body.
    #[schemars(example = &"60s")]
    pub idle: Option<Duration>,
    /// The whole attempt.
    #[schemars(example = &"10m")]
    pub total: Option<Duration>,
}

/// What timeout layers add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Millis,
    /// To the first content of a stream.
    pub first_content: Millis,
    /// To the response head without a stream.
    pub answer: Millis,
    /// Between two pieces of content.
    pub idle: Millis,
    /// The whole attempt.
    pub total: Millis,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Millis::seconds(5),
            first_content: Millis::seconds(120),
            answer: Millis::minutes(5),
            idle: Millis::seconds(60),
            total: Millis::minutes(10),
        }
    }
}

impl TimeoutsFile {
    /// The timeouts that layers add up to, outermost first; later ones win.
    #[must_use]
    pub fn resolve(layers: &[&Self]) -> Timeouts {
        let mut timeouts = Timeouts::default();
        for layer in layers {
            let time =
                |key: &Option<Duration>, so_far| key.as_ref().map_or(so_far, Duration::millis);
            timeouts = Timeouts {
                connect: time(&layer.connect, timeouts.connect),
                first_content: time(&layer.first_content, timeouts.first_content),
                answer: time(&layer.answer, timeouts.answer),
                idle: time(&layer.idle, timeouts.idle),
                total: time(&layer.total, timeouts.total),
            };
        }
        timeouts
    }

    /// The keys that are written, with their values.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&'static str, &Duration)> {
        [
            ("connect", &self.connect),
            ("first_content", &self.first_content),
            ("answer", &self.answer),
            ("idle", &self.idle),
            ("total", &self.total),
        ]
        .into_iter()
        .filter_map(|(key, value)| value.as_ref().map(|value| (key, value)))
    }
}

fn show_defaults(schema: &mut Schema) {
    let defaults = Timeouts::default();
    let shown = [
        ("connect", defaults.connect),
        ("first_content", defaults.first_content),
        ("answer", defaults.answer),
        ("idle", defaults.idle),
        ("total", defaults.total),
    ];
    for (key, default) in shown {
        if let Some(property) = schema.pointer_mut(&format!("/properties/{key}")) {
            property["default"] = json!(written(default));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_targets_timeout_wins_over_its_providers() {
        let seconds = |count| Some(Duration::from(Millis::seconds(count)));
        let provider = TimeoutsFile { connect: seconds(1), idle: seconds(2), ..Default::default() };
        let target = TimeoutsFile { idle: seconds(3), ..Default::default() };
        let timeouts = TimeoutsFile::resolve(&[&provider, &target]);
        assert_eq!(timeouts.connect, Millis::seconds(1));
        assert_eq!(timeouts.idle, Millis::seconds(3));
        assert_eq!(timeouts.total, Millis::minutes(10));
    }
}
