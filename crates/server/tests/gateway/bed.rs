//! Gateways to stand tests on: a few words of YAML around scripted providers.
//!
//! Providers are called `a`, `b`, `c` … in the order given, each with the target `m`; the route is
//! `r`. Probes are off, since they would be calls that a test did not make.

use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::gate::Gate;

/// What a test wants to differ. Everything is a piece of YAML in flow style.
pub struct Setup<'a> {
    /// The url of each provider.
    pub urls: Vec<String>,
    /// The api of all providers.
    pub api: &'a str,
    /// The route's tiers.
    pub tiers: &'a str,
    /// Further keys of every provider.
    pub provider: &'a str,
    /// Further keys of the route.
    pub route: &'a str,
    /// Keys of `health`.
    pub health: &'a str,
    /// Further top-level keys, in block style.
    pub top: &'a str,
    /// Variables that secrets refer to.
    pub variables: &'a [(&'a str, &'a str)],
}

impl<'a> Setup<'a> {
    /// All providers speak OpenAI; the first is tier 0, the second tier 1 and so on.
    pub fn of(fakes: &[&FakeServer]) -> Self {
        let tiers = match fakes.len() {
            0 | 1 => "[[a/m]]",
            2 => "[[a/m], [b/m]]",
            _ => "[[a/m], [b/m], [c/m]]",
        };
        Self {
            urls: fakes.iter().map(|fake| fake.url()).collect(),
            api: "openai",
            tiers,
            provider: "",
            route: "",
            health: "",
            top: "",
            variables: &[],
        }
    }

    pub fn yaml(&self) -> String {
        let Self { api, tiers, provider, route, health, top, .. } = self;
        let base = if *api == "openai" { "/v1" } else { "" };
        let line = |(url, name): (&String, char)| {
            format!("  {name}: {{api: {api}, url: '{url}{base}', {provider}}}\n")
        };
        let providers: String = self.urls.iter().zip('a'..='z').map(line).collect();
        format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
             health: {{probe: {{every: 0s}}, {health}}}\n\
             providers:\n{providers}routes:\n  r: {{tiers: {tiers}, {route}}}\n{top}\n"
        )
    }

    pub fn start(&self) -> Gate {
        Gate::start(&self.yaml(), self.variables)
    }
}

/// A provider that answers well.
pub fn good() -> FakeServer {
    FakeServer::start(Script::default())
}

/// A provider that does the same with every call.
pub fn always(step: Step) -> FakeServer {
    FakeServer::start(Script::always(step))
}

/// How many calls a provider has received.
pub fn hits(fake: &FakeServer) -> u64 {
    fake.counts().seen
}
