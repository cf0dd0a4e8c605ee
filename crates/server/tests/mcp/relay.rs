//! What passes between a client and a server, each to the right party.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    http::End,
    mcp::text_of,
    time::{eventually, ms},
};

use crate::bed::{Setup, count};

#[test]
fn progress_comes_in_order_before_the_answer_with_the_clients_own_token() {
    let act = ToolAct::Progress { steps: 5, every_ms: 10 };
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("steps", act)]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let (one, two) = (gate.open(), gate.open());
    let params = json!({"name": "steps", "_meta": {"progressToken": "mine", "vendor/x": 1}});
    // Both use the same token and the same id: nothing may be mixed up.
    let mut calls = [&one, &two].map(|it| it.start_as(json!(7), "tools/call", params.clone()));
    for call in &mut calls {
        let said = call.all();
        let (answer, steps) = said.split_last().expect("an answer");
        assert_eq!(text_of(&answer["result"]), "steps done");
        let told: Vec<_> = steps.iter().map(|it| it["params"]["progress"].clone()).collect();
        assert_eq!(told, [1, 2, 3, 4, 5]);
        assert!(steps.iter().all(|it| it["params"]["progressToken"] == "mine"), "{steps:?}");
    }
    let sent = fake.received_of("tools/call");
    let tokens: Vec<_> =
        sent.iter().map(|it| it.message["params"]["_meta"]["progressToken"].clone()).collect();
    assert!(tokens.iter().all(|token| token.is_u64()), "tokens are ours: {tokens:?}");
    assert!(sent.iter().all(|it| it.message["params"]["_meta"]["vendor/x"] == 1));
}

#[test]
fn a_client_that_asks_for_no_progress_gets_none() {
    let act = ToolAct::Progress { steps: 3, every_ms: 1 };
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("steps", act)]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let said = gate.open().start("tools/call", json!({"name": "steps"})).all();
    assert_eq!(said.len(), 1, "{said:?}");
    let sent = fake.received_of("tools/call");
    assert!(sent[0].message["params"]["_meta"]["progressToken"].is_null());
}

#[test]
fn log_messages_come_with_their_call_from_the_level_the_client_set() {
    let levels = ["debug", "warning", "error"].map(str::to_owned).to_vec();
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("logs", ToolAct::Logs(levels))]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let (one, two) = (gate.named("one"), gate.named("two"));
    one.tools();
    one.result("logging/setLevel", json!({"level": "error"}));
    eventually("the server is told", || count(&fake, "one", "logging/setLevel") == 1);
    let levels = |client: &tidegate_testkit::mcp::McpClient| -> Vec<String> {
        let said = client.start("tools/call", json!({"name": "logs"})).all();
        let level = |it: &serde_json::Value| it["params"]["level"].as_str().map(str::to_owned);
        said.iter().filter_map(level).collect()
    };
    assert_eq!(levels(&one), ["error"]);
    assert_eq!(levels(&two), ["debug", "warning", "error"], "a level is one session's");
    let wrong = one.request("logging/setLevel", json!({"level": "loud"}));
    assert_eq!(wrong["error"]["code"], -32602);
}

#[test]
fn a_cancellation_reaches_the_server_with_the_id_it_knows() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("hang", ToolAct::Hang)]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let mut call = client.start_as(json!("my call"), "tools/call", json!({"name": "hang"}));
    eventually("it is under way", || fake.counts().delivered("hang") == 1);
    client.notify("notifications/cancelled", json!({"requestId": "my call", "reason": "enough"}));
    eventually("the server is told", || fake.counts().cancelled == 1);
    assert_eq!(call.next_message(), Err(End::Whole), "no answer follows");
    let told = fake.received_of("notifications/cancelled");
    let sent = fake.received_of("tools/call");
    assert_eq!(told[0].message["params"]["requestId"], sent[0].message["id"]);
}

#[test]
fn a_cancellation_of_another_sessions_call_cancels_nothing() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("slow", ToolAct::Slow(600))]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let (one, two) = (gate.open(), gate.open());
    let call = one.start_as(json!(5), "tools/call", json!({"name": "slow"}));
    two.notify("notifications/cancelled", json!({"requestId": 5}));
    assert_eq!(text_of(&call.finish()["result"]), "slow done");
    assert_eq!(fake.counts().cancelled, 0);
}

#[test]
fn updates_of_a_resource_reach_those_who_watch_it() {
    let script = McpScript::of(vec![Tool::new("touch", ToolAct::Touch("memo://a".to_owned()))]);
    let fake = FakeMcpServer::start(script.resource("memo://a", "A"));
    let gate = Setup::of(&[("a", &fake)]).start();
    let (watcher, other) = (gate.named("watcher"), gate.named("other"));
    let (mut seen, mut unseen) = (watcher.listen(), other.listen());
    assert_eq!(watcher.result("resources/subscribe", json!({"uri": "memo://a"})), json!({}));
    eventually("the stream from the server is open", || count(&fake, "watcher", "GET") >= 1);
    other.text("touch");
    let update = seen.message().expect("an update");
    assert_eq!(update["method"], "notifications/resources/updated");
    assert_eq!(update["params"]["uri"], "memo://a");
    assert_eq!(unseen.message_within(ms(300)), Err(End::Silent));
    watcher.result("resources/unsubscribe", json!({"uri": "memo://a"}));
    other.text("touch");
    assert_eq!(seen.message_within(ms(300)), Err(End::Silent));
}

#[test]
fn completions_prompts_and_resources_are_asked_of_the_server_that_has_them() {
    let word = |word: &str| vec![word.to_owned(), "zebra".to_owned()];
    let of = |name: &str, argument: &str| McpScript {
        completions: BTreeMap::from([(argument.to_owned(), word(argument))]),
        templates: vec![format!("{name}://{{path}}")],
        ..McpScript::default().named(name).prompt("greet", &[argument])
    };
    let a = FakeMcpServer::start(of("a", "who").resource("memo://a", "A"));
    let b = FakeMcpServer::start(of("b", "whom").resource("memo://b", "B"));
    let gate = Setup::of(&[("a", &a), ("b", &b)]).start();
    let client = gate.open();
    let ask = |reference: serde_json::Value, argument: &str| {
        let argument = json!({"name": argument, "value": "w"});
        let params = json!({"ref": reference, "argument": argument});
        client.result("completion/complete", params)["completion"]["values"].clone()
    };
    assert_eq!(ask(json!({"type": "ref/prompt", "name": "a_greet"}), "who"), json!(["who"]));
    assert_eq!(ask(json!({"type": "ref/prompt", "name": "b_greet"}), "whom"), json!(["whom"]));
    assert_eq!(ask(json!({"type": "ref/resource", "uri": "b://{path}"}), "whom"), json!(["whom"]));
    let got = client.result("prompts/get", json!({"name": "b_greet", "arguments": {"whom": "x"}}));
    let said = got["messages"][0]["content"]["text"].as_str().expect("text").to_owned();
    assert_eq!(said, r#"greet of b with {"whom":"x"}"#);
    let read = |uri: &str| client.result("resources/read", json!({"uri": uri}))["contents"].clone();
    assert_eq!(read("memo://b")[0]["text"], "B");
    assert_eq!(read("a://deep/path")[0]["text"], "made for a://deep/path");
    let missing = client.request("resources/read", json!({"uri": "b://nothing"}));
    assert!(missing["result"].is_object() || missing["error"].is_object());
    let names: Vec<_> = client.list("prompts/list", "prompts");
    assert_eq!(
        names.iter().map(|it| it["name"].clone()).collect::<Vec<_>>(),
        ["a_greet", "b_greet"]
    );
    assert_eq!(client.list("resources/templates/list", "resourceTemplates").len(), 2);
    assert_eq!(client.list("resources/list", "resources").len(), 2);
}

#[test]
fn every_kind_of_result_comes_as_the_server_sent_it() {
    let raw = concat!(
        r#"{"zeta":1.0,"content":[{"type":"text","text":"\u00e9","x-vendor":[1e3,0.10]}],"#,
        r#""_meta":{"b":1,"a":2}}"#
    );
    let fake = FakeMcpServer::start(McpScript::of(vec![
        Tool::new("image", ToolAct::Image),
        Tool::new("structured", ToolAct::Structured(json!({"b": 1, "a": [true, null]}))),
        Tool::new("raw", ToolAct::Raw(raw.to_owned())),
        Tool::new("error", ToolAct::Error { code: -32042, message: "go there".to_owned() }),
    ]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    assert_eq!(client.call("image", json!({}))["content"][0]["mimeType"], "image/png");
    let structured = client.call("structured", json!({}));
    assert_eq!(structured["structuredContent"].to_string(), r#"{"b":1,"a":[true,null]}"#);
    let body =
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "raw"}});
    let mut exchange = client.post(&body.to_string()).expect("an answer");
    let text = exchange.text();
    assert!(text.contains(raw), "byte for byte: {text}");
    let error = client.request("tools/call", json!({"name": "error"}));
    assert_eq!(error["error"], json!({"code": -32042, "message": "go there"}));
}

#[test]
fn arguments_reach_the_server_as_the_client_wrote_them() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let arguments = r#"{"z":1.0,"a":12345678901234567890123,"text":"\u00e9\ud83c\udf0a","e":1e-7}"#;
    let params = format!(r#"{{"name":"echo","arguments":{arguments},"x-own":[1.50]}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{params}}}"#);
    client.post(&body).expect("an answer").text();
    let sent = fake.received_of("tools/call");
    assert!(sent[0].text.contains(arguments), "{}", sent[0].text);
    assert!(sent[0].text.contains(r#""x-own":[1.50]"#), "{}", sent[0].text);
}

#[test]
fn a_reason_for_cancelling_is_handed_on_as_it_was_given() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("hang", ToolAct::Hang)]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    for (number, reason) in [(1, json!("the user pressed stop")), (2, Value::Null)] {
        let call = client.start("tools/call", json!({"name": "hang"}));
        eventually("it hangs", || fake.counts().delivered("hang") == number);
        let mut params = json!({"requestId": call.id});
        if !reason.is_null() {
            params["reason"] = reason.clone();
        }
        client.notify("notifications/cancelled", params);
        eventually("the server hears of it", || fake.counts().cancelled == number);
        let told = fake.received_of("notifications/cancelled").pop().expect("a notice");
        assert_eq!(told.message["params"]["reason"], reason);
    }
}
