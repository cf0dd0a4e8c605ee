//! Reload, shutdown, and what is left when sessions are closed.

use std::process::{Command, Stdio};

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    machine::{is_long, resident_kib},
    time::{eventually, ms, now},
};

use crate::bed::{Setup, count, url};

#[test]
fn a_reload_keeps_sessions_and_their_connections() {
    let (a, b) = (
        FakeMcpServer::start(McpScript::of(vec![Tool::new("count", ToolAct::Count)])),
        FakeMcpServer::start(McpScript::default()),
    );
    let setup = Setup::of(&[("a", &a), ("b", &b)]);
    let gate = setup.start();
    let client = gate.named("one");
    let first = client.text("a_count");
    assert!(first.ends_with("call 1"), "{first}");
    let c = FakeMcpServer::start(McpScript::default());
    gate.reload(&setup.clone().and("c", url(&c, "")).yaml());
    let second = client.text("a_count");
    assert_eq!(second, first.replace("call 1", "call 2"), "the same backend session");
    assert_eq!(count(&a, "one", "initialize"), 1);
    eventually("a new session has the new server", || {
        gate.open().tools() == ["a_count", "b_echo", "c_echo"]
    });
    gate.reload(&Setup::of(&[("a", &a)]).yaml());
    eventually("a server that left is gone", || gate.open().tools() == ["count"]);
    let told = client.request("tools/call", json!({"name": "a_count"}));
    let (again, _) = (client.request("ping", json!({})), told);
    assert_eq!(again["result"], json!({}), "the session lives");
    eventually("its connections are closed", || b.counts().sessions == 0);
}

#[test]
fn shutdown_deletes_every_backend_session() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    let clients: Vec<_> = (0..5).map(|_| gate.open()).collect();
    for client in &clients {
        assert_eq!(client.text("echo"), "{}");
    }
    assert!(fake.counts().sessions >= 5);
    let began = now();
    gate.server.stop();
    assert!(began.elapsed() < ms(5000), "{:?}", began.elapsed());
    eventually("nothing is left", || {
        let counts = fake.counts();
        counts.sessions == 0 && counts.connections == 0
    });
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn shutdown_does_not_wait_for_servers_that_hang() {
    let tools = vec![Tool::new("hang", ToolAct::Hang)];
    let fake = FakeMcpServer::start(McpScript::of(tools));
    let top = "shutdown: {drain: 500ms}";
    let gate = Setup { top, ..Setup::of(&[("a", &fake)]) }.start();
    let client = gate.open();
    let call = client.start("tools/call", json!({"name": "hang"}));
    eventually("it hangs", || fake.counts().delivered("hang") == 1);
    let began = now();
    gate.server.stop();
    assert!(began.elapsed() < ms(8000), "{:?}", began.elapsed());
    drop(call);
    eventually("no connection is left", || fake.counts().connections == 0);
}

#[test]
fn a_call_in_flight_is_finished_when_its_session_is_deleted() {
    let tools = vec![Tool::new("slow", ToolAct::Slow(500))];
    let fake = FakeMcpServer::start(McpScript::of(tools));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.named("one");
    let call = client.start("tools/call", json!({"name": "slow"}));
    eventually("it is under way", || fake.counts().delivered("slow") == 1);
    assert_eq!(client.delete(), 200);
    assert!(call.finish()["result"].is_object());
    eventually("and then the backend's session ends", || count(&fake, "one", "DELETE") == 1);
}

/// What says that the test below is to be run: it counts descriptors, so it has a process of its
/// own.
const ALONE: &str = "TIDEGATE_MCP_ALONE";

#[test]
fn closing_all_sessions_leaves_no_descriptor_and_no_session() {
    let binary = std::env::current_exe().expect("a test knows its binary");
    let output = Command::new(binary)
        .args(["--exact", "life::many_sessions_come_and_go", "--nocapture"])
        .env(ALONE, "1")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs again");
    let told = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{why}");
    assert!(told.contains("descriptors:"), "it did run: {told}");
}

#[test]
fn many_sessions_come_and_go() {
    use std::io::Write as _;
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let is_long = is_long();
    let (sessions, servers) = if is_long { (1000, 5) } else { (100, 2) };
    let fakes: Vec<_> = (0..servers).map(|_| FakeMcpServer::start(McpScript::default())).collect();
    let named = ["a", "b", "c", "d", "e"].into_iter().zip(&fakes).collect::<Vec<_>>();
    let top = "limits: {connections: 20000}";
    let gate = Setup { top, ..Setup::of(&named) }.start();
    let round = |count: usize| {
        let clients: Vec<_> = (0..count).map(|_| gate.open()).collect();
        for client in &clients {
            assert_eq!(client.tools().len(), servers);
            assert_eq!(client.text("a_echo"), "{}");
        }
        let open = descriptors();
        for client in clients {
            assert_eq!(client.delete(), 200);
        }
        eventually("only the gateway's own sessions are left", || {
            fakes.iter().all(|fake| fake.counts().sessions <= 1)
        });
        open
    };
    // What is made once and kept (pools, the gateway's own connections) is there after the first.
    round(2);
    let kept = || fakes.iter().map(|fake| fake.counts().connections).sum::<u64>() as usize;
    let (before, kept_before, memory) = (descriptors(), kept(), resident_kib());
    let open = round(sessions);
    let mut after = descriptors();
    eventually("what is left are connections kept for the next session", || {
        after = descriptors();
        // Both ends of each are in this process.
        after <= before + 2 * kept().saturating_sub(kept_before)
    });
    if is_long {
        // As long as an idle connection is kept, and a little more.
        tidegate_testkit::time::pause(std::time::Duration::from_secs(60));
        after = descriptors();
        assert!(after <= before, "{after} descriptors, {before} before");
    }
    let line = format!(
        "descriptors: {before} before, {open} with {sessions} sessions, {after} after; memory: \
         {memory} KiB before, {} KiB after\n",
        resident_kib()
    );
    std::io::stdout().write_all(line.as_bytes()).expect("somebody listens");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}
