//! `tidegate tools search`: which tool does this?
//!
//! It asks the gateway that `tools list` would ask. One with `tools: search` answers by its own
//! `find_tool`; of any other the tools are listed and ranked here, by the same index. Where no
//! gateway answers but a config was found, that config's servers are asked directly, as
//! `check --connect` asks them.
//!
//! Rules kept here:
//! - Whatever was asked, the answer has one form, and an explanation comes from the index that
//!   ranked.
//! - A server that could not be asked is told: what it has is missing from the answer.

mod table;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json, value::RawValue};
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::read_file;
use tidegate_core::time::Millis;
use tidegate_mcp_shell::guest::{Cause, GuestError};
use tidegate_search::{Document, Index, Listed, Query};
use tidegate_server::connect;

use super::gate::{self, Found, GateArgs};
use super::list::server_of;
use crate::asking::Asking;
use crate::exit::Exit;
use crate::printer::Printer;

/// A gateway waits for its servers for seconds at most.
const WITHIN: Millis = Millis::seconds(60);
/// What a gateway with `tools: search` shows.
const FIND: &str = "find_tool";
const CALL: &str = "call_tool";

/// Which tool does this?
#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// What the tool should do, in your own words
    #[arg(required = true)]
    words: Vec<String>,
    /// Show how the ranking came about
    #[arg(long)]
    explain: bool,
    /// Show at most so many tools (10)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        hide_default_value = true,
        value_parser = clap::value_parser!(u8).range(1..=50)
    )]
    limit: u8,
    #[command(flatten)]
    gate: GateArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What was found, in the form of a `find_tool`'s answer.
struct Answer {
    good_match: bool,
    hint: Option<String>,
    degraded: bool,
    tools: Vec<Value>,
    /// Name and cause of each server that could not be asked.
    unreached: Vec<(String, String)>,
}

/// Searches and prints what was found.
pub(super) fn run(args: &SearchArgs, printer: &Printer) -> Exit {
    let wanted = args.words.join(" ");
    if wanted.trim().is_empty() {
        printer.error("there is nothing to search for");
        printer.hint("`tidegate tools search \"send a message\"` says what the tool should do");
        return Exit::Usage;
    }
    let found = match gate::find(&args.gate, printer) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    match (ask(&found, args, &wanted), &found.config) {
        (Ok(answer), _) => show(args, &wanted, ("url", &found.url), &answer, printer),
        (Err(GuestError::NoGateway(cause)), Some(config)) if is_nobody(cause) => {
            let path = config.display().to_string();
            printer.note(&format!("no gateway answers at `{}`: asking its servers", found.url));
            match visit(config, args, &wanted, printer) {
                Ok(answer) => show(args, &wanted, ("config", &path), &answer, printer),
                Err(exit) => exit,
            }
        }
        (Err(error), _) => gate::explain(&found.url, &error, printer),
    }
}

/// Whether nobody is there at all, rather than somebody who does not answer as a gateway would.
const fn is_nobody(cause: Cause) -> bool {
    !matches!(cause, Cause::Status(_) | Cause::Malformed | Cause::RateLimited)
}

/// Asks a gateway.
fn ask(found: &Found, args: &SearchArgs, wanted: &str) -> Result<Answer, GuestError> {
    let listed = found.gate.tools(WITHIN)?;
    let has = |name: &str| listed.iter().any(|tool| name_of(tool) == name);
    if !(has(FIND) && has(CALL)) {
        let documents = listed.iter().map(|tool| document(tool, &found.servers)).collect();
        return Ok(rank(documents, args, wanted));
    }
    let arguments = json!({
        "tool_description": wanted,
        "limit": args.limit,
        "detail": "compact",
        "explain": args.explain,
    });
    let result = found.gate.call(FIND, &arguments.to_string(), WITHIN, Box::new(|_| {}))?;
    let mut result: Value = serde_json::from_str(&result).unwrap_or_default();
    if result["isError"] == true {
        let message = result["content"][0]["text"].as_str().unwrap_or("it gave no reason");
        return Err(GuestError::Refused { code: 0, message: message.to_owned(), data: None });
    }
    let told = &mut result["structuredContent"];
    Ok(Answer {
        good_match: told["good_match"] == true,
        hint: told["hint"].as_str().map(str::to_owned),
        degraded: told["degraded"] == true,
        tools: match told["tools"].take() {
            Value::Array(tools) => tools,
            _ => Vec::new(),
        },
        unreached: Vec::new(),
    })
}

/// Asks the servers of a config, without a gateway.
fn visit(
    config: &Path,
    args: &SearchArgs,
    wanted: &str,
    printer: &Printer,
) -> Result<Answer, Exit> {
    let shown = config.display();
    let source = read_file(config).map_err(|error| {
        printer.error(&format!("cannot read `{shown}`: {error}"));
        Exit::Unreadable
    })?;
    let asking = Asking::begin(printer);
    let visited = connect::tools(&source, Arc::new(ProcessEnvironment), |it| asking.show(it));
    drop(asking);
    let (documents, visits) = visited.map_err(|error| {
        printer.error(&format!("`{shown}` cannot be used: {error}"));
        printer.hint(&format!("`tidegate check {shown}` says why"));
        Exit::No
    })?;
    let cause = |it: connect::ServerVisit| it.answer.err().map(|why| (it.name, why.cause));
    let unreached: Vec<(String, String)> = visits.into_iter().filter_map(cause).collect();
    Ok(Answer { unreached, ..rank(documents, args, wanted) })
}

fn name_of(tool: &RawValue) -> String {
    let tool: Value = serde_json::from_str(tool.get()).unwrap_or_default();
    tool["name"].as_str().unwrap_or_default().to_owned()
}

/// A listed tool; its server is known by the name's beginning, or not at all.
fn document(tool: &RawValue, servers: &[String]) -> Document {
    let name = name_of(tool);
    let server = server_of(&name, servers).unwrap_or_default();
    let own = name.strip_prefix(server).unwrap_or(&name).trim_start_matches('_');
    let id = name.as_str().into();
    let listed = Listed { id: &id, name: own, definition: tool.get() };
    Document::of(&listed, server, "")
}

/// Ranks tools as a gateway would.
fn rank(documents: Vec<Document>, args: &SearchArgs, wanted: &str) -> Answer {
    let index = Index::build(documents);
    let query = Query { description: wanted, ..Query::default() };
    let found = index.search(&query, &|_| true, usize::from(args.limit));
    let tool = |hit: &tidegate_search::Hit| {
        let document = &index.documents()[hit.doc];
        let mut tool = Map::new();
        tool.insert("name".to_owned(), (*document.id).into());
        tool.insert("server".to_owned(), (*document.server).into());
        tool.insert("description".to_owned(), (*document.description).into());
        tool.insert("score".to_owned(), json!((f64::from(hit.score) * 1000.0).round() / 1000.0));
        if args.explain {
            tool.insert("explanation".to_owned(), index.explanation(&query, hit));
        }
        Value::Object(tool)
    };
    Answer {
        good_match: found.has_good_match,
        hint: None,
        degraded: false,
        tools: found.hits.iter().map(tool).collect(),
        unreached: Vec::new(),
    }
}

/// Prints an answer. `asked` says what was asked: a url or a config.
fn show(
    args: &SearchArgs,
    wanted: &str,
    asked: (&str, &str),
    answer: &Answer,
    printer: &Printer,
) -> Exit {
    let exit = if answer.tools.is_empty() { Exit::No } else { Exit::Done };
    if args.json {
        let unreached = answer.unreached.iter();
        let unreached = unreached.map(|(name, cause)| json!({ "server": name, "cause": cause }));
        let document = json!({
            "query": wanted,
            asked.0: asked.1,
            "good_match": answer.good_match,
            "degraded": answer.degraded,
            "hint": answer.hint,
            "tools": answer.tools,
            "unreached": Value::from_iter(unreached),
        });
        printer.result(&format!("{document:#}"));
        return exit;
    }
    for (name, cause) in &answer.unreached {
        printer.note(&format!("`{name}` cannot be reached, so its tools are missing: {cause}"));
    }
    if answer.degraded {
        printer.note("the better model that the config names did not answer: ranked without it");
    }
    let Some(first) = answer.tools.first() else {
        printer.note("no tool fits");
        printer.hint("`tidegate tools list` shows every tool; other words may find one");
        return exit;
    };
    printer.result(&table::table(&answer.tools, printer.width(), printer.is_ascii()));
    if !answer.good_match {
        printer.note("\nno good match: these are only the nearest, and there may be no such tool");
    } else if asked.0 == "url" {
        let name = super::calm(first["name"].as_str().unwrap_or_default());
        printer.note(&format!("\nnext: tidegate tools call {name}"));
    } else {
        printer.note("\nnext: tidegate serve");
    }
    exit
}
