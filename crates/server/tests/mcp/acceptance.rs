//! Sessions and the health of servers: what a session sees, and what it is told when a server
//! fails.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript};
use tidegate_testkit::time::{eventually, ms, now, pause};

use crate::bed::{Setup, assert_error, assert_unavailable, count};

/// A breaker that opens at the first failure, for a second, and closes at the first success.
const QUICK: &str = "failure_threshold: 1, open_for: 1s, recovery_threshold: 1";
/// The same, and it stays open.
const STAYS: &str = "failure_threshold: 1, open_for: 60s, recovery_threshold: 1";

fn server(name: &str) -> FakeMcpServer {
    let script = McpScript::default().named(name);
    FakeMcpServer::start(script.resource(&format!("memo://{name}"), name).prompt("greet", &[]))
}

#[test]
fn a_session_opened_while_a_server_is_down_goes_without_it_and_one_after_recovery_has_both() {
    let (a, b) = (server("a"), server("b"));
    b.crash();
    let gate = Setup::of(&[("a", &a), ("b", &b)]).start();
    let early = gate.named("early");
    assert_eq!(early.tools(), ["a_echo"]);
    assert_eq!(early.list("prompts/list", "prompts").len(), 1);
    b.restart();
    eventually("a new session has both", || gate.named("late").tools() == ["a_echo", "b_echo"]);
    assert_eq!(early.tools(), ["a_echo"], "decided when it was opened");
    assert_eq!(early.text("a_echo"), "{}");
    assert_eq!(b.sent_by("early"), [""; 0], "no request of that session");
}

#[test]
fn a_session_opened_while_a_breaker_is_open_sends_nothing_to_that_server() {
    let (a, b) = (server("a"), server("b"));
    let gate = Setup { health: STAYS, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    let before = gate.named("before");
    assert_eq!(before.tools(), ["a_echo", "b_echo"]);
    b.crash();
    assert_unavailable(&before.call("b_echo", json!({})), "b", "backend_unavailable");
    b.restart();
    let during = gate.named("during");
    assert_eq!(during.tools(), ["a_echo"]);
    let refused = during.call("b_echo", json!({}));
    assert_unavailable(&refused, "b", "backend_unavailable");
    let read = during.request("resources/read", json!({"uri": "memo://b"}));
    assert_error(&read, "b", "backend_unavailable");
    assert_eq!(during.text("a_echo"), "{}");
    assert_eq!(b.sent_by("during"), [""; 0]);
    let waiting = before.call("b_echo", json!({}));
    assert_unavailable(&waiting, "b", "backend_unavailable");
    assert!(waiting["content"][0]["text"].as_str().expect("text").contains("circuit open"));
    assert!(waiting["structuredContent"]["retry_after_ms"].as_u64().is_some(), "{waiting}");
}

#[test]
fn a_session_opened_after_the_breaker_closed_has_the_server_again() {
    let (a, b) = (server("a"), server("b"));
    let gate = Setup { health: QUICK, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    let before = gate.named("before");
    assert_eq!(before.tools(), ["a_echo", "b_echo"]);
    b.crash();
    assert_unavailable(&before.call("b_echo", json!({})), "b", "backend_unavailable");
    let during = gate.named("during");
    assert_eq!(during.tools(), ["a_echo"]);
    b.restart();
    eventually("a new session has both", || gate.named("after").tools() == ["a_echo", "b_echo"]);
    assert_eq!(during.tools(), ["a_echo"]);
    assert_eq!(b.sent_by("during"), [""; 0]);
    eventually("the first session can call it", || {
        before.call("b_echo", json!({}))["isError"] != true
    });
}

#[test]
fn a_live_session_follows_health_and_is_told() {
    let (a, b) = (server("a"), server("b"));
    let mcp = "visibility: live,";
    let gate = Setup { health: QUICK, mcp, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    let client = gate.open();
    assert_eq!(client.tools(), ["a_echo", "b_echo"]);
    let mut stream = client.listen();
    b.crash();
    assert_unavailable(&client.call("b_echo", json!({})), "b", "backend_unavailable");
    let told = stream.message().expect("it is told");
    assert!(told["method"].as_str().expect("a method").ends_with("/list_changed"), "{told}");
    eventually("the list is shorter", || client.tools() == ["a_echo"]);
    b.restart();
    eventually("the list is whole again", || client.tools() == ["a_echo", "b_echo"]);
}

#[test]
fn with_every_server_down_sessions_open_and_nothing_hangs() {
    let (a, b) = (server("a"), server("b"));
    a.crash();
    b.crash();
    let gate = Setup::of(&[("a", &a), ("b", &b)]).start();
    for _ in 0..3 {
        let began = now();
        let client = gate.open();
        assert!(client.hello["capabilities"]["tools"].is_object());
        assert_eq!(client.tools(), [""; 0]);
        assert_eq!(client.list("resources/list", "resources").len(), 0);
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
        let unknown = client.request("tools/call", json!({"name": "a_echo"}));
        assert!(unknown["error"].is_object() || unknown["result"]["isError"] == true);
        assert_eq!(client.delete(), 200);
        assert!(began.elapsed() < ms(3000), "{:?}", began.elapsed());
    }
}

#[test]
fn a_server_killed_in_mid_session_is_named_in_errors_and_comes_back_to_the_same_session() {
    let (a, b) = (server("a"), server("b"));
    let gate = Setup { health: QUICK, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    let client = gate.open();
    assert_eq!(client.tools(), ["a_echo", "b_echo"]);
    assert_eq!(client.text("b_echo"), "{}");
    b.crash();
    // A connection that carried an answer less than 5 ms ago is used without a look (`TRUSTED_FOR`
    // of the pool); a call that broke there may have been delivered, and says so instead.
    pause(ms(20));
    let began = now();
    assert_unavailable(&client.call("b_echo", json!({})), "b", "backend_unavailable");
    let read = client.request("resources/read", json!({"uri": "memo://b"}));
    assert_error(&read, "b", "backend_unavailable");
    let prompt = client.request("prompts/get", json!({"name": "b_greet"}));
    assert_error(&prompt, "b", "backend_unavailable");
    assert!(began.elapsed() < ms(4_900), "they fail fast: {:?}", began.elapsed());
    assert_eq!(client.text("a_echo"), "{}");
    let read = client.result("resources/read", json!({"uri": "memo://a"}));
    assert_eq!(read["contents"][0]["text"], "a");
    assert_eq!(client.tools(), ["a_echo", "b_echo"], "unavailable is not unknown");
    b.restart();
    eventually("the same session can call it", || {
        client.call("b_echo", json!({}))["isError"] != true
    });
    let read = client.result("resources/read", json!({"uri": "memo://b"}));
    assert_eq!(read["contents"][0]["text"], "b");
    client.result("prompts/get", json!({"name": "b_greet"}));
    assert_eq!([a.breaches(), b.breaches()], [const { Vec::<String>::new() }; 2]);
}

#[test]
fn calls_of_a_session_go_over_its_own_kept_connection() {
    let a = server("a");
    let gate = Setup::of(&[("a", &a)]).start();
    let client = gate.named("one");
    for _ in 0..5 {
        assert_eq!(client.text("echo"), "{}");
    }
    assert_eq!(count(&a, "one", "initialize"), 1);
    let calls = a.received_of("tools/call");
    assert!(calls.iter().all(|it| it.session == calls[0].session && it.session.is_some()));
}

#[test]
fn errors_of_a_caller_and_failures_of_a_tool_charge_nothing() {
    use tidegate_fakes::fake_mcp::{Tool, ToolAct};
    let a = FakeMcpServer::start(McpScript::of(vec![
        Tool::new("fails", ToolAct::Failed("no such file".to_owned())),
        Tool::new("wrong", ToolAct::Error { code: -32602, message: "bad args".to_owned() }),
        Tool::new("breaks", ToolAct::Error { code: -32603, message: "oops".to_owned() }),
    ]));
    let gate = Setup { health: "failure_threshold: 5", ..Setup::of(&[("a", &a)]) }.start();
    let client = gate.open();
    for _ in 0..3 {
        let failed = client.call("fails", json!({}));
        assert_eq!(failed["content"][0]["text"], "no such file");
        let wrong = client.request("tools/call", json!({"name": "wrong"}));
        assert_eq!(wrong["error"]["message"], "bad args", "{wrong}");
    }
    assert_eq!(gate.server_health("a")["consecutive_failures"], 0);
    let broken = client.request("tools/call", json!({"name": "breaks"}));
    assert_eq!(broken["error"]["message"], "oops", "{broken}");
    assert_eq!(gate.server_health("a")["consecutive_failures"], 1);
}
