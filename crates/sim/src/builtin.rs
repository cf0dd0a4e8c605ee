//! The examples that come with the binary, by name.
//!
//! They are the files of `/scenarios`, embedded as they are: what an example shows is what a user
//! can copy and change.

use tidegate_config::source::Source;

use crate::scenario::{Origin, Scenario, load_from};

/// One example.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

macro_rules! examples {
    ($form:literal: $($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $form, "/", $name, ".yaml")),
        }),*]
    };
}

/// The sequences, in the order they are listed.
static SEQUENCES: &[Builtin] = examples!("sequence":
    "single", "flat", "cascade", "halfopen", "grid", "regression", "ratelimit", "authflip",
    "crossmodel", "degrade", "inactive", "withintier", "multiaffinity", "promotionhold", "flapping",
);

/// The timelines, in the order they are listed.
static TIMELINES: &[Builtin] = examples!("timeline":
    "brownout", "hard-outage", "429-storm", "total-loss", "recovery-herd", "metastable", "gray",
    "long-soak", "least-latency", "least-busy", "weighted", "round-robin", "fleet-429",
    "fleet-outage", "fleet-partition",
);

/// The MCP scenarios, in the order they are listed.
static MCP: &[Builtin] = examples!("mcp":
    "unhealthy-at-open", "recovered-at-open", "crash-mid-session", "keepalive-disable",
    "session-lost", "replica-dies", "era-changes", "stateless-client", "parked-question",
    "probe-returns", "waiting-call",
);

/// Every example, in the order they are listed.
pub fn all() -> impl Iterator<Item = &'static Builtin> + Clone {
    SEQUENCES.iter().chain(TIMELINES).chain(MCP)
}

/// The example of this name.
#[must_use]
pub fn get(name: &str) -> Option<&'static Builtin> {
    all().find(|builtin| builtin.name == name)
}

impl Builtin {
    /// The scenario. A test loads every one, so there is always one.
    #[must_use]
    pub fn scenario(&self) -> Option<Scenario> {
        let source = Source::new(format!("{}.yaml", self.name), self.text);
        load_from(&source, &Origin::Builtin(self.name)).0
    }
}
