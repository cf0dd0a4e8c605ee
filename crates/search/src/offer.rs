//! `find_tool` and `call_tool` as clients see them.
//!
//! Rules kept here:
//! - The texts say how to ask: the action, the kind of thing and the product, without the user's
//!   own data. Requests of that form find their tool first far more often than a user's words.
//! - The description of `find_tool` says what is behind it, within [`SERVERS_MAX`] bytes: the
//!   servers that a session sees, how many tools each has, and the names of a few.
//! - The same servers and tools give the same text, so that prompt caches hold.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};

/// The tool that finds tools.
pub const FIND: &str = "find_tool";
/// The tool that calls tools.
pub const CALL: &str = "call_tool";

/// How to ask, for descriptions and hints.
pub(crate) const ADVICE: &str = "Ask with the action, the kind of thing and the product, without \
                                 the user's own data: `Stripe: refund a charge`.";

/// Bytes about servers: about 300 tokens, in every conversation.
const SERVERS_MAX: usize = 1200;
/// Names of tools per server.
const NAMES: usize = 3;

/// A server as the description of `find_tool` names it.
#[derive(Clone, Debug)]
pub struct OfferedServer<'a> {
    /// Its name.
    pub name: Arc<str>,
    /// The names of its tools, in order.
    pub tools: Vec<&'a str>,
}

/// The definition of `find_tool` for a session that sees these servers.
#[must_use]
pub fn find_tool(servers: &[OfferedServer<'_>]) -> Value {
    let behind = behind(servers);
    json!({
        "name": FIND,
        "title": "Find tools",
        "description": format!(
            "Finds tools by what they do. {ADVICE} Then use `{CALL}` with a name from the \
             answer.{behind}"
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_description": {
                    "type": "string",
                    "description": "action, kind of thing and product, like `GitHub: create an \
                                    issue`; no names, ids or texts of the user's",
                },
                "tool_keywords": {
                    "type": "string",
                    "description": "words that its name or description may contain",
                },
                "server": {
                    "type": "string",
                    "description": "the server to look at first, if it is known",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 50,
                    "description": "the most tools to show",
                },
                "detail": {
                    "type": "string",
                    "enum": ["full", "compact"],
                    "description": "`full`: whole schemas; `compact`: names and types",
                },
            },
            "required": ["tool_description"],
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

/// The definition of `call_tool`.
#[must_use]
pub fn call_tool() -> Value {
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
}

/// Which servers there are, and what kinds of tools.
fn behind(servers: &[OfferedServer<'_>]) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for OfferedServer { name, tools } in servers.iter().filter(|it| !it.tools.is_empty()) {
        let names: Vec<&str> = tools.iter().take(NAMES).copied().collect();
        let more = if tools.len() > NAMES { ", …" } else { "" };
        let part = format!(" {name} ({}: {}{more});", tools.len(), names.join(", "));
        if text.len() + part.len() > SERVERS_MAX {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::estimated_tokens;

    fn described(servers: &[OfferedServer<'_>]) -> String {
        find_tool(servers)["description"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn the_description_says_how_to_ask_and_what_is_behind_it() {
        let github = OfferedServer { name: "github".into(), tools: vec!["a", "b", "c", "d"] };
        let empty = OfferedServer { name: "empty".into(), tools: vec![] };
        let text = described(&[github, empty]);
        assert!(text.contains("the action, the kind of thing and the product"), "{text}");
        assert!(text.ends_with(" Behind it: github (4: a, b, c, …)."), "{text}");
        assert!(described(&[]).ends_with("No server is available at the moment."));
    }

    #[test]
    fn many_servers_stay_within_the_budget() {
        let names: Vec<String> = (0..300).map(|at| format!("server-{at}")).collect();
        let servers: Vec<OfferedServer<'_>> = names
            .iter()
            .map(|name| OfferedServer { name: name.as_str().into(), tools: vec!["tool"; 9] })
            .collect();
        let whole = find_tool(&servers).to_string() + &call_tool().to_string();
        assert!(described(&servers).contains(" more."), "{whole}");
        assert!(estimated_tokens(whole.len()) <= 800, "{}", estimated_tokens(whole.len()));
    }
}
