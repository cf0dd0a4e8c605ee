//! The answer to `find_tool`.
//!
//! Rules kept here:
//! - Only tools of servers that this session sees are found; tools of one that is down at the
//!   moment are, and are marked so.
//! - When nothing fits, the list is empty; when nothing fits well, `good_match` is false. Either
//!   way a hint says what to try: a wrong tool is worse than none.
//! - The same JSON stands in the result twice: as structured content, and as text for clients that
//!   know no other.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value, json, value::RawValue};
use tidegate_mcp::{
    catalogue::{Catalogue, Offered},
    health::{self, Standing},
    raw::Fields,
    search::{Hit, Query, estimated_tokens},
};

use super::{CALL, FIND, failed};
use crate::mcp::client::Client;

/// The most that one answer holds.
const LIMIT_MAX: usize = 50;

/// What was asked for.
struct Wish {
    description: String,
    keywords: String,
    limit: Option<usize>,
    is_compact: bool,
}

/// Answers a `find_tool`.
pub(super) async fn find(client: &Rc<Client>, arguments: Option<&RawValue>) -> String {
    let wish = match wish(arguments) {
        Ok(wish) => wish,
        Err(message) => return failed(&message),
    };
    let Some(hub) = client.ground.hub() else { return failed("the gateway is closing") };
    let live = client.ground.live();
    let limit = wish.limit.unwrap_or(live.file.mcp.search.limit as usize).clamp(1, LIMIT_MAX);
    let catalogue = client.catalogue();
    let servers: Vec<(Arc<str>, Arc<str>)> =
        hub.servers().iter().map(|it| (Arc::clone(&it.name), it.words(&client.hello))).collect();
    let index = hub.indexes.of(&catalogue, &servers).await;
    let seen: Vec<bool> = (0..servers.len()).map(|place| client.sees(place)).collect();
    let is_seen = |tool: usize| {
        catalogue.tools().get(tool).is_some_and(|it| seen.get(it.server).copied().unwrap_or(false))
    };
    let query = Query { description: &wish.description, keywords: &wish.keywords, vector: None };
    let found = index.search(&query, &is_seen, limit);
    let tools: Vec<Value> = found
        .hits
        .iter()
        .filter_map(|hit| Some((hit, catalogue.tools().get(hit.doc)?)))
        .map(|(hit, offered)| tool(client, &servers, hit, offered, wish.is_compact))
        .collect();
    answer(tools, found.has_good_match, baseline(&catalogue, &seen))
}

/// The whole result.
fn answer(tools: Vec<Value>, is_good: bool, baseline: usize) -> String {
    let hint = match (is_good, tools.is_empty()) {
        (true, false) => None,
        (_, true) => Some("Nothing fits. Describe the task in other words, or name the service."),
        (false, false) => Some("No good match: these are only the nearest. There may be no tool."),
    };
    let mut answer = Map::new();
    answer.insert("good_match".to_owned(), hint.is_none().into());
    answer.insert("tools".to_owned(), Value::Array(tools));
    if let Some(hint) = hint {
        answer.insert("hint".to_owned(), hint.into());
    }
    let returned = estimated_tokens(Value::Object(answer.clone()).to_string().len());
    let saved = baseline.saturating_sub(returned);
    let tokens = json!({ "baseline": baseline, "returned": returned, "saved": saved });
    answer.insert("tokens".to_owned(), tokens);
    let answer = Value::Object(answer);
    let text = answer.to_string();
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": answer })
        .to_string()
}

fn tool(
    client: &Client,
    servers: &[(Arc<str>, Arc<str>)],
    hit: &Hit,
    offered: &Offered,
    is_compact: bool,
) -> Value {
    let fields = Fields::parse(&offered.raw, &[]).unwrap_or_default();
    let schema = fields.get("inputSchema").and_then(|it| serde_json::from_str(it.get()).ok());
    let schema: Value = schema.unwrap_or_else(|| json!({ "type": "object" }));
    let server = servers.get(offered.server).map(|it| &*it.0).unwrap_or_default();
    let live = client.ground.live();
    let standing = health::standing(&live.core, server, client.ground.now());
    let mut tool = Map::new();
    tool.insert("name".to_owned(), (*offered.name).into());
    tool.insert("server".to_owned(), server.into());
    tool.insert("description".to_owned(), fields.text("description").unwrap_or_default().into());
    if is_compact {
        tool.insert("parameters".to_owned(), compact(&schema).into());
    } else {
        tool.insert("input_schema".to_owned(), schema);
    }
    tool.insert("score".to_owned(), json!((f64::from(hit.score) * 1000.0).round() / 1000.0));
    tool.insert("available".to_owned(), (!matches!(standing, Standing::Unhealthy(..))).into());
    Value::Object(tool)
}

/// What it would have cost to show every tool.
fn baseline(catalogue: &Catalogue, seen: &[bool]) -> usize {
    let visible = catalogue.tools().iter().filter(|it| seen.get(it.server) == Some(&true));
    visible.map(|it| estimated_tokens(it.raw.len())).sum()
}

fn wish(arguments: Option<&RawValue>) -> Result<Wish, String> {
    let read = arguments.map(|it| serde_json::from_str::<Value>(it.get()));
    let Some(Ok(Value::Object(arguments))) = read else {
        return Err(format!("`{FIND}` needs `tool_description`: what the tool should do"));
    };
    let words = |key: &str| match arguments.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(items)) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some(texts.join(" "))
        }
        _ => None,
    };
    let description = words("tool_description").or_else(|| words("query"));
    let keywords = words("tool_keywords").unwrap_or_default();
    let description = description.unwrap_or_default();
    if description.trim().is_empty() && keywords.trim().is_empty() {
        return Err(format!(
            "`{FIND}` needs `tool_description`: what the tool should do, in a sentence. Then \
             `{CALL}` with a name from the answer."
        ));
    }
    let limit = arguments.get("limit").and_then(Value::as_u64).map(|limit| limit as usize);
    let is_compact = arguments.get("detail").and_then(Value::as_str) == Some("compact");
    Ok(Wish { description, keywords, limit, is_compact })
}

/// A schema in a line: `repo: string, page?: integer`.
pub(super) fn compact(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "no parameters".to_owned();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let part = |(name, property): (&String, &Value)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("{name}{mark}: {}", kind_of(property))
    };
    let parts: Vec<String> = properties.iter().map(part).collect();
    if parts.is_empty() { "no parameters".to_owned() } else { parts.join(", ") }
}

fn kind_of(property: &Value) -> String {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let choices: Vec<String> = choices.iter().take(8).map(Value::to_string).collect();
        return choices.join("|");
    }
    match property.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            let items = property.get("items").map_or_else(|| "any".to_owned(), kind_of);
            format!("{items}[]")
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join("|")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_fits_in_a_line() {
        let schema = json!({
            "properties": {
                "repo": { "type": "string" },
                "state": { "enum": ["open", "closed"] },
                "labels": { "type": "array", "items": { "type": "string" } },
                "page": { "type": ["integer", "null"] },
                "more": {},
            },
            "required": ["repo"],
        });
        let expected = "repo: string, state?: \"open\"|\"closed\", labels?: string[], \
                        page?: integer|null, more?: any";
        assert_eq!(compact(&schema), expected);
        assert_eq!(compact(&json!({})), "no parameters");
    }

    #[test]
    fn a_wish_needs_words() {
        let read = |json: &str| {
            let raw = RawValue::from_string(json.to_owned()).expect("json");
            wish(Some(&raw)).map(|it| (it.description, it.keywords, it.limit))
        };
        assert!(read("{}").is_err() && read("[]").is_err() && read(r#"{"limit":3}"#).is_err());
        let expected = ("send mail".to_owned(), "smtp post".to_owned(), Some(3));
        let asked = r#"{"tool_description":"send mail","tool_keywords":["smtp","post"],"limit":3}"#;
        assert_eq!(read(asked), Ok(expected));
    }
}
