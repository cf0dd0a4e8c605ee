//! What the gateway says of a route and what it does with a request are the same: no route is
//! called able when the request would be refused, and none unable when it would be answered.
//!
//! Random routes over providers of every api, with random abilities, are asked by clients of every
//! dialect with random needs. Beside each request `/api/explain`, `/v1/routes` and the prospects
//! that `tidegate check` prints are asked too.

use serde_json::{Value, json};
use tidegate_config::{load, secret::AssumedEnvironment, source::Source};
use tidegate_fakes::fake::{FakeServer, Step};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    gate::Gate,
};
use tidegate_wire::{
    convert::target::TargetProfile,
    prospect::{CLIENT_DIALECTS, ClientDialect, Prospect, prospect},
};

use crate::bed::{always, good};

/// Draws that are the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % bound
    }

    fn pick<'a>(&mut self, things: &[&'a str]) -> &'a str {
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
const ABILITIES: [&str; 5] = ["tools", "vision", "documents", "json_schema", "reasoning"];

fn config(draws: &mut Draws, fakes: &[FakeServer]) -> String {
    let mut providers = String::new();
    let count = 1 + draws.below(3);
    for (fake, name) in fakes.iter().zip(["a", "b", "c"]).take(count) {
        let api = draws.pick(&APIS);
        let base = if api.contains("openai") { "/v1" } else { "" };
        let lacks: Vec<String> = ABILITIES
            .iter()
            .filter(|_| draws.below(4) == 0)
            .map(|ability| format!("{ability}: false"))
            .collect();
        let targets = format!("targets: {{m: {{{}}}}}", lacks.join(", "));
        let url = fake.url();
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

/// A request of a dialect with some of the needs; `bits` says which.
fn request(client: ClientDialect, bits: usize) -> (String, Value) {
    let has = |ability: &str| {
        let place = ABILITIES.iter().position(|it| *it == ability).expect("an ability");
        bits & (1 << place) != 0
    };
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let pdf = "data:application/pdf;base64,AAAA";
    let png = "data:image/png;base64,AAAA";
    let mut parts = Vec::new();
    let (path, mut body) = match client.word {
        "chat" => {
            parts.push(json!({"type": "text", "text": "hi"}));
            if has("vision") {
                parts.push(json!({"type": "image_url", "image_url": {"url": png}}));
            }
            if has("documents") {
                let file = json!({"filename": "a.pdf", "file_data": pdf});
                parts.push(json!({"type": "file", "file": file}));
            }
            let messages = json!([{"role": "user", "content": parts}]);
            (client.path.to_owned(), json!({"model": "r", "messages": messages}))
        }
        "messages" => {
            parts.push(json!({"type": "text", "text": "hi"}));
            let source = |kind: &str| json!({"type": "base64", "media_type": kind, "data": "AAAA"});
            if has("vision") {
                parts.push(json!({"type": "image", "source": source("image/png")}));
            }
            if has("documents") {
                parts.push(json!({"type": "document", "source": source("application/pdf")}));
            }
            let messages = json!([{"role": "user", "content": parts}]);
            let body = json!({"model": "r", "max_tokens": 4000, "messages": messages});
            (client.path.to_owned(), body)
        }
        "responses" => {
            parts.push(json!({"type": "input_text", "text": "hi"}));
            if has("vision") {
                parts.push(json!({"type": "input_image", "image_url": png}));
            }
            if has("documents") {
                parts.push(json!({"type": "input_file", "filename": "a.pdf", "file_data": pdf}));
            }
            let input = json!([{"role": "user", "content": parts}]);
            (client.path.to_owned(), json!({"model": "r", "input": input}))
        }
        _ => {
            parts.push(json!({"text": "hi"}));
            let data = |kind: &str| json!({"inlineData": {"mimeType": kind, "data": "AAAA"}});
            if has("vision") {
                parts.push(data("image/png"));
            }
            if has("documents") {
                parts.push(data("application/pdf"));
            }
            let path = client.path.replace("/m:", "/r:");
            (path, json!({"contents": [{"role": "user", "parts": parts}]}))
        }
    };
    if has("tools") {
        body["tools"] = match client.word {
            "chat" => json!([{"type": "function",
                "function": {"name": "f", "parameters": schema}}]),
            "messages" => json!([{"name": "f", "input_schema": schema}]),
            "responses" => json!([{"type": "function", "name": "f", "parameters": schema}]),
            _ => json!([{"functionDeclarations": [{"name": "f", "parameters": schema}]}]),
        };
    }
    let format = json!({"type": "json_schema", "name": "n", "schema": schema});
    match client.word {
        "chat" => {
            if has("json_schema") {
                let schema = json!({"name": "n", "schema": schema});
                body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
            }
            if has("reasoning") {
                body["reasoning_effort"] = json!("high");
            }
        }
        "messages" => {
            if has("json_schema") {
                body["output_config"] =
                    json!({"format": {"type": "json_schema", "schema": schema}});
            }
            if has("reasoning") {
                body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
            }
        }
        "responses" => {
            if has("json_schema") {
                body["text"] = json!({ "format": format });
            }
            if has("reasoning") {
                body["reasoning"] = json!({"effort": "high"});
            }
        }
        _ => {
            let mut config = json!({});
            if has("json_schema") {
                config["responseMimeType"] = json!("application/json");
                config["responseSchema"] = schema;
            }
            if has("reasoning") {
                config["thinkingConfig"] = json!({"thinkingBudget": 2000});
            }
            body["generationConfig"] = config;
        }
    }
    (path, body)
}

/// The target that `explain` says would be asked.
fn explained(gate: &Gate, path: &str, body: &Value) -> Option<String> {
    let question = json!({"model": "r", "path": path, "request": body}).to_string();
    let ask = Ask {
        verb: "POST",
        path: "/api/explain",
        headers: "content-type: application/json\r\n".to_owned(),
        body: question.as_bytes(),
    };
    let mut answer = Exchange::begin(gate.server.admin_address(), &ask).expect("an answer");
    answer.must_be(200, "explaining");
    let shown: Value = serde_json::from_str(&answer.text()).expect("JSON");
    let candidates = shown["explanation"]["candidates"].as_array().cloned().unwrap_or_default();
    let chosen = candidates.iter().find(|it| it["verdict"]["chosen"].is_object());
    chosen.and_then(|it| it["backend"].as_str()).map(str::to_owned)
}

/// Whether the prospects that `tidegate check` prints have somebody who serves a dialect.
fn is_promised(yaml: &str, client: ClientDialect) -> bool {
    let config = load(&Source::new("t.yaml", yaml), &AssumedEnvironment).config;
    let config = config.expect("the config is sound");
    let route = &config.settings.routes[0];
    let mut members = route.tiers.iter().flatten();
    members.any(|member| {
        let abilities = &config.settings.backends[member.backend].abilities;
        let profile = TargetProfile { model: "m", host: "127.0.0.1" };
        !matches!(prospect(client, abilities, &profile), Prospect::Never(_))
    })
}

#[test]
fn no_route_is_called_able_when_the_request_would_be_refused() {
    let fakes = [good(), good(), good()];
    let mut draws = Draws(7);
    let (mut answered, mut refused) = (0, 0);
    for round in 0..24 {
        let yaml = config(&mut draws, &fakes);
        let gate = Gate::start(&yaml, &[]);
        let routes = gate.get("/v1/routes").json();
        for client in CLIENT_DIALECTS {
            for bits in [0, 1 << draws.below(5), draws.below(32)] {
                let (path, body) = request(client, bits);
                let says = explained(&gate, &path, &body);
                let answer = gate.post(&path, &body.to_string());
                let context = format!(
                    "round {round}, {} with {bits:05b}: {says:?}, {} {}\n{yaml}",
                    client.word,
                    answer.status,
                    answer.text()
                );
                match &says {
                    Some(target) => {
                        assert_eq!(answer.status, 200, "{context}");
                        let resolved = answer.header("x-tidegate-resolved");
                        assert_eq!(resolved, Some(target.as_str()), "{context}");
                        answered += 1;
                    }
                    None => {
                        assert_eq!(answer.status, 400, "{context}");
                        refused += 1;
                    }
                }
                if bits == 0 {
                    let listed = &routes["routes"][0]["resolves_by_dialect"][client.word];
                    let first = listed[0].as_str().map(str::to_owned);
                    assert_eq!(first, says, "{context}\n{listed}");
                    assert_eq!(is_promised(&yaml, client), answer.status == 200, "{context}");
                }
            }
        }
    }
    assert!(answered > 50 && refused > 20, "both happen: {answered} answered, {refused} refused");
}

#[test]
fn health_is_unhealthy_when_clients_of_one_dialect_have_nobody_left() {
    let (chat, embeds) = (always(Step::status(500)), good());
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n  a: {{api: openai, url: '{}/v1', serves: [chat]}}\n  \
         b: {{api: openai, url: '{}/v1', serves: [embeddings]}}\n\
         routes:\n  r: {{tiers: [[a/m], [b/m]]}}\n",
        chat.url(),
        embeds.url()
    );
    let gate = Gate::start(&yaml, &[]);
    assert_eq!(gate.get("/v1/health").json()["status"], "healthy");
    for _ in 0..3 {
        assert_eq!(gate.chat().status, 500);
    }
    assert_eq!(gate.get("/v1/health").json()["status"], "unhealthy", "embeddings help no chat");
    let routes = gate.get("/v1/routes").json();
    assert_eq!(routes["routes"][0]["resolves_by_dialect"]["messages"], json!(["a/m"]));
}
