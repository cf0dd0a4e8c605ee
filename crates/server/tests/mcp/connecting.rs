//! Servers that are slow to connect, and servers that were never reached: what a session lists
//! meanwhile, how long a call waits, and whom an error names.

use std::thread;

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Opening, Tool, ToolAct};
use tidegate_testkit::{
    gate::Gate,
    mcp::text_of,
    time::{eventually, ms, now},
};

use crate::bed::{Setup, assert_error, assert_unavailable, count};
use crate::visitor::Visitor;

fn server(tool: &str) -> FakeMcpServer {
    FakeMcpServer::start(McpScript::of(vec![Tool::new(tool, ToolAct::Echo)]))
}

/// A gateway with two servers whose lists are known.
fn known(a: &FakeMcpServer, b: &FakeMcpServer) -> Gate {
    let gate = Setup::of(&[("a", a), ("b", b)]).start();
    assert_eq!(gate.named("warm").tools(), ["a_look", "b_move"]);
    gate
}

#[test]
fn a_server_that_is_slow_to_initialize_is_listed_before_and_its_calls_wait_for_it() {
    let (a, b) = (server("look"), server("move"));
    let gate = known(&a, &b);
    b.change(|script| script.opening = Opening::Slow(4_000));
    let began = now();
    let client = gate.named("one");
    assert_eq!(client.tools(), ["a_look", "b_move"], "it is slow, not dead");
    assert!(began.elapsed() >= ms(450) && began.elapsed() < ms(3_900), "{:?}", began.elapsed());
    assert_eq!(client.text("b_move"), "{}");
    assert_eq!(count(&b, "one", "initialize"), 1);
    let caller = gate.named("two");
    let began = now();
    assert_eq!(caller.text("a_look"), "{}", "a call waits for its own server only");
    assert!(began.elapsed() < ms(3_900), "{:?}", began.elapsed());
    assert_eq!(caller.text("b_move"), "{}");
    assert_eq!(gate.server_health("b")["consecutive_failures"], 0);
}

#[test]
fn a_server_that_is_slow_from_the_start_is_in_the_first_list() {
    let slow = McpScript { opening: Opening::Slow(800), ..McpScript::default() };
    let b = FakeMcpServer::start(slow);
    let gate = Setup::of(&[("b", &b)]).start();
    assert_eq!(gate.open().tools(), ["echo"], "nobody knows its tools before");
}

#[test]
fn a_slow_server_that_dies_fails_the_calls_that_wait_and_is_used_when_it_returns() {
    let (a, b) = (server("look"), server("move"));
    let gate = known(&a, &b);
    b.change(|script| script.opening = Opening::Hang);
    let client = gate.named("one");
    assert_eq!(client.tools(), ["a_look", "b_move"]);
    let call = client.start("tools/call", json!({"name": "b_move"}));
    b.crash();
    assert_unavailable(&call.finish()["result"], "b", "backend_unavailable");
    assert_eq!(client.tools(), ["a_look", "b_move"], "its tools stay");
    b.change(|script| script.opening = Opening::Answer);
    b.restart();
    assert_eq!(client.text("b_move"), "{}", "a later call succeeds");
}

#[test]
fn a_call_to_a_server_that_hangs_ends_with_the_connect_timeout() {
    let (a, b) = (server("look"), server("move"));
    let mcp = "connect_timeout: 3s,";
    let gate = Setup { mcp, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    assert_eq!(gate.named("warm").tools(), ["a_look", "b_move"]);
    b.change(|script| script.opening = Opening::Hang);
    let client = gate.named("one");
    let began = now();
    let told = client.call("b_move", json!({}));
    assert_unavailable(&told, "b", "backend_unavailable");
    assert!(began.elapsed() >= ms(2_500) && began.elapsed() < ms(20_000), "{:?}", began.elapsed());
}

#[test]
fn the_first_call_of_a_client_without_a_session_names_a_server_that_has_just_died() {
    let (a, b) = (server("look"), server("move"));
    let gate = known(&a, &b);
    b.crash();
    let visitor = Visitor::of(gate.address());
    let told = visitor.call("b_move");
    assert_unavailable(&told, "b", "backend_unavailable");
    assert!(text_of(&told).contains("connection refused"), "{told}");
    assert_eq!(gate.server_health("b")["consecutive_failures"], 1, "one call, one failure");
    assert_eq!(text_of(&visitor.call("a_look")), "{}");
    b.restart();
    eventually("it is used again", || visitor.call("b_move")["isError"] != true);
}

#[test]
fn calls_that_wait_together_share_one_connection() {
    let (a, b) = (server("look"), server("move"));
    let gate = known(&a, &b);
    b.change(|script| script.opening = Opening::Slow(600));
    let client = gate.named("one");
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| assert_eq!(client.text("b_move"), "{}"));
        }
    });
    assert_eq!(count(&b, "one", "initialize"), 1);
}

#[test]
fn what_belongs_to_a_server_that_was_never_reached_is_unavailable_and_not_unknown() {
    let a =
        FakeMcpServer::start(McpScript::default().resource("memo://a", "A").prompt("greet", &[]));
    let b = server("move");
    b.crash();
    for mcp in ["", "tools: search,"] {
        let gate = Setup { mcp, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
        let client = gate.open();
        assert_unavailable(&client.call("b_move", json!({})), "b", "backend_unavailable");
        let prompt = client.request("prompts/get", json!({"name": "b_greet"}));
        assert_error(&prompt, "b", "backend_unavailable");
        let read = client.request("resources/read", json!({"uri": "memo://unlisted"}));
        assert_eq!(read["error"]["code"], -32002, "{read}");
        assert_eq!(read["error"]["data"]["uri"], "memo://unlisted", "{read}");
        let words = read["error"]["message"].to_string();
        assert!(words.contains("server `b`, which may have it, was never reached"), "{words}");
        let unknown = client.request("tools/call", json!({"name": "a_nothing"}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        if !mcp.is_empty() {
            let wrapped = json!({"tool_name": "b_move", "parameters": {}});
            assert_unavailable(&client.call("call_tool", wrapped), "b", "backend_unavailable");
        }
        let visitor = Visitor::of(gate.address());
        assert_unavailable(&visitor.call("b_move"), "b", "backend_unavailable");
        // Each of them is a decision that an operator can look up.
        let wrapped = usize::from(!mcp.is_empty());
        eventually("they are recorded", || {
            let list = gate.admin("/api/decisions?backend=mcp:b").json();
            let all = list["decisions"].as_array().map_or(0, Vec::len);
            all == 3 + wrapped
        });
    }
    assert_eq!(a.counts().of("resources/read"), 0, "it went to nobody else");
}

#[test]
fn the_only_server_is_unavailable_and_its_tools_are_not_unknown() {
    let a = server("look");
    a.crash();
    let gate = Setup::of(&[("a", &a)]).start();
    assert_unavailable(&gate.open().call("look", json!({})), "a", "backend_unavailable");
}
