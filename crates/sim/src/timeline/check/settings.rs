//! `config` into the core's settings: written inline, the default, or a file.

use std::path::Path;

use indexmap::IndexMap;
use tidegate_config::{
    codes::BAD_VALUE,
    diagnostic::{Diagnostic, quoted},
    file::{Api, HealthFile, ProbeFile, TimeoutsFile},
    path::KeyPath,
};
use tidegate_core::{
    probe::ProbeSettings,
    settings::{
        Abilities, BackendSettings, EndpointSettings, HealthSettings, KeyFingerprint, KeySettings,
        MemberSettings, Membership, RouteSettings, Settings,
    },
    time::Millis,
};

use super::{ProblemCollector, config, fleet::name_all};
use crate::{
    codes::timeline as codes,
    timeline::{
        file::{ConfigKey, InlineConfig, InlineTarget, TimelineFile},
        plot::TimelineWorld,
        script::Script,
    },
};

/// As many pins as production keeps.
const MAX_PINS: usize = 100_000;

/// The world of a file: its settings and what stands behind each backend.
pub(super) fn world(
    file: &TimelineFile,
    scripts: IndexMap<String, Script>,
    folder: &Path,
    collector: &mut ProblemCollector<'_>,
) -> Option<TimelineWorld> {
    match &file.config {
        None => Some(inline(&InlineConfig::default(), scripts, collector)),
        Some(ConfigKey::Word(word)) if word == "default" => {
            Some(inline(&InlineConfig::default(), scripts, collector))
        }
        Some(ConfigKey::Word(path)) => {
            from_file((path, file.recording.is_some()), scripts, folder, collector)
        }
        Some(ConfigKey::Inline(config)) => Some(inline(config, scripts, collector)),
    }
}

/// The world of a config file, with the scripts behind the targets that have their names.
fn from_file(
    (path, is_recorded): (&str, bool),
    scripts: IndexMap<String, Script>,
    folder: &Path,
    collector: &mut ProblemCollector<'_>,
) -> Option<TimelineWorld> {
    let here = KeyPath::from("config");
    let mut refuse = |problem: String| {
        let name = path.lines().next().unwrap_or_default();
        let message = format!("`config`: {} cannot be used: {problem}", quoted(name));
        let diagnostic = Diagnostic::error(&codes::UNUSABLE_CONFIG, message)
            .help("write `default`, a map, or the path of a tidegate.yaml");
        collector.refuse(&here, diagnostic);
    };
    let read = if path.contains('\n') {
        config::read_text(path)
    } else {
        config::read(&folder.join(path))
    };
    let config = match read {
        Ok(config) => config,
        Err(problem) => {
            refuse(problem);
            return None;
        }
    };
    let Some(mut world) = config::world(&config) else {
        refuse("it has no route".to_owned());
        return None;
    };
    // A recording has requests to every route, another timeline to one.
    let cast: Vec<usize> = if is_recorded {
        (0..world.settings.backends.len()).collect()
    } else {
        world.cast().into_iter().map(|(backend, _)| backend).collect()
    };
    let ids: Vec<String> =
        cast.iter().map(|backend| world.settings.backends[*backend].id.clone()).collect();
    for (id, script) in scripts {
        if let Some(place) =
            collector.backend(&KeyPath::from("backends").key(id.clone()), &id, &ids)
        {
            world.scripts[cast[place]] = script;
        }
    }
    Some(world)
}

fn abilities(target: &InlineTarget) -> Abilities {
    Abilities {
        tools: target.tools,
        vision: target.vision,
        documents: target.documents,
        json_schema: target.json_schema,
        reasoning: target.reasoning,
        protocol: target.api.and_then(Api::protocol),
        ..Abilities::default()
    }
}

fn inline(
    config: &InlineConfig,
    scripts: IndexMap<String, Script>,
    collector: &mut ProblemCollector<'_>,
) -> TimelineWorld {
    let health = health(&config.health, collector);
    let (ids, scripts): (Vec<String>, Vec<Script>) = scripts.into_iter().unzip();
    let timeouts = TimeoutsFile::resolve(&[&config.timeouts]);
    let to_content = timeouts.connect.0.saturating_add(timeouts.first_content.0);
    let mut settings = Settings { max_pins: MAX_PINS, ..Settings::default() };
    let keys_each = usize::from(config.keys.unwrap_or(1).max(1));
    for id in &ids {
        let provider = id.split_once('/').map_or(id.as_str(), |(provider, _)| provider);
        let endpoint = provider_of(&mut settings, provider, &health, keys_each);
        settings.backends.push(BackendSettings {
            id: id.clone(),
            identity: id.clone(),
            endpoint: Some(endpoint),
            keys: (endpoint * keys_each..(endpoint + 1) * keys_each).collect(),
            health: health.clone(),
            first_content_within: Millis(to_content),
            answer_within: timeouts.total,
            abilities: config.targets.get(id).map(abilities).unwrap_or_default(),
            fleet_names: Vec::new(),
        });
    }
    for id in config.targets.keys() {
        collector.backend(&KeyPath::from("config").key("targets").key(id.clone()), id, &ids);
    }
    settings.routes.push(route(config, &ids, collector));
    name_all(&mut settings, |_| true);
    TimelineWorld {
        route: 0,
        more_routes: Vec::new(),
        timeouts: vec![timeouts; ids.len()],
        probes: vec![probe(config); settings.endpoints.len()],
        scripts,
        settings,
    }
}

/// The endpoint of a provider; with it come its keys.
fn provider_of(
    settings: &mut Settings,
    provider: &str,
    health: &HealthSettings,
    keys_each: usize,
) -> usize {
    if let Some(known) = settings.endpoints.iter().position(|it| it.id == provider) {
        return known;
    }
    settings.endpoints.push(EndpointSettings {
        id: provider.to_owned(),
        identity: provider.to_owned(),
        health: health.clone(),
        fleet_names: Vec::new(),
    });
    for number in 1..=keys_each {
        let id = format!("{provider}#{number}");
        let fingerprint = KeyFingerprint(settings.keys.len() as u64 + 1);
        settings.keys.push(KeySettings {
            identity: id.clone(),
            id,
            fingerprint,
            fleet_names: Vec::new(),
        });
    }
    settings.endpoints.len() - 1
}

fn health(file: &HealthFile, collector: &mut ProblemCollector<'_>) -> HealthSettings {
    let settings = HealthFile::resolve(&[file]);
    let here = KeyPath::from("config").key("health");
    let problems = settings.problems();
    for problem in &problems {
        let path = here.key(problem.key);
        let message = format!("`{path}` {}", problem.rule);
        collector.refuse(&path, Diagnostic::error(&BAD_VALUE, message));
    }
    if problems.is_empty() { settings } else { HealthSettings::default() }
}

fn probe(config: &InlineConfig) -> ProbeSettings {
    let outer = config.health.probe.clone().unwrap_or_default();
    let resolved = ProbeFile::resolve(&[&outer, &config.probe]);
    ProbeSettings {
        every: resolved.every,
        timeout: resolved.timeout,
        heals: resolved.heals,
        pause_after: resolved.pause_after,
    }
}

fn route(
    config: &InlineConfig,
    ids: &[String],
    collector: &mut ProblemCollector<'_>,
) -> RouteSettings {
    let here = KeyPath::from("config");
    let tiers: Vec<Vec<usize>> = match &config.tiers {
        None => (0..ids.len()).map(|backend| vec![backend]).collect(),
        Some(tiers) => tiered(tiers, ids, &here.key("tiers"), collector),
    };
    for id in config.weights.keys() {
        collector.backend(&here.key("weights").key(id.clone()), id, ids);
    }
    let weight = |backend: usize| config.weights.get(&ids[backend]).copied().unwrap_or(1);
    let member = |backend: usize| MemberSettings {
        backend,
        weight: weight(backend),
        membership: Membership::Active,
    };
    if config.patience_share.is_some_and(|it| it.fraction() == 0.0) {
        let message = "`config.patience_share` of 0% leaves every attempt at once";
        let diagnostic = Diagnostic::error(&BAD_VALUE, message).label("must be more than 0%");
        collector.refuse(&here.key("patience_share"), diagnostic);
    }
    let defaults = RouteSettings::default();
    RouteSettings {
        name: "default".to_owned(),
        tiers: tiers.into_iter().map(|tier| tier.into_iter().map(member).collect()).collect(),
        tactic: config.pick.into(),
        affinity_ttl: config.affinity.as_ref().map_or(defaults.affinity_ttl, |it| it.millis()),
        pin: config.pin.into(),
        deadline: config.deadline.as_ref().map_or(defaults.deadline, |it| it.millis()),
        max_hops: config.max_hops.unwrap_or(defaults.max_hops),
        patience_share: config.patience_share.map_or(defaults.patience_share, |it| it.fraction()),
        budget: config.retry_budget.settings(),
        last_resort: config.last_resort.settings(),
        on_auth_error: config.on_auth_error.into(),
        hold: config.hold.settings(),
    }
}

fn tiered(
    tiers: &[Vec<String>],
    ids: &[String],
    here: &KeyPath,
    collector: &mut ProblemCollector<'_>,
) -> Vec<Vec<usize>> {
    let mut seen = Vec::new();
    let mut result = Vec::new();
    for (number, tier) in tiers.iter().enumerate() {
        let mut members = Vec::new();
        for (place, id) in tier.iter().enumerate() {
            let path = here.index(number).index(place);
            let Some(backend) = collector.backend(&path, id, ids) else { continue };
            if seen.contains(&backend) {
                let message = format!("`{path}`: {} stands twice in the tiers", quoted(id));
                collector.refuse(&path, Diagnostic::error(&codes::BAD_TIERS, message));
                continue;
            }
            seen.push(backend);
            members.push(backend);
        }
        result.push(members);
    }
    for (backend, id) in ids.iter().enumerate() {
        if !seen.contains(&backend) {
            let message = format!("{} has a script but stands in no tier", quoted(id));
            let path = KeyPath::from("backends").key(id.clone());
            collector.refuse_key(&path, Diagnostic::error(&codes::BAD_TIERS, message));
        }
    }
    result
}
