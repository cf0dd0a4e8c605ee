//! Servers that behave badly: a session opens at once all the same, and the others work.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Opening, Tool, ToolAct};
use tidegate_testkit::{
    gate::Gate,
    time::{ms, now},
};

use crate::bed::{Setup, assert_unavailable, url};

/// How long a session that opens waits for a server. A working server answers long before it, on
/// a busy machine too; the servers that never answer, or after half a minute, do not.
const MCP: &str = "connect_timeout: 4s,";

/// Two servers, of which the second behaves badly.
fn start(bad: McpScript) -> (Gate, FakeMcpServer, FakeMcpServer) {
    let (good, bad) = (FakeMcpServer::start(McpScript::default()), FakeMcpServer::start(bad));
    let gate = Setup { mcp: MCP, ..Setup::of(&[("good", &good), ("bad", &bad)]) }.start();
    (gate, good, bad)
}

/// A session with a bad server opens and works, though the first may wait until that server's
/// time is over; the second does not wait for it again.
fn check(what: &str, bad: McpScript) -> (Gate, FakeMcpServer, FakeMcpServer) {
    let (gate, good, bad) = start(bad);
    for limit in [20_000, 4_000] {
        let began = now();
        let client = gate.open();
        assert!(client.tools().contains(&"good_echo".to_owned()), "{what}");
        assert_eq!(client.text("good_echo"), "{}", "{what}");
        assert!(began.elapsed() < ms(limit), "{what}: called after {:?}", began.elapsed());
    }
    (gate, good, bad)
}

#[test]
fn a_server_that_accepts_and_never_answers_delays_nobody() {
    check("hang", McpScript { opening: Opening::Hang, ..McpScript::default() });
}

#[test]
fn a_server_that_answers_after_thirty_seconds_delays_nobody() {
    check("slow", McpScript { opening: Opening::Slow(30_000), ..McpScript::default() });
}

#[test]
fn a_server_that_talks_nonsense_or_hangs_up_delays_nobody() {
    check("garbage", McpScript { opening: Opening::Garbage, ..McpScript::default() });
    check("close", McpScript { opening: Opening::Close, ..McpScript::default() });
    check("status 500", McpScript { opening: Opening::Status(500), ..McpScript::default() });
    check("status 404", McpScript { opening: Opening::Status(404), ..McpScript::default() });
}

#[test]
fn a_server_that_refuses_our_credentials_is_left_out() {
    let authorization = Some("Bearer right".to_owned());
    let script = McpScript { authorization, ..McpScript::default() };
    let (gate, _good, _bad) = check("unauthorised", script.clone());
    assert_eq!(gate.open().tools(), ["good_echo"]);
    let fake = FakeMcpServer::start(script);
    let keys = url(&fake, "headers: {authorization: env:TOKEN}");
    let variables = &[("TOKEN", "Bearer right")];
    let gate = Setup { variables, ..Setup::of(&[]).and("a", keys) }.start();
    assert_eq!(gate.open().text("echo"), "{}", "with the right ones it is there");
}

#[test]
fn a_server_that_floods_its_client_delays_nobody() {
    let script = McpScript { flood: 20_000, ..McpScript::default() };
    let (gate, _good, bad) = check("flood", script);
    let client = gate.open();
    tidegate_testkit::time::eventually("it has joined", || client.tools().len() == 2);
    assert_eq!(client.text("bad_echo"), "{}");
    bad.change_tools(|tools| tools.push(Tool::new("flood", ToolAct::Flood(20_000))));
    tidegate_testkit::time::eventually("the tool is known", || {
        client.request("tools/call", json!({"name": "bad_flood"}))["result"].is_object()
    });
    assert_eq!(client.text("good_echo"), "{}");
}

#[test]
fn a_server_without_a_stream_of_its_own_works() {
    let script = McpScript { has_get_stream: false, ..McpScript::default() };
    let (gate, _good, bad) = start(script);
    let client = gate.named("one");
    assert_eq!(client.text("bad_echo"), "{}");
    tidegate_testkit::time::pause(ms(1500));
    assert!(crate::bed::count(&bad, "one", "GET") <= 1, "405 is final");
}

#[test]
fn a_server_without_session_ids_works() {
    let script = McpScript { has_sessions: false, ..McpScript::default() };
    let (gate, _good, bad) = start(script);
    let client = gate.open();
    assert_eq!(client.text("bad_echo"), "{}");
    assert_eq!(client.delete(), 200);
    assert_eq!(bad.counts().deletes, 0, "there is nothing to delete");
    assert_eq!(bad.breaches(), [""; 0]);
}

#[test]
fn a_server_of_every_revision_works_for_a_client_of_every_revision() {
    use tidegate_testkit::mcp::Hello;
    const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
    for spoken in VERSIONS {
        let versions = vec![spoken.to_owned()];
        let fake = FakeMcpServer::start(McpScript { versions, ..McpScript::default() });
        let gate = Setup::of(&[("a", &fake)]).start();
        for version in VERSIONS {
            let client = gate.open_as(&Hello { version, ..Hello::default() });
            assert_eq!(client.hello["protocolVersion"], version);
            assert_eq!(client.text("echo"), "{}");
        }
        assert_eq!(fake.breaches(), [""; 0], "{spoken}");
    }
}

#[test]
fn a_server_in_a_crash_loop_delays_nobody_and_is_named() {
    let bad = McpScript::of(vec![Tool::new("crash", ToolAct::Crash)]);
    let (gate, _good, bad) = start(bad);
    let client = gate.open();
    for _ in 0..3 {
        let result = client.call("bad_crash", json!({}));
        assert_eq!(result["structuredContent"]["backend"], "bad", "{result}");
        assert_eq!(client.text("good_echo"), "{}");
        bad.restart();
    }
}

#[test]
fn answers_with_wrong_ids_or_far_too_large_fail_alone() {
    let bad = McpScript::of(vec![
        Tool::new("wrong", ToolAct::WrongId),
        Tool::new("huge", ToolAct::Big(20 << 20)),
        Tool::new("big", ToolAct::Big(4 << 20)),
        Tool::new("echo", ToolAct::Echo),
    ]);
    let fake = FakeMcpServer::start(bad);
    let mcp = "call_timeout: 3s,";
    let health = "failure_threshold: 50";
    let gate = Setup { mcp, health, ..Setup::of(&[("a", &fake)]) }.start();
    let client = gate.open();
    assert_eq!(client.text("big").len(), 4 << 20);
    let huge = client.call("huge", json!({}));
    assert_unavailable(&huge, "a", "result_unknown");
    let wrong = client.request("tools/call", json!({"name": "wrong"}));
    assert!(wrong["result"].is_object(), "it is answered: {wrong}");
    assert_eq!(client.text("echo"), "{}");
}
