//! S1, I13: words that nobody may read again are put everywhere a secret or a prompt can stand, a
//! gateway serves them through an outage as a process of its own, and then everything that it and
//! its commands wrote, sent or said is searched for them.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use support::served::Served;
use support::{folder, program, run};
use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::time::eventually;

/// What every word has in common; each says where it stood.
const CANARY: &str = "canary-";
const TOKEN: &str = "canary-admin-token-0123456789";
const CALLER: &str = "canary-caller-key-0123456789";
const VARIABLES: &[(&str, &str)] = &[
    ("ADMIN", TOKEN),
    ("CALLER", CALLER),
    ("KEY_A", "canary-provider-key-a-0123456789"),
    ("KEY_B", "canary-provider-key-b-0123456789"),
    ("EXTRA", "canary-provider-header"),
    ("MCP_AUTH", "canary-mcp-header"),
];

/// A collector of OTLP over HTTP that keeps every byte it is sent.
struct Sink {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Sink {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || listen(stream, &kept));
            }
        });
        Self { address, heard }
    }

    fn bytes(&self) -> Vec<u8> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

/// Takes requests until the other side closes; each is answered when its body is whole.
fn listen(mut stream: TcpStream, kept: &Mutex<Vec<u8>>) {
    let mut open = Vec::new();
    let mut piece = [0; 64 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        kept.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..read]);
        open.extend(&piece[..read]);
        while let Some(length) = whole_request(&open) {
            open.drain(..length);
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
                return;
            }
        }
    }
}

/// How long the first request is, if it is there whole.
fn whole_request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|it| it.strip_prefix("content-length: ")?.parse().ok());
    Some(head + length.unwrap_or(0)).filter(|whole| bytes.len() >= *whole)
}

fn config(provider: &FakeServer, working: &FakeServer, mcp: &FakeMcpServer, sink: &Sink) -> String {
    format!(
        "admin: {{token: 'env:ADMIN'}}\nkeys: [{{name: ci, key: 'env:CALLER'}}]\n\
         log: {{level: debug, access: true}}\nhistory: {{file: tidegate.db}}\n\
         audit: {{file: audit.jsonl}}\ntelemetry: {{otlp: 'http://{}/otlp'}}\n\
         health: {{failure_threshold: 3, open_for: 60s, probe: {{every: 1s}}}}\n\
         providers:\n  alpha:\n    api: openai\n    url: '{}/v1'\n    \
         keys: ['env:KEY_A', 'env:KEY_B']\n    headers: {{x-extra: 'env:EXTRA'}}\n    \
         query: {{api-version: canary-query}}\n  beta: {{api: openai, url: '{}/v1'}}\n\
         routes: {{r: {{tiers: [[alpha/m], [beta/m]]}}}}\n\
         mcp:\n  servers:\n    files: {{url: '{}?key=canary-mcp-url', allow_private: true, \
         headers: {{authorization: 'env:MCP_AUTH'}}}}\n",
        sink.address,
        provider.url(),
        working.url(),
        mcp.url(),
    )
}

/// Requests of clients: words in the prompt, in headers, in a body that is no JSON, in wrong keys.
fn use_llm(served: &Served) -> Vec<String> {
    let mut ids = Vec::new();
    let mut post = |key: &str, body: &str| {
        let request = format!(
            "POST /v1/chat/completions?trace=canary-url-query HTTP/1.1\r\nhost: localhost\r\n\
             connection: close\r\ncontent-type: application/json\r\nx-api-key: {key}\r\n\
             x-session-id: canary-session\r\nuser-agent: canary-agent\r\ncookie: canary-cookie\r\n\
             traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\
             tracestate: v=canary-tracestate\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = served.ask(&served.address, &request);
        let id = answer.lines().find_map(|it| it.strip_prefix("x-tidegate-request-id: "));
        // What is refused at the door is an event of security and no decision.
        ids.extend(id.filter(|_| key == CALLER).map(|it| it.trim().to_owned()));
    };
    let chat = |model: &str, stream: bool| {
        format!(
            r#"{{"model":"{model}","stream":{stream},"user":"canary-user","messages":[
               {{"role":"user","content":"canary-prompt"}}]}}"#
        )
    };
    for _ in 0..4 {
        post(CALLER, &chat("r", false));
        post(CALLER, &chat("r", true));
    }
    post(CALLER, &chat("alpha/m", false));
    post(CALLER, &chat("no/such", false));
    post(CALLER, "{\"canary-broken\": ");
    post("canary-wrong-key-0123456789", &chat("r", false));
    ids
}

fn use_mcp(served: &Served) {
    let post = |session: &str, body: &str| {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             authorization: Bearer {CALLER}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{session}\r\n{body}",
            body.len()
        );
        served.ask(&served.address, &request)
    };
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{},
        "clientInfo":{"name":"canary-client","version":"1"}}}"#;
    let opened = post("", hello);
    let session = opened.lines().find(|line| line.starts_with("mcp-session-id:"));
    let session = format!("{}\r\n", session.unwrap_or_else(|| panic!("no session in {opened}")));
    for tool in ["echo", "fail", "error", "garbage", "nothing"] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{tool}",
               "arguments":{{"text":"canary-argument"}}}}}}"#
        );
        post(&session, &call);
    }
}

/// What the admin listener and the data plane say to whoever may ask.
fn answers(served: &Served, ids: &[String]) -> Vec<(String, String)> {
    let get = |address: &str, path: &str, key: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        served.ask(address, &format!("{head}authorization: Bearer {key}\r\n\r\n"))
    };
    let mut paths: Vec<String> = ids.iter().map(|id| format!("/api/decisions/{id}")).collect();
    paths.extend(["/", "/metrics", "/api/snapshot", "/api/decisions"].map(str::to_owned));
    paths.extend(["/api/timeline", "/api/incident", "/api/session"].map(str::to_owned));
    let admin = paths.into_iter().map(|path| {
        let answer = get(&served.admin, &path, TOKEN);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        (path, answer)
    });
    let mut answers: Vec<(String, String)> = admin.collect();
    for path in ["/v1/health", "/v1/routes", "/v1/models", "/health"] {
        answers.push((path.to_owned(), get(&served.address, path, CALLER)));
    }
    answers
}

/// What every command of an operator says and writes.
fn commands(here: &Path, served: &Served, ids: &[String]) -> Vec<(String, String)> {
    let admin = format!("http://{}", served.admin);
    let id = ids.first().expect("a request was made").as_str();
    let lines: [&[&str]; 12] = [
        &["status"],
        &["status", "--json"],
        &["explain", "alpha/m"],
        &["explain", "alpha/m", "--json"],
        &["explain", "mcp:files"],
        &["explain", id],
        &["explain", id, "--json"],
        &["explain", "--model", "r", "--session", "s42"],
        &["drain", "beta/m", "--reason", "a test", "--ttl", "1s"],
        &["probe", "alpha/m"],
        &["doctor", "-v", "--report", "report.json"],
        &["sim", "--from-live", "15m", "-o", "live.yaml"],
    ];
    let run_one = |args: &[&str], token: &str| {
        let mut command = program(here);
        command.args(args).args(["--admin", &admin]).envs(VARIABLES.iter().copied());
        let done = run(command.env("TIDEGATE_ADMIN_TOKEN", token));
        (args.join(" "), done)
    };
    let mut said = Vec::new();
    for args in lines {
        let (what, done) = run_one(args, TOKEN);
        assert!(matches!(done.code, Some(0 | 1)), "{what}: {done:?}");
        said.push((what, format!("{done:?}")));
    }
    let (what, refused) = run_one(&["reset", "alpha/m"], "canary-no-token");
    assert_eq!(refused.code, Some(1), "{what}: {refused:?}");
    said.push((what, format!("{refused:?}")));
    said
}

/// Everything that was written here but the config itself.
fn files(here: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(here).expect("a folder").flatten();
    let paths = entries.map(|it| it.path()).filter(|it| !it.ends_with("tidegate.yaml"));
    // The write-ahead log goes when the writer has closed the file.
    let read = paths.filter_map(|path| Some((path.display().to_string(), fs::read(&path).ok()?)));
    read.map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned())).collect()
}

#[test]
fn no_secret_prompt_or_error_text_is_anywhere_that_an_operator_or_collector_reads() {
    let here = folder("canary");
    let failure = Step { text: Some("canary-error-text".to_owned()), ..Step::status(500) };
    let failing = FakeServer::start(Script::always(failure));
    let working = FakeServer::start(Script::default());
    let error = ToolAct::Error { code: -32000, message: "canary-mcp-error".to_owned() };
    let mcp = FakeMcpServer::start(McpScript::of(vec![
        Tool::new("echo", ToolAct::Echo),
        Tool::new("fail", ToolAct::Failed("canary-mcp-failure".to_owned())),
        Tool::new("error", error),
        Tool::new("garbage", ToolAct::Garbage),
    ]));
    let sink = Sink::start();
    fs::write(here.join("tidegate.yaml"), config(&failing, &working, &mcp, &sink)).expect("a file");
    let mut command = program(&here);
    command.args(["serve", "--listen", ":0", "--admin-listen", "localhost:0"]);
    let served = Served::spawn(command.envs(VARIABLES.iter().copied()).stdout(Stdio::null()));
    let ids = use_llm(&served);
    use_mcp(&served);
    let mut seen = answers(&served, &ids);
    seen.extend(commands(&here, &served, &ids));
    eventually("traces and metrics arrive", || {
        let text = sink.text();
        text.contains("/otlp/v1/traces") && text.contains("/otlp/v1/metrics")
    });
    let log = served.stop();
    let history = ["sim", "--from-history", "tidegate.db", "-o", "history.yaml"];
    let recorded = run(program(&here).args(history).envs(VARIABLES.iter().copied()));
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    seen.push(("the log".to_owned(), log.join("\n")));
    seen.push(("the collector".to_owned(), sink.text()));
    seen.extend(files(&here));
    // What is searched is what it is called, or nothing would be shown.
    for (place, words) in [
        ("the log", "unknown_key"),
        ("the collector", "gen_ai"),
        ("audit.jsonl", "\"tool\":\"echo\""),
        ("report.json", "env:KEY_A"),
        ("live.yaml", "alpha/m"),
        ("history.yaml", "alpha/m"),
        ("tidegate.db", "alpha/m"),
    ] {
        let holds = |(what, text): &(String, String)| what.contains(place) && text.contains(words);
        assert!(seen.iter().any(holds), "{place} does not say {words}");
    }
    for (what, text) in &seen {
        let around = text.find(CANARY).map(|at| {
            let from = text[..at].char_indices().rev().nth(80).map_or(0, |(from, _)| from);
            text[from..].chars().take(160).collect::<String>()
        });
        assert_eq!(around, None, "{what}");
    }
}
