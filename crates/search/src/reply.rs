//! The answer of `find_tool`, as JSON that an agent can act on.
//!
//! Rules kept here:
//! - When nothing fits, the list is empty; when nothing fits well, `good_match` is false. Either
//!   way a hint says how to ask and which servers might have it: a wrong tool is worse than none.
//! - The same JSON stands in the result twice, as structured content and as text for clients that
//!   know no other. A model reads one of them, so its cost is counted once.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::{offer::ADVICE, tokens::estimated_tokens};

/// What is answered.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The tools found, the best first.
    pub tools: Vec<Value>,
    /// Whether the first is likely to be what was looked for.
    pub has_good_match: bool,
    /// Whether the session sees no server at all.
    pub is_without_servers: bool,
    /// Whether vectors from outside were missing.
    pub is_degraded: bool,
    /// Servers that might have the tool, the likeliest first.
    pub likely_servers: Vec<String>,
    /// Products that the request names and nothing here has to do with.
    pub missing_products: Vec<String>,
    /// What it would have cost to list every tool, in tokens.
    pub baseline: usize,
}

impl Reply {
    /// The result of the call.
    #[must_use]
    pub fn result(self) -> Value {
        let hint = self.hint();
        let mut answer = Map::new();
        answer.insert("good_match".to_owned(), hint.is_none().into());
        answer.insert("tools".to_owned(), Value::Array(self.tools));
        if let Some(hint) = hint {
            answer.insert("hint".to_owned(), hint.into());
        }
        if self.is_degraded {
            answer.insert("degraded".to_owned(), true.into());
        }
        let returned = estimated_tokens(Value::Object(answer.clone()).to_string().len());
        let saved = self.baseline.saturating_sub(returned);
        let tokens = json!({ "baseline": self.baseline, "returned": returned, "saved": saved });
        answer.insert("tokens".to_owned(), tokens);
        let answer = Value::Object(answer);
        let text = answer.to_string();
        json!({ "content": [{ "type": "text", "text": text }], "structuredContent": answer })
    }

    /// What to do about an answer that is not good.
    fn hint(&self) -> Option<String> {
        let mut hint = match (self.has_good_match, self.tools.is_empty()) {
            (true, false) => return None,
            (_, true) if self.is_without_servers => {
                let alone = "No server is available at the moment. A new session may find more.";
                return Some(alone.to_owned());
            }
            (_, true) => format!("Nothing fits. {ADVICE}"),
            (false, false) => format!(
                "No good match: these are only the nearest, and there may be no tool. {ADVICE}"
            ),
        };
        if !self.missing_products.is_empty() {
            let names = self.missing_products.join(", ");
            write!(hint, " No tool here has to do with {names}.")
                .expect("a text takes every write");
        }
        if !self.likely_servers.is_empty() {
            let names = self.likely_servers.join(", ");
            write!(hint, " Servers that might fit: {names}.").expect("a text takes every write");
        }
        Some(hint)
    }
}

/// A schema in a line: `repo: string, page?: integer`.
#[must_use]
pub fn signature(schema: &Value) -> String {
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
        format!("{name}{mark}: {}", type_name(property))
    };
    let parts: Vec<String> = properties.iter().map(part).collect();
    if parts.is_empty() { "no parameters".to_owned() } else { parts.join(", ") }
}

fn type_name(property: &Value) -> String {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let choices: Vec<String> = choices.iter().take(8).map(Value::to_string).collect();
        return choices.join("|");
    }
    match property.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            let items = property.get("items").map_or_else(|| "any".to_owned(), type_name);
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
        assert_eq!(signature(&schema), expected);
        assert_eq!(signature(&json!({})), "no parameters");
    }

    #[test]
    fn a_poor_answer_repeats_the_advice_with_servers_that_might_fit() {
        let poor = Reply {
            tools: vec![json!({"name": "a"})],
            likely_servers: vec!["github".to_owned(), "jira".to_owned()],
            missing_products: vec!["Trello".to_owned()],
            ..Reply::default()
        };
        let answer = &poor.clone().result()["structuredContent"];
        let hint = answer["hint"].as_str().expect("a hint");
        assert!(hint.contains("the action, the kind of thing and the product"), "{hint}");
        assert!(
            hint.ends_with(
                "No tool here has to do with Trello. Servers that might fit: github, jira."
            ),
            "{hint}"
        );
        let good = Reply { has_good_match: true, ..poor }.result();
        assert!(good["structuredContent"].get("hint").is_none(), "{good}");
        assert_eq!(good["structuredContent"]["good_match"], true);
    }

    #[test]
    fn the_content_is_counted_once() {
        let reply = Reply { tools: vec![json!("x".repeat(4000))], ..Reply::default() };
        let tokens = &reply.result()["structuredContent"]["tokens"];
        let returned = tokens["returned"].as_u64().expect("a count");
        assert!((1000..1300).contains(&returned), "{tokens}");
    }
}
