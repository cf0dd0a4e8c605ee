//! What a call of `find_tool` asks for.
//!
//! Forms that models send by mistake are understood: `query` for the description, keywords as a
//! list, numbers as texts.

use serde_json::Value;

use crate::offer::{CALL, FIND};

/// The most tools that one answer holds.
pub const LIMIT_MAX: usize = 50;

/// The arguments of `find_tool`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// What the tool should do.
    pub description: String,
    /// Words that it should have.
    pub keywords: String,
    /// The server to look at first; may be empty.
    pub server: String,
    /// How many tools are wanted at most.
    pub limit: Option<usize>,
    /// Whether schemas are told in a line.
    pub is_compact: bool,
    /// For people: not among the parameters that clients see, as models would pay for it.
    pub is_explained: bool,
}

impl Request {
    /// Reads the arguments.
    ///
    /// # Errors
    /// What is wrong with them, for a model to read.
    pub fn read(arguments: Option<&Value>) -> Result<Self, String> {
        let Some(arguments) = arguments.and_then(Value::as_object) else {
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
        let description = words("tool_description").or_else(|| words("query")).unwrap_or_default();
        let keywords = words("tool_keywords").unwrap_or_default();
        if description.trim().is_empty() && keywords.trim().is_empty() {
            return Err(format!(
                "`{FIND}` needs `tool_description`: what the tool should do, in a sentence. Then \
                 `{CALL}` with a name from the answer."
            ));
        }
        Ok(Self {
            description,
            keywords,
            server: words("server").unwrap_or_default(),
            limit: limit(arguments.get("limit"))?,
            is_compact: arguments.get("detail").and_then(Value::as_str) == Some("compact"),
            is_explained: arguments.get("explain") == Some(&Value::Bool(true)),
        })
    }

    /// All that is looked for, as one text.
    #[must_use]
    pub fn text(&self) -> String {
        [self.server.as_str(), &self.description, &self.keywords].join("\n").trim().to_owned()
    }
}

/// How many tools are wanted: a whole number, also one that is written as a text.
fn limit(given: Option<&Value>) -> Result<Option<usize>, String> {
    let number = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.trim().parse::<u64>().ok(),
        Some(Value::Number(number)) => {
            let whole = number.as_f64().filter(|it| it.fract() == 0.0 && *it >= 0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole")]
            let whole = whole.map(|it| it as u64);
            number.as_u64().or(whole)
        }
        Some(_) => None,
    };
    match number {
        Some(number @ 1..) => Ok(Some(usize::try_from(number).unwrap_or(LIMIT_MAX))),
        Some(0) | None => Err(format!("`limit` must be a number from 1 to {LIMIT_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_needs_words() {
        for bad in [json!({}), json!([]), json!({"limit": 3}), json!({"tool_description": " "})] {
            assert!(Request::read(Some(&bad)).is_err(), "{bad}");
        }
        assert!(Request::read(None).is_err());
        let asked = json!({
            "tool_description": "send mail", "tool_keywords": ["smtp", "post"], "limit": 3,
            "server": "mailer", "detail": "compact",
        });
        let expected = Request {
            description: "send mail".to_owned(),
            keywords: "smtp post".to_owned(),
            server: "mailer".to_owned(),
            limit: Some(3),
            is_compact: true,
            is_explained: false,
        };
        assert_eq!(Request::read(Some(&asked)), Ok(expected));
    }

    #[test]
    fn a_limit_is_a_whole_number_also_as_a_text() {
        let read = |limit: Value| {
            let asked = json!({"tool_description": "x", "limit": limit});
            Request::read(Some(&asked)).map(|it| it.limit)
        };
        for (limit, expected) in [(json!("3"), Some(3)), (json!(3.0), Some(3)), (json!(null), None)]
        {
            assert_eq!(read(limit.clone()), Ok(expected), "{limit}");
        }
        for limit in [json!(-1), json!(0), json!(2.5), json!("many"), json!(true), json!([3])] {
            assert!(read(limit.clone()).is_err(), "{limit}");
        }
    }
}
