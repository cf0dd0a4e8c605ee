//! What `tidegate check` found, as a summary for people and a document for scripts.
//!
//! The problems themselves are drawn by the config crate; here they are counted, and the file's
//! meaning (how many of what, and the tiers of each route) is put into a few lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_config::diagnostic::Diagnostic;
use tidegate_config::source::Source;
use tidegate_config::{Config, Loaded, Summary};

use super::dialects::{self, Service};
use super::predict::{self, Prediction};

/// Space between two columns of the route table.
const GAP: &str = "     ";

/// The findings about one file.
pub(super) struct Report {
    file: String,
    pub(super) problems: Vec<Diagnostic>,
    counts: Summary,
    /// The routes of a sound file.
    routes: Option<Vec<Route>>,
    /// What single providers are restricted to.
    served: Vec<Served>,
    /// Which clients each route serves.
    services: Vec<Service>,
    /// What would become of each route in outages.
    pub(super) predictions: Vec<Prediction>,
}

/// A provider's name and the endpoints that it serves.
type Served = (String, Vec<&'static str>);

/// A route's name and the targets of its tiers.
type Route = (String, Vec<Vec<String>>);

impl Report {
    /// The findings about a file that was read.
    pub(super) fn of(source: &Source, loaded: Loaded) -> Self {
        Self {
            file: source.name().to_owned(),
            problems: loaded.diagnostics,
            counts: loaded.summary,
            routes: loaded.config.as_ref().map(routes),
            served: loaded.config.as_ref().map(served).unwrap_or_default(),
            services: loaded.config.as_ref().map(dialects::services).unwrap_or_default(),
            predictions: Vec::new(),
        }
    }

    /// The findings about a file that could not be read.
    pub(super) fn unread(file: &str, problem: Diagnostic) -> Self {
        Self {
            file: file.to_owned(),
            problems: vec![problem],
            counts: Summary::default(),
            routes: None,
            served: Vec::new(),
            services: Vec::new(),
            predictions: Vec::new(),
        }
    }

    /// How many problems stop the file from being used.
    pub(super) fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.is_error()).count()
    }

    fn warnings(&self) -> usize {
        self.problems.len() - self.errors()
    }

    /// The closing lines: counts, and the route table if the file is sound.
    pub(super) fn summary(&self, width: usize, is_ascii: bool) -> String {
        let warnings = match self.warnings() {
            0 => String::new(),
            count => format!(", {}", plural(count, "warning")),
        };
        let (file, counts) = (&self.file, counted(self.counts));
        if let Some(routes) = &self.routes {
            let but = warnings.replacen(", ", ", with ", 1);
            let table = table(routes, width, is_ascii);
            let only =
                |(name, words): &Served| format!("  {name} serves only {}\n", words.join(", "));
            let served: String = self.served.iter().map(only).collect();
            let clients = dialects::lines(&self.services);
            let outages = predict::lines(&self.predictions, file);
            return format!("{file} is sound{but}. {counts}.\n{table}{served}{clients}{outages}");
        }
        // A file of which nothing could be understood has no counts to tell.
        let counts =
            if self.counts == Summary::default() { String::new() } else { format!(" ({counts})") };
        format!("{}{warnings} in {file}{counts}\n", plural(self.errors(), "error"))
    }

    /// The one document of `--json`.
    pub(super) fn json(&self, source: &Source) -> Value {
        let tiers = self.routes.as_ref().map(|routes| {
            let route = |(name, tiers): &Route| (name.clone(), json!(tiers));
            Value::Object(routes.iter().map(route).collect())
        });
        json!({
            "file": self.file,
            "sound": self.routes.is_some(),
            "errors": self.errors(),
            "warnings": self.warnings(),
            "problems": self.problems.iter().map(|one| one.json(source)).collect::<Vec<_>>(),
            "targets": self.counts.targets,
            "routes": self.counts.routes,
            "servers": self.counts.servers,
            "tiers": tiers,
            "predictions": self.predictions.iter().map(Prediction::json).collect::<Vec<_>>(),
            "clients": dialects::document(&self.services),
            "serves": self.served.iter().cloned().collect::<BTreeMap<_, _>>(),
        })
    }
}

/// Each route with its tiers, in the order of the file.
fn routes(config: &Config) -> Vec<Route> {
    config.file.routes.iter().map(|(name, route)| (name.clone(), route.tiers.clone())).collect()
}

/// The providers that do not serve everything, in the order of the file.
fn served(config: &Config) -> Vec<Served> {
    let providers = config.file.providers.iter();
    let restricted = providers.filter(|(_, provider)| provider.restricts_kinds());
    restricted
        .map(|(name, provider)| {
            let words = provider.serves.iter().flatten().map(|word| word.word());
            (name.clone(), words.collect())
        })
        .collect()
}

fn counted(counts: Summary) -> String {
    let targets = plural(counts.targets, "target");
    let routes = plural(counts.routes, "route");
    format!("{targets}, {routes}, {}", plural(counts.servers, "MCP server"))
}

/// One row per route, its tiers side by side; where that is wider than the terminal, one row per
/// tier.
fn table(routes: &[Route], width: usize, is_ascii: bool) -> String {
    let between = if is_ascii { ", " } else { " · " };
    let names = routes.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
    let rows: Vec<RouteRow> = routes
        .iter()
        .map(|(name, tiers)| {
            let cell = |(rank, targets): (usize, &Vec<String>)| {
                format!("tier {rank} {}", targets.join(between))
            };
            (pad(name, names), tiers.iter().enumerate().map(cell).collect())
        })
        .collect();
    let wide = side_by_side(&rows);
    if wide.lines().all(|line| columns(line) <= width) { wide } else { stacked(&rows) }
}

/// A route's padded name and a cell per tier.
type RouteRow = (String, Vec<String>);

fn side_by_side(rows: &[RouteRow]) -> String {
    let tiers = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..tiers)
        .map(|rank| rows.iter().filter_map(move |(_, cells)| cells.get(rank)))
        .map(|cells| cells.map(|cell| columns(cell)).max().unwrap_or(0))
        .collect();
    let line = |(name, cells): &RouteRow| {
        let cells: Vec<_> =
            cells.iter().zip(&widths).map(|(cell, width)| pad(cell, *width)).collect();
        let row = format!("  {name}    {}", cells.join(GAP));
        format!("{}\n", row.trim_end())
    };
    rows.iter().map(line).collect()
}

fn stacked(rows: &[RouteRow]) -> String {
    let mut out = String::new();
    for (name, cells) in rows {
        let blank = " ".repeat(columns(name));
        for (index, cell) in cells.iter().enumerate() {
            let first = if index == 0 { name } else { &blank };
            out.push_str(&format!("  {first}    {cell}\n"));
        }
    }
    out
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, width: usize) -> String {
    format!("{text:width$}")
}

/// `1 tool`, `2 tools`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use tidegate_config::Summary;
    use tidegate_config::codes;
    use tidegate_config::diagnostic::Diagnostic;

    use super::{Report, Route};

    fn routes() -> Vec<Route> {
        let tier = |targets: &[&str]| targets.iter().map(|one| (*one).to_owned()).collect();
        vec![
            ("fast".to_owned(), vec![tier(&["openai/a", "anthropic/b"]), tier(&["local/c"])]),
            ("mana/long".to_owned(), vec![tier(&["anthropic/b"]), tier(&["openai/a"])]),
        ]
    }

    /// Two routes; sound unless one of the problems is an error.
    fn report(problems: Vec<Diagnostic>) -> Report {
        let is_sound = !problems.iter().any(Diagnostic::is_error);
        Report {
            file: "tidegate.yaml".to_owned(),
            problems,
            counts: Summary { targets: 3, routes: 2, servers: 1 },
            routes: is_sound.then(routes),
            served: Vec::new(),
            services: Vec::new(),
            predictions: Vec::new(),
        }
    }

    #[test]
    fn a_sound_file_shows_its_routes_side_by_side_where_they_fit() {
        let expected = "\
tidegate.yaml is sound. 3 targets, 2 routes, 1 MCP server.
  fast         tier 0 openai/a · anthropic/b     tier 1 local/c
  mana/long    tier 0 anthropic/b                tier 1 openai/a
";
        assert_eq!(report(Vec::new()).summary(80, false), expected);
    }

    #[test]
    fn a_narrow_terminal_gets_a_row_per_tier_and_ascii_gets_commas() {
        let expected = "\
tidegate.yaml is sound, with 1 warning. 3 targets, 2 routes, 1 MCP server.
  fast         tier 0 openai/a, anthropic/b
               tier 1 local/c
  mana/long    tier 0 anthropic/b
               tier 1 openai/a
";
        let warning = Diagnostic::warning(&codes::UNKNOWN_KEY, "x");
        assert_eq!(report(vec![warning]).summary(60, true), expected);
    }

    #[test]
    fn a_file_with_errors_shows_counts_and_no_routes() {
        let error = || Diagnostic::error(&codes::UNKNOWN_KEY, "x");
        let warning = Diagnostic::warning(&codes::UNKNOWN_KEY, "x");
        let expected = "2 errors, 1 warning in tidegate.yaml (3 targets, 2 routes, 1 MCP server)\n";
        assert_eq!(report(vec![error(), error(), warning]).summary(80, false), expected);
    }

    #[test]
    fn a_file_nothing_of_which_was_understood_shows_no_counts() {
        let report = Report::unread("t.yaml", Diagnostic::error(&codes::UNKNOWN_KEY, "x"));
        assert_eq!(report.summary(80, false), "1 error in t.yaml\n");
    }
}
