//! What goes wrong on the wire in the era without sessions: the right error, and nothing hangs.

use std::thread;

use serde_json::{Value, json};
use tidegate_server::fake_mcp::{Act, FakeMcpServer, Script, Tool};

use crate::bed::{Gate, Setup, eventually, ms};
use crate::client::{Hello, post, text_of, usual};
use crate::visitor::{VERSION, Visitor};
use crate::wire::End;

fn script() -> Script {
    Script::of(vec![
        Tool::new("echo", Act::Echo),
        Tool::new("slow", Act::Slow(300)),
        Tool::new("hang", Act::Hang),
        Tool::new("rounds", Act::Rounds(99)),
        Tool::new("flood", Act::Flood(2_000)),
    ])
}

fn bed(top: &str) -> (FakeMcpServer, Gate) {
    let fake = FakeMcpServer::start(script().stateless());
    let gate = Setup { top, ..Setup::of(&[("a", &fake)]) }.start();
    (fake, gate)
}

fn heads(method: &str) -> String {
    format!("{}mcp-protocol-version: {VERSION}\r\nmcp-method: {method}\r\n", usual())
}

#[test]
fn what_is_no_single_clear_message_is_refused() {
    let (fake, gate) = bed("limits: {body: 64KiB}");
    let visitor = Visitor::of(gate.address());
    let good = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": visitor.params(json!({}))});
    let twice = good.to_string().replacen(r#""id":1"#, r#""id":1,"id":2"#, 1);
    let cased = good.to_string().replacen(r#""method""#, r#""Method":"tools/call","method""#, 1);
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": visitor.params(json!({"x": "x".repeat(100_000)}))});
    for (body, status, code) in [
        (json!([good]).to_string(), 400, -32600),
        (twice, 400, -32600),
        (cased, 400, -32600),
        (large.to_string(), 413, -32600),
        ("{".to_owned(), 400, -32700),
        ("\u{0}".to_owned(), 400, -32700),
        (json!({"jsonrpc": "2.0", "id": null, "method": "tools/list"}).to_string(), 400, -32600),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string(), 400, -32600),
    ] {
        let mut answer = post(gate.address(), &heads("tools/list"), &body).expect("an answer");
        let said = (answer.status, answer.json()["error"]["code"].clone());
        assert_eq!(said, (status, json!(code)), "{}", &body[..body.len().min(80)]);
    }
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}).to_string();
    let taken = post(gate.address(), &heads("notifications/cancelled"), &notice);
    assert_eq!(taken.expect("an answer").status, 202, "nobody is bothered");
    assert_eq!(visitor.call("echo")["resultType"], "complete");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn a_foreign_page_is_refused() {
    let (_fake, gate) = bed("");
    let visitor = Visitor::of(gate.address());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover",
        "params": visitor.params(json!({}))});
    for header in ["origin: https://evil.example\r\n", "host: evil.example\r\n"] {
        let headers = format!("{}{header}", heads("server/discover"));
        let answer = post(gate.address(), &headers, &body.to_string()).expect("an answer");
        assert!((400..=499).contains(&answer.status), "{header}: {}", answer.status);
    }
}

#[test]
fn two_clients_may_use_one_id_at_once() {
    let (_fake, gate) = bed("");
    let visitor = Visitor::of(gate.address());
    visitor.tools();
    let calls: Vec<_> = (0..8)
        .map(|number| {
            let visitor = visitor.clone();
            thread::spawn(move || {
                let params = json!({"name": "slow", "arguments": {"n": number}});
                text_of(&visitor.result("tools/call", params))
            })
        })
        .collect();
    for call in calls {
        assert!(!call.join().expect("a call").is_empty());
    }
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let (fake, gate) = bed("");
    let visitor = Visitor::of(gate.address());
    let deaf: Vec<_> = (0..20).map(|_| visitor.listen(json!({"toolsListChanged": true}))).collect();
    let level = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let _flooded = visitor.ask("tools/call", json!({"name": "flood", "_meta": level}));
    for _ in 0..50 {
        fake.tell_all("notifications/tools/list_changed", None);
    }
    assert_eq!(visitor.call("echo")["resultType"], "complete");
    drop(deaf);
    let mut alive = visitor.listen(json!({"toolsListChanged": true}));
    fake.change_tools(|tools| tools.push(Tool::new("more", Act::Echo)));
    let told: Value = alive.message().expect("a word");
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[test]
fn a_server_that_never_has_enough_answers_is_given_up() {
    let (_fake, gate) = bed("");
    let can = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let client = gate.open_as(&Hello { capabilities: can, ..Hello::default() });
    let mut call = client.start("tools/call", json!({"name": "rounds"}));
    let mut asked = 0;
    let end = loop {
        let message = call.next().expect("a message");
        if message["method"].is_null() {
            break message;
        }
        asked += 1;
        client.respond(&message, json!({"action": "accept"}));
    };
    assert!((1..=20).contains(&asked), "asked {asked} times");
    assert_eq!(end["result"]["isError"], true, "{end}");
    assert_eq!(client.text("echo"), "{}");
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing() {
    let (fake, gate) = bed("");
    let visitor = Visitor::of(gate.address());
    visitor.tools();
    for _ in 0..20 {
        let silent = visitor.ask_within("tools/call", json!({"name": "hang"}), ms(20));
        assert_eq!(silent.err(), Some(End::Silent));
    }
    eventually("every call was given up", || {
        let counts = fake.counts();
        counts.delivered("hang") == counts.cancelled
    });
    assert_eq!(visitor.call("echo")["resultType"], "complete");
}
