//! What every request of the stateless era must say, in the order that it is looked at: what is
//! missing, what contradicts itself, what is not spoken, what there is not.

use http::HeaderMap;
use serde_json::{Value, json};

use super::{McpScript, Refusal, STATELESS, meta, supported};

/// What this era has. Whatever else a client asks for, it was removed or never was.
const METHODS: [&str; 10] = [
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// Whether a request is one that can be answered.
pub(super) fn check(
    script: &McpScript,
    headers: Option<&HeaderMap>,
    message: &Value,
) -> Result<(), Refusal> {
    let method = message["method"].as_str().unwrap_or_default();
    if message["jsonrpc"] != "2.0" || method.is_empty() || message["id"].is_null() {
        return Err(Refusal::new(-32600, "only requests are taken here"));
    }
    let version = meta(message, "protocolVersion");
    let hello = &message["params"]["protocolVersion"];
    if method == "initialize" && version.is_null() && hello.is_string() {
        return Err(unsupported(script, hello));
    }
    if !version.is_string() {
        return Err(Refusal::new(-32602, "_meta has no protocolVersion"));
    }
    if !meta(message, "clientCapabilities").is_object() {
        return Err(Refusal::new(-32602, "_meta has no clientCapabilities"));
    }
    if let Some(headers) = headers {
        check_header(headers, "mcp-protocol-version", version)?;
        check_header(headers, "mcp-method", &message["method"])?;
        match method {
            "tools/call" => {
                check_header(headers, "mcp-name", &message["params"]["name"])?;
                check_arguments(script, headers, &message["params"])?;
            }
            "prompts/get" => check_header(headers, "mcp-name", &message["params"]["name"])?,
            "resources/read" => check_header(headers, "mcp-name", &message["params"]["uri"])?,
            _ => {}
        }
    }
    if version != STATELESS {
        return Err(unsupported(script, version));
    }
    if !METHODS.contains(&method) {
        return Err(Refusal::new(-32601, format!("Method not found: {method}")));
    }
    Ok(())
}

fn unsupported(script: &McpScript, requested: &Value) -> Refusal {
    let data = json!({"supported": supported(script), "requested": requested});
    let text = format!("unsupported protocol version {requested}");
    Refusal { data: Some(data), ..Refusal::new(-32022, text) }
}

/// Arguments that a tool wants to see in headers (`x-mcp-header` in its schema) stand there if, and
/// only if, they are given. Only properties of the schema itself are looked at.
fn check_arguments(script: &McpScript, headers: &HeaderMap, params: &Value) -> Result<(), Refusal> {
    let tool = script.tools.iter().find(|tool| params["name"] == tool.name.as_str());
    let listed = tool.and_then(|tool| serde_json::from_str::<Value>(&tool.listed()).ok());
    let listed = listed.unwrap_or_default();
    let properties = listed["inputSchema"]["properties"].as_object().into_iter().flatten();
    for (key, schema) in properties {
        let Some(name) = schema["x-mcp-header"].as_str() else { continue };
        let name = format!("mcp-param-{}", name.to_ascii_lowercase());
        match &params["arguments"][key] {
            Value::Null if headers.contains_key(&name) => {
                return Err(Refusal::new(-32020, format!("the header {name} repeats nothing")));
            }
            Value::Null => {}
            given @ Value::String(_) => check_header(headers, &name, given)?,
            given => check_header(headers, &name, &json!(given.to_string()))?,
        }
    }
    Ok(())
}

fn check_header(headers: &HeaderMap, name: &str, said: &Value) -> Result<(), Refusal> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    let Some(written) = first.filter(|_| second.is_none()) else {
        return Err(Refusal::new(-32020, format!("the header {name} is not there once")));
    };
    let written = String::from_utf8_lossy(written.as_bytes()).into_owned();
    let decoded = decode(&written);
    if decoded.is_some() && decoded.as_deref() == said.as_str() {
        return Ok(());
    }
    Err(Refusal::new(-32020, format!("the header {name} is {written:?}, the body says {said}")))
}

/// The text of a header's value; none if it says that it is encoded, and is not.
fn decode(value: &str) -> Option<String> {
    let encoded = value.strip_prefix("=?base64?").and_then(|it| it.strip_suffix("?="));
    match encoded {
        Some(encoded) => String::from_utf8(base64(encoded)?).ok(),
        None => Some(value.to_owned()),
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for sign in text.trim_end_matches('=').bytes() {
        let value = SIGNS.iter().position(|known| *known == sign)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held).ok()?);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::fake_mcp::tool::{Tool, ToolAct};

    fn request(method: &str, version: &str) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": "grüße", "uri": "a:b", "_meta": meta});
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    fn code(message: &Value, headers: &[(&'static str, &str)]) -> i64 {
        code_of(&McpScript::default(), message, headers)
    }

    fn code_of(script: &McpScript, message: &Value, headers: &[(&'static str, &str)]) -> i64 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), value.parse().expect("a header"));
        }
        check(script, Some(&map), message).err().map_or(0, |it| it.code)
    }

    const VERSION: (&str, &str) = ("mcp-protocol-version", STATELESS);
    const CALL: (&str, &str) = ("mcp-method", "tools/call");
    const NAME: (&str, &str) = ("mcp-name", "=?base64?Z3LDvMOfZQ==?=");

    #[test]
    fn a_request_says_who_asks_and_its_headers_say_the_same() {
        let call = request("tools/call", STATELESS);
        assert_eq!(code(&call, &[VERSION, CALL, NAME]), 0);
        assert_eq!(code(&call, &[VERSION, CALL]), -32020);
        assert_eq!(code(&call, &[VERSION, CALL, ("mcp-name", "gruesse")]), -32020);
        assert_eq!(code(&call, &[VERSION, CALL, ("mcp-name", "=?base64?!?=")]), -32020);
        assert_eq!(code(&call, &[CALL, NAME]), -32020);
        assert_eq!(code(&call, &[VERSION, VERSION, CALL, NAME]), -32020);
        assert_eq!(code(&call, &[VERSION, ("mcp-method", "tools/list"), NAME]), -32020);
        assert_eq!(check(&McpScript::default(), None, &call), Ok(()), "stdio has no headers");
        for key in ["protocolVersion", "clientCapabilities"] {
            let mut call = call.clone();
            let meta = call["params"]["_meta"].as_object_mut().expect("an object");
            meta.remove(&format!("io.modelcontextprotocol/{key}"));
            assert_eq!(code(&call, &[VERSION, CALL, NAME]), -32602);
        }
    }

    #[test]
    fn an_argument_that_a_tool_wants_in_a_header_stands_there() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
        }});
        let listed = json!({"name": "grüße", "inputSchema": schema}).to_string();
        let script = McpScript::of(vec![Tool::new("grüße", ToolAct::Echo).defined_as(&listed)]);
        let mut call = request("tools/call", STATELESS);
        call["params"]["arguments"] = json!({"region": "eu", "count": 3});
        let check = |call: &Value, more: &[(&'static str, &str)]| {
            let heads = [&[VERSION, CALL, NAME], more].concat();
            code_of(&script, call, &heads)
        };
        let (region, count) = (("mcp-param-region", "eu"), ("mcp-param-count", "3"));
        assert_eq!(check(&call, &[region, count]), 0);
        assert_eq!(check(&call, &[region]), -32020);
        assert_eq!(check(&call, &[region, ("mcp-param-count", "4")]), -32020);
        call["params"]["arguments"] = json!({"count": null});
        assert_eq!(check(&call, &[]), 0);
        assert_eq!(check(&call, &[region]), -32020);
    }

    #[test]
    fn what_is_not_spoken_is_told_with_what_is() {
        let call = request("tools/list", "1900-01-01");
        let refusal = check(&McpScript::default(), None, &call).expect_err("not spoken");
        let data = json!({"supported": [STATELESS], "requested": "1900-01-01"});
        assert_eq!((refusal.code, refusal.data), (-32022, Some(data)));
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25"}});
        let refusal = check(&McpScript::default(), None, &hello).expect_err("no sessions");
        assert_eq!((refusal.code, refusal.status.as_u16()), (-32022, 400));
    }

    #[test]
    fn what_was_removed_is_not_found() {
        for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "x"] {
            let refusal = check(&McpScript::default(), None, &request(method, STATELESS));
            let refusal = refusal.expect_err("removed");
            assert_eq!((refusal.code, refusal.status.as_u16()), (-32601, 404), "{method}");
        }
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(code(&notice, &[VERSION]), -32600);
    }
}
