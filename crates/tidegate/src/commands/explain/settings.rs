//! The settings that decide about a backend, and the lines of the config where they stand.

use tidegate_config::Config;
use tidegate_config::document::{self, Document};
use tidegate_config::file::HealthFile;
use tidegate_config::path::KeyPath;
use tidegate_config::source::Source;
use tidegate_console::explain::Setting;

/// What the id of an MCP server begins with.
const SERVER: &str = "mcp:";

/// The settings of a backend's breaker.
pub(super) fn of(source: &Source, config: &Config, id: &str) -> Vec<Setting> {
    let file = &config.file;
    let mut layers = vec![(KeyPath::default().key("health"), &file.health)];
    if let Some(server) = id.strip_prefix(SERVER) {
        let path = KeyPath::default().key("mcp").key("servers").key(server).key("health");
        layers.extend(file.mcp.servers.get(server).map(|it| (path, &it.health)));
    } else if let Some((provider, model)) = id.split_once('/')
        && let Some(known) = file.providers.get(provider)
    {
        let path = KeyPath::default().key("providers").key(provider);
        layers.push((path.key("health"), &known.health));
        let path = path.key("targets").key(model).key("health");
        layers.extend(known.targets.get(model).map(|it| (path, &it.health)));
    }
    let files: Vec<&HealthFile> = layers.iter().map(|(_, it)| *it).collect();
    let settings = HealthFile::resolve(&files);
    let span = |it: tidegate_core::time::Millis| tidegate_console::words::took(it.0);
    let document = document::parse(source).document;
    let place = |key: &str| place(source, document.as_ref(), &layers, key);
    let setting =
        |name: &str, value: String| Setting { name: name.to_owned(), value, place: place(name) };
    vec![
        setting("failure_threshold", settings.failure_threshold.to_string()),
        setting("open_for", span(settings.open_for)),
        setting("recovery_threshold", settings.recovery_threshold.to_string()),
    ]
}

/// Where a key stands that is in force: the innermost layer that has it.
fn place(
    source: &Source,
    document: Option<&Document>,
    layers: &[(KeyPath, &HealthFile)],
    key: &str,
) -> String {
    let spans = layers.iter().rev().filter_map(|(path, _)| document?.span_of(&path.key(key)));
    let span = spans.into_iter().next();
    span.map_or_else(
        || "the default".to_owned(),
        |span| format!("{}:{}", source.name(), source.place(span.start).line),
    )
}
