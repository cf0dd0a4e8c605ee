//! A checked file into the core's settings.
//!
//! Rules kept here:
//! - One endpoint per provider; one key per key reference, and one nameless key for a provider
//!   without any; one backend for every target that a route or `targets` names, and one for every
//!   MCP server.
//! - Identities are what health survives a reload by: a url, a key's reference (never its value),
//!   url and model, or a command.
//! - A key that cannot be resolved is not used. A provider with keys and none of them usable is
//!   `unconfigured`: its targets stand in their routes and are skipped.
//!
//! The file is taken to be free of errors: unknown names were reported by `check.rs`, and are left
//! out here.

use std::collections::BTreeMap;

use tidegate_core::{
    settings::{
        Abilities, BackendSettings, EndpointSettings, HoldLimits, KeyFingerprint, KeySettings,
        MemberSettings, Membership, RouteSettings, Settings,
    },
    time::Millis,
};

use crate::{
    abilities::abilities,
    file::{ConfigFile, HealthFile, ProviderFile, RouteFile, SecretList, ServerFile, TargetFile},
    secret::{Environment, Secret},
    source::Source,
    store_url::StoreUrl,
};

/// The bound on pins; at some 100 bytes each, 10 MB.
const MAX_PINS: usize = 100_000;

/// A config that can be used.
#[derive(Clone, Debug)]
pub struct Config {
    /// What was written.
    pub file: ConfigFile,
    /// What it means to the core.
    pub settings: Settings,
    /// The value of each of `settings.keys`; none where a provider has no key, or it is not there.
    pub secrets: Vec<Option<Secret>>,
    /// What each provider became, by name.
    pub providers: BTreeMap<String, ResolvedProvider>,
    /// What makes it one of a fleet, if the file says so.
    pub state: Option<FleetState>,
}

/// What `state` became.
#[derive(Clone, Debug)]
pub struct FleetState {
    /// Where the store is.
    pub url: StoreUrl,
    /// The fleet's secrets; the first one writes, all of them read. Never empty.
    pub secrets: Vec<Secret>,
}

/// What a provider became in the core's settings.
#[derive(Clone, Debug)]
pub struct ResolvedProvider {
    /// Its place in `settings.endpoints`.
    pub endpoint: usize,
    /// Its usable keys, as places in `settings.keys`; all of them if none is usable.
    pub keys: Vec<usize>,
    /// Whether it can be used with them.
    pub membership: Membership,
}

/// Resolves a file that has no errors.
pub(crate) fn resolve(source: &Source, file: ConfigFile, environment: &dyn Environment) -> Config {
    let mut resolver = Resolver {
        file: &file,
        source,
        environment,
        settings: Settings {
            max_pins: MAX_PINS,
            hold_limits: HoldLimits {
                stream_bytes: file.limits.hold.0,
                answer_bytes: file.limits.answer.0,
            },
            ..Settings::default()
        },
        secrets: Vec::new(),
        providers: BTreeMap::new(),
        backends: BTreeMap::new(),
    };
    resolver.providers();
    resolver.routes();
    resolver.targets();
    resolver.servers();
    let state = resolver.state();
    let Resolver { settings, secrets, providers, .. } = resolver;
    let providers = providers.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
    Config { file, settings, secrets, providers, state }
}

/// The url that a provider's requests go to, or a stand-in for one inside the process.
#[must_use]
pub fn provider_url(name: &str, provider: &ProviderFile) -> String {
    let written = provider.url.clone();
    let public = || provider.api.public_url().map(str::to_owned);
    written.or_else(public).unwrap_or_else(|| format!("fake:{name}"))
}

struct Resolver<'a> {
    file: &'a ConfigFile,
    source: &'a Source,
    environment: &'a dyn Environment,
    settings: Settings,
    secrets: Vec<Option<Secret>>,
    /// What is known of each provider.
    providers: BTreeMap<&'a str, ResolvedProvider>,
    /// Backends by id.
    backends: BTreeMap<String, usize>,
}

impl<'a> Resolver<'a> {
    fn providers(&mut self) {
        for (name, provider) in &self.file.providers {
            let endpoint = self.settings.endpoints.len();
            self.settings.endpoints.push(EndpointSettings {
                id: name.clone(),
                identity: provider_url(name, provider),
                health: HealthFile::resolve(&[&self.file.health, &provider.health]),
                // Whoever serves with the config names things to its fleet, if there is one.
                fleet_names: Vec::new(),
            });
            let (keys, membership) = self.keys(name, provider);
            self.providers.insert(name, ResolvedProvider { endpoint, keys, membership });
        }
    }

    /// The keys of a provider, and whether it can be used with them.
    fn keys(&mut self, name: &str, provider: &ProviderFile) -> (Vec<usize>, Membership) {
        let references: Vec<_> =
            provider.key.iter().chain(provider.keys.iter().flatten()).collect();
        if references.is_empty() {
            let index = self.add_key(name, 1, format!("{name} none"), None);
            return (vec![index], Membership::Active);
        }
        let mut all = Vec::new();
        let mut usable = Vec::new();
        for (position, reference) in references.into_iter().enumerate() {
            let secret = reference.resolve(self.environment, self.source.folder()).ok();
            let is_usable = secret.is_some();
            let identity = format!("{name} {}", reference.name());
            let index = self.add_key(name, position + 1, identity, secret);
            all.push(index);
            if is_usable {
                usable.push(index);
            }
        }
        if usable.is_empty() {
            (all, Membership::Unconfigured)
        } else {
            (usable, Membership::Active)
        }
    }

    fn add_key(
        &mut self,
        provider: &str,
        number: usize,
        identity: String,
        secret: Option<Secret>,
    ) -> usize {
        let id = format!("{provider}#{number}");
        // Whoever serves with the config makes fingerprints of `secrets`.
        let fingerprint = KeyFingerprint::default();
        self.settings.keys.push(KeySettings { id, identity, fingerprint, fleet_names: Vec::new() });
        self.secrets.push(secret);
        self.settings.keys.len() - 1
    }

    fn routes(&mut self) {
        for (name, route) in &self.file.routes {
            let tiers = route
                .tiers
                .iter()
                .map(|tier| tier.iter().filter_map(|target| self.member(route, target)).collect());
            let tiers = tiers.collect();
            self.settings.routes.push(RouteSettings {
                name: name.clone(),
                tiers,
                tactic: route.pick.into(),
                affinity_ttl: route.affinity.ttl.millis(),
                pin: route.affinity.pin.into(),
                deadline: route.deadline.millis(),
                max_hops: route.max_hops,
                patience_share: route.patience_share,
                budget: route.retry_budget.settings(),
                last_resort: route.last_resort.settings(),
                on_auth_error: route.on_auth_error.into(),
                hold: route.hold.settings(),
            });
        }
    }

    fn member(&mut self, route: &RouteFile, target: &str) -> Option<MemberSettings> {
        let (provider, model) = target.split_once('/')?;
        let backend = self.backend(provider, model)?;
        let membership = self.providers.get(provider)?.membership;
        let weight = route.weights.get(target).copied().unwrap_or(1);
        Some(MemberSettings { backend, weight, membership })
    }

    /// Targets that no route names still have health.
    fn targets(&mut self) {
        for (name, provider) in &self.file.providers {
            for model in provider.targets.keys() {
                self.backend(name, model);
            }
        }
    }

    /// The backend of a target, made when it is first named.
    fn backend(&mut self, provider_name: &str, model: &str) -> Option<usize> {
        let id = format!("{provider_name}/{model}");
        if let Some(index) = self.backends.get(&id) {
            return Some(*index);
        }
        let provider = self.file.providers.get(provider_name)?;
        let known = self.providers.get(provider_name)?;
        let nothing = TargetFile::default();
        let target = provider.targets.get(model).unwrap_or(&nothing);
        let timeouts = provider.timeouts_of(model);
        let url = provider_url(provider_name, provider);
        let known_of_provider = Abilities {
            protocol: provider.api.protocol(),
            serves: Some(provider.kinds()),
            ..Abilities::default()
        };
        let settings = BackendSettings {
            id: id.clone(),
            identity: format!("{url} {model}"),
            endpoint: Some(known.endpoint),
            keys: known.keys.clone(),
            health: HealthFile::resolve(&[&self.file.health, &provider.health, &target.health]),
            first_content_within: sum(timeouts.connect, timeouts.first_content),
            answer_within: timeouts.total,
            abilities: abilities(target, provider.api, &url, model, known_of_provider),
            fleet_names: Vec::new(),
        };
        Some(self.add_backend(id, settings))
    }

    fn servers(&mut self) {
        for (name, server) in &self.file.mcp.servers {
            let id = format!("mcp:{name}");
            let within =
                sum(self.file.mcp.connect_timeout.millis(), self.file.mcp.call_timeout.millis());
            let settings = BackendSettings {
                id: id.clone(),
                identity: server_identity(server),
                endpoint: None,
                keys: Vec::new(),
                health: HealthFile::resolve(&[&self.file.health, &server.health]),
                first_content_within: within,
                answer_within: within,
                abilities: Abilities::default(),
                fleet_names: Vec::new(),
            };
            self.add_backend(id, settings);
        }
    }

    /// What `check.rs` has found sound; nothing where values are made up.
    fn state(&self) -> Option<FleetState> {
        let state = self.file.state.as_ref()?;
        let values = |list: &SecretList| -> Option<Vec<Secret>> {
            let folder = self.source.folder();
            list.0.iter().map(|it| it.resolve(self.environment, folder).ok()).collect()
        };
        let (urls, secrets) = (values(&state.redis)?, values(&state.secret)?);
        let url = StoreUrl::parse(urls.iter().map(Secret::expose)).ok()?;
        (!secrets.is_empty()).then_some(FleetState { url, secrets })
    }

    fn add_backend(&mut self, id: String, settings: BackendSettings) -> usize {
        let index = self.settings.backends.len();
        self.settings.backends.push(settings);
        self.backends.insert(id, index);
        index
    }
}

fn server_identity(server: &ServerFile) -> String {
    let command = || server.command.as_ref().map(|command| command.join(" "));
    let fake = || server.fake.map(|fake| format!("fake {fake:?}"));
    server.url.clone().or_else(command).or_else(fake).unwrap_or_default()
}

const fn sum(one: Millis, other: Millis) -> Millis {
    Millis(one.0.saturating_add(other.0))
}

#[cfg(test)]
mod tests;
