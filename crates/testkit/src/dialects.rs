//! Random configs over providers of every api, and requests of every dialect with random needs, for
//! tests that compare what the gateway says of a route with what it does.

use serde_json::{Value, json};

/// Draws that are the same in every run.
pub struct Draws(pub u64);

impl Draws {
    /// A number below this one.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % bound
    }

    /// One of these.
    pub fn pick<'a>(&mut self, things: &[&'a str]) -> &'a str {
        things[self.below(things.len())]
    }
}

const APIS: [&str; 6] = [
    "api: openai",
    "api: openai, serves: [chat]",
    "api: openai, serves: [responses]",
    "api: openai, serves: [embeddings]",
    "api: anthropic",
    "api: gemini",
];

/// What a request may need, by the word that config files and scenarios have for it.
pub const NEEDS: [&str; 5] = ["tools", "vision", "documents", "json_schema", "reasoning"];

/// A route `r` over one to three providers, each at one of these addresses with the target `m`.
pub fn config(draws: &mut Draws, urls: &[String]) -> String {
    let mut providers = String::new();
    let count = 1 + draws.below(3);
    for (url, name) in urls.iter().zip(["a", "b", "c"]).take(count) {
        let api = draws.pick(&APIS);
        let base = if api.contains("openai") { "/v1" } else { "" };
        let lacks: Vec<String> = NEEDS
            .iter()
            .filter(|_| draws.below(4) == 0)
            .map(|ability| format!("{ability}: false"))
            .collect();
        let targets = format!("targets: {{m: {{{}}}}}", lacks.join(", "));
        providers.push_str(&format!("  {name}: {{{api}, url: '{url}{base}', {targets}}}\n"));
    }
    let tiers: Vec<String> =
        ["a", "b", "c"][..count].iter().map(|it| format!("[{it}/m]")).collect();
    format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n{providers}routes:\n  r: {{tiers: [{}]}}\n",
        tiers.join(", ")
    )
}

/// The path and body of a request of a dialect with some of [`NEEDS`]; `bits` says which.
pub fn request(dialect: &str, bits: usize) -> (String, Value) {
    let has = |need: &str| {
        let place = NEEDS.iter().position(|it| *it == need).expect("one of the needs");
        bits & (1 << place) != 0
    };
    let mut parts = vec![text(dialect)];
    for need in ["vision", "documents"].into_iter().filter(|need| has(need)) {
        parts.push(file(dialect, need));
    }
    let (path, mut body) = match dialect {
        "chat" => ("/v1/chat/completions", json!({"model": "r", "messages": [turn(&parts)]})),
        "messages" => {
            ("/v1/messages", json!({"model": "r", "max_tokens": 4000, "messages": [turn(&parts)]}))
        }
        "responses" => ("/v1/responses", json!({"model": "r", "input": [turn(&parts)]})),
        _ => (
            "/v1beta/models/r:generateContent",
            json!({"contents": [{"role": "user", "parts": parts}], "generationConfig": {}}),
        ),
    };
    for need in ["tools", "json_schema", "reasoning"].into_iter().filter(|need| has(need)) {
        ask(dialect, need, &mut body);
    }
    (path.to_owned(), body)
}

fn turn(parts: &[Value]) -> Value {
    json!({"role": "user", "content": parts})
}

fn text(dialect: &str) -> Value {
    match dialect {
        "responses" => json!({"type": "input_text", "text": "hi"}),
        "gemini" => json!({"text": "hi"}),
        _ => json!({"type": "text", "text": "hi"}),
    }
}

/// An image or a document.
fn file(dialect: &str, need: &str) -> Value {
    let kind = if need == "vision" { "image/png" } else { "application/pdf" };
    let url = format!("data:{kind};base64,AAAA");
    match (dialect, need) {
        ("chat", "vision") => json!({"type": "image_url", "image_url": {"url": url}}),
        ("chat", _) => json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}}),
        ("responses", "vision") => json!({"type": "input_image", "image_url": url}),
        ("responses", _) => json!({"type": "input_file", "filename": "a.pdf", "file_data": url}),
        ("messages", _) => {
            let source = json!({"type": "base64", "media_type": kind, "data": "AAAA"});
            let block = if need == "vision" { "image" } else { "document" };
            json!({"type": block, "source": source})
        }
        _ => json!({"inlineData": {"mimeType": kind, "data": "AAAA"}}),
    }
}

/// Adds a tool, a schema of the answer, or a wish for reasoning.
fn ask(dialect: &str, need: &str, body: &mut Value) {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    match (dialect, need) {
        ("chat", "tools") => {
            let function = json!({"name": "f", "parameters": schema});
            body["tools"] = json!([{"type": "function", "function": function}]);
        }
        ("messages", "tools") => body["tools"] = json!([{"name": "f", "input_schema": schema}]),
        ("responses", "tools") => {
            body["tools"] = json!([{"type": "function", "name": "f", "parameters": schema}]);
        }
        (_, "tools") => {
            let function = json!({"name": "f", "parameters": schema});
            body["tools"] = json!([{"functionDeclarations": [function]}]);
        }
        ("chat", "json_schema") => {
            let named = json!({"name": "n", "schema": schema});
            body["response_format"] = json!({"type": "json_schema", "json_schema": named});
        }
        ("messages", "json_schema") => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        ("responses", "json_schema") => {
            let format = json!({"type": "json_schema", "name": "n", "schema": schema});
            body["text"] = json!({ "format": format });
        }
        (_, "json_schema") => {
            body["generationConfig"]["responseMimeType"] = json!("application/json");
            body["generationConfig"]["responseSchema"] = schema;
        }
        ("chat", _) => body["reasoning_effort"] = json!("high"),
        ("messages", _) => body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000}),
        ("responses", _) => body["reasoning"] = json!({"effort": "high"}),
        _ => body["generationConfig"]["thinkingConfig"] = json!({"thinkingBudget": 2000}),
    }
}
