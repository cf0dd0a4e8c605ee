//! `tidegate mcp` as a desktop client meets it: a process, its pipes, and what is left of it.
//!
//! Servers are `tidegate __fake-mcp` processes, told by a script what to do. A word in its script
//! that no other test uses finds them in `/proc`.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use support::{folder, processes, program};
use tidegate_config::{secret::FixedEnvironment, source::Source};
use tidegate_gateway::private::Private;
use tidegate_server::server::{Server, Start};

/// Longer than anything takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with a config, and where a gateway by that config listens.
struct Scene {
    folder: PathBuf,
    address: SocketAddr,
}

impl Scene {
    /// One server, `a`, that follows this script; further top-level keys of the config.
    fn new(test: &str, script: &Value, more: &Value) -> Self {
        let folder = folder(&format!("bridge-{test}"));
        // Free now, and nobody asks for this very one meanwhile.
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback binds");
        let address = listener.local_addr().expect("it is bound");
        let argv = [env!("CARGO_BIN_EXE_tidegate"), "__fake-mcp", "--script", &script.to_string()];
        let mut config = json!({"listen": address.to_string(),
            "admin": {"listen": "127.0.0.1:0"}, "health": {"probe": {"every": "0s"}},
            "mcp": {"servers": {"a": {"command": argv}}}});
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        // JSON is YAML too.
        fs::write(folder.join("tidegate.yaml"), config.to_string()).expect("it takes files");
        Self { folder, address }
    }

    /// A gateway by the config, once it listens.
    fn gateway(&self) -> Gateway {
        let mut command = program(&self.folder);
        command.args(["serve", "--threads", "1"]).stderr(Stdio::null()).stdout(Stdio::null());
        let gateway = Gateway(command.spawn().expect("the gateway starts"));
        eventually("it listens", || TcpStream::connect(self.address).is_ok());
        gateway
    }

    /// The bridge that a desktop client would start.
    fn bridge(&self, args: &[&str], variables: &[(&str, &str)]) -> Bridge {
        let mut command = program(&self.folder);
        command.arg("mcp").args(args).envs(variables.iter().copied());
        let log = fs::File::create(self.folder.join("stderr.txt")).expect("it takes files");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().expect("the bridge starts");
        let stdout = process.stdout.take().expect("it was piped");
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let input = process.stdin.take();
        Bridge { process, input, lines, log: self.folder.join("stderr.txt") }
    }
}

/// A gateway process; killed with this value.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The bridge's process, and its pipes.
struct Bridge {
    process: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    log: PathBuf,
}

impl Bridge {
    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{message}").expect("the bridge reads");
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn call(&mut self, id: u64, tool: &str) {
        self.ask(id, "tools/call", json!({"name": tool, "arguments": {}}));
    }

    /// The next line; every one is a message.
    fn hear(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|error| panic!("{error}: {}", self.told()));
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"))
    }

    /// The answer to a request; notifications before it are passed by.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let said = self.hear();
            if said["id"] == id && said.get("method").is_none() {
                return said;
            }
            assert!(said.get("id").is_none(), "{said}");
        }
    }

    fn open(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "desk", "version": "1"}});
        self.ask(0, "initialize", params);
        let hello = self.answer(0);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        hello
    }

    fn tools(&mut self, id: u64) -> Vec<String> {
        self.ask(id, "tools/list", json!({}));
        let list = self.answer(id);
        let tools = list["result"]["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    }

    fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(done.is_ok_and(|status| status.success()), "kill is there");
    }

    /// Closes the input; how the process ends.
    fn finish(&mut self) -> ExitStatus {
        self.input = None;
        self.ended()
    }

    fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("it ends", || {
            status = self.process.try_wait().expect("it is a child of ours");
            status.is_some()
        });
        status.expect("it has ended")
    }

    fn told(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    const STEP: Duration = Duration::from_millis(20);
    let mut left = PATIENCE;
    while !is_so() {
        assert!(!left.is_zero(), "it never came about: {what}");
        left = left.saturating_sub(STEP);
        #[expect(clippy::disallowed_methods, reason = "other processes need the time")]
        std::thread::sleep(STEP);
    }
}

fn tools(word: &str, acts: &[(&str, Value)]) -> Value {
    let tool = |(name, act): &(&str, Value)| json!({"name": name, "acts": [act]});
    json!({"name": word, "tools": acts.iter().map(tool).collect::<Vec<_>>()})
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn without_a_gateway_it_serves_the_config_itself_and_leaves_nothing() {
    let script = tools("bridgeown", &[("echo", json!("echo")), ("count", json!("count"))]);
    let scene = Scene::new("own", &script, &json!({}));
    let mut bridge = scene.bridge(&["--config", "tidegate.yaml"], &[]);
    let hello = bridge.open();
    assert_eq!(hello["result"]["serverInfo"]["name"], "tidegate", "{hello}");
    assert_eq!(bridge.tools(1), ["count", "echo"]);
    bridge.call(2, "echo");
    assert_eq!(text(&bridge.answer(2)), "{}");
    assert!(TcpStream::connect(scene.address).is_err(), "it does not listen where `serve` would");
    assert!(!processes("bridgeown").is_empty());
    assert_eq!(bridge.finish().code(), Some(0), "{}", bridge.told());
    assert_eq!(processes("bridgeown"), [0; 0]);
    assert!(bridge.told().contains("no gateway answers at"), "{}", bridge.told());
}

#[test]
fn the_end_of_the_input_waits_for_an_answer_but_not_for_one_that_never_comes() {
    let acts = [("slow", json!({"slow": 700})), ("hang", json!("hang"))];
    let scene = Scene::new("input-ends", &tools("bridgeends", &acts), &json!({}));
    let mut bridge = scene.bridge(&[], &[]);
    bridge.open();
    bridge.call(1, "slow");
    bridge.call(2, "hang");
    bridge.input = None;
    assert!(bridge.answer(1)["result"].is_object());
    assert_eq!(bridge.ended().code(), Some(0), "{}", bridge.told());
    assert_eq!(processes("bridgeends"), [0; 0]);
}

#[test]
fn a_signal_ends_it_and_a_kill_leaves_nothing_either() {
    for (test, signal, code) in
        [("term", "-TERM", Some(0)), ("int", "-INT", Some(0)), ("kill", "-KILL", None)]
    {
        let word = format!("bridgesignal{test}");
        let script = tools(&word, &[("hang", json!("hang")), ("echo", json!("echo"))]);
        let scene = Scene::new(test, &script, &json!({}));
        let mut bridge = scene.bridge(&[], &[]);
        bridge.open();
        bridge.call(1, "echo");
        bridge.answer(1);
        bridge.call(2, "hang");
        assert!(!processes(&word).is_empty());
        bridge.signal(signal);
        assert_eq!(bridge.ended().code(), code, "{signal}: {}", bridge.told());
        eventually("its servers are gone", || processes(&word).is_empty());
    }
}

#[test]
fn a_client_that_stops_reading_ends_it() {
    let scene = Scene::new("no-reader", &tools("bridgepipe", &[]), &json!({}));
    let mut command = program(&scene.folder);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    command.arg("mcp").stdin(Stdio::piped()).stdout(writer).stderr(Stdio::null());
    let mut process = command.spawn().expect("the bridge starts");
    drop(command);
    drop(reader);
    let mut input = process.stdin.take().expect("it was piped");
    writeln!(input, "nonsense").expect("it is read");
    let mut code = None;
    eventually("it ends", || {
        code = process.try_wait().expect("it is a child of ours");
        code.is_some()
    });
    assert_eq!(code.and_then(|code| code.code()), Some(0));
}

#[test]
fn a_running_gateway_is_used_and_one_that_restarts_is_found_again() {
    let acts = [("echo", json!("echo")), ("hang", json!("hang"))];
    let scene = Scene::new("running", &tools("bridgerun", &acts), &json!({}));
    let first = scene.gateway();
    let mut bridge = scene.bridge(&[], &[]);
    bridge.open();
    assert_eq!(bridge.tools(1), ["echo", "hang"]);
    assert!(bridge.told().contains("carrying messages to the gateway"), "{}", bridge.told());
    bridge.call(2, "hang");
    bridge.call(3, "echo");
    assert_eq!(text(&bridge.answer(3)), "{}");
    drop(first);
    let lost = bridge.answer(2);
    let words = lost["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("the result is unknown"), "{lost}");
    bridge.call(4, "echo");
    let refused = bridge.answer(4);
    let words = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains(&scene.address.to_string()), "{refused}");
    assert!(words.ends_with("start it with `tidegate serve`"), "{refused}");
    let second = scene.gateway();
    let mut has_told = false;
    bridge.call(5, "echo");
    let answer = loop {
        let said = bridge.hear();
        has_told |= said["method"] == "notifications/tools/list_changed";
        if said["id"] == 5 {
            break said;
        }
    };
    assert_eq!(text(&answer), "{}", "{answer}");
    assert!(has_told, "lists may have changed");
    assert_eq!(bridge.finish().code(), Some(0));
    drop(second);
    eventually("nothing is left", || processes("bridgerun").is_empty());
}

#[test]
fn a_gateway_that_was_named_is_the_only_one_and_its_key_comes_from_the_environment() {
    let keys = json!({"keys": [{"name": "desk", "key": "tg-desk"}]});
    let scene = Scene::new("named", &tools("bridgekey", &[("echo", json!("echo"))]), &keys);
    let url = format!("http://{}", scene.address);
    let mut early = scene.bridge(&["--url", &url], &[]);
    let refused = early.open();
    let words = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("does not answer: connection refused"), "{refused}");
    let _gateway = scene.gateway();
    let refused = early.open()["error"]["message"].to_string();
    assert!(refused.contains("no key was sent"), "{refused}");
    for (args, variables) in [
        (&["--url", &*url][..], &[("TIDEGATE_KEY", "tg-desk")][..]),
        (&[], &[("TIDEGATE_KEY", "tg-desk"), ("TIDEGATE_URL", &*url)]),
        (&["-c", "tidegate.yaml"], &[("TIDEGATE_KEY", "tg-desk")]),
    ] {
        let mut bridge = scene.bridge(args, variables);
        bridge.open();
        assert_eq!(bridge.tools(1), ["echo"], "{args:?}");
        assert_eq!(bridge.finish().code(), Some(0));
        assert!(!bridge.told().contains("tg-desk"), "{}", bridge.told());
    }
}

#[test]
fn a_client_without_sessions_lists_calls_gives_up_and_listens() {
    let acts = [("echo", json!("echo")), ("hang", json!("hang"))];
    let scene = Scene::new("stateless", &tools("bridgestateless", &acts), &json!({}));
    let mut bridge = scene.bridge(&[], &[]);
    let with_meta = |mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "1"},
        });
        params
    };
    bridge.ask(0, "server/discover", with_meta(json!({})));
    let hello = bridge.answer(0);
    assert_eq!(hello["result"]["supportedVersions"], json!(["2026-07-28"]), "{hello}");
    let wishes = json!({"notifications": {"toolsListChanged": true}});
    bridge.ask(1, "subscriptions/listen", with_meta(wishes));
    assert_eq!(bridge.hear()["method"], "notifications/subscriptions/acknowledged");
    let mut id = 1;
    eventually("the tools are there", || {
        id += 1;
        bridge.ask(id, "tools/list", with_meta(json!({})));
        bridge.answer(id)["result"]["tools"].as_array().is_some_and(|tools| tools.len() == 2)
    });
    let hang = with_meta(json!({"name": "hang", "arguments": {}}));
    bridge.ask(1000, "tools/call", hang);
    let params = json!({"requestId": 1000});
    bridge.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    bridge.ask(1001, "tools/call", with_meta(json!({"name": "echo", "arguments": {"a": 1}})));
    let answer = bridge.answer(1001);
    assert_eq!(text(&answer), r#"{"a":1}"#, "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(bridge.finish().code(), Some(0), "{}", bridge.told());
    assert_eq!(processes("bridgestateless"), [0; 0]);
}

#[test]
fn a_gateway_of_ones_own_is_closed_to_everybody_else() {
    let text = "mcp: { servers: { tides: { fake: steady } } }";
    let private = Private::new(None).expect("a key");
    let server = Server::start_private(
        Start {
            source: Source::new("test.yaml", text),
            path: None,
            environment: Arc::new(FixedEnvironment::default()),
            threads: 1,
        },
        private.clone(),
    )
    .expect("it starts");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let status = |key: &str| {
        let mut socket = TcpStream::connect(server.address()).expect("it listens");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{key}\
             content-length: {}\r\nconnection: close\r\n\r\n{ping}",
            ping.len()
        );
        socket.write_all(head.as_bytes()).expect("it is sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("it is answered");
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status(""), "401");
    assert_eq!(status("authorization: Bearer guessed\r\n"), "401");
    let ours = format!("authorization: Bearer {}\r\n", private.key());
    assert_eq!(status(&ours), "400", "`ping` has no session");
    assert!(server.address().ip().is_loopback() && server.admin_address().ip().is_loopback());
    server.stop();
}

#[test]
fn a_config_that_cannot_be_served_says_so_on_stderr_only() {
    let folder = folder("bridge-bad-config");
    fs::write(folder.join("tidegate.yaml"), "mcp: { servers: { a: {} } }").expect("it is written");
    for (file, code) in [("tidegate.yaml", 3), ("no-such.yaml", 3)] {
        let run = support::run(program(Path::new(&folder)).args(["mcp", "-c", file]));
        assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{file}: {}", run.stderr);
        assert!(run.stderr.contains("error"), "{}", run.stderr);
    }
}
