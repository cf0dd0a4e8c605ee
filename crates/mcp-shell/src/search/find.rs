//! The answer to `find_tool`.
//!
//! Rules kept here:
//! - Only tools of servers that this session sees are found; tools of one that is down at the
//!   moment are, and are marked so.
//! - When nothing fits, the list is empty; when nothing fits well, `good_match` is false. Either
//!   way a hint says what to try: a wrong tool is worse than none.
//! - What `mcp.search.embeddings` did not give in time is done without, and `degraded` is true.
//! - The same JSON stands in the result twice: as structured content, and as text for clients that
//!   know no other. Both are counted in what the answer costs.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value, json, value::RawValue};
use tidegate_mcp::{
    catalogue::{Catalogue, Offered},
    health::{self, Standing},
    raw::Fields,
};
use tidegate_search::{External, Hit, QUERY_MAX, Query, estimated_tokens};

use super::{CALL, FIND, embed::Outside, failed};
use crate::{client::Client, group::Group};

/// The most that one answer holds.
const LIMIT_MAX: usize = 50;

/// What was asked for.
struct Wish {
    description: String,
    keywords: String,
    limit: Option<usize>,
    is_compact: bool,
    /// For people: not among the parameters that clients see, as models would pay for it.
    is_explained: bool,
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
    let groups = hub.groups();
    let servers: Vec<(Arc<str>, Arc<str>)> =
        groups.iter().map(|it| (Arc::clone(&it.name), it.words(&client.hello))).collect();
    let (index, version) = hub.indexes.of(&catalogue, &servers).await;
    let outside = match &live.file.mcp.search.embeddings {
        Some(file) => {
            let text = [wish.description.as_str(), &wish.keywords].join("\n");
            let text = &text[..text.floor_char_boundary(QUERY_MAX)];
            let (ask, place) = (&client.ground.ask_route, (&index, &version.filling));
            hub.indexes.embeddings.for_search(ask, &file.route, place, text.trim()).await
        }
        None => Outside::default(),
    };
    let seen: Vec<bool> = (0..servers.len()).map(|place| client.sees(place)).collect();
    let is_seen = |tool: usize| {
        catalogue.tools().get(tool).is_some_and(|it| seen.get(it.server).copied().unwrap_or(false))
    };
    let external = outside.vectors.as_ref();
    let external = external.map(|(documents, request)| External { documents, request });
    let query = Query { description: &wish.description, keywords: &wish.keywords, external };
    let found = index.search(&query, &is_seen, limit);
    let tools: Vec<Value> = found
        .hits
        .iter()
        .filter_map(|hit| Some((hit, catalogue.tools().get(hit.doc)?)))
        .map(|(hit, offered)| {
            let server = groups.get(offered.server);
            let mut tool = tool(client, server, (hit, offered), wish.is_compact);
            if wish.is_explained {
                tool["explanation"] = index.explanation(&query, hit);
            }
            tool
        })
        .collect();
    let verdict = Verdict {
        is_good: found.has_good_match,
        is_alone: !seen.contains(&true),
        is_degraded: outside.is_degraded,
    };
    answer(tools, verdict, baseline(&catalogue, &seen))
}

/// What is said of an answer as a whole.
struct Verdict {
    is_good: bool,
    /// Whether the session sees no server at all.
    is_alone: bool,
    is_degraded: bool,
}

/// The whole result.
fn answer(tools: Vec<Value>, verdict: Verdict, baseline: usize) -> String {
    let hint = match (verdict.is_good, tools.is_empty()) {
        (true, false) => None,
        (_, true) if verdict.is_alone => {
            Some("No server is available at the moment. A new session may find more.")
        }
        (_, true) => Some("Nothing fits. Describe the task in other words, or name the service."),
        (false, false) => Some("No good match: these are only the nearest. There may be no tool."),
    };
    let mut answer = Map::new();
    answer.insert("good_match".to_owned(), hint.is_none().into());
    answer.insert("tools".to_owned(), Value::Array(tools));
    if let Some(hint) = hint {
        answer.insert("hint".to_owned(), hint.into());
    }
    if verdict.is_degraded {
        answer.insert("degraded".to_owned(), true.into());
    }
    let once = Value::Object(answer.clone()).to_string().len();
    let returned = estimated_tokens(once.saturating_mul(2));
    let saved = baseline.saturating_sub(returned);
    let tokens = json!({ "baseline": baseline, "returned": returned, "saved": saved });
    answer.insert("tokens".to_owned(), tokens);
    let answer = Value::Object(answer);
    let text = answer.to_string();
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": answer })
        .to_string()
}

/// Whether a call would be sent at all: the breaker lets it, and a program that ended is not
/// waiting to be started again.
fn is_available(client: &Client, group: &Group) -> bool {
    let (live, now) = (client.ground.live(), client.ground.now());
    let standing = health::standing(&live.core, &group.name, now);
    let is_waiting = group.servers.iter().all(|it| it.is_child() && it.may_start_at(now) > now);
    !is_waiting && !matches!(standing, Standing::Unhealthy(..))
}

fn tool(
    client: &Client,
    server: Option<&Group>,
    (hit, offered): (&Hit, &Offered),
    is_compact: bool,
) -> Value {
    let fields = Fields::parse(&offered.raw, &[]).unwrap_or_default();
    let schema = fields.get("inputSchema").and_then(|it| serde_json::from_str(it.get()).ok());
    let schema: Value = schema.unwrap_or_else(|| json!({ "type": "object" }));
    let mut tool = Map::new();
    tool.insert("name".to_owned(), (*offered.name).into());
    tool.insert("server".to_owned(), server.map(|it| &*it.name).unwrap_or_default().into());
    tool.insert("description".to_owned(), fields.text("description").unwrap_or_default().into());
    let part = |name| fields.get(name).and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
    if is_compact {
        tool.insert("parameters".to_owned(), compact(&schema).into());
    } else {
        tool.insert("input_schema".to_owned(), schema);
        if let Some(output) = part("outputSchema") {
            tool.insert("output_schema".to_owned(), output);
        }
    }
    if let Some(annotations) = part("annotations") {
        tool.insert("annotations".to_owned(), annotations);
    }
    tool.insert("score".to_owned(), json!((f64::from(hit.score) * 1000.0).round() / 1000.0));
    let is_available = server.is_some_and(|it| is_available(client, it));
    tool.insert("available".to_owned(), is_available.into());
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
    let limit = limit(arguments.get("limit"))?;
    let is_compact = arguments.get("detail").and_then(Value::as_str) == Some("compact");
    let is_explained = arguments.get("explain") == Some(&Value::Bool(true));
    Ok(Wish { description, keywords, limit, is_compact, is_explained })
}

/// How many tools are wanted: a whole number, also one that is written as a text.
fn limit(given: Option<&Value>) -> Result<Option<usize>, String> {
    let number = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.trim().parse::<u64>().ok(),
        Some(Value::Number(number)) => {
            let whole = number.as_f64().filter(|it| it.fract() == 0.0 && *it >= 0.0);
            number.as_u64().or_else(|| whole.map(|it| it as u64))
        }
        Some(_) => None,
    };
    match number {
        Some(number @ 1..) => Ok(Some(usize::try_from(number).unwrap_or(LIMIT_MAX))),
        Some(0) | None => Err(format!("`limit` must be a number from 1 to {LIMIT_MAX}")),
    }
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
        for (limit, expected) in [(r#""3""#, Some(3)), ("3.0", Some(3)), ("null", None)] {
            let asked = format!(r#"{{"tool_description":"x","limit":{limit}}}"#);
            assert_eq!(read(&asked).map(|it| it.2), Ok(expected), "{asked}");
        }
        for limit in ["-1", "0", "2.5", r#""many""#, "true", "[3]"] {
            let asked = format!(r#"{{"tool_description":"x","limit":{limit}}}"#);
            assert!(read(&asked).is_err(), "{asked}");
        }
    }
}
