//! Lost backend sessions and broken connections: one re-initialise, and a replay only when safe.

use std::sync::Arc;

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, Lost, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    mcp::text_of,
    time::{eventually, ms, now},
};

use crate::bed::{Setup, assert_unavailable, count};

#[test]
fn twenty_calls_that_meet_a_lost_session_cause_one_reinitialise() {
    for lost in [Lost::NotFound, Lost::BadRequest, Lost::RpcError] {
        for answers_json in [false, true] {
            let fake =
                FakeMcpServer::start(McpScript { lost, answers_json, ..McpScript::default() });
            let gate = Setup::of(&[("a", &fake)]).start();
            let client = Arc::new(gate.open());
            assert_eq!(client.text("echo"), "{}");
            assert_eq!(count(&fake, "test", "initialize"), 1);
            fake.lose_sessions();
            let calls: Vec<_> = (0..20)
                .map(|number| {
                    let client = Arc::clone(&client);
                    std::thread::spawn(move || client.call("echo", json!({"text": number})))
                })
                .collect();
            for (number, call) in calls.into_iter().enumerate() {
                let result = call.join().expect("a call ends");
                assert_eq!(text_of(&result), format!(r#"{{"text":{number}}}"#), "{lost:?}");
            }
            assert_eq!(count(&fake, "test", "initialize"), 2, "{lost:?} {answers_json}");
            assert_eq!(fake.counts().delivered("echo"), 21);
            assert_eq!(gate.server_health("a")["consecutive_failures"], 0, "regained: no charge");
            assert_eq!(fake.breaches(), [""; 0]);
        }
    }
}

#[test]
fn a_reinitialise_that_fails_is_one_failure_for_all_that_waited() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup { health: "failure_threshold: 5", ..Setup::of(&[("a", &fake)]) }.start();
    let client = Arc::new(gate.open());
    assert_eq!(client.text("echo"), "{}");
    fake.change(|script| script.opening = tidegate_fakes::fake_mcp::Opening::Status(503));
    fake.lose_sessions();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let client = Arc::clone(&client);
            std::thread::spawn(move || client.call("echo", json!({})))
        })
        .collect();
    for call in calls {
        let result = call.join().expect("a call ends");
        assert_unavailable(&result, "a", "backend_unavailable");
    }
    let failures = gate.server_health("a")["consecutive_failures"].as_u64();
    // A call that came after the first attempt had failed makes an attempt of its own.
    assert!(failures.is_some_and(|it| (1..=3).contains(&it)), "{failures:?}");
}

#[test]
fn a_tool_without_hints_is_delivered_once_and_its_result_is_unknown() {
    for answers_json in [false, true] {
        let fake = FakeMcpServer::start(McpScript {
            answers_json,
            ..McpScript::of(vec![
                Tool::new("pay", ToolAct::CutAfter).then(ToolAct::Echo),
                Tool::new("wipe", ToolAct::CutAfter).then(ToolAct::Echo).destructive(),
            ])
        });
        let gate = Setup::of(&[("a", &fake)]).start();
        let client = gate.open();
        for tool in ["pay", "wipe"] {
            let result = client.call(tool, json!({}));
            assert_unavailable(&result, "a", "result_unknown");
            assert!(text_of(&result).ends_with("; the result is unknown"), "{result}");
            assert_eq!(fake.counts().delivered(tool), 1, "{tool}");
            assert_eq!(client.text(tool), "{}", "the session goes on");
        }
    }
}

#[test]
fn a_tool_that_only_reads_or_is_idempotent_is_replayed_once() {
    for answers_json in [false, true] {
        let fake = FakeMcpServer::start(McpScript {
            answers_json,
            ..McpScript::of(vec![
                Tool::new("look", ToolAct::CutAfter)
                    .then(ToolAct::Text("seen".to_owned()))
                    .read_only(),
                Tool::new("set", ToolAct::CutAfter)
                    .then(ToolAct::Text("seen".to_owned()))
                    .idempotent(),
                Tool::new("never", ToolAct::CutAfter).read_only(),
            ])
        });
        let gate = Setup::of(&[("a", &fake)]).start();
        let client = gate.open();
        for tool in ["look", "set"] {
            assert_eq!(client.text(tool), "seen");
            assert_eq!(fake.counts().delivered(tool), 2, "{tool}");
        }
        let result = client.call("never", json!({}));
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(fake.counts().delivered("never"), 2, "replayed once, not for ever");
    }
}

#[test]
fn a_call_that_takes_too_long_is_answered_cancelled_and_not_replayed() {
    let fake = FakeMcpServer::start(McpScript::of(vec![
        Tool::new("hang", ToolAct::Hang),
        Tool::new("echo", ToolAct::Echo),
    ]));
    let mcp = "call_timeout: 300ms,";
    let gate = Setup { mcp, ..Setup::of(&[("a", &fake)]) }.start();
    let client = gate.open();
    let began = now();
    let result = client.call("hang", json!({}));
    assert!(began.elapsed() >= ms(290) && began.elapsed() < ms(3000), "{:?}", began.elapsed());
    assert_unavailable(&result, "a", "result_unknown");
    assert!(text_of(&result).contains("timed out after 300ms"), "{result}");
    assert_eq!(fake.counts().delivered("hang"), 1);
    eventually("the server is told", || fake.counts().cancelled == 1);
    assert_eq!(client.text("echo"), "{}");
    assert_eq!(count(&fake, "test", "initialize"), 1, "a slow answer is no lost connection");
}

#[test]
fn what_a_client_set_is_set_again_after_a_reinitialise() {
    let script = McpScript::of(vec![Tool::new("touch", ToolAct::Touch("memo://a".to_owned()))]);
    let fake = FakeMcpServer::start(script.resource("memo://a", "A"));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    client.tools();
    client.result("logging/setLevel", json!({"level": "error"}));
    client.result("resources/subscribe", json!({"uri": "memo://a"}));
    eventually("both arrived", || count(&fake, "test", "logging/setLevel") == 1);
    fake.lose_sessions();
    assert_eq!(client.text("touch"), "touch done");
    eventually("both are there again", || {
        count(&fake, "test", "logging/setLevel") == 2
            && count(&fake, "test", "resources/subscribe") == 2
    });
}

#[test]
fn a_server_that_answers_with_an_error_status_is_named_and_its_wish_is_passed_on() {
    let fake = FakeMcpServer::start(McpScript::of(vec![
        Tool::new("busy", ToolAct::Status { status: 429, retry_after: Some("7".to_owned()) }),
        Tool::new("broken", ToolAct::Status { status: 502, retry_after: None }),
        Tool::new("garbage", ToolAct::Garbage),
    ]));
    let gate = Setup { health: "failure_threshold: 50", ..Setup::of(&[("a", &fake)]) }.start();
    let client = gate.open();
    let busy = client.call("busy", json!({}));
    assert_eq!(busy["structuredContent"]["backend"], "a", "{busy}");
    let wait = busy["structuredContent"]["retry_after_ms"].as_u64();
    assert!(wait.is_some_and(|it| (5000..=7000).contains(&it)), "{busy}");
    for tool in ["broken", "garbage"] {
        let result = client.call(tool, json!({}));
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"]["backend"], "a", "{result}");
    }
}

#[test]
fn the_first_result_of_a_regained_session_says_that_it_is_a_new_one() {
    let tools = vec![Tool::new("count", ToolAct::Count).read_only()];
    let fake = FakeMcpServer::start(McpScript::of(tools));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    assert!(client.call("count", json!({}))["_meta"].is_null());
    fake.lose_sessions();
    let first = client.call("count", json!({}));
    assert_eq!(first["_meta"]["tidegate/session"], "new", "{first}");
    assert!(text_of(&first).ends_with("call 1"), "its state is lost: {first}");
    assert!(client.call("count", json!({}))["_meta"].is_null(), "told once");
}
