//! What serves at this moment: one config, resolved, with the core that goes on from the last one.
//!
//! A `Live` is immutable. A reload makes the next one and swaps it in; requests that have begun
//! keep the one they began with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_config::{
    Config,
    file::{ConfigFile, HealthFile, TimeoutsFile},
    model_name::{self, Destination, NotFound},
    secret::Environment,
    store_url::StoreUrl,
};
use tidegate_core::{
    core::Core,
    route::Route,
    settings::{
        Abilities, BackendSettings, KeyFingerprint, Kind, MemberSettings, Membership, RouteSettings,
    },
    time::{Millis, Now},
};

use tidegate_mcp::health;
use tidegate_runtime::rng;

use crate::{
    admin_token::AdminToken,
    caller::{Caller, Callers},
    certificates::WantedTls,
    fleet_names::FleetMember,
    provider::{ProviderError, Target, Targets, any_model, targets},
};

/// One config at work.
#[derive(Debug)]
pub struct Live {
    pub core: Core,
    pub file: ConfigFile,
    pub targets: Targets,
    pub callers: Callers,
    pub admin_token: AdminToken,
    /// The providers without a usable key.
    pub unconfigured: BTreeSet<String>,
    /// Names this config in logs and metrics: the start of a hash of its text.
    pub fingerprint: String,
    pub path: Option<PathBuf>,
    /// What relative paths of the config begin at.
    pub folder: PathBuf,
    /// What makes it one of a fleet.
    pub member: Option<FleetMember>,
    /// Where the fleet's store is.
    pub store: Option<StoreUrl>,
    /// What the listeners are to present.
    pub tls: WantedTls,
}

/// Where a model name leads, ready to begin a plan.
#[derive(Debug)]
pub struct ResolvedRoute<'a> {
    pub route: &'a Arc<Route>,
    pub origin: RouteOrigin<'a>,
    /// The model asked for, where the target does not say.
    pub model: Option<&'a str>,
}

/// Where a route comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteOrigin<'a> {
    /// The config has it, under this name.
    Config(&'a str),
    /// A client named a target: `provider/model`.
    Direct,
}

impl ResolvedRoute<'_> {
    /// The name used in metrics and logs: a route of the config, or `direct`.
    pub fn label(&self) -> &str {
        match self.origin {
            RouteOrigin::Config(name) => name,
            RouteOrigin::Direct => "direct",
        }
    }

    /// Whether a caller may use it, who asked for it by this name.
    pub fn is_open_to(&self, caller: &Caller, asked: Option<&str>) -> bool {
        caller.may_use(match self.origin {
            RouteOrigin::Config(name) => name,
            RouteOrigin::Direct => asked.unwrap_or_default(),
        })
    }
}

impl Live {
    /// Whether requests belong to traces that are exported.
    pub fn is_traced(&self) -> bool {
        cfg!(feature = "otlp") && self.file.telemetry.is_some()
    }

    /// A config, in place of `before` where there is one.
    pub fn new(
        mut config: Config,
        (path, folder): (Option<PathBuf>, &Path),
        fingerprint: String,
        environment: &dyn Environment,
        before: Option<(&Self, Now)>,
        seed: u64,
    ) -> Result<Self, ProviderError> {
        let keyless =
            config.providers.iter().filter(|(_, it)| it.membership == Membership::Unconfigured);
        let unconfigured = keyless.map(|(name, _)| name.clone()).collect();
        add_direct_routes(&mut config);
        add_server_routes(&mut config);
        add_fingerprints(&mut config);
        // Who this replica is, and the fleet's secret, are of the start.
        let member = match before {
            Some((before, _)) => before.member.clone(),
            None => FleetMember::of(&config),
        };
        if let Some(member) = &member {
            member.apply(&mut config);
        }
        let store = match before {
            Some((before, _)) => before.store.clone(),
            None => config.state.take().map(|state| state.url).filter(|_| member.is_some()),
        };
        let targets = targets(&config, folder, environment)?;
        let callers = Callers::new(&config.file, folder, environment);
        let admin_token = AdminToken::new(&config.file.admin, folder, environment);
        let core = match before {
            Some((before, now)) => before.core.reload(now, &config.settings),
            None => Core::with_jitter(&config.settings, seed, rng::draw()),
        };
        let (file, folder) = (config.file, folder.to_owned());
        Ok(Self {
            core,
            file,
            targets,
            callers,
            admin_token,
            unconfigured,
            fingerprint,
            path,
            folder,
            member,
            store,
            tls: WantedTls::default(),
        })
    }

    /// Where a model name leads.
    pub fn resolve<'a>(&'a self, asked: Option<&'a str>) -> Result<ResolvedRoute<'a>, NotFound> {
        let destination = model_name::destination(&self.file, asked)?;
        let (name, origin, model) = match destination {
            Destination::Route(name) => (name.to_owned(), RouteOrigin::Config(name), None),
            Destination::Target { provider, model } => {
                let known = direct(&format!("{provider}/{model}"));
                if self.core.route(&known).is_some() {
                    (known, RouteOrigin::Direct, None)
                } else {
                    (direct(&any_model(provider)), RouteOrigin::Direct, Some(model))
                }
            }
        };
        let route = self.core.route(&name).ok_or_else(|| NotFound {
            asked: asked.unwrap_or_default().to_owned(),
            routes: self.file.routes.keys().cloned().collect(),
            providers: self.file.providers.keys().cloned().collect(),
        })?;
        Ok(ResolvedRoute { route, origin, model })
    }

    /// Whether some provider takes requests for paths that are not known to be inference.
    pub fn serves_unlisted(&self) -> bool {
        self.file.providers.values().any(|provider| provider.kinds().has(Kind::Other))
    }

    pub fn target(&self, id: &str) -> Option<&Arc<Target>> {
        self.targets.get(id)
    }
}

/// A direct route's name: no name in a config can contain a line feed.
fn direct(target: &str) -> String {
    format!("direct\n{target}")
}

/// What a session's pin remembers a provider's key by: a number made from its value, so that it is
/// the same key wherever a reload puts it.
fn add_fingerprints(config: &mut Config) {
    for (key, secret) in config.settings.keys.iter_mut().zip(&config.secrets) {
        let value = secret.as_ref().map(|secret| secret.expose().as_bytes());
        key.fingerprint = KeyFingerprint(rng::keyed_hash(value.unwrap_or_default()));
    }
}

/// Every MCP server has a route of its own, and so has every group of them, so that a call walks
/// the same plan as a request.
fn add_server_routes(config: &mut Config) {
    let Config { file, settings, .. } = config;
    let place = |server: &str| {
        let id = health::backend_id(server);
        settings.backends.iter().position(|it| it.id == id)
    };
    let alone = file.mcp.servers.keys().map(|name| (&**name, vec![&**name]));
    let groups = file.mcp.seen().into_iter().filter(|it| it.members != [it.name]);
    let groups = groups.map(|it| (it.name, it.members));
    let routes = alone.chain(groups).filter_map(|(name, members)| {
        let places: Vec<usize> = members.into_iter().filter_map(place).collect();
        (!places.is_empty()).then(|| health::route(name, &places))
    });
    let routes: Vec<RouteSettings> = routes.collect();
    settings.routes.extend(routes);
}

/// `provider/model` works for every configured provider: a route of one candidate for every target
/// that has health of its own, and one per provider for all other models. (A request for one of
/// those has no alternative, so their shared health keeps nobody from asking.)
fn add_direct_routes(config: &mut Config) {
    let Config { file, settings, providers, .. } = config;
    let mut direct_routes = Vec::new();
    for (name, provider) in &*providers {
        let Some(written) = file.providers.get(name) else { continue };
        let timeouts = TimeoutsFile::resolve(&[&written.timeouts]);
        settings.backends.push(BackendSettings {
            id: any_model(name),
            identity: format!("{} *", settings.endpoints[provider.endpoint].identity),
            endpoint: Some(provider.endpoint),
            keys: provider.keys.clone(),
            health: HealthFile::resolve(&[&file.health, &written.health]),
            first_content_within: Millis(
                timeouts.connect.0.saturating_add(timeouts.first_content.0),
            ),
            answer_within: timeouts.total,
            abilities: Abilities {
                protocol: written.api.protocol(),
                serves: Some(written.kinds()),
                ..Abilities::default()
            },
            fleet_names: Vec::new(),
        });
        let of_provider =
            |(_, it): &(usize, &BackendSettings)| it.endpoint == Some(provider.endpoint);
        for (index, backend) in settings.backends.iter().enumerate().filter(of_provider) {
            let member =
                MemberSettings { backend: index, weight: 1, membership: provider.membership };
            direct_routes.push(RouteSettings {
                name: direct(&backend.id),
                tiers: vec![vec![member]],
                affinity_ttl: Millis::ZERO,
                ..RouteSettings::default()
            });
        }
    }
    settings.routes.extend(direct_routes);
}
