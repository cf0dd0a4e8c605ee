//! Configs to stand tests on: a few words of YAML become something that serves.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tidegate_config::{
    file::{LogFile, LogFormat, LogLevel},
    load,
    secret::Environment,
    source::Source,
};
use tidegate_runtime::clock::Clock;

use crate::{gateway::Gateway, live::Live, log::Log};

/// A provider's key, which nothing may ever print.
pub const PROVIDER_CANARY: &str = "canary-provider-6f1c";
/// A caller's key, which nothing may ever print.
pub const CALLER_CANARY: &str = "canary-caller-90ab";
/// The admin token, which nothing may ever print.
pub const ADMIN_CANARY: &str = "canary-admin-77d3";

/// Two providers behind one route, with secrets in every place that takes one.
pub const TWO_PROVIDERS: &str = "
admin: {token: env:ADMIN}
keys:
  - {name: ci, key: env:CALLER, routes: [fast]}
  - {name: all, key: env:CALLER_ALL}
providers:
  one: {api: openai, url: 'http://127.0.0.1:9/v1', key: env:KEY, headers: {x-extra: env:KEY}}
  two: {api: anthropic, url: 'http://127.0.0.1:9', key: env:KEY, targets: {spare: {}}}
routes:
  fast: {about: short answers, match: [gpt-4o-mini], tiers: [[one/small], [two/large]]}
  slow: {tiers: [[two/large]]}
default_route: fast
";

/// The environment of the tests.
#[derive(Debug)]
pub struct Variables(BTreeMap<&'static str, &'static str>);

impl Default for Variables {
    fn default() -> Self {
        Self(BTreeMap::from([
            ("KEY", PROVIDER_CANARY),
            ("CALLER", CALLER_CANARY),
            ("CALLER_ALL", "canary-caller-all"),
            ("ADMIN", ADMIN_CANARY),
        ]))
    }
}

impl Environment for Variables {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| (*value).to_owned())
    }

    fn file(&self, _: &Path) -> Result<String, String> {
        Err("there are no files here".to_owned())
    }
}

/// A config at work, named `f1`.
pub fn live(yaml: &str) -> Live {
    live_as(yaml, "f1")
}

/// A config at work.
pub fn live_as(yaml: &str, fingerprint: &str) -> Live {
    let source = Source::new("tidegate.yaml", yaml);
    let loaded = load(&source, &Variables::default());
    let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    let place = (None, source.folder());
    Live::new(config, place, fingerprint.to_owned(), &Variables::default(), None, 7)
        .expect("the providers of a test can be used")
}

/// A gateway over a config.
pub fn gateway(yaml: &str) -> Arc<Gateway> {
    gateway_at(live(yaml), "127.0.0.1:8701")
}

/// A gateway whose admin listener is at an address.
pub fn gateway_at(live: Live, admin: &str) -> Arc<Gateway> {
    let address = ([127, 0, 0, 1], 8700).into();
    let admin = admin.parse().expect("an address");
    Arc::new(Gateway::new(live, Clock::start(), address, admin))
}

/// What `talk` writes into a log with these settings.
pub fn log_lines(format: LogFormat, level: LogLevel, talk: impl FnOnce()) -> Vec<String> {
    let file = LogFile { format, level, access: true };
    let written = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&written);
    let sink = move |line: &str| into.lock().expect("no writer panics").push(line.to_owned());
    let (log, _) = Log::new(&file, Clock::start(), Box::new(sink));
    tracing::subscriber::with_default(log, talk);
    let lines = written.lock().expect("no writer panics");
    lines.clone()
}
