//! The scripted server itself in the eras before and after sessions: what a test stands on is
//! tested first.

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{Era, FakeMcpServer, McpScript, Opening, Tool, ToolAct};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    http::End,
    mcp::{McpClient, usual},
    time::{eventually, ms},
};

const VERSION: &str = "2026-07-28";

fn tools() -> McpScript {
    let script = McpScript::of(vec![
        Tool::new("echo", ToolAct::Echo),
        Tool::new("hang", ToolAct::Hang),
        Tool::new("steps", ToolAct::Progress { steps: 2, every_ms: 1 }),
        Tool::new("log", ToolAct::Logs(vec!["debug".to_owned(), "error".to_owned()])),
        Tool::new("ask", ToolAct::Elicit),
        Tool::new("add", ToolAct::Add("added".to_owned())),
        Tool::new("touch", ToolAct::Touch("memo://a".to_owned())),
        Tool::new("cut", ToolAct::CutAfter),
    ]);
    script.resource("memo://a", "A").named("quay")
}

/// The params of a request with everything that the era asks for.
fn params(capabilities: Value, more: Value) -> Value {
    let mut params = more;
    let given = params["_meta"].take();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
    });
    for (key, value) in given.as_object().into_iter().flatten() {
        params["_meta"][key] = value.clone();
    }
    params
}

/// A POST with the headers that every one has, and these.
fn post(fake: &FakeMcpServer, headers: &str, body: &Value) -> Result<Exchange, End> {
    tidegate_testkit::mcp::post(fake.address(), &format!("{}{headers}", usual()), &body.to_string())
}

/// Sends a request as it should be.
fn ask(fake: &FakeMcpServer, method: &str, params: Value) -> Result<Exchange, End> {
    let name = params["name"].as_str().or_else(|| params["uri"].as_str());
    let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let headers = format!("mcp-protocol-version: {VERSION}\r\nmcp-method: {method}\r\n{name}");
    let body = json!({"jsonrpc": "2.0", "id": "r1", "method": method, "params": params});
    post(fake, &headers, &body)
}

/// The answer to a request, and everything before it.
fn all(exchange: &mut Exchange) -> Vec<Value> {
    if !exchange.is_stream() {
        return vec![exchange.json()];
    }
    let mut all = Vec::new();
    while let Ok(message) = exchange.message() {
        all.push(message);
    }
    all
}

fn answer(fake: &FakeMcpServer, method: &str, more: Value) -> Value {
    let exchange = ask(fake, method, params(json!({}), more));
    all(&mut exchange.expect("an answer")).pop().expect("a message")
}

#[test]
fn without_a_session_every_request_stands_for_itself() {
    for answers_json in [false, true] {
        let script = McpScript { answers_json, ttl_ms: 7, ..tools().stateless() };
        let fake = FakeMcpServer::start(script);
        let found = answer(&fake, "server/discover", json!({}))["result"].clone();
        assert_eq!(found["supportedVersions"], json!([VERSION]));
        assert!(found["capabilities"]["resources"].is_object());
        assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "quay");
        for (method, more) in [
            ("server/discover", json!({})),
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/read", json!({"uri": "memo://a"})),
        ] {
            let result = answer(&fake, method, more)["result"].clone();
            let kept = (&result["resultType"], &result["ttlMs"], &result["cacheScope"]);
            assert_eq!(kept, (&json!("complete"), &json!(7), &json!("public")), "{method}");
        }
        let said = answer(&fake, "tools/call", json!({"name": "echo", "arguments": {"a": 1}}));
        assert_eq!(said["result"]["content"][0]["text"], r#"{"a":1}"#);
        let gone = answer(&fake, "resources/read", json!({"uri": "memo://b"}));
        assert_eq!(gone["error"]["code"], -32602);
        assert_eq!(fake.breaches(), [""; 0]);
        let call = fake.received_of("tools/call").remove(0);
        assert_eq!(call.client.as_deref(), Some("tester"));
        assert_eq!(call.meta("protocolVersion"), VERSION);
        let names: Vec<_> = call.mcp_headers().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["mcp-protocol-version", "mcp-method", "mcp-name"]);
        assert_eq!(call.header("mcp-name"), Some("echo"));
    }
}

#[test]
fn what_a_request_does_not_say_is_refused_with_the_status_for_it() {
    let fake = FakeMcpServer::start(tools().stateless());
    let check = |headers: &str, method: &str, params: Value, status: u16, code: i64| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut answer = post(&fake, headers, &body).expect("an answer");
        let said = (answer.status, answer.json()["error"]["code"].clone());
        assert_eq!(said, (status, json!(code)), "{method}");
    };
    let good = || params(json!({}), json!({}));
    let version = format!("mcp-protocol-version: {VERSION}\r\n");
    check("", "tools/list", json!({}), 400, -32602);
    check(&version, "tools/list", good(), 400, -32020);
    let heads = format!("{version}mcp-method: ping\r\n");
    check(&heads, "ping", good(), 404, -32601);
    check("", "initialize", json!({"protocolVersion": "2025-11-25"}), 400, -32022);
    assert_eq!(fake.breaches().len(), 2);
    for verb in ["GET", "DELETE"] {
        let ask = Ask { verb, path: "/mcp", headers: usual(), body: b"" };
        assert_eq!(Exchange::begin(fake.address(), &ask).expect("an answer").status, 405);
    }
}

#[test]
fn logs_and_progress_come_on_the_stream_of_the_call_that_asked_for_them() {
    let fake = FakeMcpServer::start(tools().stateless());
    let levels = |meta: Value| {
        let params = params(json!({}), json!({"name": "log", "_meta": meta}));
        let said = all(&mut ask(&fake, "tools/call", params).expect("an answer"));
        said.iter().filter_map(|it| it["params"]["level"].as_str().map(str::to_owned)).collect()
    };
    let none: Vec<String> = levels(json!({}));
    assert_eq!(none, [""; 0]);
    let some: Vec<String> = levels(json!({"io.modelcontextprotocol/logLevel": "warning"}));
    assert_eq!(some, ["error"]);
    let meta = json!({"progressToken": "p"});
    let params = params(json!({}), json!({"name": "steps", "_meta": meta}));
    let said = all(&mut ask(&fake, "tools/call", params).expect("an answer"));
    assert_eq!(said.len(), 3);
    assert_eq!(said[1]["params"]["progress"], 2);
}

#[test]
fn a_tool_that_must_ask_does_so_in_its_result() {
    let fake = FakeMcpServer::start(tools().stateless());
    let refused = ask(&fake, "tools/call", params(json!({}), json!({"name": "ask"})));
    let mut refused = refused.expect("an answer");
    assert_eq!(refused.status, 400);
    let error = refused.json()["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["requiredCapabilities"]["elicitation"]),
        (&json!(-32021), &json!({}))
    );
    let can = || json!({"elicitation": {}});
    let asked = ask(&fake, "tools/call", params(can(), json!({"name": "ask"})));
    let asked = asked.expect("an answer").json()["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(asked["inputRequests"]["name"]["method"], "elicitation/create");
    let again = json!({"name": "ask", "requestState": asked["requestState"],
        "inputResponses": {"name": {"action": "accept"}}});
    let done = ask(&fake, "tools/call", params(can(), again)).expect("an answer").json();
    assert_eq!(done["result"]["content"][0]["text"], r#"result {"action":"accept"}"#);
    assert_eq!((fake.counts().delivered("ask"), fake.breaches().len()), (1, 0));
}

#[test]
fn a_listener_is_told_what_changes_until_either_side_ends_it() {
    let fake = FakeMcpServer::start(tools().stateless());
    let wish = json!({"notifications":
        {"toolsListChanged": true, "resourceSubscriptions": ["memo://a"]}});
    let listen = || {
        let mut stream =
            ask(&fake, "subscriptions/listen", params(json!({}), wish.clone())).expect("a stream");
        let first = stream.message().expect("a message");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        stream
    };
    let (mut stream, gone) = (listen(), listen());
    assert_eq!(fake.counts().listening, 2);
    drop(gone);
    eventually("a stream is closed", || fake.counts().listening == 1);
    answer(&fake, "tools/call", json!({"name": "add"}));
    answer(&fake, "tools/call", json!({"name": "touch"}));
    let heard = [stream.message(), stream.message()].map(|it| it.expect("a message"));
    assert_eq!(heard[0]["method"], "notifications/tools/list_changed");
    assert_eq!(heard[1]["method"], "notifications/resources/updated");
    assert_eq!(heard[1]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "r1");
    fake.end_listening();
    assert_eq!(stream.message().expect("the end")["result"]["resultType"], "complete");
    assert_eq!(stream.event(), Err(End::Whole));
    assert_eq!(fake.counts().listening, 0);
    let mut last = listen();
    fake.crash();
    assert_eq!(last.event(), Err(End::Broken));
}

#[test]
fn a_closed_stream_cancels_its_request() {
    for answers_json in [false, true] {
        let fake = FakeMcpServer::start(McpScript { answers_json, ..tools().stateless() });
        let params = || params(json!({}), json!({"name": "hang"}));
        if answers_json {
            let headers = format!(
                "{}mcp-protocol-version: {VERSION}\r\nmcp-method: tools/call\r\nmcp-name: hang\r\n",
                usual()
            );
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": params()});
            let body = body.to_string();
            let ask = Ask { verb: "POST", path: "/mcp", headers, body: body.as_bytes() };
            let silent = Exchange::begin_within(fake.address(), &ask, ms(100));
            assert_eq!(silent.err(), Some(End::Silent));
        } else {
            drop(ask(&fake, "tools/call", params()).expect("a stream"));
        }
        eventually("the call is cancelled", || fake.counts().cancelled == 1);
    }
    let fake = FakeMcpServer::start(tools().stateless());
    let cut = ask(&fake, "tools/call", params(json!({}), json!({"name": "cut"})));
    assert_eq!(cut.expect("a stream").event(), Err(End::Broken));
    assert_eq!(fake.counts().cancelled, 0);
}

#[test]
fn both_eras_are_answered_at_one_address() {
    let fake = FakeMcpServer::start(McpScript { era: Era::Both, ..tools() });
    let client = McpClient::open(fake.address());
    assert_eq!(client.text("echo"), "{}");
    let found = answer(&fake, "server/discover", json!({}))["result"].clone();
    let spoken = json!([VERSION, "2025-11-25", "2025-06-18", "2025-03-26"]);
    assert_eq!(found["supportedVersions"], spoken);
    let said = answer(&fake, "tools/call", json!({"name": "echo"}));
    assert_eq!(said["result"]["resultType"], "complete");
    let mut stream = client.listen();
    client.text("add");
    let told = stream.message().expect("a message");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn the_first_question_of_a_client_can_be_refused() {
    let script = McpScript { opening: Opening::Status(503), ..tools().stateless() };
    let fake = FakeMcpServer::start(script);
    let refused = ask(&fake, "server/discover", params(json!({}), json!({})));
    assert_eq!(refused.expect("an answer").status, 503);
}

/// Opens the stream of the first revision; where messages go.
fn open_sse(fake: &FakeMcpServer) -> (Exchange, String) {
    let headers = "accept: text/event-stream\r\n".to_owned();
    let ask = Ask { verb: "GET", path: "/mcp", headers, body: b"" };
    let mut stream = Exchange::begin(fake.address(), &ask).expect("a stream");
    let endpoint = stream.event().expect("the first event").data;
    (stream, endpoint)
}

fn send(fake: &FakeMcpServer, path: &str, message: &Value) -> Result<u16, End> {
    let body = message.to_string();
    let ask = Ask { verb: "POST", path, headers: usual(), body: body.as_bytes() };
    Exchange::begin(fake.address(), &ask).map(|it| it.status)
}

#[test]
fn over_one_stream_of_events_everything_is_posted_and_answered_there() {
    let fake = FakeMcpServer::start(tools().over_sse());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "clientInfo": {"name": "old"}}});
    assert_eq!(send(&fake, "/mcp", &hello), Ok(405));
    let (mut stream, endpoint) = open_sse(&fake);
    assert!(endpoint.starts_with("/mcp?sessionId="), "{endpoint}");
    assert_eq!(send(&fake, &endpoint, &hello), Ok(202));
    let answer = stream.message().expect("the answer");
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(&fake, &endpoint, &notice), Ok(202));
    let call = |id: u64, name: &str| {
        let params = json!({"name": name, "_meta": {"progressToken": "p"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    assert_eq!(send(&fake, &endpoint, &call(2, "steps")), Ok(202));
    let said = [stream.message(), stream.message(), stream.message()];
    let said = said.map(|it| it.expect("a message"));
    assert_eq!((&said[1]["params"]["progress"], &said[2]["id"]), (&json!(2), &json!(2)));
    assert_eq!(send(&fake, &endpoint, &call(3, "cut")), Ok(202));
    assert_eq!(stream.event(), Err(End::Broken));
    eventually("the session ends with its stream", || fake.counts().sessions == 0);
    assert_eq!(send(&fake, &endpoint, &notice), Ok(404));
    let (hello, ready, call) = ("initialize", "notifications/initialized", "tools/call");
    assert_eq!(fake.sent_by("old"), [hello, hello, ready, call, call, ready]);
    assert_eq!(fake.breaches(), [""; 0]);
}
