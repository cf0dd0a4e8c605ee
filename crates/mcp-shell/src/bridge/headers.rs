//! What of a stateless request its headers repeat, so that whoever stands between can route it
//! without reading it: the version, the method, the name of what is asked for, and the arguments
//! that a tool wants to see there.

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_mcp::{
    message::Params,
    raw::as_text,
    stateless::{PROTOCOL_VERSION, heading, mirror},
};

/// The headers of a request. `tool` is the definition of the tool that it calls, where it is known.
pub(super) fn of(method: &str, params: &Params<'_>, tool: Option<&str>) -> HeaderMap {
    let version = params.meta(PROTOCOL_VERSION).and_then(|version| as_text(&version));
    let name = heading::name_of(method, params).map(|name| heading::encode(&name));
    let always = [
        (heading::VERSION, version),
        (heading::METHOD, Some(method.to_owned())),
        (heading::NAME, name),
    ];
    let always = always.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mirrored = tool.map(|tool| mirror::headers(tool, params.get("arguments")));
    let mut headers = HeaderMap::new();
    for (name, value) in always.chain(mirrored.unwrap_or_default()) {
        // What cannot be sent is left out: the gateway says what it misses.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn check(
        method: &str,
        params: serde_json::Value,
        tool: Option<&str>,
        expected: &[(&str, &str)],
    ) {
        let raw = to_raw_value(&params).expect("JSON");
        let headers = of(method, &Params::parse(Some(&raw)).expect("an object"), tool);
        let text = |value: &HeaderValue| value.to_str().expect("ASCII").to_owned();
        let mut told: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        told.sort();
        let told: Vec<_> = told.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(told, expected, "{params}");
    }

    #[test]
    fn what_a_request_is_about_stands_in_its_headers() {
        let meta = json!({PROTOCOL_VERSION: "2026-07-28"});
        let version = ("mcp-protocol-version", "2026-07-28");
        let call = ("mcp-method", "tools/call");
        let params = json!({"name": "echo", "_meta": meta});
        check("tools/call", params, None, &[call, ("mcp-name", "echo"), version]);
        let read = ("mcp-method", "resources/read");
        let params = json!({"uri": "file:///ä", "name": "x"});
        let encoded = ("mcp-name", "=?base64?ZmlsZTovLy/DpA==?=");
        check("resources/read", params, None, &[read, encoded]);
        check("tools/list", json!({"name": "x"}), None, &[("mcp-method", "tools/list")]);
        check("a\nb", json!({}), None, &[]);
    }

    #[test]
    fn arguments_that_a_tool_wants_in_headers_are_there() {
        let tool = r#"{"name": "go", "inputSchema": {"type": "object", "properties":
            {"port": {"type": "string", "x-mcp-header": "Port"}}}}"#;
        let params = json!({"name": "go", "arguments": {"port": "Brest", "other": 1}});
        let call = ("mcp-method", "tools/call");
        let name = ("mcp-name", "go");
        check("tools/call", params, Some(tool), &[call, name, ("mcp-param-port", "Brest")]);
    }
}
