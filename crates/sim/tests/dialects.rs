//! Clients with a dialect and needs: a target that cannot serve their requests is no candidate, as
//! the data plane would judge it.

use tidegate_config::{secret::AssumedEnvironment, source::Source};
use tidegate_core::{route::Needs, settings::Abilities};
use tidegate_sim::scenario::{Scenario, load};
use tidegate_wire::{gemini::GeminiCall, head::RequestHead, operation::needs_of_path};

/// Two backends, the second of which is fine; the first refuses from 30 s on.
fn timeline(traffic: &str, targets: &str, expect: &str) -> Scenario {
    let text = format!(
        "for: 2m\n\
         traffic: {{ rate: 5/s, {traffic} }}\n\
         config: {{ probe: {{ every: 0s }}, targets: {{ {targets} }} }}\n\
         backends:\n\
         \x20 a/m: [{{ at: 0s, do: ok }}, {{ at: 30s, do: refuse }}]\n\
         \x20 b/m: [{{ at: 0s, do: ok }}]\n\
         expect: {{ {expect} }}\n"
    );
    let (scenario, problems) = load(&Source::new("t.yaml", &text));
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    scenario.expect("a file without problems is a scenario")
}

fn failures(scenario: &Scenario) -> Vec<String> {
    scenario.run(0).failures().iter().map(|it| it.sentence.clone()).collect()
}

#[test]
fn a_target_of_another_dialect_takes_over() {
    let targets = "a/m: { api: anthropic }, b/m: { api: openai }";
    for dialect in ["chat", "responses", "messages", "gemini"] {
        let traffic = format!("dialect: {dialect}, needs: [tools]");
        let scenario = timeline(&traffic, targets, "client_failures: { max: 0 }");
        assert_eq!(failures(&scenario), Vec::<String>::new(), "{dialect}");
    }
}

#[test]
fn a_target_that_lacks_what_requests_need_is_no_fallback() {
    for need in ["tools", "vision", "documents", "json_schema", "reasoning"] {
        let targets = format!("b/m: {{ {need}: false }}");
        let needs = format!("dialect: messages, needs: [{need}]");
        let expect = "client_failures: { max: 0 }, shares: { b/m: { max: 0% } }";
        let told = failures(&timeline(&needs, &targets, expect));
        assert_eq!(told.len(), 1, "clients fail, and b is never asked: {told:?}");
        assert!(told[0].contains("client failures"), "{told:?}");
        let able = timeline("dialect: messages", &targets, "client_failures: { max: 0 }");
        assert_eq!(failures(&able), Vec::<String>::new(), "{need} is not asked for");
    }
}

#[test]
fn an_unknown_target_is_a_problem() {
    let text = "for: 1m\ntraffic: { rate: 1/s }\nconfig: { targets: { c/m: {} } }\n\
        backends: { a/m: [{ at: 0s, do: ok }] }\n";
    let (_, problems) = load(&Source::new("t.yaml", text));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.contains("`c/m`"), "{problems:?}");
}

/// A request of a dialect that needs one thing, as a client sends it.
fn request(dialect: &str, need: &str) -> (&'static str, String) {
    let path = match dialect {
        "chat" => "/v1/chat/completions",
        "responses" => "/v1/responses",
        "messages" => "/v1/messages",
        _ => "/v1beta/models/m:generateContent",
    };
    let png = "data:image/png;base64,AAAA";
    let part = match (dialect, need) {
        ("chat", "vision") => format!(r#"{{"type":"image_url","image_url":{{"url":"{png}"}}}}"#),
        ("chat", "documents") => r#"{"type":"file","file":{"filename":"a.pdf",
               "file_data":"data:application/pdf;base64,AAAA"}}"#
            .to_owned(),
        ("responses", "vision") => format!(r#"{{"type":"input_image","image_url":"{png}"}}"#),
        ("responses", "documents") => r#"{"type":"input_file","filename":"a.pdf",
               "file_data":"data:application/pdf;base64,AAAA"}"#
            .to_owned(),
        ("messages", "vision" | "documents") => {
            let (kind, media) = match need {
                "vision" => ("image", "image/png"),
                _ => ("document", "application/pdf"),
            };
            format!(
                r#"{{"type":"{kind}",
                   "source":{{"type":"base64","media_type":"{media}","data":"AAAA"}}}}"#
            )
        }
        ("gemini", "vision") => {
            r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#.to_owned()
        }
        ("gemini", "documents") => {
            r#"{"inlineData":{"mimeType":"application/pdf","data":"AAAA"}}"#.to_owned()
        }
        ("responses", _) => r#"{"type":"input_text","text":"hi"}"#.to_owned(),
        ("gemini", _) => r#"{"text":"hi"}"#.to_owned(),
        _ => r#"{"type":"text","text":"hi"}"#.to_owned(),
    };
    let schema = r#"{"type":"object"}"#;
    let more = match (dialect, need) {
        ("chat", "tools") => r#","tools":[{"type":"function","function":{"name":"f"}}]"#.to_owned(),
        ("responses", "tools") => r#","tools":[{"type":"function","name":"f"}]"#.to_owned(),
        ("messages", "tools") => format!(r#","tools":[{{"name":"f","input_schema":{schema}}}]"#),
        ("gemini", "tools") => r#","tools":[{"functionDeclarations":[{"name":"f"}]}]"#.to_owned(),
        ("chat", "json_schema") => format!(
            r#","response_format":{{"type":"json_schema",
               "json_schema":{{"name":"n","schema":{schema}}}}}"#
        ),
        ("responses", "json_schema") => {
            format!(r#","text":{{"format":{{"type":"json_schema","name":"n","schema":{schema}}}}}"#)
        }
        ("messages", "json_schema") => {
            format!(r#","output_config":{{"format":{{"type":"json_schema","schema":{schema}}}}}"#)
        }
        ("gemini", "json_schema") => format!(
            r#","generationConfig":{{"responseMimeType":"application/json",
               "responseSchema":{schema}}}"#
        ),
        ("chat", "reasoning") => r#","reasoning_effort":"high""#.to_owned(),
        ("responses", "reasoning") => r#","reasoning":{"effort":"high"}"#.to_owned(),
        ("messages", "reasoning") => {
            r#","thinking":{"type":"enabled","budget_tokens":2000}"#.to_owned()
        }
        ("gemini", "reasoning") => {
            r#","generationConfig":{"thinkingConfig":{"thinkingBudget":2000}}"#.to_owned()
        }
        _ => String::new(),
    };
    let body = match dialect {
        "responses" => {
            format!(r#"{{"model":"r","input":[{{"role":"user","content":[{part}]}}]{more}}}"#)
        }
        "gemini" => format!(r#"{{"contents":[{{"role":"user","parts":[{part}]}}]{more}}}"#),
        _ => format!(
            r#"{{"model":"r","max_tokens":4000,
               "messages":[{{"role":"user","content":[{part}]}}]{more}}}"#
        ),
    };
    (path, body)
}

/// What the data plane reads out of a request.
fn needs_read(path: &str, body: &str) -> Needs {
    let read = match GeminiCall::of_path(path) {
        Some(call) => RequestHead::read_gemini(body.as_bytes(), &call),
        None => RequestHead::read(body.as_bytes()),
    };
    let head = read.unwrap_or_else(|fault| panic!("{body}: {fault:?}"));
    needs_of_path(path).and_of_body(head.needs)
}

#[test]
fn a_simulated_request_is_served_where_the_real_one_would_be() {
    const NEEDS: [&str; 5] = ["tools", "vision", "documents", "json_schema", "reasoning"];
    let (mut served, mut refused) = (0, 0);
    for dialect in ["chat", "responses", "messages", "gemini"] {
        for need in NEEDS {
            let (path, body) = request(dialect, need);
            let needs = needs_read(path, &body);
            for api in ["openai", "anthropic", "gemini"] {
                for lacks in NEEDS.into_iter().chain(["none"]) {
                    let lack =
                        if lacks == "none" { String::new() } else { format!(", {lacks}: false") };
                    let targets = format!("a/m: {{ api: {api}{lack} }}");
                    let text = format!(
                        "for: 10s\ntraffic: {{ rate: 1/s, dialect: {dialect}, needs: [{need}] }}\n\
                         config: {{ probe: {{ every: 0s }}, targets: {{ {targets} }} }}\n\
                         backends: {{ a/m: [{{ at: 0s, do: ok }}] }}\n\
                         expect: {{ client_failures: {{ max: 0 }} }}\n"
                    );
                    let (scenario, problems) = load(&Source::new("t.yaml", &text));
                    let scenario = scenario.unwrap_or_else(|| panic!("{problems:?}\n{text}"));
                    let is_served = failures(&scenario).is_empty();
                    let is_able = needs.lacking(&abilities(api, &lack)).is_none();
                    assert_eq!(is_served, is_able, "{dialect} with {need} at {targets}");
                    *(if is_able { &mut served } else { &mut refused }) += 1;
                }
            }
        }
    }
    assert_eq!((served, refused), (300, 60), "refused where the one need is what the target lacks");
}

/// The abilities that a config file gives a target.
fn abilities(api: &str, lack: &str) -> Abilities {
    let yaml = format!(
        "providers: {{ a: {{ api: {api}, url: 'http://127.0.0.1:1', \
         targets: {{ m: {{ {} }} }} }} }}\n\
         routes: {{ r: {{ tiers: [[a/m]] }} }}\n",
        lack.trim_start_matches(", ")
    );
    let loaded = tidegate_config::load(&Source::new("c.yaml", &yaml), &AssumedEnvironment);
    let config = loaded.config.unwrap_or_else(|| panic!("{yaml}"));
    config.settings.backends[0].abilities
}
