//! Streams to a client: priming, resuming, and who gets what.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    http::End,
    mcp::{Hello, first_answer, post, text_of},
    time::{eventually, ms},
};

use crate::bed::{Setup, count};

#[test]
fn the_stream_of_a_call_begins_with_an_empty_event_that_has_an_id() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let mut call = client.start("tools/call", json!({"name": "echo"}));
    assert!(call.exchange.is_stream(), "{}", call.exchange.head);
    let prime = call.exchange.event().expect("a first event");
    assert_eq!(prime.data, "");
    let first = prime.id.expect("an id");
    let answer = call.exchange.event().expect("the answer");
    assert!(answer.id.is_some_and(|id| id != first));
    assert_eq!(call.exchange.event(), Err(End::Whole), "it ends with the answer");
}

#[test]
fn a_client_that_lost_its_connection_gets_the_rest_of_its_call() {
    let act = ToolAct::Progress { steps: 4, every_ms: 100 };
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("steps", act)]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let params = json!({"name": "steps", "_meta": {"progressToken": 1}});
    let mut call = client.start("tools/call", params);
    let mut seen = call.exchange.event().expect("an event");
    while seen.data.is_empty() {
        seen = call.exchange.event().expect("an event");
    }
    assert_eq!(seen.json()["params"]["progress"], 1);
    let id = call.id.clone();
    drop(call);
    let mut rest = client.resume(&seen.id.expect("an id"));
    for step in 2..=4 {
        let told = rest.message().expect("progress");
        assert_eq!(told["params"]["progress"], step);
    }
    let answer = rest.message().expect("the answer");
    assert_eq!((&answer["id"], text_of(&answer["result"])), (&id, "steps done".to_owned()));
    assert_eq!(rest.message(), Err(End::Whole));
    assert_eq!((fake.counts().delivered("steps"), fake.counts().cancelled), (1, 0));
}

#[test]
fn a_client_that_has_closed_its_side_gets_the_answer_to_its_call() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("slow", ToolAct::Slow(900))]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let call = client.start("tools/call", json!({"name": "slow"}));
    call.exchange.close_own_side();
    assert_eq!(text_of(&call.finish()["result"]), "slow done");
}

#[test]
fn a_client_that_comes_back_after_the_answer_gets_it_too() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("slow", ToolAct::Slow(200))]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let mut call = client.start("tools/call", json!({"name": "slow"}));
    let prime = call.exchange.event().expect("it primes").id.expect("an id");
    drop(call);
    tidegate_testkit::time::pause(ms(600));
    let answer = client.resume(&prime).message().expect("the answer");
    assert_eq!(text_of(&answer["result"]), "slow done");
}

#[test]
fn an_event_id_of_another_session_shows_nothing_of_it() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("slow", ToolAct::Slow(200))]));
    let gate = Setup::of(&[("a", &fake)]).start();
    let (one, two) = (gate.open(), gate.open());
    let mut call = one.start("tools/call", json!({"name": "slow"}));
    let prime = call.exchange.event().expect("it primes").id.expect("an id");
    let mut other = two.resume(&prime);
    let shown = other.message_within(ms(600));
    assert!(shown.is_err(), "{shown:?}");
    assert_eq!(text_of(&call.finish()["result"]), "slow done");
}

#[test]
fn what_belongs_to_no_call_waits_for_the_standing_stream() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.named("one");
    client.tools();
    eventually("the server's stream is open", || count(&fake, "one", "GET") >= 1);
    fake.change_tools(|tools| tools.push(Tool::new("new", ToolAct::Echo)));
    eventually("the change is known", || client.tools().len() == 2);
    let told = client.listen().message().expect("it was kept");
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[test]
fn a_client_is_let_go_by_a_backend_that_closes_a_stream_in_mid_call_and_comes_back() {
    let tools = vec![Tool::new("drop", ToolAct::Drop(200))];
    let fake = FakeMcpServer::start(McpScript { primes: true, ..McpScript::of(tools) });
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let mut call = client.start("tools/call", json!({"name": "drop"}));
    let prime = call.exchange.event().expect("it primes").id.expect("an id");
    assert_eq!(call.exchange.event(), Err(End::Whole), "the server closed it too");
    let mut rest = client.resume(&prime);
    let answer = rest.message().expect("the answer");
    assert_eq!((&answer["id"], text_of(&answer["result"])), (&call.id, "drop done".to_owned()));
    assert_eq!(rest.message(), Err(End::Whole));
    assert_eq!(fake.counts().delivered("drop"), 1);
}

#[test]
fn a_client_that_knows_no_early_end_is_spared_it() {
    let tools = vec![Tool::new("drop", ToolAct::Drop(200))];
    let fake = FakeMcpServer::start(McpScript { primes: true, ..McpScript::of(tools) });
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open_as(&Hello { version: "2025-06-18", ..Hello::default() });
    assert_eq!(client.text("drop"), "drop done");
    assert_eq!(fake.counts().delivered("drop"), 1);
}

#[test]
fn a_client_that_names_events_first_gets_lists_as_events() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    for (accept, is_stream) in [
        ("text/event-stream, application/json", true),
        ("application/json, text/event-stream", false),
        ("*/*", false),
    ] {
        let headers = format!(
            "content-type: application/json\r\naccept: {accept}\r\nmcp-session-id: {}\r\n",
            client.session
        );
        let mut exchange = post(gate.address(), &headers, list).expect("an answer");
        assert_eq!(exchange.is_stream(), is_stream, "{accept}");
        let answer = first_answer(&mut exchange);
        assert_eq!(
            (&answer["id"], &answer["result"]["tools"][0]["name"]),
            (&json!(7), &json!("echo"))
        );
    }
}

#[test]
fn twenty_calls_of_one_session_run_at_once() {
    for answers_json in [false, true] {
        let tools = vec![Tool::new("slow", ToolAct::Slow(300))];
        let fake = FakeMcpServer::start(McpScript { answers_json, ..McpScript::of(tools) });
        let gate = Setup::of(&[("a", &fake)]).start();
        let client = gate.open();
        client.tools();
        let began = tidegate_testkit::time::now();
        let calls: Vec<_> =
            (0..20).map(|_| client.start("tools/call", json!({"name": "slow"}))).collect();
        for call in calls {
            assert_eq!(text_of(&call.finish()["result"]), "slow done");
        }
        assert!(began.elapsed() < ms(3000), "{:?}", began.elapsed());
    }
}

#[test]
fn answers_nobody_reads_are_kept_within_a_bound_and_a_resume_says_that_they_are_gone() {
    const SESSION_BYTES: f64 = 1024.0 * 1024.0;
    let tools =
        vec![Tool::new("big", ToolAct::Big(2 << 20)), Tool::new("small", ToolAct::Big(100_000))];
    let fake = FakeMcpServer::start(McpScript::of(tools));
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let mut left = Vec::new();
    for _ in 0..10 {
        for tool in ["big", "small"] {
            let mut call = client.start("tools/call", json!({"name": tool}));
            let prime = call.exchange.event().expect("it primes").id.expect("an id");
            left.push((tool, call.id.clone(), prime));
        }
    }
    let answered = "tidegate_mcp_calls_total{outcome=\"success\",server=\"a\"}";
    eventually("all were answered", || gate.metric(answered) >= 20.0);
    let retained = || gate.metric("tidegate_mcp_retained_bytes");
    eventually("nothing more is on its way", || retained() <= SESSION_BYTES + 4096.0);
    let mut gone = 0;
    for (tool, id, prime) in left.into_iter().rev().take(4) {
        let mut rest = client.resume(&prime);
        if tool == "big" && rest.status == 410 {
            // It had been handed to the connection that broke.
            gone += 1;
            continue;
        }
        let answer = rest.message().expect("an answer");
        assert_eq!(answer["id"], id);
        match tool {
            "small" => assert_eq!(text_of(&answer["result"]).len(), 100_000, "it fits"),
            _ => {
                assert_eq!(answer["error"]["data"]["code"], "answer_gone");
                gone += 1;
            }
        }
    }
    assert_eq!(gone, 2);
    client.delete();
    eventually("an ended session keeps nothing", || retained() == 0.0);
}

#[test]
fn a_call_whose_client_left_and_cannot_come_back_is_cancelled() {
    let fake = FakeMcpServer::start(McpScript::of(vec![Tool::new("slow", ToolAct::Slow(20_000))]));
    let gate = Setup::of(&[("a", &fake)]).start();
    // Without a first event it has no id to come back with.
    let client = gate.open_as(&Hello { version: "2025-06-18", ..Hello::default() });
    client.tools();
    let call = client.start("tools/call", json!({"name": "slow"}));
    eventually("it has arrived", || fake.counts().delivered("slow") == 1);
    drop(call);
    eventually("its server is told", || fake.counts().cancelled == 1);
    assert_eq!(gate.server_health("a")["consecutive_failures"], 0);
}

#[test]
fn a_stream_that_is_forgotten_is_gone_and_not_silent() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    let client = gate.open();
    let mut call = client.start("tools/call", json!({"name": "echo"}));
    let prime = call.exchange.event().expect("it primes").id.expect("an id");
    assert!(call.finish()["result"].is_object());
    (0..20).for_each(|_| drop(client.text("echo")));
    let mut resumed = client.resume(&prime);
    assert_eq!(resumed.status, 410);
    assert!(resumed.json()["error"]["message"].is_string());
}
