//! `tidegate tools list`: which tools a gateway offers.

use clap::Args;
use serde_json::{Value, json};
use tidegate_core::time::Millis;

use super::calm;
use super::gate::{self, GateArgs};
use crate::exit::Exit;
use crate::printer::Printer;

/// A gateway waits for its servers for seconds at most.
const WITHIN: Millis = Millis::seconds(60);
/// Descriptions get at least this many columns, or a line of their own.
pub(super) const ABOUT_MIN: usize = 24;

/// Which tools are offered?
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    gate: GateArgs,
    /// Print one JSON document, with every definition whole
    #[arg(long)]
    json: bool,
}

/// A row of the table.
struct ToolRow {
    name: String,
    server: String,
    about: String,
}

/// Prints the list.
pub(super) fn run(args: &ListArgs, printer: &Printer) -> Exit {
    let found = match gate::find(&args.gate, printer) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let tools = match found.gate.tools(WITHIN) {
        Ok(tools) => tools,
        Err(error) => return gate::explain(&found.url, &error, printer),
    };
    let parsed = tools.iter().map(|tool| serde_json::from_str(tool.get()));
    let tools: Vec<Value> = parsed.filter_map(Result::ok).collect();
    if args.json {
        printer.result(&format!("{:#}", json!({ "url": found.url, "tools": tools })));
        return Exit::Done;
    }
    if tools.is_empty() {
        printer.note("no tool is offered");
        printer.hint("`tidegate check --connect` shows which servers can be reached");
        return Exit::Done;
    }
    let rows: Vec<ToolRow> = tools.iter().map(|tool| row(tool, &found.servers)).collect();
    printer.result(&table(&rows, printer.width(), printer.is_ascii()));
    Exit::Done
}

fn row(tool: &Value, servers: &[String]) -> ToolRow {
    let text = |key: &str| tool[key].as_str().unwrap_or_default();
    let name = calm(text("name")).replace(['\n', '\t'], " ");
    let first = text("description").lines().map(str::trim).find(|line| !line.is_empty());
    let about = calm(first.unwrap_or_else(|| text("title"))).replace('\t', " ");
    ToolRow { server: server_of(&name, servers).unwrap_or_default().to_owned(), name, about }
}

/// The server whose name a tool's begins with.
pub(super) fn server_of<'a>(tool: &str, servers: &'a [String]) -> Option<&'a str> {
    let is_its = |server: &&String| {
        tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('_'))
    };
    // `a_b_c` may be of `a` or of `a_b`: the longer name says more.
    servers.iter().filter(is_its).max_by_key(|server| server.len()).map(String::as_str)
}

/// Names, servers where they are known, and as much of the descriptions as fits.
fn table(rows: &[ToolRow], width: usize, is_ascii: bool) -> String {
    let widest = |part: fn(&ToolRow) -> &str| rows.iter().map(|row| columns(part(row))).max();
    let names = widest(|row| &row.name).unwrap_or(0);
    let servers = widest(|row| &row.server).unwrap_or(0);
    let before = names + 2 + if servers > 0 { servers + 2 } else { 0 };
    let is_narrow = before + ABOUT_MIN > width;
    let mut out = String::new();
    for ToolRow { name, server, about } in rows {
        let head = match (is_narrow, servers) {
            (true, _) => format!("{name}\n    "),
            (false, 0) => format!("{name:names$}  "),
            (false, _) => format!("{name:names$}  {server:servers$}  "),
        };
        let room = if is_narrow { width.saturating_sub(4) } else { width - before };
        let line = format!("{head}{}", cut(about, room, is_ascii));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// At most `room` columns of a text, with a mark where it was cut.
pub(super) fn cut(text: &str, room: usize, is_ascii: bool) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mark = if is_ascii { "..." } else { "…" };
    let kept: String = text.chars().take(room.saturating_sub(columns(mark))).collect();
    format!("{}{mark}", kept.trim_end())
}

pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{row, table};

    #[test]
    fn rows_fit_60_80_and_120_columns_and_show_the_longest_server_that_fits() {
        let servers = ["a".to_owned(), "a_b".to_owned()];
        let long = "words ".repeat(40);
        let tools = [
            json!({"name": "a_b_read", "description": format!("\n {long}\nmore")}),
            json!({"name": "a_go", "title": "Go"}),
            json!({"name": "other"}),
        ];
        let rows: Vec<_> = tools.iter().map(|tool| row(tool, &servers)).collect();
        for width in [60, 80, 120] {
            let text = table(&rows, width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.starts_with("a_b_read  a_b  words words"), "{text}");
            assert!(text.ends_with("…\na_go      a    Go\nother\n"), "{text}");
        }
        assert!(table(&rows, 30, true).starts_with("a_b_read\n    words words"));
        assert!(table(&rows, 30, true).is_ascii());
    }
}
