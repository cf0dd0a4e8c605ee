//! Bounds on single messages and on calls at once: what is too large or too many fails alone, by
//! name, and charges nobody.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    mcp::{McpClient, post, text_of, usual},
    time::{ms, pause},
};

use crate::bed::{Setup, assert_unavailable, url};

fn failures(gate: &tidegate_testkit::gate::Gate, server: &str) -> (bool, u64) {
    let health = gate.server_health(server);
    let healthy = health["healthy"].as_bool().expect("a bool");
    (healthy, health["consecutive_failures"].as_u64().expect("a number"))
}

#[test]
fn a_request_over_the_limit_is_refused_with_413_and_the_session_goes_on() {
    let fake = FakeMcpServer::start(McpScript::default());
    let top = "limits: {mcp_body: 64KiB}";
    let gate = Setup { top, ..Setup::of(&[("a", &fake)]) }.start();
    let client = gate.open();
    let call = |size: usize| {
        let params = json!({"name": "echo", "arguments": {"text": "x".repeat(size)}});
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).to_string()
    };
    assert_eq!(client.post(&call(60 << 10)).expect("an answer").status, 200);
    let mut refused = client.post(&call(70 << 10)).expect("an answer");
    assert_eq!(refused.status, 413);
    assert!(refused.json()["error"]["message"].as_str().is_some_and(|it| it.contains("larger")));
    assert_eq!(client.text("echo"), "{}");
}

#[test]
fn a_request_that_announces_too_much_is_refused_before_it_is_read() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    let headers = format!("{}content-length: 5000000\r\n", usual());
    // Only the head is sent: the default of 4 MiB refuses it without a byte of the body.
    let answer = post(gate.address(), &headers, "").expect("an answer");
    assert_eq!(answer.status, 413);
}

#[test]
fn answers_over_the_limit_fail_alone_and_charge_nobody() {
    let huge = Tool::new("huge", ToolAct::Big(70 << 10)).read_only();
    for answers_json in [true, false] {
        let tools = vec![huge.clone(), Tool::new("change", ToolAct::Big(70 << 10))];
        let fake = FakeMcpServer::start(McpScript { answers_json, ..McpScript::of(tools) });
        let setup = Setup::of(&[("a", &fake)]);
        let (health, top) = ("failure_threshold: 1", "limits: {mcp_answer: 64KiB}");
        let gate = Setup { health, top, ..setup }.start();
        let (client, other) = (gate.open(), gate.open());
        for _ in 0..3 {
            let result = client.call("huge", json!({}));
            assert_unavailable(&result, "a", "backend_unavailable");
            assert!(text_of(&result).ends_with("answer too large"), "{result}");
            assert_unavailable(&client.call("change", json!({})), "a", "result_unknown");
        }
        assert_eq!(failures(&gate, "a"), (true, 0));
        assert_eq!(other.tools(), ["change", "huge"]);
        assert_eq!(gate.metric("tidegate_mcp_reinitialised_total{server=\"a\"}"), 0.0);
    }
}

#[test]
fn a_changed_limit_on_answers_binds_connections_that_are_there() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("big", ToolAct::Big(70 << 10))]));
    let setup = Setup::of(&[("a", &fake)]);
    let gate = setup.start();
    let client = gate.open();
    assert_eq!(client.text("big").len(), 70 << 10);
    gate.reload(&Setup { top: "limits: {mcp_answer: 64KiB}", ..setup }.yaml());
    let is_refused = || client.call("big", json!({}))["isError"] == true;
    tidegate_testkit::time::eventually("the limit holds", is_refused);
}

#[test]
fn a_list_over_the_limit_takes_nothing_else_along() {
    let tools: Vec<Tool> = (0..100)
        .map(|n| Tool::new(&format!("tool_{n}"), ToolAct::Echo).about(&"x".repeat(1024)))
        .collect();
    let fake = FakeMcpServer::start(McpScript::of(tools).resource("memo://a", "A"));
    let good = FakeMcpServer::start(McpScript::default());
    let top = "limits: {mcp_answer: 64KiB}";
    let gate = Setup { top, ..Setup::of(&[("a", &fake), ("good", &good)]) }.start();
    let client = gate.open();
    assert_eq!(client.tools(), ["good_echo"]);
    assert_eq!(client.list("resources/list", "resources").len(), 1, "other lists are whole");
    assert_eq!(failures(&gate, "a"), (true, 0));
}

#[test]
fn a_long_list_comes_whole_to_a_client_that_does_not_page() {
    let fake = FakeMcpServer::start(McpScript::with_many(2500));
    let gate = Setup::of(&[("a", &fake)]).start();
    let page = gate.open().result("tools/list", json!({}));
    assert_eq!(page["tools"].as_array().map(Vec::len), Some(2500));
    assert!(page.get("nextCursor").is_none());
}

#[test]
fn a_list_larger_than_an_answer_comes_in_pages_whose_cursors_hold() {
    let fake = FakeMcpServer::start(McpScript { page: 20, ..McpScript::with_many(600) });
    let top = "limits: {mcp_answer: 16KiB}";
    let gate = Setup { top, ..Setup::of(&[("a", &fake)]) }.start();
    let client = gate.open();
    let first = client.result("tools/list", json!({}));
    assert!(first["tools"].as_array().is_some_and(|it| it.len() < 600));
    assert!(first["nextCursor"].is_string());
    assert_eq!(client.tools().len(), 600);
}

#[test]
fn waiting_for_a_turn_costs_no_time_of_the_call_and_ends_as_busy() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("slow", ToolAct::Slow(1500))]));
    let (mcp, health) = ("call_timeout: 2s,", "failure_threshold: 1");
    let setup = Setup { mcp, health, ..Setup::of(&[]) };
    let gate = setup.and("a", url(&fake, "max_calls: 1")).start();
    let client = gate.open();
    client.tools();
    let mut calls: Vec<_> = (0..3)
        .map(|_| {
            let call = client.start("tools/call", json!({"name": "slow"}));
            pause(ms(50));
            call
        })
        .collect();
    let last = calls.pop().expect("three calls").finish();
    assert_unavailable(&last["result"], "a", "busy");
    for call in calls {
        assert_eq!(text_of(&call.finish()["result"]), "slow done", "its clock began at its turn");
    }
    assert_eq!(failures(&gate, "a"), (true, 0));
    assert_eq!(gate.metric("tidegate_mcp_calls_total{outcome=\"busy\",server=\"a\"}"), 1.0);
}

#[test]
fn in_a_group_a_call_without_a_turn_goes_on_at_the_next_member() {
    let tools = |name: &str| {
        let tools = vec![
            Tool::new("slow", ToolAct::Slow(1500)),
            Tool::new("who", ToolAct::Text(name.into())),
        ];
        FakeMcpServer::start(McpScript::of(tools))
    };
    let (a, b) = (tools("a"), tools("b"));
    let mcp = "call_timeout: 2s, replicas: {search: [a, b]},";
    let setup = Setup { mcp, health: "failure_threshold: 1", ..Setup::of(&[]) };
    let setup = setup.and("a", url(&a, "max_calls: 1")).and("b", url(&b, "max_calls: 1"));
    let gate = setup.start();
    let sessions: Vec<McpClient> = (0..3).map(|_| gate.open()).collect();
    sessions.iter().for_each(|it| drop(it.tools()));
    let slow: Vec<_> = sessions[..2]
        .iter()
        .map(|it| {
            let call = it.start("tools/call", json!({"name": "slow"}));
            pause(ms(50));
            call
        })
        .collect();
    assert_eq!(sessions[2].text("who"), "b", "`a` had no turn for it");
    for call in slow {
        assert_eq!(text_of(&call.finish()["result"]), "slow done");
    }
    assert_eq!((failures(&gate, "a"), failures(&gate, "b")), ((true, 0), (true, 0)));
}

#[test]
fn large_arguments_arrive_as_they_were_sent_in_both_eras_and_from_the_search() {
    let fake = FakeMcpServer::start(McpScript::default());
    for (mcp, tool) in [("", "echo"), ("tools: search,", "call_tool")] {
        let gate = Setup { mcp, ..Setup::of(&[("a", &fake)]) }.start();
        let own = json!({"b": "x".repeat(3 << 20), "a": [1.0, {"é": null}]});
        let arguments = match tool {
            "echo" => own.clone(),
            _ => json!({"tool_name": "echo", "parameters": own}),
        };
        let expected = serde_json::to_string(&own).expect("JSON");
        let client = gate.open();
        client.tools();
        let said = |result: &serde_json::Value| {
            let told: serde_json::Value =
                serde_json::from_str(&text_of(result)).unwrap_or_default();
            serde_json::to_string(&told).expect("JSON")
        };
        assert!(said(&client.call(tool, arguments.clone())) == expected, "a session, {tool}");
        let visitor = crate::visitor::Visitor::of(gate.address());
        let params = json!({"name": tool, "arguments": arguments});
        assert!(said(&visitor.result("tools/call", params)) == expected, "none, {tool}");
        let cut =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":"{}"#, "y".repeat(1 << 20));
        assert_eq!(client.post(&cut).expect("an answer").status, 400);
    }
}
