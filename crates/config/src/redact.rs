//! A config without anything that could be a secret, for a report or a record that is passed on.
//!
//! References (`env:NAME`, `file:path`) stay, because their names are what a reader needs; literal
//! secrets print as `<redacted>` already. What is left are places that hold ordinary text and may
//! hold a secret in it: urls and the arguments of programs.

use serde_json::Value;

/// What stands in place of a text.
const REDACTED: &str = "<redacted>";

/// Keys whose texts may hold anything.
const FREE_TEXT: &[&str] = &["query", "args", "about"];

/// The same value without secrets.
#[must_use]
pub fn redacted(key: &str, value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let free = FREE_TEXT.contains(&key);
            let entry = |(name, value): (String, Value)| {
                let value = if free { hidden(value) } else { redacted(&name, value) };
                (name, value)
            };
            Value::Object(map.into_iter().map(entry).collect())
        }
        Value::Array(items) if key == "command" => {
            let item = |(at, item)| if at == 0 { item } else { hidden(item) };
            Value::Array(items.into_iter().enumerate().map(item).collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| redacted(key, item)).collect())
        }
        Value::String(text) if FREE_TEXT.contains(&key) => hidden(Value::String(text)),
        Value::String(text) if text.contains("://") => Value::String(origin_of(&text)),
        other => other,
    }
}

/// Nothing of a value but that it is there.
fn hidden(value: Value) -> Value {
    match value {
        Value::Null => Value::Null,
        _ => Value::String(REDACTED.to_owned()),
    }
}

/// A url's scheme and host: a path, a query or a user may be a secret.
fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let path = if rest.len() > authority.len() + 1 { "/..." } else { "" };
    format!("{scheme}://{host}{path}")
}

/// The same config without addresses, which no answer of the admin listener tells. Hosts keep a
/// name each, because targets of one host share its reachability; listeners keep their ports.
#[must_use]
pub fn without_addresses(config: Value) -> Value {
    unaddressed("", config, &mut Vec::new())
}

fn unaddressed(key: &str, value: Value, hosts: &mut Vec<String>) -> Value {
    match value {
        Value::Object(map) => {
            let entry = |(name, value): (String, Value)| {
                let value = unaddressed(&name, value, hosts);
                (name, value)
            };
            Value::Object(map.into_iter().map(entry).collect())
        }
        Value::Array(items) => {
            let item = |item| unaddressed(key, item, hosts);
            Value::Array(items.into_iter().map(item).collect())
        }
        Value::String(text) if key == "listen" => {
            let port = text.rsplit(':').next().unwrap_or_default();
            Value::String(format!("localhost:{port}"))
        }
        Value::String(text) => match text.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let known = hosts.iter().position(|it| it == host);
                let number = known.unwrap_or_else(|| {
                    hosts.push(host.to_owned());
                    hosts.len() - 1
                });
                Value::String(format!("{scheme}://host-{}.invalid{path}", number + 1))
            }
            None => Value::String(text),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{redacted, without_addresses};

    #[test]
    fn urls_keep_their_host_programs_their_name_and_references_their_words() {
        let config = json!({
            "url": "https://u:canary@example.com/s/canary?key=canary",
            "command": ["npx", "--token", "canary"],
            "query": { "api-version": "canary" },
            "keepalive": { "tool": { "args": { "key": "canary" } } },
            "key": "env:NAME",
            "tiers": [["a/b"]],
            "every": 3,
        });
        let expected = json!({
            "url": "https://example.com/...",
            "command": ["npx", "<redacted>", "<redacted>"],
            "query": { "api-version": "<redacted>" },
            "keepalive": { "tool": { "args": { "key": "<redacted>" } } },
            "key": "env:NAME",
            "tiers": [["a/b"]],
            "every": 3,
        });
        assert_eq!(redacted("", config), expected);
    }
    #[test]
    fn one_host_keeps_one_name_and_listeners_keep_their_ports() {
        let config = json!({
            "listen": "10.1.2.3:8700",
            "admin": { "listen": "[::1]:8701" },
            "providers": {
                "a": { "url": "https://one.example.com/..." },
                "b": { "url": "http://two.example.com" },
                "c": { "urls": ["https://one.example.com"], "key": "env:NAME" },
            },
        });
        let expected = json!({
            "listen": "localhost:8700",
            "admin": { "listen": "localhost:8701" },
            "providers": {
                "a": { "url": "https://host-1.invalid/..." },
                "b": { "url": "http://host-2.invalid" },
                "c": { "urls": ["https://host-1.invalid"], "key": "env:NAME" },
            },
        });
        assert_eq!(without_addresses(config), expected);
    }
}
