//! Fleets to stand tests on: several gateways in this process, one store, scripted providers.

use serde_json::Value;
use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_journal::api::fleet::FleetView;
use tidegate_testkit::{
    gate::{Gate, chat},
    http::Answer,
    time::eventually,
};

use crate::store::Store;

pub const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// The admin token of every replica.
pub const ADMIN: &str = "an-admin-token-of-a-test";
pub const CHAT: &str = "/v1/chat/completions";

/// What a replica differs by.
#[derive(Clone)]
pub struct Setup<'a> {
    pub urls: Vec<String>,
    pub tiers: &'a str,
    pub provider: &'a str,
    /// Keys of the first provider only.
    pub first: &'a str,
    pub route: &'a str,
    pub health: &'a str,
    pub secret: &'a str,
    pub fleet: &'a str,
    pub store: String,
}

impl<'a> Setup<'a> {
    pub fn of(store: &Store, fakes: &[&FakeServer]) -> Self {
        Self {
            urls: fakes.iter().map(|fake| fake.url()).collect(),
            tiers: "[[a/m], [b/m]]",
            provider: "",
            first: "",
            route: "",
            health: "",
            secret: SECRET,
            fleet: "prod",
            store: store.url(),
        }
    }

    /// Starts a replica, and waits until the store is there for it.
    pub fn start(&self, replica: &str) -> Gate {
        let gate = self.start_alone(replica);
        is_connected(&gate);
        gate
    }

    /// Starts a replica whose first secret is a new one.
    pub fn start_rotated(&self, replica: &str, new: &str) -> Gate {
        let gate = self.start_with(replica, "[env:NEW, env:FLEET]", new);
        is_connected(&gate);
        gate
    }

    /// Starts a replica, whatever the store does.
    pub fn start_alone(&self, replica: &str) -> Gate {
        self.start_with(replica, "env:FLEET", "")
    }

    fn start_with(&self, replica: &str, secret: &str, new: &str) -> Gate {
        let Self { tiers, provider, first, route, health, fleet, store, .. } = self;
        let line = |(url, name): (&String, char)| {
            let own = if name == 'a' { first } else { "" };
            format!("  {name}: {{api: openai, url: '{url}/v1', {provider}{own}}}\n")
        };
        let providers: String = self.urls.iter().zip('a'..='z').map(line).collect();
        let yaml = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0', token: env:ADMIN}}\n\
             health: {{probe: {{every: 0s}}, {health}}}\n\
             providers:\n{providers}routes:\n  r: {{tiers: {tiers}, {route}}}\n\
             state: {{redis: '{store}', secret: {secret}, fleet: {fleet}, replica: {replica}}}\n"
        );
        let keys = [("FLEET", self.secret), ("NEW", new), ("K1", "sk-one"), ("K2", "sk-two")];
        let keys = [&keys[..], &[("ADMIN", ADMIN)]].concat();
        Gate::start(&yaml, &keys)
    }

    /// Three replicas.
    pub fn three(&self) -> [Gate; 3] {
        ["one", "two", "three"].map(|name| self.start(name))
    }
}

/// Waits until a replica has reached its store.
pub fn is_connected(gate: &Gate) {
    eventually("the store is there", || fleet_of(gate)["store"]["is_up"] == true);
}

/// What `GET /api/fleet` says, which is what its type says.
pub fn fleet_of(gate: &Gate) -> Value {
    let answer = gate.admin("/api/fleet").json();
    let view: FleetView = serde_json::from_value(answer.clone()).expect("a fleet");
    assert_eq!(serde_json::to_value(&view).expect("JSON"), answer);
    answer
}

/// A chat request of a session.
pub fn ask_as(gate: &Gate, session: &str) -> Answer {
    gate.post_with(CHAT, &format!("x-tidegate-session: {session}\r\n"), &chat("r", false))
}

/// The target that answered.
pub fn target(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("x-tidegate-resolved").unwrap_or_default().to_owned()
}

pub fn good() -> FakeServer {
    FakeServer::start(Script::default())
}

pub fn always(step: Step) -> FakeServer {
    FakeServer::start(Script::always(step))
}

pub fn hits(fake: &FakeServer) -> u64 {
    fake.counts().seen
}
