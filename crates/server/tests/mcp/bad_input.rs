//! Bad input on the wire: refused in words of the protocol, and never carried to a server.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    gate::Gate,
    mcp::{Hello, McpClient, post, usual},
};

use crate::bed::Setup;

fn bed() -> (FakeMcpServer, Gate) {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    (fake, gate)
}

/// Status and JSON-RPC code of the answer to a body sent in a session.
fn answer(client: &McpClient, body: &str) -> (u16, Option<i64>) {
    let mut exchange = client.post(body).expect("an answer");
    let status = exchange.status;
    let text = exchange.text();
    let json = text.lines().find_map(|line| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        serde_json::from_str::<serde_json::Value>(line).ok()
    });
    (status, json.and_then(|it| it["error"]["code"].as_i64()))
}

#[test]
fn messages_that_are_no_messages_are_refused_and_the_session_goes_on() {
    let (fake, gate) = bed();
    let client = gate.open();
    client.tools();
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let params = format!(r#"{{"name":"echo","arguments":{{"a":{nested}}}}}"#);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let cases = [
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        ("\u{0}", -32700),
        ("null", -32600),
        ("42", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} trailing"#, -32700),
        (&deep, -32700),
    ];
    for (body, code) in cases {
        let (status, told) = answer(&client, body);
        let shown: String = body.chars().take(90).collect();
        assert_eq!(status, 400, "`{shown}` {told:?}");
        assert!(told.is_some_and(|it| [code, -32600, -32700].contains(&it)), "`{shown}`: {told:?}");
    }
    assert_eq!(client.text("echo"), "{}", "the session goes on");
    assert_eq!(fake.counts().of("tools/call"), 1);
}

#[test]
fn a_tool_named_twice_in_one_call_reaches_no_server() {
    let (fake, gate) = bed();
    let client = gate.open();
    client.tools();
    let body =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none","name":"echo"}}"#;
    let (status, code) = answer(&client, body);
    assert!(status == 400 || code == Some(-32602), "{status} {code:?}");
    assert_eq!(fake.counts().of("tools/call"), 0);
}

#[test]
fn params_that_make_no_sense_are_an_error_of_the_caller() {
    let (fake, gate) = bed();
    let client = gate.open();
    let cases = [
        ("tools/call", json!({})),
        ("tools/call", json!({"name": 7})),
        ("tools/call", json!({"name": "no_such_tool"})),
        ("tools/call", json!(["echo"])),
        ("resources/read", json!({"uri": 1})),
        ("prompts/get", json!({"name": "none"})),
        ("completion/complete", json!({"ref": 3})),
        ("tools/list", json!({"cursor": "made up"})),
        ("logging/setLevel", json!({})),
    ];
    for (method, params) in cases {
        let told = client.request(method, params.clone());
        let code = told["error"]["code"].as_i64();
        assert!(code == Some(-32602) || code == Some(-32600), "{method} {params}: {told}");
    }
    let unknown = client.request("tools/explode", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    let read = client.request("resources/read", json!({"uri": "memo://none"}));
    assert_eq!(read["error"]["code"], -32002, "{read}");
    assert_eq!(fake.counts().of("tools/call"), 0);
    assert_eq!(gate.server_health("a")["consecutive_failures"], 0);
}

#[test]
fn batches_are_part_of_one_old_revision_only() {
    let (fake, gate) = bed();
    let call =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}});
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let body = json!([ping, call]).to_string();
    for version in ["2025-11-25", "2025-06-18"] {
        let client = gate.open_as(&Hello { version, ..Hello::default() });
        assert_eq!(answer(&client, &body).0, 400, "{version}");
    }
    assert_eq!(fake.counts().of("tools/call"), 0);
    let old = gate.open_as(&Hello { version: "2025-03-26", ..Hello::default() });
    let mut exchange = old.post(&body).expect("an answer");
    assert_eq!(exchange.status, 200);
    let mut ids = Vec::new();
    while ids.len() < 2 {
        let message = exchange.message().expect("two answers");
        assert!(message["result"].is_object(), "{message}");
        ids.push(message["id"].as_u64().expect("an id"));
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    assert_eq!(answer(&old, "[]").0, 400);
}

#[test]
fn wrong_types_are_415_and_406_and_too_much_is_413() {
    let fake = FakeMcpServer::start(McpScript::default());
    let top = "limits: {body: 64KiB}";
    let gate = Setup { top, ..Setup::of(&[("a", &fake)]) }.start();
    let client = gate.open();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let session = format!("mcp-session-id: {}\r\n", client.session);
    let both = "accept: application/json, text/event-stream\r\n";
    let typed = "content-type: application/json\r\n";
    let cases = [
        (format!("{session}{both}content-type: text/plain\r\n"), 415),
        (format!("{session}{both}content-type: application/x-www-form-urlencoded\r\n"), 415),
        (format!("{session}{both}"), 415),
        (format!("{session}{typed}accept: application/json\r\n"), 406),
        (format!("{session}{typed}accept: text/event-stream\r\n"), 406),
        (format!("{session}{typed}accept: text/html\r\n"), 406),
        (format!("{session}{both}content-type: application/json; charset=utf-8\r\n"), 200),
        (format!("{session}{typed}accept: */*\r\n"), 200),
    ];
    for (headers, status) in cases {
        let exchange = post(gate.address(), &headers, &ping).expect("an answer");
        assert_eq!(exchange.status, status, "{headers}");
    }
    let headers = format!("{session}accept: text/html\r\n");
    let ask = Ask { verb: "GET", path: "/mcp", headers, body: b"" };
    assert_eq!(Exchange::begin(gate.address(), &ask).expect("an answer").status, 406);
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","x":"{}"}}"#, "y".repeat(70_000));
    let headers = format!("{session}{}", usual());
    let exchange = post(gate.address(), &headers, &large).expect("an answer");
    assert_eq!(exchange.status, 413);
}

#[test]
fn an_id_in_use_is_refused() {
    use tidegate_fakes::fake_mcp::{Tool, ToolAct};
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("slow", ToolAct::Slow(500))]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let params = json!({"name": "slow"});
    let first = client.start_as(json!(1), "tools/call", params.clone());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    assert_eq!(answer(&client, &body.to_string()), (400, Some(-32600)));
    assert!(first.finish()["result"].is_object());
}
