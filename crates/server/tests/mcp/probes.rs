//! What probes of servers teach: each failure with its cause.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Ping};
use tidegate_testkit::{
    gate::Gate,
    time::{eventually, ms, now, pause},
};

use crate::bed::{Setup, url};

/// A gateway that probes its one server every `every`.
fn gate(fake: &FakeMcpServer, every: &str) -> Gate {
    let health = format!("health: {{probe: {{every: {every}, timeout: 500ms}}}}");
    Setup::of(&[]).and("a", url(fake, &health)).start()
}

#[test]
fn a_server_that_refuses_our_credentials_is_shown_so_from_the_start_and_for_as_long_as_it_does() {
    let right =
        McpScript { authorization: Some("Bearer right".to_owned()), ..McpScript::default() };
    let fake = FakeMcpServer::start(right);
    let gate = gate(&fake, "1s");
    eventually("its first probe says so", || gate.server_health("a")["reason"] == "auth_rejected");
    let until = now() + ms(3500);
    while now() < until {
        let health = gate.server_health("a");
        assert_eq!(
            (&health["healthy"], &health["reason"]),
            (&json!(false), &json!("auth_rejected"))
        );
        pause(ms(50));
    }
    assert_eq!(gate.server_health("a")["consecutive_failures"], 0, "nobody is charged");
    fake.change(|script| script.authorization = None);
    eventually("a probe heals it", || gate.server_health("a")["healthy"] == true);
}

#[test]
fn a_server_that_is_dead_from_the_start_is_known_to_be_before_long() {
    let fake = FakeMcpServer::start(McpScript::default());
    fake.crash();
    let began = now();
    let gate = gate(&fake, "30s");
    eventually("its breaker is open", || gate.server_health("a")["healthy"] == false);
    assert!(began.elapsed() < ms(8000), "{:?}", began.elapsed());
    let told = gate.server_health("a")["last_error"].to_string();
    assert!(told.contains("transport"), "{told}");
}

#[test]
fn a_probe_that_the_server_does_not_know_passes_and_one_that_fails_tells_its_status() {
    let fake = FakeMcpServer::start(McpScript { ping: Ping::Unknown, ..McpScript::default() });
    let gate = gate(&fake, "200ms");
    eventually("several probes", || fake.received_of("ping").len() >= 4);
    assert_eq!(gate.server_health("a")["healthy"], true);
    assert_eq!(fake.counts().of("initialize"), 1, "its session is kept");
    fake.change(|script| script.ping = Ping::Status(500));
    eventually("its breaker is open", || gate.server_health("a")["healthy"] == false);
    let told = gate.server_health("a")["last_error"].to_string();
    assert!(told.contains("server_error") || told.contains("500"), "{told}");
}
