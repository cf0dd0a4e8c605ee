//! A request of Gemini's API, told in the words that the other dialects use.

use serde_json::{Map, Value, json};

/// The same request with `messages`, `tools`, `tool_choice` and `input`.
pub(super) fn translated(root: &Map<String, Value>) -> Map<String, Value> {
    let inner = get(root, "generateContentRequest").and_then(Value::as_object).unwrap_or(root);
    let mut out = Map::new();
    let messages: Vec<Value> = list(get(inner, "contents")).into_iter().map(message).collect();
    out.insert("messages".into(), messages.into());
    if let Some(requests) = root.get("requests") {
        out.insert("input".into(), requests.clone());
    }
    let declared = list(get(inner, "tools")).into_iter();
    let declared = declared.flat_map(|tool| list(of(tool, "functionDeclarations")));
    let tools: Vec<Value> = declared.map(tool).collect();
    if !tools.is_empty() {
        out.insert("tools".into(), tools.into());
    }
    let calling = get(inner, "toolConfig").and_then(|it| of(it, "functionCallingConfig"));
    if let Some(choice) = calling.and_then(choice) {
        out.insert("tool_choice".into(), choice);
    }
    out
}

fn message(content: &Value) -> Value {
    let role = if content["role"] == "model" { "assistant" } else { "user" };
    let parts: Vec<Value> = list(content.get("parts")).into_iter().map(part).collect();
    json!({"role": role, "content": parts})
}

fn part(part: &Value) -> Value {
    if let Some(data) = of(part, "inlineData").or(of(part, "fileData")) {
        let kind = of(data, "mimeType").and_then(Value::as_str).unwrap_or_default();
        return json!({"type": if kind.starts_with("image/") { "image" } else { "file" }});
    }
    if let Some(response) = of(part, "functionResponse").and_then(|it| it.get("response")) {
        let text = response.get("result").and_then(Value::as_str);
        return json!({"type": "tool_result", "content": text.unwrap_or_default()});
    }
    json!({"type": "text", "text": part["text"]})
}

fn tool(function: &Value) -> Value {
    let schema = of(function, "parametersJsonSchema").or(function.get("parameters"));
    let mut schema = schema.cloned().unwrap_or_default();
    // Google writes types in capitals.
    for property in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        if let Some(kind) = property.1.get_mut("type")
            && let Some(word) = kind.as_str().map(str::to_ascii_lowercase)
        {
            *kind = word.into();
        }
    }
    json!({"name": function["name"], "parameters": schema})
}

fn choice(calling: &Value) -> Option<Value> {
    match calling["mode"].as_str()? {
        "NONE" => Some(json!("none")),
        "ANY" => {
            let name = of(calling, "allowedFunctionNames").and_then(|names| names.get(0));
            Some(name.map_or_else(|| json!("required"), |name| json!({ "name": name })))
        }
        _ => None,
    }
}

/// A field in camel case or in snake case: Google reads both.
fn of<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    get(value.as_object()?, key)
}

fn get<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let snake: String = key
        .chars()
        .flat_map(|letter| {
            let mark = letter.is_ascii_uppercase().then_some('_');
            mark.into_iter().chain([letter.to_ascii_lowercase()])
        })
        .collect();
    map.get(key).or(map.get(&snake))
}

/// A list, which may be written as its one element.
fn list(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(values)) => values.iter().collect(),
        Some(one @ Value::Object(_)) => vec![one],
        _ => Vec::new(),
    }
}
