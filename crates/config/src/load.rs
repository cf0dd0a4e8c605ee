//! The one way in: a file's text to a config that can be used, with everything there is to say.

use std::collections::BTreeSet;

use crate::{
    address::Address,
    check::check,
    codes,
    diagnostic::{Diagnostic, Problems, quoted},
    document::parse,
    file::ConfigFile,
    resolve::{Config, resolve},
    secret::Environment,
    shape::{Decoded, decode_all},
    source::Source,
};

/// What loading a config gave.
#[derive(Debug)]
pub struct Loaded {
    /// The config; none if there is an error among the diagnostics.
    pub config: Option<Config>,
    /// Everything that is wrong or that somebody should look at, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// How much the file holds, as far as it could be understood.
    pub summary: Summary,
}

impl Loaded {
    /// Whether the file could not be read as YAML at all.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_unreadable)
    }
}

/// How much a config holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Targets that a route or `targets` names.
    pub targets: usize,
    /// Routes.
    pub routes: usize,
    /// MCP servers.
    pub servers: usize,
}

impl Summary {
    fn of(file: &ConfigFile) -> Self {
        let in_routes =
            file.routes.values().flat_map(|route| route.tiers.iter().flatten().cloned());
        let listed = file.providers.iter().flat_map(|(provider, settings)| {
            settings.targets.keys().map(move |model| format!("{provider}/{model}"))
        });
        let targets: BTreeSet<String> = in_routes.chain(listed).collect();
        Self { targets: targets.len(), routes: file.routes.len(), servers: file.mcp.servers.len() }
    }
}

/// What the command line says instead of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// In place of `listen`.
    pub listen: Option<Address>,
    /// In place of `admin.listen`.
    pub admin_listen: Option<Address>,
}

impl Overrides {
    fn apply(self, file: &mut ConfigFile) {
        file.listen = self.listen.unwrap_or(file.listen);
        file.admin.listen = self.admin_listen.unwrap_or(file.admin.listen);
    }
}

/// Loads a config: parses it, checks it, and resolves it if it has no errors.
#[must_use]
pub fn load(source: &Source, environment: &dyn Environment) -> Loaded {
    load_with(source, environment, Overrides::default())
}

/// [`load`], with some keys decided by the command line. They are checked as if they were written
/// in the file.
#[must_use]
pub fn load_with(source: &Source, environment: &dyn Environment, overrides: Overrides) -> Loaded {
    let parsed = parse(source);
    let mut problems = Problems::default();
    problems.extend(parsed.problems);
    let Some(document) = parsed.document else {
        let diagnostics = problems.into_list();
        return Loaded { config: None, diagnostics, summary: Summary::default() };
    };
    let Decoded { value: mut file, problems: shape_problems, secrets } =
        decode_all::<ConfigFile>(&document);
    problems.absorb(shape_problems);
    if let Some(file) = &mut file {
        overrides.apply(file);
    }
    if let Some(file) = &file {
        problems.absorb(check(source, &document, file, environment));
    }
    let has_nothing = |file: &ConfigFile| file.routes.is_empty() && file.mcp.servers.is_empty();
    if !problems.has_errors() && file.as_ref().is_some_and(has_nothing) {
        let message = format!("{} has no route and no MCP server", quoted(source.name()));
        problems.add(
            Diagnostic::error(&codes::config::NOTHING_TO_SERVE, message)
                .help("add `routes` or `mcp.servers`; `tidegate help config` shows a whole file"),
        );
    }
    let diagnostics = problems.into_list().into_iter();
    let diagnostics: Vec<Diagnostic> =
        diagnostics.map(|problem| problem.without_secrets(&secrets)).collect();
    let summary = file.as_ref().map(Summary::of).unwrap_or_default();
    let is_sound = !diagnostics.iter().any(Diagnostic::is_error);
    let config = file.filter(|_| is_sound).map(|file| resolve(source, file, environment));
    Loaded { config, diagnostics, summary }
}
