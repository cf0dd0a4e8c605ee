//! Keepalive of a session's idle connections.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, Lost, McpScript, Ping, Tool, ToolAct};
use tidegate_testkit::{
    gate::Gate,
    time::{eventually, ms, now, pause},
};

use crate::bed::{Setup, count, url};

fn gate(fake: &FakeMcpServer, keepalive: &str) -> Gate {
    let keys = url(fake, &format!("keepalive: {{{keepalive}}}"));
    Setup::of(&[]).and("a", keys).start()
}

fn pings(fake: &FakeMcpServer) -> usize {
    count(fake, "test", "ping")
}

/// Milliseconds between the pings of the test's session.
fn gaps(fake: &FakeMcpServer) -> Vec<u64> {
    let pings = fake.received_of("ping");
    let of_test = pings.iter().filter(|it| it.client.as_deref() == Some("test"));
    let times: Vec<u64> = of_test.map(|it| it.at_ms).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn probes_of_an_idle_connection_are_counted_and_jittered() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = gate(&fake, "every: 200ms, jitter: 50%");
    let client = gate.open();
    client.tools();
    eventually("fifteen pings", || pings(&fake) >= 15);
    let gaps = gaps(&fake);
    assert!(gaps.iter().all(|gap| *gap >= 90), "never before its time: {gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < 190), "some come early: {gaps:?}");
    client.delete();
    eventually("each is counted", || {
        let sent = pings(&fake) as f64;
        let counted = gate.metric("tidegate_keepalive_attempt_total{server=\"a\"}");
        let passed = gate.metric("tidegate_keepalive_success_total{server=\"a\"}");
        counted == sent && passed >= sent - 1.0
    });
    assert!(gate.metric("tidegate_keepalive_latency_seconds_count{server=\"a\"}") >= 14.0);
}

#[test]
fn real_traffic_postpones_a_probe() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = gate(&fake, "every: 1s, jitter: 0%");
    let client = gate.open();
    let until = now() + ms(2500);
    while now() < until {
        assert_eq!(client.text("echo"), "{}");
        pause(ms(100));
    }
    assert_eq!(pings(&fake), 0);
    eventually("idle again, it is sent", || pings(&fake) >= 1);
}

#[test]
fn three_failures_disable_it_charge_the_breaker_once_and_a_trial_enables_it_again() {
    let fake = FakeMcpServer::start(McpScript { ping: Ping::Hang, ..McpScript::default() });
    let gate = gate(&fake, "every: 100ms, jitter: 0%, timeout: 50ms, failures: 3, quiet: 3s");
    let client = gate.open();
    client.tools();
    let disabled = || gate.metric("tidegate_keepalive_auto_disabled_total{server=\"a\"}") >= 1.0;
    eventually("it disables itself", disabled);
    assert_eq!(pings(&fake), 3);
    let failed = "tidegate_keepalive_failure_total{reason=\"timeout\",server=\"a\"}";
    let other = "tidegate_keepalive_failure_total{server=\"a\",reason=\"timeout\"}";
    assert_eq!(gate.metric(failed).max(gate.metric(other)), 3.0);
    assert_eq!(gate.server_health("a")["consecutive_failures"], 1, "charged once");
    pause(ms(1500));
    assert_eq!(pings(&fake), 3, "the quiet window is quiet");
    fake.change(|script| script.ping = Ping::Answer);
    eventually("a trial enables it again", || pings(&fake) >= 6);
    assert_eq!(client.text("echo"), "{}");
}

#[test]
fn closing_a_session_stops_it_at_once_even_with_a_probe_hanging() {
    let fake = FakeMcpServer::start(McpScript { ping: Ping::Hang, ..McpScript::default() });
    let gate = gate(&fake, "every: 100ms, jitter: 0%, timeout: 30s");
    let client = gate.open();
    client.tools();
    eventually("a ping hangs", || pings(&fake) == 1);
    let began = now();
    assert_eq!(client.delete(), 200);
    eventually("the backend's session is deleted", || count(&fake, "test", "DELETE") == 1);
    assert!(began.elapsed() < ms(15_000), "{:?}", began.elapsed());
    pause(ms(400));
    assert_eq!(pings(&fake), 1);
}

#[test]
fn a_probe_that_hangs_delays_no_call() {
    let fake = FakeMcpServer::start(McpScript { ping: Ping::Hang, ..McpScript::default() });
    let gate = gate(&fake, "every: 100ms, jitter: 0%, timeout: 30s");
    let client = gate.open();
    client.tools();
    eventually("a ping hangs", || pings(&fake) == 1);
    let began = now();
    assert_eq!(client.text("echo"), "{}");
    assert!(began.elapsed() < ms(10_000), "{:?}", began.elapsed());
}

#[test]
fn a_tool_can_be_the_probe() {
    let fake = FakeMcpServer::start(McpScript::default());
    let tool = "method: tool, tool: {name: echo, args: {text: still there?}}";
    let gate = gate(&fake, &format!("every: 100ms, jitter: 0%, {tool}"));
    let client = gate.open();
    client.tools();
    eventually("it is called", || fake.counts().delivered("echo") >= 3);
    let calls = fake.received_of("tools/call");
    assert!(calls.iter().all(|it| *it.arguments() == json!({"text": "still there?"})));
    assert_eq!(pings(&fake), 0);
}

#[test]
fn without_a_method_nothing_is_sent() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = gate(&fake, "method: none, every: 50ms");
    let client = gate.open();
    client.tools();
    pause(ms(1000));
    assert_eq!(pings(&fake), 0);
    assert_eq!(gate.metric("tidegate_keepalive_attempt_total{server=\"a\"}"), 0.0);
}

#[test]
fn a_lost_session_is_noticed_by_the_probe_and_regained() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = gate(&fake, "every: 200ms, jitter: 0%");
    let client = gate.open();
    client.tools();
    eventually("a ping came", || pings(&fake) >= 1);
    fake.lose_sessions();
    eventually("a new session is opened", || count(&fake, "test", "initialize") == 2);
    let before = pings(&fake);
    eventually("and kept alive", || pings(&fake) > before + 2);
    assert_eq!(gate.server_health("a")["consecutive_failures"], 0, "regained: charged to nobody");
}

#[test]
fn a_server_that_does_not_know_ping_keeps_its_session_and_its_state() {
    let script = McpScript::of(vec![Tool::new("count", ToolAct::Count)]);
    let fake = FakeMcpServer::start(McpScript { ping: Ping::Unknown, ..script });
    let gate = gate(&fake, "every: 100ms, jitter: 0%, failures: 2, quiet: 1h");
    let client = gate.open();
    let first = client.text("count");
    eventually("several pings", || pings(&fake) >= 5);
    assert_eq!(client.text("count"), first.replace("call 1", "call 2"), "the same session");
    assert_eq!(count(&fake, "test", "initialize"), 1);
    let counted = |what: &str| gate.metric(&format!("tidegate_keepalive_{what}{{server=\"a\"}}"));
    assert!(counted("success_total") >= 4.0 && counted("auto_disabled_total") == 0.0);
}

#[test]
fn an_http_error_without_a_message_is_a_failure() {
    let fake = FakeMcpServer::start(McpScript { ping: Ping::Status(500), ..McpScript::default() });
    let gate = gate(&fake, "every: 100ms, jitter: 0%, failures: 2, quiet: 1h");
    let client = gate.open();
    client.tools();
    let disabled = || gate.metric("tidegate_keepalive_auto_disabled_total{server=\"a\"}") >= 1.0;
    eventually("it disables itself", disabled);
    let failed = "tidegate_keepalive_failure_total{reason=\"error\",server=\"a\"}";
    let other = "tidegate_keepalive_failure_total{server=\"a\",reason=\"error\"}";
    assert_eq!(gate.metric(failed).max(gate.metric(other)), 2.0);
    assert_eq!(gate.server_health("a")["consecutive_failures"], 1);
}

#[test]
fn after_the_quiet_window_one_trial_decides() {
    let fake = FakeMcpServer::start(McpScript { ping: Ping::Hang, ..McpScript::default() });
    let gate = gate(&fake, "every: 100ms, jitter: 0%, timeout: 50ms, failures: 3, quiet: 1s");
    let client = gate.open();
    client.tools();
    let disabled = || gate.metric("tidegate_keepalive_auto_disabled_total{server=\"a\"}");
    eventually("it disables itself", || disabled() == 1.0);
    assert_eq!(pings(&fake), 3);
    eventually("and again", || disabled() == 2.0);
    assert_eq!(pings(&fake), 4, "one trial, not three");
    assert_eq!(count(&fake, "test", "initialize"), 2, "over a connection that was made for it");
}

#[test]
fn an_answer_that_the_session_is_lost_is_no_failure() {
    for lost in [Lost::NotFound, Lost::BadRequest, Lost::RpcError] {
        let fake = FakeMcpServer::start(McpScript { lost, ..McpScript::default() });
        let gate = gate(&fake, "every: 200ms, jitter: 0%");
        let client = gate.open();
        client.tools();
        fake.lose_sessions();
        eventually("a new session is opened", || count(&fake, "test", "initialize") == 2);
        eventually("and kept alive", || pings(&fake) >= 3);
        let text = tidegate_testkit::gate::get(gate.server.admin_address(), "/metrics").text();
        let is_failure = |it: &str| it.starts_with("tidegate_keepalive_failure_total{");
        assert!(!text.lines().any(is_failure), "{lost:?}: a lost connection is no failure");
        drop(client);
    }
}
