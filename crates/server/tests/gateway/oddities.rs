//! Servers that speak Chat Completions with differences: each is played by a scripted upstream that
//! behaves as it does, and asked by a client of another dialect and by one of its own.

use serde_json::{Value, json};
use tidegate_testkit::{gate::Gate, http::Answer};

use crate::upstream::Raw;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// One server: what its stream consists of, and what a client must get of it.
struct Oddity {
    name: &'static str,
    stream: &'static str,
    thinking: &'static str,
    text: &'static str,
    /// The call's arguments, if it makes one.
    call: Option<&'static str>,
    input_tokens: u64,
}

const ODDITIES: [Oddity; 6] = [
    Oddity {
        name: "OpenRouter: comments while it waits, thinking under `reasoning`, cost in the usage",
        stream: include_str!("oddities/openrouter.sse"),
        thinking: "hm",
        text: "Hello",
        call: None,
        input_tokens: 7,
    },
    Oddity {
        name: "DeepSeek: `reasoning_content`, keep-alive comments, cache hits under its own names",
        stream: include_str!("oddities/deepseek.sse"),
        thinking: "let me see",
        text: "Yes",
        call: None,
        input_tokens: 11,
    },
    Oddity {
        name: "Groq: usage inside `x_groq`, thinking under `reasoning`",
        stream: include_str!("oddities/groq.sse"),
        thinking: "ok so",
        text: "Fast",
        call: None,
        input_tokens: 13,
    },
    Oddity {
        name: "Ollama: a call in one piece, `stop` after it, no usage unless asked for",
        stream: include_str!("oddities/ollama.sse"),
        thinking: "",
        text: "",
        call: Some(r#"{"at":"sea"}"#),
        input_tokens: 19,
    },
    Oddity {
        name: "vLLM: empty lists of calls in every delta, both names of thinking, `stop_reason`",
        stream: include_str!("oddities/vllm.sse"),
        thinking: "thus",
        text: "So",
        call: None,
        input_tokens: 23,
    },
    Oddity {
        name: "Mistral: content as a list with thinking in it",
        stream: include_str!("oddities/mistral.sse"),
        thinking: "voyons",
        text: "Oui",
        call: None,
        input_tokens: 29,
    },
];

impl Oddity {
    fn start(&self) -> Raw {
        Raw::start(vec![format!("{HEAD}{}\n", self.stream).into_bytes()])
    }
}

fn gate(server: &Raw) -> Gate {
    Gate::start(
        &format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
             health: {{probe: {{every: 0s}}}}\n\
             providers:\n  a: {{api: openai, url: '{}/v1', serves: [chat]}}\n\
             routes:\n  r: {{tiers: [[a/m]]}}\n",
            server.url()
        ),
        &[],
    )
}

fn data(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// The texts at a place of the events of a kind, one after the other.
fn texts(events: &[Value], place: &str) -> String {
    events.iter().filter_map(|event| event.pointer(place)?.as_str()).collect()
}

#[test]
fn every_odd_server_is_understood_by_a_client_of_another_dialect() {
    for oddity in &ODDITIES {
        let server = oddity.start();
        let gate = gate(&server);
        let ask = json!({"model": "r", "max_tokens": 900, "stream": true,
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "see", "input_schema": {"type": "object"}}]});
        let answer = gate.post("/v1/messages", &ask.to_string());
        let name = oddity.name;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let events = data(&answer);
        assert_eq!(texts(&events, "/delta/thinking"), oddity.thinking, "{name}: {events:#?}");
        assert_eq!(texts(&events, "/delta/text"), oddity.text, "{name}: {events:#?}");
        let arguments = texts(&events, "/delta/partial_json");
        assert_eq!(Some(&*arguments).filter(|it| !it.is_empty()), oddity.call, "{name}");
        let reason = if oddity.call.is_some() { "tool_use" } else { "end_turn" };
        assert_eq!(texts(&events, "/delta/stop_reason"), reason, "{name}");
        let end = events.iter().find(|it| it["type"] == "message_delta").expect("an end");
        let usage = &end["usage"];
        let counted = usage["input_tokens"].as_u64().unwrap_or_default()
            + usage["cache_read_input_tokens"].as_u64().unwrap_or_default();
        assert_eq!(counted, oddity.input_tokens, "{name}: {usage}");
        assert_eq!(answer.text().matches("event: message_stop").count(), 1, "{name}");
    }
}

#[test]
fn a_client_of_its_own_dialect_gets_an_odd_stream_as_it_came() {
    for oddity in &ODDITIES {
        let server = oddity.start();
        let gate = gate(&server);
        let answer = gate.stream();
        assert_eq!(answer.status, 200, "{}: {}", oddity.name, answer.text());
        let text = answer.text();
        assert_eq!(text.trim_end(), oddity.stream.trim_end(), "{}", oddity.name);
    }
}
