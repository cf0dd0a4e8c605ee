//! Every pair of dialects over sockets: the first target of the client's own dialect fails, the
//! second one speaks another, and the client gets what it understands.

use serde_json::{Value, json};
use tidegate_fakes::fake::{Act, FakeServer, Step};
use tidegate_testkit::{gate::Gate, http::Answer};

use crate::bed::{always, good};

/// A dialect, as a client and as a target.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spoken {
    Chat,
    Messages,
    Responses,
    Gemini,
}

use Spoken::{Chat, Gemini, Messages, Responses};

const ALL: [Spoken; 4] = [Chat, Messages, Responses, Gemini];

impl Spoken {
    fn provider(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Chat => ("openai", "/v1", "serves: [chat]"),
            Responses => ("openai", "/v1", "serves: [responses]"),
            Messages => ("anthropic", "", ""),
            Gemini => ("gemini", "", ""),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Chat => "openai-chat",
            Responses => "openai-responses",
            Messages => "anthropic",
            Gemini => "gemini",
        }
    }

    fn request(self, text: &str, is_stream: bool) -> (&'static str, Value) {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let messages = json!([{"role": "user", "content": text}]);
        match self {
            Chat => (
                "/v1/chat/completions",
                json!({"model": "r", "stream": is_stream, "messages": messages, "tools": [
                    {"type": "function", "function": {"name": "see", "parameters": schema}}]}),
            ),
            Messages => (
                "/v1/messages",
                json!({"model": "r", "stream": is_stream, "max_tokens": 50, "messages": messages,
                    "tools": [{"name": "see", "input_schema": schema}]}),
            ),
            Responses => (
                "/v1/responses",
                json!({"model": "r", "stream": is_stream, "input": text, "tools": [
                    {"type": "function", "name": "see", "parameters": schema}]}),
            ),
            Gemini => (
                if is_stream {
                    "/v1beta/models/r:streamGenerateContent?alt=sse"
                } else {
                    "/v1beta/models/r:generateContent"
                },
                json!({"contents": [{"role": "user", "parts": [{"text": text}]}], "tools": [
                    {"functionDeclarations": [{"name": "see", "parameters": schema}]}]}),
            ),
        }
    }

    /// Where the text of a whole answer stands, and the call of a tool with its arguments.
    fn text(self, body: &Value) -> Option<String> {
        let place = match self {
            Chat => "/choices/0/message/content",
            Messages => "/content/0/text",
            Responses => "/output/0/content/0/text",
            Gemini => "/candidates/0/content/parts/0/text",
        };
        body.pointer(place)?.as_str().map(str::to_owned)
    }

    fn arguments(self, body: &Value) -> Option<Value> {
        let place = match self {
            Chat => "/choices/0/message/tool_calls/0/function/arguments",
            Messages => "/content/0/input",
            Responses => "/output/0/arguments",
            Gemini => "/candidates/0/content/parts/0/functionCall/args",
        };
        match body.pointer(place)? {
            Value::String(text) => serde_json::from_str(text).ok(),
            value => Some(value.clone()),
        }
    }

    /// The text of all deltas of a stream.
    fn streamed(self, events: &[Value]) -> String {
        let place = match self {
            Chat => "/choices/0/delta/content",
            Messages => "/delta/text",
            Responses => "/delta",
            Gemini => "/candidates/0/content/parts/0/text",
        };
        events.iter().filter_map(|event| event.pointer(place)?.as_str()).collect()
    }

    /// Whether a stream has the end that the dialect wants, once.
    fn is_ended(self, text: &str) -> bool {
        let mark = match self {
            Chat => "data: [DONE]",
            Messages => "event: message_stop",
            Responses => "event: response.completed",
            Gemini => "\"finishReason\":\"STOP\"",
        };
        text.matches(mark).count() == 1
    }
}

fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// A gateway whose first target speaks the client's dialect and whose second speaks another.
fn gate(client: (Spoken, &FakeServer), target: (Spoken, &FakeServer)) -> Gate {
    let line = |name: &str, (spoken, fake): (Spoken, &FakeServer)| {
        let (api, base, more) = spoken.provider();
        format!("  {name}: {{api: {api}, url: '{}{base}', key: 'env:KEY', {more}}}\n", fake.url())
    };
    let lines = [line("a", client), line("b", target)].concat();
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n{lines}routes:\n  r: {{tiers: [[a/m], [b/m]]}}\n"
    );
    Gate::start(&yaml, &[("KEY", "sk-upstream")])
}

fn each_pair(check: impl Fn(Spoken, Spoken)) {
    for client in ALL {
        for target in ALL.into_iter().filter(|target| *target != client) {
            check(client, target);
        }
    }
}

#[test]
fn every_client_is_served_by_every_provider() {
    each_pair(|client, target| {
        let (bad, spare) = (always(Step::status(503)), good());
        let gate = gate((client, &bad), (target, &spare));
        let label = format!("{}>{}", client.word(), target.word());
        let (path, body) = client.request("good morning", false);
        let answer = gate.post(path, &body.to_string());
        assert_eq!(answer.status, 200, "{label}: {}", answer.text());
        assert_eq!(answer.header("x-tidegate-converted"), Some(label.as_str()));
        let text = client.text(&answer.json()).unwrap_or_default();
        assert!(text.ends_with("as m heard: good morning"), "{label}: {}", answer.text());
        let (path, body) = client.request("please use the tool", false);
        let answer = gate.post(path, &body.to_string());
        let arguments = client.arguments(&answer.json());
        assert_eq!(arguments, Some(json!({"city": "high tide"})), "{label}: {}", answer.text());
    });
}

#[test]
fn every_client_gets_its_own_stream_from_every_provider() {
    each_pair(|client, target| {
        let (bad, spare) = (always(Step::status(503)), good());
        let gate = gate((client, &bad), (target, &spare));
        let (path, body) = client.request("good morning", true);
        let answer = gate.post(path, &body.to_string());
        assert_eq!(answer.status, 200, "{client:?} {target:?}: {}", answer.text());
        let text = client.streamed(&events(&answer));
        assert!(text.contains("as m heard: good morning"), "{client:?} {target:?}: {text}");
        assert!(client.is_ended(&answer.text()), "{client:?} {target:?}: {}", answer.text());
        let (path, body) = client.request("please use the tool", true);
        let answer = gate.post(path, &body.to_string());
        let text = answer.text();
        assert!(client.is_ended(&text), "{client:?} {target:?}: {text}");
        assert!(text.contains("see") && text.contains("city"), "{client:?} {target:?}: {text}");
    });
}

#[test]
fn a_stream_that_breaks_is_an_error_in_every_pair() {
    each_pair(|client, target| {
        let bad = always(Step::status(503));
        let spare = always(Step::after(Act::Cut, 2));
        let gate = gate((client, &bad), (target, &spare));
        let (path, body) = client.request("good morning", true);
        let answer = gate.post(path, &body.to_string());
        let text = answer.text();
        assert_eq!(answer.status, 200, "{client:?} {target:?}: {text}");
        assert!(!client.is_ended(&text), "{client:?} {target:?}: {text}");
        let last = events(&answer).pop().unwrap_or_default();
        assert!(last["error"].is_object(), "{client:?} {target:?}: {text}");
    });
}

#[test]
fn an_error_comes_back_in_the_clients_shape_in_every_pair() {
    each_pair(|client, target| {
        let (bad, spare) = (always(Step::status(503)), always(Step::status(429)));
        let gate = gate((client, &bad), (target, &spare));
        let (path, body) = client.request("good morning", false);
        let answer = gate.post(path, &body.to_string());
        assert_eq!(answer.status, 429, "{client:?} {target:?}: {}", answer.text());
        let error = &answer.json()["error"];
        let word = match client {
            Gemini => &error["status"],
            _ => &error["type"],
        };
        let expected = if client == Gemini { "RESOURCE_EXHAUSTED" } else { "rate_limit_error" };
        assert_eq!(word, expected, "{client:?} {target:?}: {}", answer.text());
    });
}
