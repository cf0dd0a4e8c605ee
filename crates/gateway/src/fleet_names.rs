//! What the replicas of a fleet call this config's providers, targets, keys and servers.
//!
//! Names are HMACs of what a thing is, url and model or a key's value, and not of its place in a
//! file: replicas with different configs never speak of two things by one name.
//!
//! Nothing has a name that belongs to its replica: programs, fakes, and what says `fleet: false`.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tidegate_config::{Config, file::ConfigFile, provider_url};
use tidegate_core::names::{Fingerprint, FleetSettings};
use tidegate_fleet::{
    identity::InstanceId,
    seal::{FleetSecrets, hex},
};
use tidegate_mcp::health;

use crate::provider::any_model;

/// What a fake provider's url begins with.
const INSIDE: &str = "fake:";

/// The start of a hash of what replicas of one fleet should have in common: their config without
/// their own addresses and names.
#[must_use]
pub fn shared_sha(file: &ConfigFile) -> String {
    let (mut file, usual) = (file.clone(), ConfigFile::default());
    (file.listen, file.admin.listen) = (usual.listen, usual.admin.listen);
    if let Some(state) = &mut file.state {
        (state.peer_listen, state.peer_url) = (None, None);
        state.replica.clear();
    }
    let text = serde_json::to_vec(&file).unwrap_or_default();
    hex(&Sha256::digest(&text)[..4])
}

/// What makes a gateway one of a fleet: drawn and derived once, at its start.
#[derive(Clone, Debug)]
pub struct FleetMember {
    /// The fleet's keys.
    pub secrets: Arc<FleetSecrets>,
    /// Which run of which replica it is.
    pub instance: InstanceId,
}

impl FleetMember {
    /// As a config says; `None` without `state`, or if the system gives no random numbers.
    pub fn of(config: &Config) -> Option<Self> {
        let (file, state) = (config.file.state.as_ref()?, config.state.as_ref()?);
        let secrets = state.secrets.iter().map(tidegate_config::secret::Secret::expose);
        let secrets = Arc::new(FleetSecrets::new(&file.fleet, secrets)?);
        Some(Self { secrets, instance: InstanceId::draw()? })
    }

    /// Gives everything that is shared its names.
    pub fn apply(&self, config: &mut Config) {
        let Config { file, settings, secrets: keys, providers, .. } = config;
        let named = |kind: &str, parts: &[&[u8]]| self.secrets.fingerprints(kind, parts);
        settings.fleet = Some(FleetSettings {
            replica: self.instance.replica(),
            hash_keys: self.secrets.hash_keys(),
        });
        for (name, resolved) in &*providers {
            let Some(provider) = file.providers.get(name).filter(|it| it.fleet) else { continue };
            let url = provider_url(name, provider);
            let url = url.trim_end_matches('/');
            if url.starts_with(INSIDE) {
                continue;
            }
            settings.endpoints[resolved.endpoint].fleet_names =
                named("endpoint", &[url.as_bytes()]);
            for at in &resolved.keys {
                let value = keys.get(*at).and_then(Option::as_ref);
                settings.keys[*at].fleet_names = match value {
                    Some(value) => named("key", &[value.expose().as_bytes()]),
                    None => named("no key", &[url.as_bytes()]),
                };
            }
            let any = any_model(name);
            for backend in &mut settings.backends {
                let model = backend.id.strip_prefix(name).and_then(|rest| rest.strip_prefix('/'));
                let is_its = backend.endpoint == Some(resolved.endpoint);
                let Some(model) = model.filter(|_| is_its) else { continue };
                // What stands for all other models is no model of that name.
                let kind = if backend.id == any { "any model" } else { "model" };
                backend.fleet_names = named(kind, &[url.as_bytes(), model.as_bytes()]);
            }
        }
        for (name, server) in file.mcp.servers.iter().filter(|(_, it)| it.fleet) {
            let Some(url) = &server.url else { continue };
            let id = health::backend_id(name);
            let names: Vec<Fingerprint> = named("server", &[url.as_bytes()]);
            if let Some(backend) = settings.backends.iter_mut().find(|it| it.id == id) {
                backend.fleet_names = names;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_config::{load, secret::FixedEnvironment, source::Source};

    use super::*;

    const STATE: &str = "state: {redis: redis://127.0.0.1, secret: env:FLEET}\n";

    fn named(yaml: &str, secret: &str) -> Config {
        let variables = [("FLEET", secret), ("K", "sk-one"), ("L", "sk-two")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = FixedEnvironment { variables: variables.to_vec(), files: Vec::new() };
        let loaded = load(&Source::new("t.yaml", &format!("{STATE}{yaml}")), &environment);
        let mut config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        FleetMember::of(&config).expect("a member").apply(&mut config);
        config
    }

    fn of_backend<'a>(config: &'a Config, id: &str) -> &'a [Fingerprint] {
        let backend = config.settings.backends.iter().find(|it| it.id == id);
        &backend.expect("a backend").fleet_names
    }

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_name_goes_by_what_a_thing_is_and_not_by_its_place_in_a_file() {
        let one = named(
            "providers:\n  a: {api: openai, url: 'http://x/v1', keys: [env:K, env:L]}\n\
             routes: {r: {tiers: [[a/m, a/n]]}}",
            SECRET,
        );
        let other = named(
            "providers:\n  z: {api: openai, url: 'http://y/v1', key: env:L}\n\
             \x20 b: {api: openai, url: 'http://x/v1/', key: env:L}\n\
             routes: {q: {tiers: [[z/m, b/m]]}}",
            SECRET,
        );
        assert_eq!(of_backend(&one, "a/m"), of_backend(&other, "b/m"));
        assert_ne!(of_backend(&one, "a/m"), of_backend(&one, "a/n"));
        assert_ne!(of_backend(&other, "z/m"), of_backend(&other, "b/m"));
        let (keys, others) = (&one.settings.keys, &other.settings.keys);
        assert_eq!(keys[1].fleet_names, others[0].fleet_names);
        assert_ne!(keys[0].fleet_names, keys[1].fleet_names);
        let stranger = named(
            "providers:\n  a: {api: openai, url: 'http://x/v1', key: env:K}\n\
             routes: {r: {tiers: [[a/m, a/n]]}}",
            &SECRET.replace('0', "1"),
        );
        assert_ne!(of_backend(&one, "a/m"), of_backend(&stranger, "a/m"));
    }

    #[test]
    fn what_belongs_to_its_replica_has_no_name() {
        let config = named(
            "providers:\n  own: {api: openai, url: 'http://127.0.0.1:1/v1', fleet: false, \
             key: env:K}\n\x20 inside: {api: fake}\n\
             routes: {r: {tiers: [[own/m, inside/m]]}}\n\
             mcp: {servers: {p: {command: [x]}, f: {fake: steady}, \
             off: {url: 'http://x/mcp', fleet: false}, on: {url: 'http://x/mcp'}}}",
            SECRET,
        );
        for id in ["own/m", "inside/m", "mcp:p", "mcp:f", "mcp:off"] {
            assert!(of_backend(&config, id).is_empty(), "{id}");
        }
        assert!(!of_backend(&config, "mcp:on").is_empty());
        assert!(config.settings.keys.iter().all(|it| it.fleet_names.is_empty()));
        assert!(config.settings.endpoints.iter().all(|it| it.fleet_names.is_empty()));
    }
}
