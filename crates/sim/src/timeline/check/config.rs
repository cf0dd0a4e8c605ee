//! A world from a config file: its settings as production would have them, and scripts behind
//! some of its targets.
//!
//! A simulation needs no keys: a provider whose key cannot be found here takes part like any other.

use std::path::Path;

use tidegate_config::{
    Config,
    diagnostic::Diagnostic,
    file::{ConfigFile, ProbeFile, Timeouts, TimeoutsFile},
    load,
    secret::Environment,
    source::{Source, read_file},
};
use tidegate_core::{
    probe::ProbeSettings,
    settings::{KeyFingerprint, Membership, Settings},
};

use super::fleet::name_all;
use crate::timeline::{plot::TimelineWorld, script::Script};

/// Long enough for whatever a secret is needed for.
const SIMULATED: &str = "simulated, and of no use to anybody";

/// Every secret is there, and none is real.
struct NoSecrets;

impl Environment for NoSecrets {
    fn variable(&self, _: &str) -> Option<String> {
        Some(SIMULATED.to_owned())
    }

    fn file(&self, _: &Path) -> Result<String, String> {
        Ok(SIMULATED.to_owned())
    }
}

/// Reads a config for a simulation.
pub(super) fn read(path: &Path) -> Result<Config, String> {
    let source = read_file(path).map_err(|problem| problem.to_string())?;
    read_source(&source)
}

/// The same of a text.
pub(super) fn read_text(text: &str) -> Result<Config, String> {
    read_source(&Source::new("config", text))
}

fn read_source(source: &Source) -> Result<Config, String> {
    let loaded = load(source, &NoSecrets);
    let errors = loaded.diagnostics.iter().filter(|it| it.is_error());
    let first = errors.clone().next().map(|it: &Diagnostic| it.message.clone());
    loaded.config.ok_or_else(|| match (first, errors.count()) {
        (Some(first), 1) => format!("it has a problem: {first}"),
        (Some(first), count) => format!("it has {count} problems, the first: {first}"),
        (None, _) => "it cannot be used".to_owned(),
    })
}

/// The world of a config, in which every backend is fine. `None` without a route.
pub(in crate::timeline) fn world(config: &Config) -> Option<TimelineWorld> {
    let mut settings = config.settings.clone();
    // Every key of the file is another one, though none is real.
    for (number, key) in settings.keys.iter_mut().enumerate() {
        key.fingerprint = KeyFingerprint(number as u64 + 1);
    }
    for member in settings.routes.iter_mut().flat_map(|it| it.tiers.iter_mut().flatten()) {
        if member.membership == Membership::Unconfigured {
            member.membership = Membership::Active;
        }
    }
    name_all(&mut settings, |_| true);
    let wanted = config.file.default_route.as_deref();
    let named = wanted.and_then(|name| settings.routes.iter().position(|it| it.name == name));
    let route = named.or((!settings.routes.is_empty()).then_some(0))?;
    Some(TimelineWorld {
        route,
        more_routes: Vec::new(),
        scripts: vec![Script::fine(); settings.backends.len()],
        timeouts: settings.backends.iter().map(|it| timeouts(&config.file, &it.id)).collect(),
        probes: probes(&config.file, &settings),
        settings,
    })
}

fn timeouts(file: &ConfigFile, id: &str) -> Timeouts {
    let (provider, model) = id.split_once('/').unwrap_or((id, ""));
    let provider = file.providers.get(provider);
    provider.map_or_else(|| TimeoutsFile::resolve(&[]), |it| it.timeouts_of(model))
}

fn probes(file: &ConfigFile, settings: &Settings) -> Vec<ProbeSettings> {
    let probe = |id: &str| {
        let layers = file.providers.get(id).map(|it| it.probe_layers(&file.health));
        ProbeFile::resolve(&layers.unwrap_or_else(|| file.health.probe.iter().collect()))
    };
    settings.endpoints.iter().map(|it| probe(&it.id)).collect()
}
