//! The cells of the matrix: what was tried, what it means, and the page that shows it.
//!
//! No list says who can do what. A client can do what it did directly with some server; a server
//! has what it did directly for some client. Where both hold, the cell has to work through the
//! gateway, whether or not the two understand each other without it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::Value;

/// What is at the top of the page.
const HEAD: &str = "\
# Real clients and servers through the gateway

Written by `cargo xtask mcp`, which tries every cell with the published packages, directly and
through one gateway, and fails when this page and its findings differ. The pins are in `tests/mcp`.

A client *can* do what it does directly with some server; a server *has* what it does directly for
some client. Every cell where both hold works through the gateway:

| mark | meaning |
|---|---|
| ✓ | works |
| ✓ + | works through the gateway only: directly, the two do not understand each other |
| no server | the server has no such thing: no client gets it directly |
| no client | the client cannot: it does not do it directly with any server |

Columns: the list of tools; a call; progress of a call, in order; a call that is cancelled, and
another after it; news of a changed list; a tool that asks for elicitation and sampling (HTTP+SSE of
2024-11-05, our own server: sampling); updates of a resource the client asked to hear of. Clients
marked `sessions` speak the era before 2026-07-28 only; the others try the stateless era first, the
inspector nothing else.
";

/// Who (client, server) and what.
type CellKey = (String, String, String);

/// What became of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Works,
    OnlySo,
    NoServer,
    NoClient,
    /// With the words of the failure.
    Lost(String),
}

/// All of them.
pub(super) struct Cells {
    about: Vec<(String, String)>,
    clients: Vec<String>,
    columns: Vec<String>,
    cells: BTreeMap<CellKey, Cell>,
}

impl Cells {
    /// Judges what the programs wrote: one line of JSON for each thing they tried.
    pub(super) fn read(about: &Value, records: &str) -> anyhow::Result<Self> {
        let mut tried: BTreeMap<(String, CellKey), Option<String>> = BTreeMap::new();
        for line in records.lines() {
            let record: Value = serde_json::from_str(line)
                .with_context(|| format!("a program wrote `{line}`, which is no record"))?;
            let word = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            let key = (word("client"), word("server"), word("column"));
            tried.insert((word("way"), key), record["failed"].as_str().map(str::to_owned));
        }
        let names = |part: &str| -> Vec<String> {
            let all = about[part].as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (clients, columns) = (names("clients"), names("columns"));
        let servers = about["servers"].as_object().context("there are no servers")?;
        let about: Vec<(String, String)> = servers
            .iter()
            .map(|(name, it)| (name.clone(), it["about"].as_str().unwrap_or_default().to_owned()))
            .collect();

        let direct = |((way, key), failed): (&(String, CellKey), &Option<String>)| {
            (way == "direct" && failed.is_none()).then(|| key.clone())
        };
        let done: Vec<CellKey> = tried.iter().filter_map(direct).collect();
        let can: BTreeSet<_> = done.iter().map(|(client, _, it)| (client, it)).collect();
        let has: BTreeSet<_> = done.iter().map(|(_, server, it)| (server, it)).collect();
        let mut cells = BTreeMap::new();
        for (client, (server, _), column) in product(&clients, &about, &columns) {
            let of = |way: &str, column: &str| {
                let key = (client.clone(), server.clone(), column.to_owned());
                tried.get(&(way.to_owned(), key)).cloned()
            };
            let cell = match of("gateway", column) {
                // Whoever cannot even call directly does not meet the server there.
                Some(None) if matches!(of("direct", "call"), Some(Some(_))) => Cell::OnlySo,
                Some(None) => Cell::Works,
                _ if !has.contains(&(server, column)) => Cell::NoServer,
                _ if !can.contains(&(client, column)) => Cell::NoClient,
                failed => Cell::Lost(failed.flatten().unwrap_or_else(|| "not tried".to_owned())),
            };
            cells.insert((client.clone(), server.clone(), column.clone()), cell);
        }
        Ok(Self { about, clients, columns, cells })
    }

    /// How many work.
    pub(super) fn working(&self) -> usize {
        self.cells.values().filter(|it| matches!(it, Cell::Works | Cell::OnlySo)).count()
    }

    /// How many cannot be, with or without a gateway.
    pub(super) fn absent(&self) -> usize {
        self.cells.values().filter(|it| matches!(it, Cell::NoServer | Cell::NoClient)).count()
    }

    /// Those that should work and do not, in words.
    pub(super) fn lost(&self) -> Vec<String> {
        let words = |((client, server, column), cell): (&CellKey, &Cell)| match cell {
            Cell::Lost(why) => Some(format!("{client} × {server} × {column}: {why}")),
            _ => None,
        };
        self.cells.iter().filter_map(words).collect()
    }

    /// The page that is committed.
    pub(super) fn page(&self) -> String {
        let mut page = HEAD.to_owned();
        let titles: Vec<String> = self.columns.iter().map(|it| it.replace('_', " ")).collect();
        for (server, about) in &self.about {
            page += &format!("\n## `{server}`\n\n{about}\n\n| client | {} |\n", titles.join(" | "));
            page += &format!("|---|{}\n", "---|".repeat(titles.len()));
            for client in &self.clients {
                let mark = |column: &String| {
                    let key = (client.clone(), server.clone(), column.clone());
                    match self.cells.get(&key) {
                        Some(Cell::Works) => "✓",
                        Some(Cell::OnlySo) => "✓ +",
                        Some(Cell::NoServer) => "no server",
                        Some(Cell::NoClient) => "no client",
                        Some(Cell::Lost(_)) | None => "LOST",
                    }
                };
                let marks: Vec<&str> = self.columns.iter().map(mark).collect();
                page += &format!("| {client} | {} |\n", marks.join(" | "));
            }
        }
        page
    }
}

fn product<'a, A, B, C>(
    one: &'a [A],
    two: &'a [B],
    three: &'a [C],
) -> impl Iterator<Item = (&'a A, &'a B, &'a C)> {
    one.iter().flat_map(move |a| two.iter().flat_map(move |b| three.iter().map(move |c| (a, b, c))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Cell, Cells};

    /// The cell of client `old` at server `new` for `progress`, and of all the cells the lost.
    fn judged(records: &[(&str, &str, &str, &str, Option<&str>)]) -> (Cell, usize) {
        let about = json!({
            "clients": ["old", "new"], "columns": ["call", "progress"],
            "servers": {"old": {"about": "an old one"}, "new": {"about": "a new one"}},
        });
        let line = |&(way, client, server, column, failed): &(_, _, _, _, Option<&str>)| {
            json!({"way": way, "client": client, "server": server, "column": column,
                   "failed": failed})
            .to_string()
        };
        let text = records.iter().map(line).collect::<Vec<_>>().join("\n");
        let cells = Cells::read(&about, &text).expect("the records are sound");
        let key = ("old".to_owned(), "new".to_owned(), "progress".to_owned());
        (cells.cells[&key].clone(), cells.lost().len())
    }

    #[test]
    fn a_cell_that_both_can_do_elsewhere_has_to_work_through_the_gateway() {
        let can = ("direct", "old", "old", "progress", None);
        let has = ("direct", "new", "new", "progress", None);
        let broken = ("gateway", "old", "new", "progress", Some("silence"));
        assert_eq!(judged(&[can, has, broken]).0, Cell::Lost("silence".to_owned()));
        assert_eq!(judged(&[can, has]).0, Cell::Lost("not tried".to_owned()));
        assert_eq!(judged(&[can, broken]).0, Cell::NoServer);
        assert_eq!(judged(&[has, broken]).0, Cell::NoClient);
    }

    #[test]
    fn a_cell_that_works_without_a_direct_meeting_is_marked() {
        let works = ("gateway", "old", "new", "progress", None);
        let stranger = ("direct", "old", "new", "call", Some("no common version"));
        assert_eq!(judged(&[works]), (Cell::Works, 0));
        assert_eq!(judged(&[works, stranger]), (Cell::OnlySo, 0));
    }
}
