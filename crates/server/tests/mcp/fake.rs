//! The scripted server itself, without a gateway: what a test stands on is tested first.

use std::net::TcpStream;

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, Lost, McpScript, Opening, Tool, ToolAct};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    http::End,
    mcp::{Hello, McpClient, text_of},
    time::{ms, now},
};

fn all_acts() -> McpScript {
    let script = McpScript::of(vec![
        Tool::new("echo", ToolAct::Echo),
        Tool::new("count", ToolAct::Count),
        Tool::new("steps", ToolAct::Progress { steps: 3, every_ms: 1 }),
        Tool::new("sample", ToolAct::Sample),
        Tool::new("hang", ToolAct::Hang),
        Tool::new("log", ToolAct::Logs(vec!["debug".to_owned(), "error".to_owned()])),
        Tool::new("cut", ToolAct::CutAfter).then(ToolAct::Echo),
        Tool::new("cut_before", ToolAct::CutBefore),
        Tool::new("busy", ToolAct::Status { status: 503, retry_after: Some("7".to_owned()) }),
        Tool::new("add", ToolAct::Add("added".to_owned())),
        Tool::new("touch", ToolAct::Touch("memo://a".to_owned())),
        Tool::new("drop", ToolAct::Drop(50)),
        Tool::new("crash", ToolAct::Crash),
    ]);
    script.resource("memo://a", "A").prompt("greet", &["who"])
}

#[test]
fn tools_resources_and_prompts_answer_and_count_by_session() {
    for answers_json in [false, true] {
        let fake = FakeMcpServer::start(McpScript { answers_json, page: 2, ..all_acts() });
        let (a, b) = (McpClient::open(fake.address()), McpClient::open(fake.address()));
        assert_eq!(a.tools().len(), 13);
        assert_eq!(text_of(&a.call("echo", json!({"text": "hi"}))), r#"{"text":"hi"}"#);
        assert!(a.text("count").ends_with("call 1") && a.text("count").ends_with("call 2"));
        assert!(b.text("count").ends_with("call 1"));
        let read = a.result("resources/read", json!({"uri": "memo://a"}));
        assert_eq!(read["contents"][0]["text"], "A");
        let got = a.result("prompts/get", json!({"name": "greet", "arguments": {"who": "me"}}));
        assert!(got["messages"][0]["content"]["text"].as_str().expect("text").contains("me"));
        let counts = fake.counts();
        assert_eq!(
            (counts.delivered("count"), counts.of("initialize"), counts.sessions),
            (3, 2, 2)
        );
        assert_eq!((a.delete(), a.delete()), (200, 404));
        assert_eq!(fake.breaches(), [""; 0]);
    }
}

#[test]
fn what_is_said_during_a_call_comes_on_its_stream_and_before_the_answer() {
    let fake = FakeMcpServer::start(McpScript { primes: true, ..all_acts() });
    let client = McpClient::open(fake.address());
    let call = |tool| json!({"name": tool, "_meta": {"progressToken": "p"}});
    let said = client.start("tools/call", call("steps")).all();
    let steps: Vec<_> = said.iter().filter_map(|it| it["params"]["progress"].as_u64()).collect();
    assert_eq!((steps, said.len()), (vec![1, 2, 3], 4));
    let mut sample = client.start("tools/call", call("sample"));
    let ask = sample.next_message().expect("it asks");
    assert_eq!(ask["method"], "sampling/createMessage");
    client.respond(&ask, json!({"said": "hello"}));
    assert_eq!(text_of(&sample.finish()["result"]), r#"result {"said":"hello"}"#);
    client.result("logging/setLevel", json!({"level": "warning"}));
    assert_eq!(client.start("tools/call", call("log")).all().len(), 2);
}

#[test]
fn a_cancelled_call_ends_without_an_answer() {
    let fake = FakeMcpServer::start(all_acts());
    let client = McpClient::open(fake.address());
    let mut hang = client.start("tools/call", json!({"name": "hang"}));
    client.notify("notifications/cancelled", json!({"requestId": hang.id}));
    assert_eq!(hang.next_message(), Err(End::Whole));
    assert_eq!(fake.counts().cancelled, 1);
}

#[test]
fn a_cut_and_a_status_are_what_the_wire_shows() {
    for answers_json in [false, true] {
        let fake = FakeMcpServer::start(McpScript { answers_json, ..all_acts() });
        let client = McpClient::open(fake.address());
        let call = |tool: &str| {
            let params = json!({"name": tool, "arguments": {}});
            let body = json!({"jsonrpc": "2.0", "id": tool, "method": "tools/call",
                "params": params});
            client.post(&body.to_string()).and_then(|mut it| match it.is_stream() {
                true => it.message(),
                false => Ok(json!([it.status, it.header("retry-after")])),
            })
        };
        assert_eq!(call("cut").err(), Some(End::Broken));
        assert_eq!(call("cut_before").err(), Some(End::Broken));
        assert_eq!(call("busy").expect("an answer"), json!([503, "7"]));
        let counts = fake.counts();
        assert_eq!((counts.delivered("cut"), counts.delivered("cut_before")), (1, 0));
        assert_eq!(client.text("cut"), "{}", "only the first is cut");
    }
}

#[test]
fn a_lost_session_is_answered_in_three_ways() {
    let fake = FakeMcpServer::start(all_acts());
    for (lost, status, code) in [
        (Lost::NotFound, 404, -32001),
        (Lost::BadRequest, 400, -32000),
        (Lost::RpcError, 200, -32001),
    ] {
        fake.change(|script| script.lost = lost);
        let client = McpClient::open(fake.address());
        fake.lose_sessions();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let mut answer = client.post(&body).expect("an answer");
        assert_eq!((answer.status, answer.json()["error"]["code"].clone()), (status, json!(code)));
    }
}

#[test]
fn notices_come_on_the_stream_of_no_request_and_can_be_resumed() {
    let fake = FakeMcpServer::start(McpScript { primes: true, ..all_acts() });
    let client = McpClient::open(fake.address());
    client.result("resources/subscribe", json!({"uri": "memo://a"}));
    let mut stream = client.listen();
    let prime = stream.event().expect("it primes");
    assert!(prime.data.is_empty() && prime.id.is_some());
    client.text("add");
    client.text("touch");
    let methods = [stream.message(), stream.message()].map(|it| it.expect("a message"));
    assert_eq!(methods[0]["method"], "notifications/tools/list_changed");
    assert_eq!(methods[1]["method"], "notifications/resources/updated");
    let mut again = client.resume(&prime.id.expect("an id"));
    assert_eq!([again.message(), again.message()].map(|it| it.expect("kept")), methods);
    assert!(client.tools().contains(&"added".to_owned()));
    let mut dropped = client.start("tools/call", json!({"name": "drop"}));
    let id = dropped.exchange.event().expect("it primes").id.expect("an id");
    assert_eq!(dropped.next_message(), Err(End::Whole));
    let answer = client.resume(&id).message().expect("the answer");
    assert_eq!(answer["id"], dropped.id);
}

#[test]
fn a_crash_cuts_everything_and_a_restart_remembers_no_session() {
    let fake = FakeMcpServer::start(all_acts());
    let client = McpClient::open(fake.address());
    let mut stream = client.listen();
    fake.crash();
    assert_eq!(stream.event(), Err(End::Broken));
    assert!(TcpStream::connect(fake.address()).is_err());
    fake.restart();
    assert_eq!(client.delete(), 404);
    let client = McpClient::open(fake.address());
    let mut crash = client.start("tools/call", json!({"name": "crash"}));
    assert_eq!(crash.next_message(), Err(End::Broken));
    fake.restart();
    assert_eq!(McpClient::open(fake.address()).text("echo"), "{}");
    assert_eq!(fake.counts().delivered("crash"), 1);
}

#[test]
fn an_opening_can_hang_and_be_refused() {
    let fake = FakeMcpServer::start(McpScript { opening: Opening::Hang, ..McpScript::default() });
    let ask = Ask {
        verb: "POST",
        path: "/mcp",
        headers: tidegate_testkit::mcp::usual(),
        body: br#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#,
    };
    let began = now();
    assert_eq!(Exchange::begin_within(fake.address(), &ask, ms(200)).err(), Some(End::Silent));
    assert!(began.elapsed() >= ms(200));
    fake.change(|script| {
        script.opening = Opening::Answer;
        script.authorization = Some("Bearer right".to_owned());
    });
    let hello =
        |headers| McpClient::introduce(fake.address(), &Hello { headers, ..Hello::default() });
    assert_eq!(hello("authorization: Bearer wrong\r\n").status, 401);
    assert_eq!(hello("authorization: Bearer right\r\n").status, 200);
}

#[test]
fn what_a_client_does_wrong_is_noted() {
    let fake = FakeMcpServer::start(McpScript::default());
    let client = McpClient::open(fake.address());
    client.start_as(json!(1), "ping", json!({})).finish();
    client.start_as(json!(1), "ping", json!({})).finish();
    client.respond(&json!({"id": "none"}), json!({}));
    let breaches = fake.breaches();
    assert!(breaches[0].contains("the id 1 was used twice"), "{breaches:?}");
    assert!(breaches[1].contains("which nobody made"), "{breaches:?}");
}
