//! Reading the config again: what changed, what needs a restart, and how it is logged.
//!
//! Every kind of reload (a signal, a changed file, the admin API) goes through `reload`, so an
//! operator reads the same words whichever it was.
//!
//! Rules kept here:
//! - A config that is not sound changes nothing; every problem of it is logged with its place.
//! - A line says what changed by key, never by value.
//! - What only a start can change is named, because nothing else would tell.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use serde_json::Value;
use tidegate_config::{
    Overrides,
    diagnostic::Diagnostic,
    secret::{Environment, SecretRef},
    source::{FileProblem, Source},
};
use tidegate_gateway::{
    gateway::Gateway,
    live::Live,
    prepare::{Asked, StartError, prepare_for},
    provider::any_model,
};

use tidegate_journal::event::{EventBody, ReloadRecord};

/// Changed keys that are named in a line; more are counted.
const NAMED: usize = 12;

/// Who asked for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadCause {
    /// SIGHUP.
    Signal,
    /// The config file, or a file with a secret, changed.
    File,
    /// `POST /api/reload`.
    Api,
}

impl ReloadCause {
    const fn word(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::File => "file",
            Self::Api => "api",
        }
    }
}

/// What a new config brought.
#[derive(Clone, Debug)]
pub struct Reloaded {
    /// The start of the config's hash.
    pub fingerprint: String,
    /// What somebody should look at.
    pub warnings: Vec<Diagnostic>,
    /// The keys that differ from the config before.
    pub changed: Vec<String>,
    /// The keys whose new value is used only after a restart.
    pub restart: Vec<&'static str>,
}

/// Checks a config whole, swaps it in if it is good, and logs what happened.
pub fn reload(
    gateway: &Gateway,
    source: &Source,
    environment: &dyn Environment,
    cause: ReloadCause,
) -> Result<Reloaded, StartError> {
    let outcome = swap(gateway, source, environment);
    let by = cause.word();
    match &outcome {
        Ok(done) => {
            let changed = listed(&done.changed);
            tracing::info!(by, sha = done.fingerprint, changed, "config reloaded");
            if !done.restart.is_empty() {
                let keys = done.restart.join(", ");
                tracing::warn!(keys, "a changed setting is used only after a restart");
            }
            warnings(source, &done.warnings);
            record(gateway, by, done.changed.clone(), Vec::new());
        }
        Err(error) => {
            refused(source, error, by);
            record(gateway, by, Vec::new(), problems(source, error));
        }
    }
    outcome
}

/// Writes a reload into the journal; it was refused if there are problems.
fn record(gateway: &Gateway, by: &'static str, changed: Vec<String>, problems: Vec<String>) {
    let now = gateway.now();
    let record = ReloadRecord {
        at: now,
        by,
        is_taken: problems.is_empty(),
        sha: gateway.live.load().fingerprint.as_str().into(),
        changed,
        problems,
    };
    gateway.journal.event(now, EventBody::Reload(Arc::new(record)));
}

/// What is wrong with a config, one line each; never a value of it.
fn problems(source: &Source, error: &StartError) -> Vec<String> {
    let StartError::Config(problems) = error else { return vec![error.to_string()] };
    let errors = problems.iter().filter(|it| it.is_error()).take(NAMED);
    let line = |it: &Diagnostic| format!("{} {}: {}", it.code.id, place(source, it), it.message);
    errors.map(line).collect()
}

/// Logs that a config file could not be read again.
pub fn unreadable(gateway: &Gateway, problem: &FileProblem, cause: ReloadCause) {
    let (by, problem) = (cause.word(), problem.to_string());
    record(gateway, by, Vec::new(), vec![problem.clone()]);
    tracing::error!(by, problem, "config not reloaded: the previous one stays in force");
}

/// Logs what somebody should look at in a config that is in force.
pub fn warnings(source: &Source, warnings: &[Diagnostic]) {
    for warning in warnings {
        let (at, help) = (place(source, warning), warning.help.join("; "));
        let (code, problem) = (warning.code.id, warning.message.as_str());
        tracing::warn!(code, at, problem, help, "the config has a warning");
    }
}

fn refused(source: &Source, error: &StartError, by: &'static str) {
    let StartError::Config(problems) = error else {
        let problem = error.to_string();
        return tracing::error!(
            by,
            problem,
            "config not reloaded: the previous one stays in force"
        );
    };
    let errors: Vec<&Diagnostic> = problems.iter().filter(|it| it.is_error()).collect();
    let count = errors.len();
    tracing::error!(by, problems = count, "config not reloaded: the previous one stays in force");
    for problem in errors {
        let (at, help) = (place(source, problem), problem.help.join("; "));
        let (code, words) = (problem.code.id, problem.message.as_str());
        tracing::error!(code, at, problem = words, help, "the config has an error");
    }
}

fn place(source: &Source, diagnostic: &Diagnostic) -> String {
    diagnostic.span.map_or_else(|| source.name().to_owned(), |span| source.location(span))
}

fn listed(changed: &[String]) -> String {
    match changed.len() {
        0 => "nothing".to_owned(),
        count if count > NAMED => {
            format!("{} and {} more", changed[..NAMED].join(", "), count - NAMED)
        }
        _ => changed.join(", "),
    }
}

fn swap(
    gateway: &Gateway,
    source: &Source,
    environment: &dyn Environment,
) -> Result<Reloaded, StartError> {
    let _one_at_a_time = gateway.reloading.lock().unwrap_or_else(PoisonError::into_inner);
    let before = gateway.live.load_full();
    let path = before.path.clone();
    let (fixed, overrides) = match gateway.fixed.get() {
        Some((fixed, overrides)) => (Some(fixed), *overrides),
        None => (None, Overrides::default()),
    };
    let asked = Asked { private: gateway.private.get(), overrides };
    let (live, warnings) =
        prepare_for(asked, source, path, environment, Some((&*before, gateway.now())))?;
    let changed = changed(&before, &live);
    let restart = fixed.map(|fixed| fixed.differing(&live.file)).unwrap_or_default();
    let fingerprint = live.fingerprint.clone();
    gateway.take(live);
    Ok(Reloaded { fingerprint, warnings, changed, restart })
}

/// The keys that differ, in the order of the file format: named by provider, route and server.
fn changed(before: &Live, after: &Live) -> Vec<String> {
    let value = |live: &Live| serde_json::to_value(&live.file).unwrap_or_default();
    let mut keys = Vec::new();
    differing("", &value(before), &value(after), &mut keys);
    // A secret is compared by what was resolved: its reference may be the same as before.
    for name in after.file.providers.keys() {
        let credentials =
            |live: &Live| live.target(&any_model(name)).map(|target| target.credentials.clone());
        let is_new = !before.file.providers.contains_key(name);
        if !is_new && credentials(before) != credentials(after) {
            keys.push(format!("providers.{name}.key"));
        }
    }
    if !before.callers.has_the_keys_of(&after.callers) {
        keys.push("keys".to_owned());
    }
    if before.admin_token != after.admin_token {
        keys.push("admin.token".to_owned());
    }
    let mut seen = BTreeSet::new();
    keys.retain(|key| seen.insert(key.clone()));
    keys
}

fn differing(path: &str, before: &Value, after: &Value, keys: &mut Vec<String>) {
    let goes_deeper = matches!(path, "" | "providers" | "routes" | "mcp" | "mcp.servers");
    let (Value::Object(old), Value::Object(new), true) = (before, after, goes_deeper) else {
        if before != after {
            keys.push(path.to_owned());
        }
        return;
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    for key in new.keys().chain(gone) {
        let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let value = |of: &serde_json::Map<String, Value>| of.get(key).cloned().unwrap_or_default();
        differing(&inner, &value(old), &value(new), keys);
    }
}

/// The files whose change is a change of the config: itself, and those with secrets.
pub fn watched(live: &Live) -> Vec<PathBuf> {
    let file = &live.file;
    let providers = file.providers.values().flat_map(|it| {
        let keys = it.key.iter().chain(it.keys.iter().flatten());
        keys.chain(it.headers.values()).chain(&it.ca)
    });
    let servers = file.mcp.servers.values();
    let servers = servers.flat_map(|it| it.headers.values().chain(it.env.values()).chain(&it.ca));
    let callers = file.keys.iter().flatten().map(|it| &it.key);
    let all = providers.chain(servers).chain(callers).chain(&file.admin.token);
    let path_of = |reference: &SecretRef| match reference {
        SecretRef::File(path) => Some(live.folder.join(path)),
        SecretRef::Env(_) | SecretRef::Literal(_) => None,
    };
    let secrets: BTreeSet<PathBuf> = all.filter_map(path_of).collect();
    live.path.iter().map(|path: &PathBuf| Path::to_owned(path)).chain(secrets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_gateway::fixed::Fixed;
    use tidegate_gateway::test_bed::{self, TWO_PROVIDERS};

    #[test]
    fn a_change_is_named_by_its_key() {
        let before = test_bed::live(TWO_PROVIDERS);
        let text = TWO_PROVIDERS
            .replace("[[two/large]]", "[[two/large], [one/small]]")
            .replace("default_route: fast", "default_route: slow\nlog: {level: debug}")
            .replace("key: env:KEY, targets", "key: env:CALLER, targets");
        let after = test_bed::live(&text);
        assert_eq!(
            changed(&before, &after),
            ["providers.two", "routes.slow", "default_route", "log", "providers.two.key"]
        );
        assert_eq!(changed(&before, &before), [""; 0]);
    }

    #[test]
    fn what_a_start_decides_is_told_apart() {
        let before = test_bed::live(TWO_PROVIDERS);
        let text = format!("{TWO_PROVIDERS}listen: 127.0.0.1:1\nshutdown: {{drain: 1s}}\n");
        let after = test_bed::live(&text);
        let fixed = Fixed::of(&before.file);
        assert_eq!(fixed.differing(&before.file), [""; 0]);
        assert_eq!(fixed.differing(&after.file), ["listen", "shutdown.drain"]);
    }
}
