//! What goes wrong on the wire in the era without sessions: the right error, and nothing hangs.

use std::thread;

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Opening, Tool, ToolAct};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    gate::Gate,
    http::End,
    mcp::{Hello, post, text_of, usual},
    time::{eventually, ms, now},
};

use crate::bed::Setup;
use crate::visitor::{VERSION, Visitor};

fn script() -> McpScript {
    McpScript::of(vec![
        Tool::new("echo", ToolAct::Echo),
        Tool::new("slow", ToolAct::Slow(300)),
        Tool::new("hang", ToolAct::Hang),
        Tool::new("rounds", ToolAct::Rounds(99)),
        Tool::new("flood", ToolAct::Flood(2_000)),
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
    fake.change_tools(|tools| tools.push(Tool::new("more", ToolAct::Echo)));
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
        let message = call.next_message().expect("a message");
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

#[test]
fn a_question_reaches_the_client_whose_call_caused_it_or_nobody() {
    let script = McpScript::of(vec![
        Tool::new("ask", ToolAct::Rounds(2)).then(ToolAct::Echo),
        Tool::new("slow", ToolAct::Slow(1_500)),
    ]);
    // Over one stream of events nothing says which call a question belongs to.
    let fake = FakeMcpServer::start(script.over_sse());
    let gate = Setup::of(&[("a", &fake)]).start();
    let visitor = Visitor::able(gate.address(), json!({"elicitation": {}}));
    let needed = visitor.call("ask");
    assert_eq!(needed["resultType"], "input_required", "{needed}");
    let other = visitor.clone();
    let slow = thread::spawn(move || other.call("slow"));
    eventually("the other call is there", || fake.counts().delivered("slow") == 1);
    let again = json!({"name": "ask", "requestState": needed["requestState"],
        "inputResponses": {"question-1": {"action": "accept"}}});
    drop(visitor.result("tools/call", again));
    let done = slow.join().expect("the other call");
    assert_eq!(done["resultType"], "complete", "it was asked nothing: {done}");
}

#[test]
fn what_only_one_client_wanted_to_hear_is_not_asked_for_when_it_has_gone() {
    let fake = FakeMcpServer::start(script().stateless().resource("memo://a", "A"));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    client.tools();
    client.result("resources/subscribe", json!({"uri": "memo://a"}));
    let wished = || {
        let listens = fake.received_of("subscriptions/listen");
        let wish = |it: &tidegate_fakes::fake_mcp::Received| {
            it.message["params"]["notifications"]["resourceSubscriptions"].is_array()
        };
        listens.iter().filter(|it| wish(it)).count()
    };
    eventually("it is asked for", || wished() == 1);
    let listening = fake.counts().listening;
    assert_eq!(client.delete(), 200);
    eventually("the stream about it is closed", || fake.counts().listening < listening);
}

#[test]
fn a_request_that_stands_alone_needs_no_session_whatever_it_names() {
    let (_fake, gate) = bed("");
    let visitor = Visitor { headers: "mcp-session-id: gone\r\n", ..Visitor::of(gate.address()) };
    assert_eq!(visitor.call("echo")["resultType"], "complete");
    for verb in ["GET", "DELETE"] {
        let headers = format!("accept: text/event-stream\r\nmcp-protocol-version: {VERSION}\r\n");
        let ask = Ask { verb, path: "/mcp", headers, body: b"" };
        let answer = Exchange::begin(gate.address(), &ask).expect("an answer");
        assert_eq!(answer.status, 405, "{verb}");
    }
}

#[test]
fn an_event_id_beyond_all_numbers_is_only_an_unknown_one() {
    let (_fake, gate) = bed("");
    let client = gate.open();
    for id in ["0-18446744073709551615", "4294967296-0", "-", "0-", "x"] {
        assert_eq!(client.resume(id).status, 200, "{id}: the standing stream is what there is");
    }
    assert_eq!(client.text("echo"), "{}");
}

#[test]
fn a_call_that_waits_for_its_client_does_not_hold_up_the_end() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("ask", ToolAct::Elicit)]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let visitor = Visitor::able(gate.address(), json!({"elicitation": {}}));
    assert_eq!(visitor.call("ask")["resultType"], "input_required");
    let began = now();
    gate.server.stop();
    // The drain of the gateway is 30 s.
    assert!(began.elapsed() < ms(10_000), "{:?}", began.elapsed());
}

#[test]
fn a_server_that_changes_its_era_is_found_again() {
    let eras = [script(), script().stateless(), script(), script().stateless()];
    let fake = FakeMcpServer::start(eras[0].clone());
    let gate = Setup { health: "failure_threshold: 100", ..Setup::of(&[("a", &fake)]) }.start();
    let (client, visitor) = (gate.open(), Visitor::of(gate.address()));
    client.tools();
    visitor.tools();
    for (at, era) in eras.into_iter().enumerate() {
        fake.set_script(era);
        fake.crash();
        fake.restart();
        eventually(&format!("a session finds it after change {at}"), || {
            let said = client.request("tools/call", json!({"name": "echo", "arguments": {}}));
            text_of(&said["result"]) == "{}"
        });
        eventually(&format!("a visitor finds it after change {at}"), || {
            let said = visitor.answer("tools/call", json!({"name": "echo", "arguments": {}}));
            text_of(&said["result"]) == "{}"
        });
    }
}

#[test]
fn a_call_that_waits_for_a_server_which_is_taken_away_goes_nowhere_else() {
    let (a, b) = (FakeMcpServer::start(script()), FakeMcpServer::start(script()));
    let setup = |servers: &[(&'static str, &FakeMcpServer)]| Setup {
        mcp: "connect_wait: 20s,",
        ..Setup::of(servers)
    };
    let gate = setup(&[("a", &a), ("b", &b)]).start();
    gate.open().tools();
    a.change(|script| script.opening = Opening::Hang);
    let client = gate.open();
    let call = thread::spawn(move || client.request("tools/call", json!({"name": "a_echo"})));
    eventually("the server is being connected to", || a.counts().of("initialize") >= 3);
    gate.reload(&setup(&[("b", &b)]).yaml());
    let answer = call.join().expect("a call");
    assert_eq!(b.counts().delivered("echo"), 0, "{answer}");
    let told = answer.to_string();
    assert!(told.contains("unavailable") || told.contains("unknown tool"), "{answer}");
}
