//! The two tools as clients see them, and the pinned ones beside them.
//!
//! Rules kept here:
//! - The description of `find_tool` says what is behind it, within [`ABOUT_MAX`] bytes: the servers
//!   this session sees, how many tools each has, and the names of a few.
//! - The same servers and tools give the same text, so that prompt caches hold.

use std::fmt::Write as _;

use serde_json::json;
use tidegate_mcp::catalogue::{Catalogue, Offered};

use super::{CALL, FIND};
use crate::client::Client;

/// About 300 tokens, in every conversation.
const ABOUT_MAX: usize = 1200;
/// Names of tools per server.
const NAMES: usize = 3;

/// The result of `tools/list`.
pub(crate) fn page(client: &Client, catalogue: &Catalogue) -> String {
    let live = client.ground.live();
    let pinned = &live.file.mcp.pinned_tools;
    let is_pinned = |it: &&Offered| pinned.iter().any(|name| **name == *it.name);
    let visible = |it: &&Offered| client.sees(it.server);
    let pinned = catalogue.tools().iter().filter(visible).filter(is_pinned);
    let mut tools = vec![find_tool(client, catalogue), call_tool()];
    tools.extend(pinned.map(|it| it.raw.to_string()));
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

fn find_tool(client: &Client, catalogue: &Catalogue) -> String {
    let description = format!(
        "Finds tools by what they do. Describe the task in words; use `{CALL}` with a name from \
         the answer.{}",
        about(client, catalogue)
    );
    json!({
        "name": FIND,
        "title": "Find tools",
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_description": {
                    "type": "string",
                    "description": "what the tool should do, in a sentence",
                },
                "tool_keywords": {
                    "type": "string",
                    "description": "words that its name or description may contain",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 50,
                    "description": "how many tools to show",
                },
                "detail": {
                    "type": "string",
                    "enum": ["full", "compact"],
                    "description": "`full`: whole input schemas; `compact`: names and types",
                },
            },
            "required": ["tool_description"],
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
    .to_string()
}

fn call_tool() -> String {
    json!({
        "name": CALL,
        "title": "Call a tool",
        "description": format!("Calls a tool by the name that `{FIND}` gave."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_name": { "type": "string", "description": "the tool's name" },
                "parameters": {
                    "type": "object",
                    "description": "its arguments, as its input schema wants them",
                },
            },
            "required": ["tool_name"],
        },
    })
    .to_string()
}

/// Which servers are behind it, and what kinds of tools.
fn about(client: &Client, catalogue: &Catalogue) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for place in (0..).map_while(|place| client.group(place).map(|server| (place, server))) {
        let (place, server) = place;
        let tools: Vec<&Offered> =
            catalogue.tools().iter().filter(|it| it.server == place).collect();
        if !client.sees(place) || tools.is_empty() {
            continue;
        }
        let names: Vec<&str> = tools.iter().take(NAMES).map(|it| &*it.own).collect();
        let more = if tools.len() > NAMES { ", …" } else { "" };
        let part = format!(" {} ({}: {}{more});", server.name, tools.len(), names.join(", "));
        if text.len() + part.len() > ABOUT_MAX {
            left_out += 1;
        } else {
            text.push_str(&part);
        }
    }
    if text.is_empty() {
        return " No server is available at the moment.".to_owned();
    }
    if left_out > 0 {
        write!(text, " and {left_out} more;").expect("a text takes every write");
    }
    text.pop();
    format!(" Behind it:{text}.")
}
