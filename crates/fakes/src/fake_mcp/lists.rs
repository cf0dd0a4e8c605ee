//! What a fake MCP server has: lists in pages, resources, prompts and completions.

use serde_json::{Value, json};

use super::answer::Reply;
use super::script::{McpScript, Prompt, Resource};

pub(super) fn tools(script: &McpScript, params: &Value) -> Reply {
    let all = script.tools.len();
    page(script, params, "tools", all, |index| script.tools[index].listed())
}

pub(super) fn resources(script: &McpScript, params: &Value) -> Reply {
    let listed = |it: &Resource| {
        json!({"uri": it.uri, "name": it.uri, "mimeType": "text/plain"}).to_string()
    };
    let all = script.resources.len();
    page(script, params, "resources", all, |index| listed(&script.resources[index]))
}

pub(super) fn templates(script: &McpScript, params: &Value) -> Reply {
    let listed = |it: &String| json!({"uriTemplate": it, "name": it}).to_string();
    let all = script.templates.len();
    page(script, params, "resourceTemplates", all, |index| listed(&script.templates[index]))
}

pub(super) fn prompts(script: &McpScript, params: &Value) -> Reply {
    let listed = |it: &Prompt| {
        let argument = |name: &String| json!({"name": name, "required": true});
        let arguments: Vec<Value> = it.arguments.iter().map(argument).collect();
        json!({"name": it.name, "arguments": arguments}).to_string()
    };
    let all = script.prompts.len();
    page(script, params, "prompts", all, |index| listed(&script.prompts[index]))
}

/// One page: a cursor is `at-` and the index of the first entry.
fn page(
    script: &McpScript,
    params: &Value,
    key: &str,
    all: usize,
    entry: impl Fn(usize) -> String,
) -> Reply {
    let from = match params["cursor"].as_str() {
        None => Some(0),
        Some(cursor) => cursor.strip_prefix("at-").and_then(|at| at.parse::<usize>().ok()),
    };
    let Some(from) = from.filter(|from| *from <= all) else {
        return Reply::Error(-32602, format!("Invalid cursor: {}", params["cursor"]));
    };
    let size = if script.page == 0 { all } else { script.page };
    let to = all.min(from.saturating_add(size));
    let entries: Vec<String> = (from..to).map(entry).collect();
    let more = if to < all { format!(r#","nextCursor":"at-{to}""#) } else { String::new() };
    Reply::Result(format!(r#"{{"{key}":[{}]{more}}}"#, entries.join(",")))
}

pub(super) fn read(script: &McpScript, params: &Value) -> Reply {
    let uri = params["uri"].as_str().unwrap_or_default();
    let known = script.resources.iter().find(|it| it.uri == uri).map(|it| it.text.clone());
    let stem = |template: &String| template.split('{').next().unwrap_or_default().to_owned();
    let is_made = |template: &String| uri.starts_with(&stem(template));
    let made = || script.templates.iter().any(is_made).then(|| format!("made for {uri}"));
    match known.or_else(made) {
        Some(text) => {
            let content = json!({"uri": uri, "mimeType": "text/plain", "text": text});
            Reply::Result(json!({"contents": [content]}).to_string())
        }
        None => Reply::Error(-32002, format!("Resource not found: {uri}")),
    }
}

pub(super) fn prompt(script: &McpScript, params: &Value) -> Reply {
    let name = params["name"].as_str().unwrap_or_default();
    let Some(prompt) = script.prompts.iter().find(|it| it.name == name) else {
        return Reply::Error(-32602, format!("Unknown prompt: {name}"));
    };
    let given = &params["arguments"];
    if let Some(missing) = prompt.arguments.iter().find(|it| !given[it.as_str()].is_string()) {
        return Reply::Error(-32602, format!("Missing argument: {missing}"));
    }
    let text = format!("{} of {} with {given}", prompt.name, script.name);
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Reply::Result(json!({"messages": [message]}).to_string())
}

pub(super) fn complete(script: &McpScript, params: &Value) -> Reply {
    let argument = params["argument"]["name"].as_str().unwrap_or_default();
    let begun = params["argument"]["value"].as_str().unwrap_or_default();
    let known = script.completions.get(argument).into_iter().flatten();
    let values: Vec<&String> = known.filter(|value| value.starts_with(begun)).collect();
    let total = values.len();
    let completion = json!({"values": values, "total": total, "hasMore": false});
    Reply::Result(json!({"completion": completion}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: Reply) -> String {
        match reply {
            Reply::Result(text) | Reply::Error(_, text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pages_follow_each_other_and_the_last_has_no_cursor() {
        let script = McpScript { page: 2, ..McpScript::with_many(3) };
        let first = text(tools(&script, &Value::Null));
        assert!(first.contains("tool_00001") && first.ends_with(r#""nextCursor":"at-2"}"#));
        let last = text(tools(&script, &json!({"cursor": "at-2"})));
        assert!(last.contains("tool_00002") && !last.contains("nextCursor"), "{last}");
        assert!(text(tools(&script, &json!({"cursor": "at-9"}))).contains("Invalid cursor"));
    }

    #[test]
    fn a_template_makes_what_begins_like_it() {
        let mut script = McpScript::default().resource("memo://a", "A");
        script.templates = vec!["memo://made/{it}".to_owned()];
        let said = |uri| text(read(&script, &json!({"uri": uri})));
        assert!(said("memo://a").contains(r#""text":"A""#));
        assert!(said("memo://made/x").contains("made for memo://made/x"));
        assert!(said("memo://b").contains("not found"));
    }
}
