//! Clients and servers of different eras of the protocol, through the gateway.

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{Era, FakeMcpServer, McpScript, Opening, Tool, ToolAct};
use tidegate_testkit::{
    http::End,
    mcp::{Hello, McpClient, text_of},
    time::{eventually, ms},
};

use crate::bed::Setup;
use crate::visitor::{VERSION, Visitor};

fn script() -> McpScript {
    let script = McpScript::of(vec![
        Tool::new("echo", ToolAct::Echo),
        Tool::new("hang", ToolAct::Hang),
        Tool::new("steps", ToolAct::Progress { steps: 3, every_ms: 1 }),
        Tool::new("log", ToolAct::Logs(vec!["debug".to_owned(), "error".to_owned()])),
        Tool::new("ask", ToolAct::Elicit),
        Tool::new("sample", ToolAct::Sample),
        Tool::new("roots", ToolAct::Roots),
        Tool::new("add", ToolAct::Add("added".to_owned())),
        Tool::new("touch", ToolAct::Touch("memo://a".to_owned())),
    ]);
    script.resource("memo://a", "A").prompt("greet", &["who"])
}

/// One server of every kind.
fn servers() -> Vec<(&'static str, FakeMcpServer)> {
    vec![
        ("sessions", FakeMcpServer::start(script())),
        ("stateless", FakeMcpServer::start(script().stateless())),
        ("both", FakeMcpServer::start(McpScript { era: Era::Both, ..script() })),
        ("old", FakeMcpServer::start(script().over_sse())),
    ]
}

fn can() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

#[test]
fn a_client_of_either_era_can_use_a_server_of_any() {
    for (kind, fake) in servers() {
        let gate = Setup::of(&[("a", &fake)]).start();
        let (client, visitor) = (gate.open(), Visitor::of(gate.address()));
        let lists = [client.tools(), visitor.tools()];
        assert_eq!(lists[0], lists[1], "{kind}");
        assert!(lists[0].contains(&"echo".to_owned()), "{kind}: {lists:?}");
        let said = [client.call("echo", json!({})), visitor.call("echo")];
        assert!(said.iter().all(|it| text_of(it) == "{}"), "{kind}: {said:?}");
        let types = [&said[0]["resultType"], &said[1]["resultType"]];
        assert_eq!(types, [&Value::Null, &json!("complete")], "{kind}");
        for (method, params) in [
            ("resources/read", json!({"uri": "memo://a"})),
            ("prompts/get", json!({"name": "greet", "arguments": {"who": "you"}})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
        ] {
            let of_client = client.result(method, params.clone());
            let mut of_visitor = visitor.result(method, params);
            let own = of_visitor.as_object_mut().expect("an object");
            let info = own.remove("_meta").expect("who answered");
            assert_eq!(info["io.modelcontextprotocol/serverInfo"]["name"], "tidegate");
            for key in ["resultType", "ttlMs", "cacheScope"] {
                let is_kept = key == "resultType" || method != "prompts/get";
                assert_eq!(own.remove(key).is_some(), is_kept, "{kind} {method} {key}");
            }
            assert_eq!(of_client, of_visitor, "{kind} {method}");
        }
        assert_eq!(fake.breaches(), [""; 0], "{kind}");
    }
}

#[test]
fn progress_and_logs_reach_a_client_of_either_era() {
    for (kind, fake) in servers() {
        let gate = Setup::of(&[("a", &fake)]).start();
        let visitor = Visitor::of(gate.address());
        let call = |tool: &str, meta: Value| json!({"name": tool, "_meta": meta});
        let said = visitor.all("tools/call", call("steps", json!({"progressToken": "mine"})));
        let tokens = said.iter().filter(|it| it["params"]["progressToken"] == "mine");
        assert_eq!((tokens.count(), said.len()), (3, 4), "{kind}: {said:?}");
        let levels = |meta: Value| -> Vec<String> {
            let said = visitor.all("tools/call", call("log", meta));
            let levels = said.iter().filter_map(|it| it["params"]["level"].as_str());
            levels.map(str::to_owned).collect()
        };
        assert_eq!(levels(json!({})), [""; 0], "{kind}: nobody asked");
        let level = json!({"io.modelcontextprotocol/logLevel": "warning"});
        assert_eq!(levels(level), ["error"], "{kind}");
        let client = gate.open();
        client.result("logging/setLevel", json!({"level": "warning"}));
        let said = client.start("tools/call", call("steps", json!({"progressToken": 7}))).all();
        assert_eq!(said.len(), 4, "{kind}: {said:?}");
        let said = client.start("tools/call", call("log", json!({}))).all();
        let heard: Vec<_> = said.iter().filter_map(|it| it["params"]["level"].as_str()).collect();
        assert_eq!(heard, ["error"], "{kind}");
    }
}

#[test]
fn whoever_gives_a_call_up_is_understood_in_any_era() {
    for (kind, fake) in servers() {
        let gate = Setup::of(&[("a", &fake)]).start();
        let visitor = Visitor::of(gate.address());
        visitor.tools();
        let silent = visitor.ask_within("tools/call", json!({"name": "hang"}), ms(500));
        assert_eq!(silent.err(), Some(End::Silent), "{kind}");
        eventually("the server hears that nobody waits", || fake.counts().cancelled == 1);
        let client = gate.open();
        let mut call = client.start("tools/call", json!({"name": "hang"}));
        eventually("it is there", || fake.counts().delivered("hang") == 2);
        client.notify("notifications/cancelled", json!({"requestId": call.id}));
        assert_eq!(call.next_message(), Err(End::Whole), "{kind}");
        eventually("the server hears of it", || fake.counts().cancelled == 2);
    }
}

#[test]
fn what_changes_at_a_server_of_any_era_is_told_in_the_clients_own() {
    for (kind, fake) in servers() {
        let gate = Setup::of(&[("a", &fake)]).start();
        let (client, visitor) = (gate.open(), Visitor::of(gate.address()));
        client.tools();
        visitor.tools();
        client.result("resources/subscribe", json!({"uri": "memo://a"}));
        let mut stream = client.listen();
        let wish = json!({"toolsListChanged": true, "resourceSubscriptions": ["memo://a"]});
        let mut listen = visitor.listen(wish);
        // The server has to know of the wish before it can grant it.
        eventually("both hear", || {
            visitor.call("touch");
            let heard = listen.message_within(ms(300));
            heard.is_ok_and(|it| it["method"] == "notifications/resources/updated")
        });
        let told = stream.message().expect("a word");
        assert_eq!(told["params"], json!({"uri": "memo://a"}), "{kind}: {told}");
        visitor.call("add");
        let until_changed = |mut next: Box<dyn FnMut() -> Value>| loop {
            let told = next();
            if told["method"] == "notifications/tools/list_changed" {
                return told;
            }
        };
        let told = until_changed(Box::new(move || listen.message().expect("a word")));
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "v1");
        until_changed(Box::new(move || stream.message().expect("a word")));
        assert!(visitor.tools().contains(&"added".to_owned()), "{kind}");
        assert!(client.tools().contains(&"added".to_owned()), "{kind}");
    }
}

#[test]
fn a_server_of_any_era_can_ask_a_client_of_either() {
    for (kind, fake) in servers() {
        let gate = Setup::of(&[("a", &fake)]).start();
        let client = gate.open_as(&Hello { capabilities: can(), ..Hello::default() });
        let visitor = Visitor::able(gate.address(), can());
        client.tools();
        for (tool, method) in [
            ("ask", "elicitation/create"),
            ("sample", "sampling/createMessage"),
            ("roots", "roots/list"),
        ] {
            let mut call = client.start("tools/call", json!({"name": tool}));
            let asked = call.next_message().expect("a question");
            assert_eq!(asked["method"], method, "{kind} {tool}: {asked}");
            client.respond(&asked, json!({"told": tool}));
            let told = text_of(&call.finish()["result"]);
            assert!(told.contains(tool), "{kind} {tool}: {told}");
            let needed = visitor.call(tool);
            assert_eq!(needed["resultType"], "input_required", "{kind} {tool}: {needed}");
            let (key, question) = one(&needed["inputRequests"]);
            assert_eq!(question["method"], method, "{kind} {tool}");
            let again = json!({"name": tool, "requestState": needed["requestState"],
                "inputResponses": {key: {"told": tool}}});
            let told = text_of(&visitor.result("tools/call", again));
            assert!(told.contains(tool), "{kind} {tool}: {told}");
        }
        assert_eq!(fake.counts().delivered("ask"), 2, "{kind}: no call was made twice");
        assert_eq!(fake.breaches(), [""; 0], "{kind}");
    }
}

fn one(object: &Value) -> (String, Value) {
    let (key, value) = object.as_object().expect("an object").iter().next().expect("one");
    (key.clone(), value.clone())
}

#[test]
fn a_call_that_waits_for_its_client_waits_for_nobody_else() {
    let fake = FakeMcpServer::start(script());
    let keys = "keys:\n  - {name: one, key: 'k-one'}\n  - {name: two, key: 'k-two'}\n";
    let gate = Setup { top: keys, ..Setup::of(&[("a", &fake)]) }.start();
    let visitor = |headers| Visitor { headers, ..Visitor::able(gate.address(), can()) };
    let one = visitor("authorization: Bearer k-one\r\n");
    let two = visitor("authorization: Bearer k-two\r\n");
    let state = one.call("ask")["requestState"].clone();
    let again = |tool: &str, state: &Value| {
        json!({"name": tool, "requestState": state,
            "inputResponses": {"question-1": {"action": "accept"}}})
    };
    for (who, tool, state) in [
        (&two, "ask", &state),
        (&one, "sample", &state),
        (&one, "ask", &json!("tidegate.parked.00")),
    ] {
        let refused = who.answer("tools/call", again(tool, state));
        assert_eq!(refused["error"]["code"], -32602, "{tool}: {refused}");
    }
    let unanswered = json!({"name": "ask", "requestState": state});
    let asked = one.result("tools/call", unanswered);
    assert_eq!(asked["resultType"], "input_required", "what is not answered is asked again");
    let done = one.result("tools/call", again("ask", &asked["requestState"]));
    assert!(text_of(&done).contains("accept"), "{done}");
    let late = one.answer("tools/call", again("ask", &asked["requestState"]));
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert_eq!(fake.counts().delivered("ask"), 1);
}

#[test]
fn what_a_client_declares_reaches_a_stateless_server_with_each_request() {
    let fake = FakeMcpServer::start(script().stateless());
    let gate = Setup::of(&[("a", &fake)]).start();
    let capabilities = json!({"elicitation": {"form": {}}, "experimental": {"x": 1}});
    Visitor::able(gate.address(), capabilities.clone()).call("echo");
    let of_visitor = fake.received_of("tools/call").remove(0);
    assert_eq!(of_visitor.meta("clientCapabilities"), &capabilities);
    assert_eq!(of_visitor.meta("clientInfo")["name"], "visitor");
    assert_eq!(of_visitor.header("mcp-name"), Some("echo"));
    let hello = Hello { name: "sess", capabilities: json!({"roots": {}}), ..Hello::default() };
    gate.open_as(&hello).call("echo", json!({}));
    let of_session = fake.received_of("tools/call").remove(1);
    assert_eq!(of_session.meta("clientCapabilities"), &json!({"roots": {}}));
    assert_eq!(of_session.meta("clientInfo")["name"], "sess");
    let refused = Visitor::of(gate.address()).ask("tools/call", json!({"name": "ask"}));
    assert_eq!(refused.status, 400, "a capability that is missing is told with its status");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn a_request_that_contradicts_itself_is_refused_with_the_code_for_it() {
    let fake = FakeMcpServer::start(script());
    let gate = Setup::of(&[("a", &fake)]).start();
    let visitor = Visitor::of(gate.address());
    let version = format!("mcp-protocol-version: {VERSION}\r\n");
    let method = |name: &str| format!("{version}mcp-method: {name}\r\n");
    let check = |headers: &str, name: &str, params: Value, status: u16, code: i64| {
        let body = json!({"jsonrpc": "2.0", "id": 9, "method": name, "params": params});
        let mut answer = visitor.send(headers, &body);
        let said = answer.json();
        let told = (answer.status, said["error"]["code"].clone(), said["id"].clone());
        assert_eq!(told, (status, json!(code), json!(9)), "{name} {headers:?}");
        said["error"].clone()
    };
    let good = |more: Value| visitor.params(more);
    let list = method("tools/list");
    check(&list, "tools/list", json!({}), 400, -32602);
    check(&list, "tools/list", json!({"_meta": {}}), 400, -32602);
    check("", "tools/list", good(json!({})), 400, -32020);
    check(&version, "tools/list", good(json!({})), 400, -32020);
    check(&method("tools/call"), "tools/list", good(json!({})), 400, -32020);
    check(&format!("{list}{version}"), "tools/list", good(json!({})), 400, -32020);
    check(&method("tools/call"), "tools/call", good(json!({"name": "echo"})), 400, -32020);
    let other = format!("{}mcp-name: log\r\n", method("tools/call"));
    check(&other, "tools/call", good(json!({"name": "echo"})), 400, -32020);
    for gone in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "x/y"] {
        check(&method(gone), gone, good(json!({})), 404, -32601);
    }
    let mut later = good(json!({}));
    later["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let heads = "mcp-protocol-version: 2099-01-01\r\nmcp-method: tools/list\r\n";
    let error = check(heads, "tools/list", later, 400, -32022);
    assert_eq!(error["data"], json!({"supported": [VERSION], "requested": "2099-01-01"}));
    let found = visitor.result("server/discover", json!({}));
    assert_eq!(found["supportedVersions"], json!([VERSION]), "the same list");
    check(&method("subscriptions/listen"), "subscriptions/listen", good(json!({})), 400, -32602);
    assert_eq!(visitor.call("echo")["resultType"], "complete", "and nothing is the worse for it");
}

#[test]
fn a_visitors_view_follows_health_at_each_request() {
    let (a, b) = (FakeMcpServer::start(script()), FakeMcpServer::start(script().stateless()));
    let health = "failure_threshold: 1, open_for: 1s";
    let gate = Setup { health, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    let visitor = Visitor::of(gate.address());
    let has = |name: &str| visitor.tools().iter().any(|tool| tool.starts_with(name));
    assert!(has("a_") && has("b_"));
    for (name, tool, fake) in [("a_", "a_echo", &a), ("b_", "b_echo", &b)] {
        fake.crash();
        let failed = visitor.call(tool);
        assert_eq!(failed["isError"], true, "{failed}");
        assert!(text_of(&failed).contains("unavailable"), "{failed}");
        assert!(!has(name), "{name} is not listed while it is bad");
        fake.restart();
        eventually("it is back, by itself", || has(name));
        assert_eq!(text_of(&visitor.call(tool)), "{}");
    }
}

#[test]
fn an_era_is_asked_for_once() {
    let fake = FakeMcpServer::start(script());
    let gate = Setup::of(&[("a", &fake)]).start();
    let visitors = [json!({}), json!({"roots": {}}), json!({"sampling": {}})];
    for capabilities in visitors {
        Visitor::able(gate.address(), capabilities).call("echo");
    }
    gate.open().call("echo", json!({}));
    assert_eq!(fake.counts().of("server/discover"), 1, "by the gateway's own link");
    let stateless = FakeMcpServer::start(script().stateless());
    let gate = Setup::of(&[("a", &stateless)]).start();
    eventually("it was greeted", || stateless.counts().of("server/discover") >= 1);
    Visitor::of(gate.address()).call("echo");
    assert_eq!(stateless.counts().of("initialize"), 0, "no session is tried");
    for _ in 0..3 {
        McpClient::open(gate.address()).call("echo", json!({}));
    }
    assert!(stateless.counts().of("initialize") <= 1, "and for clients with sessions once");
}

#[test]
fn an_unclear_answer_to_the_question_of_era_is_not_remembered() {
    let script = McpScript { opening: Opening::Status(503), ..script().stateless() };
    let fake = FakeMcpServer::start(script);
    let gate = Setup { health: "failure_threshold: 100", ..Setup::of(&[("a", &fake)]) }.start();
    let visitor = Visitor::of(gate.address());
    assert!(visitor.tools().is_empty(), "it is overloaded");
    fake.change(|script| script.opening = Opening::Answer);
    eventually("it is asked again", || visitor.tools().contains(&"echo".to_owned()));
    assert_eq!(visitor.call("echo")["resultType"], "complete");
}

#[test]
fn an_era_that_was_unclear_when_sessions_were_found_is_found_later() {
    let script = McpScript { era: Era::Both, discover_status: Some(503), ..script() };
    let fake = FakeMcpServer::start(script);
    let gate = Setup::of(&[("a", &fake)]).start();
    assert_eq!(text_of(&gate.open().call("echo", json!({}))), "{}", "in a session");
    fake.change(|script| script.discover_status = None);
    let before = fake.counts().of("initialize");
    assert_eq!(text_of(&Visitor::of(gate.address()).call("echo")), "{}");
    assert_eq!(fake.counts().of("initialize"), before, "and without one");
}

#[test]
fn opening_a_session_looks_at_a_stateless_server_unless_it_has_just_answered() {
    let fake = FakeMcpServer::start(script().stateless());
    let gate = Setup { mcp: "answered_within: 1h,", ..Setup::of(&[("a", &fake)]) }.start();
    gate.open().call("echo", json!({}));
    let before = fake.counts().of("server/discover");
    gate.open().call("echo", json!({}));
    assert_eq!(fake.counts().of("server/discover"), before, "it has just answered");
    let gate = Setup { mcp: "answered_within: 0s,", ..Setup::of(&[("a", &fake)]) }.start();
    gate.open().call("echo", json!({}));
    let before = fake.counts().of("server/discover");
    gate.open().call("echo", json!({}));
    assert!(fake.counts().of("server/discover") > before, "that was long ago");
}

#[test]
fn a_stateless_server_is_kept_alive_and_probed_with_discover() {
    let fake = FakeMcpServer::start(script().stateless());
    let keys =
        crate::bed::url(&fake, "keepalive: {method: ping, every: 200ms, jitter: 0%, timeout: 5s}");
    let setup = Setup { servers: vec![("a", keys)], ..Setup::of(&[]) };
    let gate = setup.start();
    gate.open().call("echo", json!({}));
    let before = fake.counts().of("server/discover");
    eventually("it is kept alive", || fake.counts().of("server/discover") >= before + 2);
    assert_eq!(fake.counts().of("ping"), 0);
    assert!(gate.metric("tidegate_keepalive_success_total{server=\"a\"}") >= 1.0);
}

#[test]
fn tools_are_found_and_called_without_a_session() {
    let (a, b) = (FakeMcpServer::start(script()), FakeMcpServer::start(script().stateless()));
    let gate = Setup { mcp: "tools: search,", ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    let visitor = Visitor::of(gate.address());
    assert_eq!(visitor.tools(), ["find_tool", "call_tool"]);
    let find = json!({"name": "find_tool", "arguments": {"tool_description": "echo"}});
    let found = visitor.result("tools/call", find);
    let names = found["structuredContent"]["tools"].to_string();
    assert!(names.contains("a_echo") && names.contains("b_echo"), "{found}");
    let call = json!({"name": "call_tool",
        "arguments": {"tool_name": "b_echo", "parameters": {"x": 1}}});
    assert_eq!(text_of(&visitor.result("tools/call", call)), r#"{"x":1}"#);
}
