//! Lists that are out of date: a server that was deployed anew and does not say so.

use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};

use crate::bed::{Setup, assert_unavailable, count};
use serde_json::json;
use tidegate_testkit::{
    gate::Gate,
    time::{eventually, ms, pause},
};

fn tool(name: &str) -> Tool {
    Tool::new(name, ToolAct::Echo)
}

/// A server with one tool, and another that nothing happens to.
fn servers() -> (FakeMcpServer, FakeMcpServer) {
    let server = |name: &str| FakeMcpServer::start(McpScript::of(vec![tool(name)]));
    (server("old"), server("look"))
}

fn gate(a: &FakeMcpServer, b: &FakeMcpServer, mcp: &str) -> Gate {
    Setup { mcp, ..Setup::of(&[("a", a), ("b", b)]) }.start()
}

/// Other tools, without a word to anybody.
fn deploy(fake: &FakeMcpServer) {
    fake.change(|script| script.tools = vec![tool("old"), tool("new")]);
}

const BEFORE: [&str; 2] = ["a_old", "b_look"];
const AFTER: [&str; 3] = ["a_new", "a_old", "b_look"];

#[test]
fn a_lost_connection_that_is_made_anew_has_the_lists_fetched_again() {
    let (a, b) = servers();
    let gate = gate(&a, &b, "");
    let client = gate.named("one");
    assert_eq!(client.tools(), BEFORE);
    let mut stream = client.listen();
    deploy(&a);
    a.lose_sessions();
    assert_eq!(client.text("a_old"), "{}", "the session is regained");
    let told = stream.message().expect("it is told");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(client.tools(), AFTER);
    eventually("new sessions see it too", || gate.named("two").tools() == AFTER);
}

#[test]
fn a_server_that_introduces_itself_otherwise_has_its_lists_fetched_again() {
    let (a, b) = servers();
    let gate = gate(&a, &b, "");
    let open = gate.named("one");
    assert_eq!(open.tools(), BEFORE);
    deploy(&a);
    a.change(|script| script.name = "deployed anew".to_owned());
    eventually("a new session sees what there is", || gate.named("two").tools() == AFTER);
    assert_eq!(open.tools(), AFTER, "and so does one that was open");
}

#[test]
fn lists_that_are_used_are_fetched_again_when_they_are_old_however_much_traffic_there_is() {
    let (a, b) = servers();
    let gate = gate(&a, &b, "fresh_for: 1s,");
    let client = gate.named("one");
    assert_eq!(client.tools(), BEFORE);
    let mut stream = client.listen();
    deploy(&a);
    eventually("traffic brings the news", || {
        assert_eq!(client.text("a_old"), "{}");
        pause(ms(20));
        client.tools() == AFTER
    });
    let told = stream.message().expect("it is told");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(count(&a, "one", "initialize"), 1, "over the connection that is there");
}

#[test]
fn fresh_lists_are_not_fetched_again() {
    let (a, b) = servers();
    let gate = gate(&a, &b, "");
    assert_eq!(gate.named("one").tools(), BEFORE);
    let fetched = a.counts().of("tools/list");
    for _ in 0..5 {
        assert_eq!(gate.named("one").tools(), BEFORE);
    }
    assert_eq!(a.counts().of("tools/list"), fetched);
}

#[test]
fn a_reload_has_lists_fetched_again() {
    let (a, b) = servers();
    let setup = Setup::of(&[("a", &a), ("b", &b)]);
    let gate = setup.start();
    let client = gate.named("one");
    assert_eq!(client.tools(), BEFORE);
    deploy(&a);
    gate.reload(&setup.yaml());
    eventually("the same config, other lists", || client.tools() == AFTER);
}

#[test]
fn lists_stay_when_they_cannot_be_fetched() {
    let (a, b) = servers();
    let gate = gate(&a, &b, "fresh_for: 1s,");
    let client = gate.named("one");
    assert_eq!(client.tools(), BEFORE);
    a.crash();
    pause(ms(1200));
    assert_eq!(client.tools(), BEFORE);
    assert_unavailable(&client.call("a_old", json!({})), "a", "backend_unavailable");
    assert_eq!(client.tools(), BEFORE);
}
