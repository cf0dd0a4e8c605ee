//! Who may use what: keys, their servers, and whose a session is.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    gate::Gate,
    mcp::{Hello, McpClient, usual},
};

use crate::bed::{Setup, url};

const KEYS: &str = "keys:
  - { name: all, key: env:ALL }
  - { name: some, key: env:SOME, servers: [a] }
  - { name: none, key: env:NONE, servers: [] }
";
const VARIABLES: &[(&str, &str)] =
    &[("ALL", "key-all"), ("SOME", "key-some"), ("NONE", "key-none")];

fn bed() -> (FakeMcpServer, FakeMcpServer, Gate) {
    let a = FakeMcpServer::start(McpScript::default().resource("memo://a", "A"));
    let b = FakeMcpServer::start(McpScript::default().resource("memo://b", "B"));
    let setup = Setup { top: KEYS, variables: VARIABLES, ..Setup::of(&[("a", &a), ("b", &b)]) };
    let gate = setup.start();
    (a, b, gate)
}

fn open(gate: &Gate, key: &str) -> McpClient {
    let headers = format!("authorization: Bearer {key}\r\n");
    gate.open_as(&Hello { name: key, headers: &headers, ..Hello::default() })
}

#[test]
fn without_a_key_nothing_is_opened() {
    let (_a, _b, gate) = bed();
    for headers in ["", "authorization: Bearer wrong\r\n", "authorization: Basic a2V5\r\n"] {
        let exchange = McpClient::introduce(gate.address(), &Hello { headers, ..Hello::default() });
        assert_eq!(exchange.status, 401, "{headers}");
    }
}

#[test]
fn a_key_sees_and_reaches_its_servers_only() {
    let (_a, b, gate) = bed();
    assert_eq!(open(&gate, "key-all").tools(), ["a_echo", "b_echo"]);
    let some = open(&gate, "key-some");
    assert_eq!(some.tools(), ["a_echo"], "names depend on the config, not on the key");
    assert_eq!(some.text("a_echo"), "{}");
    let call = some.request("tools/call", json!({"name": "b_echo"}));
    assert_eq!(call["error"]["code"], -32602, "what one may not use is unknown: {call}");
    let read = some.request("resources/read", json!({"uri": "memo://b"}));
    assert!(read["error"].is_object(), "{read}");
    assert_eq!(some.list("resources/list", "resources").len(), 1);
    assert_eq!(open(&gate, "key-none").tools(), [""; 0]);
    assert_eq!(b.sent_by("key-some"), [""; 0]);
    assert_eq!(b.sent_by("key-none"), [""; 0]);
}

#[test]
fn a_session_of_one_caller_is_unknown_to_another() {
    let (_a, _b, gate) = bed();
    let owner = open(&gate, "key-all");
    for key in ["key-some", "key-none"] {
        for verb in ["POST", "GET", "DELETE"] {
            let kind = if verb == "GET" { "accept: text/event-stream\r\n".into() } else { usual() };
            let headers = format!(
                "authorization: Bearer {key}\r\nmcp-session-id: {}\r\n{kind}",
                owner.session
            );
            let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
            let body = if verb == "POST" { ping.as_bytes() } else { b"" };
            let ask = Ask { verb, path: "/mcp", headers, body };
            let exchange = Exchange::begin(gate.address(), &ask).expect("an answer");
            assert_eq!(exchange.status, 404, "{verb} by {key}");
        }
    }
    assert_eq!(owner.text("a_echo"), "{}", "its owner is not affected");
}

#[test]
fn a_clients_key_is_never_handed_on_and_a_servers_is() {
    let fake = FakeMcpServer::start(McpScript::default());
    let keys = url(&fake, "headers: {authorization: env:TOKEN, x-team: tide}");
    let mut variables = VARIABLES.to_vec();
    variables.push(("TOKEN", "Bearer for-the-server"));
    let setup = Setup { top: KEYS, variables: &variables, ..Setup::of(&[]).and("a", keys) };
    let gate = setup.start();
    let client = open(&gate, "key-all");
    assert_eq!(client.text("echo"), "{}");
    client.delete();
    let received = fake.received();
    assert!(received.len() > 3);
    for it in received {
        assert_eq!(it.header("authorization"), Some("Bearer for-the-server"), "{it:?}");
        assert_eq!(it.header("x-team"), Some("tide"));
        assert!(!it.text.contains("key-all") || it.client.as_deref() == Some("key-all"));
        assert!(it.headers.iter().all(|(_, value)| !value.contains("key-all")), "{it:?}");
        assert_ne!(it.session.as_deref(), Some(client.session.as_str()), "ids are not shared");
    }
}
