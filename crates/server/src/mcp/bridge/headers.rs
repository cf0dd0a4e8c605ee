//! What of a stateless request its headers repeat, so that what stands between can route it
//! without reading it.
//!
//! | header | repeats |
//! |---|---|
//! | `mcp-protocol-version` | the version in `_meta` |
//! | `mcp-method` | the method |
//! | `mcp-name` | the tool or prompt, the uri of a resource, the id of a task |
//!
//! A value that a header cannot carry as it is goes as `=?base64?…?=`.

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_mcp::{message::Params, raw::as_text};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The key of the version in `_meta`.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Whether a request belongs to this era: it says so, or asks what only this era asks.
pub(super) fn belongs(method: &str, params: &Params<'_>) -> bool {
    let is_asked = matches!(method, "server/discover" | "subscriptions/listen");
    is_asked || params.meta(VERSION_KEY).is_some()
}

/// The headers of a request.
pub(super) fn of(method: &str, params: &Params<'_>) -> HeaderMap {
    let version = params.meta(VERSION_KEY).and_then(|version| as_text(&version));
    let name = match method {
        "tools/call" | "prompts/get" => params.text("name"),
        "resources/read" => params.text("uri"),
        _ if method.starts_with("tasks/") => params.text("taskId"),
        _ => None,
    };
    let mut headers = HeaderMap::new();
    for (header, text) in [(VERSION, version), (METHOD, Some(method.to_owned())), (NAME, name)] {
        if let Some(value) = text.and_then(|text| value(&text)) {
            headers.insert(header, value);
        }
    }
    headers
}

/// A text as the value of a header.
fn value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !text.is_empty()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain {
        return HeaderValue::try_from(text).ok();
    }
    HeaderValue::try_from(format!("=?base64?{}?=", base64(text.as_bytes()))).ok()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn check(method: &str, params: serde_json::Value, name: Option<&str>) {
        let raw = to_raw_value(&params).expect("JSON");
        let headers = of(method, &Params::parse(Some(&raw)).expect("an object"));
        let text = |name| headers.get(name).map(|it: &HeaderValue| it.to_str().expect("ASCII"));
        assert_eq!(text(METHOD), Some(method));
        assert_eq!(text(NAME), name, "{params}");
        assert_eq!(text(VERSION), Some("2026-07-28").filter(|_| params["_meta"].is_object()));
    }

    #[test]
    fn what_a_request_is_about_stands_in_its_headers() {
        let meta = json!({VERSION_KEY: "2026-07-28"});
        check("tools/call", json!({"name": "echo", "_meta": meta}), Some("echo"));
        check("prompts/get", json!({"name": "p"}), Some("p"));
        check("resources/read", json!({"uri": "file:///a", "name": "x"}), Some("file:///a"));
        check("tasks/get", json!({"taskId": "t-1"}), Some("t-1"));
        check("tools/list", json!({"name": "x"}), None);
        check("tools/call", json!({"name": 7}), None);
    }

    #[test]
    fn a_value_that_a_header_cannot_carry_is_encoded() {
        for (text, expected) in [
            ("Häfen", "=?base64?SMOkZmVu?="),
            (" padded", "=?base64?IHBhZGRlZA==?="),
            ("two\nlines", "=?base64?dHdvCmxpbmVz?="),
            ("=?base64?QQ==?=", "=?base64?PT9iYXNlNjQ/UVE9PT89?="),
            ("", "=?base64??="),
        ] {
            assert_eq!(value(text).expect("a value"), expected);
        }
        assert_eq!(value("a b").expect("a value"), "a b");
    }
}
