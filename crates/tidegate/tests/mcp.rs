//! MCP servers that are programs, behind the real gateway process.
//!
//! The program is `tidegate __fake-mcp`, told by a script what to do. A word in its script that no
//! other test uses finds its processes in `/proc`.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    mcp::{Hello, McpClient, text_of},
    time::{PATIENCE, now},
};

use support::{folder, processes, program};

/// A gateway process; it is killed with this value, at once and without a word.
struct Gateway {
    process: Child,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Gateway {
    /// Starts one with these servers.
    fn start(test: &str, servers: &Value, mcp: &Value) -> Self {
        Self::with(test, servers, mcp, &Value::Null)
    }

    /// The same, with keys.
    fn with(test: &str, servers: &Value, mcp: &Value, keys: &Value) -> Self {
        let folder = folder(test);
        let mut mcp = mcp.clone();
        mcp["servers"] = servers.clone();
        let mut config = json!({"listen": "127.0.0.1:0", "admin": {"listen": "127.0.0.1:0"},
            "health": {"probe": {"every": "0s"}}, "mcp": mcp});
        if !keys.is_null() {
            config["keys"] = keys.clone();
        }
        // JSON is YAML too.
        fs::write(folder.join("tidegate.yaml"), config.to_string())
            .expect("the folder takes files");
        let mut command = program(&folder);
        command.args(["--ascii", "serve", "--threads", "1"]).stderr(Stdio::piped());
        let mut process = command.stdout(Stdio::null()).spawn().expect("the gateway starts");
        let (api, admin) = addresses(process.stderr.take().expect("it was piped"));
        Self { process, address: api, admin }
    }

    fn open(&self) -> McpClient {
        McpClient::open(self.address)
    }

    /// The value of a metric, by its name and labels as they are written.
    fn metric(&self, series: &str) -> f64 {
        let ask = Ask { verb: "GET", path: "/metrics", headers: String::new(), body: b"" };
        let text = Exchange::begin(self.admin, &ask).expect("an answer").text();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
    }

    fn signal(&mut self, signal: &str) {
        let id = self.process.id().to_string();
        let done = Command::new("kill").args([signal, &id]).status();
        assert!(done.is_ok_and(|status| status.success()), "kill is there");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Reads where the gateway listens, and goes on reading what it says.
fn addresses(stderr: impl std::io::Read + Send + 'static) -> (SocketAddr, SocketAddr) {
    let (send, found) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let is_ours = ["api ", "admin "].iter().any(|it| line.trim_start().starts_with(it));
            let url = line.split("http://").nth(1).filter(|_| is_ours);
            let address = url.and_then(|url| url.split(['/', ' ']).next()?.parse().ok());
            if let Some(address) = address {
                let _ = send.send(address);
            }
        }
    });
    let next = || found.recv_timeout(PATIENCE).expect("the gateway says where it listens");
    (next(), next())
}

/// A server that is a program, with a script and further keys.
fn child(script: &Value, more: &Value) -> Value {
    let argv = [env!("CARGO_BIN_EXE_tidegate"), "__fake-mcp", "--script", &script.to_string()];
    let mut server = json!({"command": argv});
    for (key, value) in more.as_object().into_iter().flatten() {
        server[key] = value.clone();
    }
    server
}

fn tool(name: &str, act: Value) -> Value {
    json!({"name": name, "acts": [act]})
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = now() + PATIENCE;
    while !is_so() {
        assert!(now() < until, "it never came about: {what}");
        pause(10);
    }
}

fn pause(ms: u64) {
    #[expect(clippy::disallowed_methods, reason = "other processes need the time, not this one")]
    std::thread::sleep(Duration::from_millis(ms));
}

#[test]
fn every_session_has_a_program_of_its_own_unless_one_is_shared() {
    let script = json!({"name": "ownorshared", "tools": [tool("count", json!("count"))]});
    let servers = json!({
        "own": child(&script, &json!({})),
        "shared": child(&script, &json!({"shared": true})),
    });
    let gateway = Gateway::start("mcp-own-or-shared", &servers, &json!({}));
    let (one, two) = (gateway.open(), gateway.open());
    assert_eq!(one.tools(), ["own_count", "shared_count"]);
    let said = [&one, &two].map(|it| (it.text("own_count"), it.text("shared_count")));
    assert!(said[0].0.ends_with("call 1") && said[1].0.ends_with("call 1"), "{said:?}");
    assert!(said[0].1.ends_with("call 1") && said[1].1.ends_with("call 2"), "{said:?}");
    let with_both = processes("ownorshared").len();
    assert_eq!(two.delete(), 200);
    eventually("its program is gone, and its warden", || {
        processes("ownorshared").len() == with_both - 2
    });
    assert!(one.text("own_count").ends_with("call 2"), "the other's is not touched");
    assert!(one.text("shared_count").ends_with("call 3"));
}

#[test]
fn a_program_that_dies_is_named_and_comes_back_to_the_same_session() {
    let script = json!({"tools": [tool("echo", json!("echo")), tool("crash", json!("crash"))]});
    let other = json!({"tools": [tool("echo", json!("echo"))]});
    let servers = json!({"a": child(&script, &json!({})), "b": child(&other, &json!({}))});
    let gateway = Gateway::start("mcp-dies", &servers, &json!({}));
    let client = gateway.open();
    assert_eq!(client.text("a_echo"), "{}");
    let result = client.call("a_crash", json!({}));
    assert_eq!(result["structuredContent"]["code"], "result_unknown", "{result}");
    let text = text_of(&result);
    assert_eq!(text, "backend \"a\" unavailable: process exited; the result is unknown");
    assert_eq!(client.text("b_echo"), "{}");
    eventually("the same session can call it", || {
        client.call("a_echo", json!({}))["isError"] != true
    });
}

#[test]
fn programs_that_crash_hang_or_talk_nonsense_delay_nobody() {
    let echo = json!([tool("echo", json!("echo"))]);
    let floods = json!({"stdio": {"stderr_lines": 50_000, "floods_stderr": true}});
    let servers = json!({
        "good": child(&json!({"tools": echo}), &json!({})),
        "loop": child(&json!({"stdio": {"exits_after_ms": 0}}), &json!({"shared": true})),
        "hang": child(&json!({"opening": "hang"}), &json!({"shared": true})),
        "slow": child(&json!({"opening": {"slow": 30_000}}), &json!({"shared": true})),
        "garbage": child(&json!({"stdio": {"garbage": 5000}}), &json!({})),
        "loud": child(&floods, &json!({})),
        "none": json!({"command": ["/no/such/program"]}),
    });
    let gateway = Gateway::start("mcp-bad-programs", &servers, &json!({"connect_timeout": "6s"}));
    for _ in 0..2 {
        let began = now();
        let client = gateway.open();
        // Not by the time that a silent program is given; the first list may wait that long.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        eventually("the good one is listed", || client.tools().contains(&"good_echo".to_owned()));
        assert_eq!(client.text("good_echo"), "{}");
        assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
        eventually("so are those that only make noise", || {
            let tools = client.tools();
            ["garbage_echo", "loud_echo"].iter().all(|it| tools.iter().any(|known| known == it))
        });
        assert_eq!(client.text("garbage_echo"), "{}");
        assert_eq!(client.text("loud_echo"), "{}");
    }
    pause(2000);
    let starts = gateway.metric("tidegate_mcp_child_starts_total{server=\"loop\"}");
    assert!((1.0..12.0).contains(&starts), "restarted with a growing pause: {starts}");
}

#[test]
fn questions_of_a_program_reach_the_client_whose_call_caused_them() {
    let script = json!({"tools": [tool("sample", json!("sample"))]});
    let servers = json!({"a": child(&script, &json!({}))});
    let gateway = Gateway::start("mcp-program-asks", &servers, &json!({}));
    let hello = Hello { capabilities: json!({"sampling": {}}), ..Hello::default() };
    let (one, two) = (McpClient::open_as(gateway.address, &hello), gateway.open());
    let mut call = one.start("tools/call", json!({"name": "sample"}));
    let ask = call.next_message().expect("a question");
    assert_eq!(ask["method"], "sampling/createMessage");
    one.respond(&ask, json!({"said": "hello"}));
    assert_eq!(text_of(&call.finish()["result"]), r#"result {"said":"hello"}"#);
    assert!(two.text("sample").starts_with("error "), "this one cannot be asked");
}

#[test]
fn progress_and_cancellation_work_over_pipes() {
    let steps = json!({"progress": {"steps": 3, "every_ms": 5}});
    let script = json!({"tools": [tool("steps", steps), tool("hang", json!("hang"))]});
    let servers = json!({"a": child(&script, &json!({"shared": true}))});
    let gateway = Gateway::start("mcp-pipes", &servers, &json!({}));
    let client = gateway.open();
    let params = json!({"name": "steps", "_meta": {"progressToken": "mine"}});
    let said = client.start("tools/call", params).all();
    let seen: Vec<_> = said.iter().filter_map(|it| it["params"]["progress"].as_u64()).collect();
    assert_eq!((seen, said.len()), (vec![1, 2, 3], 4));
    assert!(said[..3].iter().all(|it| it["params"]["progressToken"] == "mine"));
    let mut hang = client.start("tools/call", json!({"name": "hang"}));
    client.notify("notifications/cancelled", json!({"requestId": hang.id}));
    assert!(hang.next_message().is_err(), "no answer follows");
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn nothing_is_left_of_any_program_when_the_gateway_is_killed() {
    let script = json!({"name": "orphanwatch", "stdio": {"ignores_eof": true}});
    let servers = json!({
        "own": child(&script, &json!({})),
        "shared": child(&script, &json!({"shared": true})),
    });
    let mut gateway = Gateway::start("mcp-killed", &servers, &json!({}));
    let clients = [gateway.open(), gateway.open()];
    for client in &clients {
        assert_eq!(client.text("own_echo"), "{}");
    }
    // Three programs and their wardens.
    assert!(processes("orphanwatch").len() >= 6);
    gateway.signal("-KILL");
    eventually("all are gone", || processes("orphanwatch").is_empty());
}

#[test]
fn nothing_is_left_of_any_program_when_the_gateway_ends() {
    let script = json!({"name": "endwatch"});
    let servers = json!({"own": child(&script, &json!({}))});
    let mut gateway = Gateway::start("mcp-ends", &servers, &json!({}));
    let client = gateway.open();
    assert_eq!(client.text("echo"), "{}");
    assert!(processes("endwatch").len() >= 2);
    gateway.signal("-TERM");
    let status = gateway.process.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert_eq!(processes("endwatch"), [0; 0]);
}

#[test]
fn the_limit_on_programs_holds_and_leaves_when_one_goes() {
    let servers =
        json!({"own": child(&json!({}), &json!({})), "other": child(&json!({}), &json!({}))});
    let gateway = Gateway::start("mcp-limit", &servers, &json!({"max_children": 2}));
    // At the start both run once for their lists, which leaves no room for a session's own.
    let mut one = gateway.open();
    eventually("a session has both", || {
        let has_both = one.tools() == ["other_echo", "own_echo"];
        if !has_both {
            one.delete();
            one = gateway.open();
        }
        has_both
    });
    assert_eq!((one.text("own_echo"), one.text("other_echo")), ("{}".into(), "{}".into()));
    let two = gateway.open();
    assert_eq!(two.text("own_echo"), "{}", "the session that was idle has made room");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(one.post(&ping).expect("an answer").status, 404);
    let stream = two.listen();
    let refused = McpClient::introduce(gateway.address, &Hello::default());
    assert_eq!(refused.status, 503, "nobody is idle");
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    drop(stream);
    assert_eq!(two.delete(), 200);
    eventually("there is room again", || {
        let three = gateway.open();
        let fine = three.call("own_echo", json!({}))["isError"] != true;
        three.delete();
        fine
    });
}

#[test]
fn one_caller_cannot_hold_every_program() {
    let servers = json!({"own": child(&json!({}), &json!({}))});
    let keys = json!([{"name": "flood", "key": "key-of-flood"},
        {"name": "other", "key": "key-of-other"}]);
    let gateway = Gateway::with("mcp-share", &servers, &json!({"max_children": 8}), &keys);
    let open = |name: &str| {
        let headers = format!("authorization: Bearer key-of-{name}\r\n");
        McpClient::introduce(
            gateway.address,
            &Hello { name, headers: &headers, ..Hello::default() },
        )
    };
    let session = |name: &str| {
        let headers = format!("authorization: Bearer key-of-{name}\r\n");
        McpClient::open_as(gateway.address, &Hello { name, headers: &headers, ..Hello::default() })
    };
    let busy = [session("flood"), session("flood")];
    let _streams = busy.each_ref().map(McpClient::listen);
    assert_eq!(busy.each_ref().map(|it| it.text("echo")), ["{}", "{}"]);
    for _ in 0..6 {
        assert_eq!(open("flood").status, 503, "a quarter of eight is two");
    }
    let others = [session("other"), session("other")];
    assert_eq!(others.each_ref().map(|it| it.text("echo")), ["{}", "{}"]);
    assert_eq!(busy.each_ref().map(|it| it.text("echo")), ["{}", "{}"]);
}
