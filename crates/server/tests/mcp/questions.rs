//! Requests of servers to clients: sampling, elicitation and roots reach the client whose call
//! caused them, and only if it said that it can be asked.

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    http::End,
    mcp::{Hello, text_of},
    time::{eventually, ms},
};

use crate::bed::Setup;

fn asker() -> FakeMcpServer {
    FakeMcpServer::start(McpScript::of(vec![
        Tool::new("sample", ToolAct::Sample),
        Tool::new("elicit", ToolAct::Elicit),
        Tool::new("roots", ToolAct::Roots),
    ]))
}

fn able() -> Hello<'static> {
    let capabilities = json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}});
    Hello { capabilities, ..Hello::default() }
}

#[test]
fn each_question_reaches_the_client_whose_call_caused_it() {
    let fake = asker();
    let gate = Setup::of(&[("a", &fake)]).start();
    let (one, two) = (gate.open_as(&able()), gate.open_as(&able()));
    let methods = ["sampling/createMessage", "elicitation/create", "roots/list"];
    for (tool, method) in ["sample", "elicit", "roots"].into_iter().zip(methods) {
        let mut calls = [&one, &two].map(|it| it.start("tools/call", json!({"name": tool})));
        let asks = calls.each_mut().map(|call| call.next_message().expect("a question"));
        assert!(asks.iter().all(|ask| ask["method"] == method && !ask["id"].is_null()), "{asks:?}");
        // In the other order, so that ids alone tell whose answer it is.
        two.respond(&asks[1], json!({"from": "two"}));
        one.respond(&asks[0], json!({"from": "one"}));
        let [first, second] = calls.map(|call| text_of(&call.finish()["result"]));
        assert_eq!(first, r#"result {"from":"one"}"#);
        assert_eq!(second, r#"result {"from":"two"}"#);
    }
}

#[test]
fn a_client_that_cannot_be_asked_is_not_asked_and_the_server_is_told() {
    let fake = asker();
    let gate = Setup::of(&[("a", &fake)]).start();
    let plain = gate.open();
    let mut stream = plain.listen();
    for tool in ["sample", "elicit", "roots"] {
        let said = plain.start("tools/call", json!({"name": tool})).all();
        assert_eq!(said.len(), 1, "nothing but the answer: {said:?}");
        let text = text_of(&said[0]["result"]);
        assert!(text.starts_with("error ") && text.contains("-32601"), "{text}");
    }
    assert_eq!(stream.message_within(ms(200)), Err(End::Silent));
}

#[test]
fn what_a_client_declares_is_what_servers_are_told() {
    let fake = asker();
    let gate = Setup::of(&[("a", &fake)]).start();
    let capabilities = json!({"sampling": {}, "roots": {"listChanged": true}});
    let client = gate.open_as(&Hello {
        name: "able",
        capabilities: capabilities.clone(),
        ..Hello::default()
    });
    client.tools();
    let declared = |name: &str| -> Vec<Value> {
        let hellos = fake.received_of("initialize");
        let of = hellos.iter().filter(|it| it.client.as_deref() == Some(name));
        of.map(|it| it.message["params"]["capabilities"].clone()).collect()
    };
    assert_eq!(declared("able"), [capabilities]);
    assert!(declared("tidegate").iter().all(|it| *it == json!({})), "nobody is behind it");
}

#[test]
fn an_error_of_the_client_reaches_the_server_as_it_is() {
    let fake = asker();
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open_as(&able());
    let mut call = client.start("tools/call", json!({"name": "sample"}));
    let ask = call.next_message().expect("a question");
    let error = json!({"code": -1, "message": "user said no"});
    let body = json!({"jsonrpc": "2.0", "id": ask["id"], "error": error});
    assert_eq!(client.post(&body.to_string()).expect("taken").status, 202);
    assert_eq!(text_of(&call.finish()["result"]), format!("error {error}"));
}

#[test]
fn an_answer_of_another_session_answers_nothing() {
    let fake = asker();
    let gate = Setup::of(&[("a", &fake)]).start();
    let (one, two) = (gate.open_as(&able()), gate.open_as(&able()));
    let mut call = one.start("tools/call", json!({"name": "sample"}));
    let ask = call.next_message().expect("a question");
    two.respond(&ask, json!({"from": "an intruder"}));
    one.respond(&ask, json!({"from": "one"}));
    assert_eq!(text_of(&call.finish()["result"]), r#"result {"from":"one"}"#);
}

#[test]
fn a_change_of_roots_is_told_to_the_servers() {
    let fake = asker();
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open_as(&able());
    client.tools();
    client.notify("notifications/roots/list_changed", Value::Null);
    eventually("it arrives", || fake.counts().of("notifications/roots/list_changed") == 1);
}
