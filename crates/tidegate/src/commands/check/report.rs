//! What `tidegate check` found, as a summary for people and a document for scripts.
//!
//! The problems themselves are drawn by the config crate; here they are counted, and the file's
//! meaning (how many of what, and the tiers of each route) is put into a few lines.

use serde_json::{Value, json};
use tidegate_config::diagnostic::Diagnostic;
use tidegate_config::source::Source;

/// Space between two columns of the route table.
const GAP: &str = "     ";

/// The findings about one file.
pub(super) struct Report {
    file: String,
    pub(super) problems: Vec<Diagnostic>,
    meaning: Option<Meaning>,
}

/// What a file that could be understood means.
pub(super) struct Meaning {
    pub(super) targets: usize,
    pub(super) servers: usize,
    /// Each route's name and the targets of its tiers.
    pub(super) routes: Vec<(String, Vec<Vec<String>>)>,
}

impl Report {
    /// The findings about `source`; `meaning` where the file could be understood.
    pub(super) fn new(
        source: &Source,
        problems: Vec<Diagnostic>,
        meaning: Option<Meaning>,
    ) -> Self {
        Self { file: source.name().to_owned(), problems, meaning }
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
        let (errors, warnings) = (self.errors(), self.warnings());
        let mut found = Vec::new();
        if errors > 0 {
            found.push(plural(errors, "error"));
        }
        if warnings > 0 {
            found.push(plural(warnings, "warning"));
        }
        let (found, file) = (found.join(", "), &self.file);
        let but = if warnings > 0 { format!(", with {found}") } else { String::new() };
        match (&self.meaning, errors) {
            (None, 0) => format!("{file} is sound{but}.\n"),
            (Some(meaning), 0) => {
                let counts = meaning.counts();
                format!("{file} is sound{but}. {counts}.\n{}", meaning.table(width, is_ascii))
            }
            (Some(meaning), _) => format!("{found} in {file} ({})\n", meaning.counts()),
            (None, _) => format!("{found} in {file}\n"),
        }
    }

    /// The one document of `--json`.
    pub(super) fn json(&self, source: &Source) -> Value {
        let meaning = self.meaning.as_ref();
        let routes = meaning.map(|meaning| {
            let route = |(name, tiers): &(String, Vec<Vec<String>>)| (name.clone(), json!(tiers));
            Value::Object(meaning.routes.iter().map(route).collect())
        });
        json!({
            "file": self.file,
            "sound": self.errors() == 0,
            "errors": self.errors(),
            "warnings": self.warnings(),
            "problems": self.problems.iter().map(|one| one.json(source)).collect::<Vec<_>>(),
            "targets": meaning.map(|meaning| meaning.targets),
            "servers": meaning.map(|meaning| meaning.servers),
            "routes": routes,
        })
    }
}

impl Meaning {
    fn counts(&self) -> String {
        let targets = plural(self.targets, "target");
        let routes = plural(self.routes.len(), "route");
        format!("{targets}, {routes}, {}", plural(self.servers, "MCP server"))
    }

    /// One row per route, its tiers side by side; where that is wider than the terminal, one row
    /// per tier.
    fn table(&self, width: usize, is_ascii: bool) -> String {
        let between = if is_ascii { ", " } else { " · " };
        let names = self.routes.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
        let rows: Vec<(String, Vec<String>)> = self
            .routes
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
}

fn side_by_side(rows: &[(String, Vec<String>)]) -> String {
    let tiers = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..tiers)
        .map(|rank| rows.iter().filter_map(move |(_, cells)| cells.get(rank)))
        .map(|cells| cells.map(|cell| columns(cell)).max().unwrap_or(0))
        .collect();
    let line = |(name, cells): &(String, Vec<String>)| {
        let cells: Vec<_> =
            cells.iter().zip(&widths).map(|(cell, width)| pad(cell, *width)).collect();
        let row = format!("  {name}    {}", cells.join(GAP));
        format!("{}\n", row.trim_end())
    };
    rows.iter().map(line).collect()
}

fn stacked(rows: &[(String, Vec<String>)]) -> String {
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

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::{Meaning, Report};
    use tidegate_config::codes;
    use tidegate_config::diagnostic::Diagnostic;
    use tidegate_config::source::Source;

    fn meaning() -> Meaning {
        let tier = |targets: &[&str]| targets.iter().map(|one| (*one).to_owned()).collect();
        Meaning {
            targets: 3,
            servers: 1,
            routes: vec![
                ("fast".to_owned(), vec![tier(&["openai/a", "anthropic/b"]), tier(&["local/c"])]),
                ("mana/long".to_owned(), vec![tier(&["anthropic/b"]), tier(&["openai/a"])]),
            ],
        }
    }

    fn check(problems: Vec<Diagnostic>, width: usize, is_ascii: bool, expected: &str) {
        let source = Source::new("tidegate.yaml", "");
        let summary = Report::new(&source, problems, Some(meaning())).summary(width, is_ascii);
        assert_eq!(summary, expected);
    }

    #[test]
    fn a_sound_file_shows_its_routes_side_by_side_where_they_fit() {
        let expected = "\
tidegate.yaml is sound. 3 targets, 2 routes, 1 MCP server.
  fast         tier 0 openai/a · anthropic/b     tier 1 local/c
  mana/long    tier 0 anthropic/b                tier 1 openai/a
";
        check(Vec::new(), 80, false, expected);
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
        check(vec![warning], 60, true, expected);
    }

    #[test]
    fn a_file_with_errors_shows_counts_and_no_routes() {
        let error = || Diagnostic::error(&codes::UNKNOWN_KEY, "x");
        let warning = Diagnostic::warning(&codes::UNKNOWN_KEY, "x");
        let expected = "2 errors, 1 warning in tidegate.yaml (3 targets, 2 routes, 1 MCP server)\n";
        check(vec![error(), error(), warning], 80, false, expected);
    }
}
