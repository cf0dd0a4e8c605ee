//! `tidegate check --connect` against providers and MCP servers that are there, are not, or hang.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;
use support::{Run, program, run};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Opening, Tool, ToolAct};

/// Runs `check --connect` on a config in a folder named after the test.
fn connect(test: &str, config: &str, args: &[&str]) -> Run {
    let folder = support::folder(&format!("connect-{test}"));
    fs::write(folder.join("tidegate.yaml"), config).expect("the build's own folder takes files");
    let path = std::env::var_os("PATH").unwrap_or_default();
    run(program(&folder).env("PATH", path).args(["check", "--connect"]).args(args))
}

/// A server that is a program, with a script in JSON.
fn child(script: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tidegate");
    format!("{{ command: ['{program}', __fake-mcp, --script, '{script}'] }}")
}

/// An address that nobody listens on.
fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("it is bound").to_string()
}

/// The row of a name, and the lines below it that belong to it.
fn row<'a>(stdout: &'a str, name: &str) -> Vec<&'a str> {
    let is_it = |line: &&str| line.trim_start().split(' ').next() == Some(name);
    let mut lines = stdout.lines().skip_while(|line| !is_it(line));
    let first = lines.next().unwrap_or_else(|| panic!("no row `{name}` in\n{stdout}"));
    let below = lines.take_while(|line| line.starts_with("     "));
    std::iter::once(first).chain(below).collect()
}

#[test]
fn what_can_be_reached_is_told_with_what_it_offers_and_the_code_is_0() {
    let script = r#"{"name": "quay", "resources": [{"uri": "a:b"}], "prompts": [{"name": "p"}]}"#;
    let config = format!(
        "providers: {{ near: {{ api: fake }} }}\n\
         routes: {{ fast: {{ tiers: [[near/small], [near/large]] }} }}\n\
         mcp: {{ servers: {{ tides: {{ fake: steady }}, program: {} }} }}\n",
        child(script)
    );
    let run = connect("reached", &config, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    assert!(row(&run.stdout, "near")[0].contains("● answers"), "{}", run.stdout);
    assert!(row(&run.stdout, "tides")[0].contains("● 2 tools"), "{}", run.stdout);
    let program = row(&run.stdout, "program").join(" ");
    let program: String = program.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(program.contains("● 1 tool, 1 resource, 1 prompt"), "{}", run.stdout);
    assert!(program.contains("quay 1.0.0 (protocol 2025-11-25)"), "{}", run.stdout);
    assert!(run.stdout.ends_with("\neverything can be reached\n"), "{}", run.stdout);
}

#[test]
fn what_cannot_be_reached_is_told_with_cause_and_hint_and_the_code_is_1() {
    let hangs = FakeMcpServer::start(McpScript { opening: Opening::Hang, ..McpScript::default() });
    let locked =
        FakeMcpServer::start(McpScript { authorization: Some("x".into()), ..McpScript::default() });
    let config = format!(
        "providers: {{ gone: {{ api: openai, url: 'http://{0}/v1' }},\n\
         \x20 keyless: {{ api: openai, url: 'http://{0}/v1', key: env:NOT_SET }} }}\n\
         routes: {{ fast: {{ tiers: [[gone/small], [keyless/small]] }} }}\n\
         mcp:\n  connect_timeout: 1s\n  call_timeout: 1s\n  servers:\n\
         \x20   there: {{ fake: steady }}\n\
         \x20   refused: {{ url: 'http://{0}/mcp' }}\n\
         \x20   hangs: {{ url: '{1}' }}\n\
         \x20   locked: {{ url: '{2}' }}\n\
         \x20   secret: {{ url: 'http://{0}/mcp', headers: {{ a: env:NOT_SET }} }}\n\
         \x20   absent: {{ command: [/no/such/program] }}\n\
         \x20   silent: {{ command: [sleep, '1000'] }}\n\
         \x20   dies: {3}\n",
        closed(),
        hangs.url(),
        locked.url(),
        child(r#"{"opening": "close"}"#),
    );
    let run = connect("unreached", &config, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{}", run.stdout);
    assert!(row(&run.stdout, "there")[0].contains("● 2 tools"), "{}", run.stdout);
    for (name, cause) in [
        ("gone", "✕ connection refused"),
        ("keyless", "✕ no usable key: `env:NOT_SET` is not there"),
        ("refused", "✕ connection refused"),
        ("hangs", "✕ timed out after 1s"),
        ("locked", "✕ credentials rejected"),
        ("secret", "✕ header `a`: the environment variable `NOT_SET` is not set"),
        ("absent", "✕ process cannot be started"),
        ("silent", "✕ timed out after 1s"),
        ("dies", "✕ process exited"),
    ] {
        let lines = row(&run.stdout, name);
        assert!(lines[0].contains(cause), "{name}: {}", run.stdout);
        assert!(lines.iter().any(|line| line.trim().starts_with("hint: ")), "{name}: {lines:?}");
    }
    let absent = row(&run.stdout, "absent").join(" ");
    assert!(absent.contains("log: a server's program cannot be started"), "{absent}");
    assert!(run.stdout.ends_with("\n1 of 10 can be used\n"), "{}", run.stdout);
}

/// A provider that answers one request with a status; gives the request.
fn answering(status: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let mut head = [0; 4096];
        let length = stream.read(&mut head).expect("a request comes");
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).expect("it is read");
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    (address, answering)
}

#[test]
fn a_refused_key_and_a_wrong_base_path_fail_the_check() {
    for (test, status, cause) in [
        ("key-refused", "401 Unauthorized", "✕ answers; status 401: its key was refused"),
        ("key-barred", "403 Forbidden", "✕ answers; status 403: its key was refused"),
        ("no-such-path", "404 Not Found", "✕ answers; status 404: nothing is at this path"),
    ] {
        let (address, answering) = answering(status);
        let config = format!(
            "providers: {{ far: {{ api: openai, url: 'http://{address}/v1', key: literal-key }},\n\
             \x20 near: {{ api: fake }} }}\n\
             routes: {{ fast: {{ tiers: [[far/small], [near/small]] }} }}\n"
        );
        let run = connect(test, &config, &[]);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        let far = row(&run.stdout, "far");
        assert!(far[0].contains(cause), "{far:?}");
        assert!(far.iter().any(|line| line.trim().starts_with("hint: ")), "{far:?}");
        assert!(run.stdout.ends_with("\n1 of 2 can be used\n"), "{}", run.stdout);
        let request = answering.join().expect("it was asked");
        assert!(request.starts_with("GET /v1/models HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("authorization: Bearer literal-key\r\n"), "{request}");
        assert!(!run.stdout.contains("literal-key"), "{}", run.stdout);
    }
}

#[test]
fn the_query_of_a_servers_url_is_sent_and_never_shown() {
    let (address, answering) = answering("500 Internal Server Error");
    let config =
        format!("mcp: {{ servers: {{ far: {{ url: 'http://{address}/mcp?k=hunter2' }} }} }}\n");
    let run = connect("query", &config, &["-v"]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let request = answering.join().expect("it was asked");
    assert!(request.starts_with("POST /mcp?k=hunter2 HTTP/1.1\r\n"), "{request}");
    assert!(!format!("{}{}", run.stdout, run.stderr).contains("hunter2"), "{run:?}");
}

#[test]
fn any_other_status_of_a_provider_is_told_and_is_no_failure() {
    let (address, answering) = answering("503 Service Unavailable");
    let config = format!(
        "providers: {{ far: {{ api: openai, url: 'http://{address}/v1' }},\n\
         \x20 near: {{ api: fake }} }}\n\
         routes: {{ fast: {{ tiers: [[far/small], [near/small]] }} }}\n"
    );
    let run = connect("busy", &config, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert!(row(&run.stdout, "far")[0].contains("● answers; status 503"), "{}", run.stdout);
    answering.join().expect("it was asked");
}

#[test]
fn names_that_are_taken_and_text_that_nobody_sees_are_told() {
    let odd = Tool::new("odd", ToolAct::Echo).about("reads\u{200b} a file");
    let fake = FakeMcpServer::start(McpScript::of(vec![odd, Tool::new("echo", ToolAct::Echo)]));
    let config = format!(
        "mcp: {{ naming: priority, servers: {{ tides: {{ fake: steady }}, \
         quay: {{ url: '{}' }} }} }}\n",
        fake.url()
    );
    let run = connect("names", &config, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`echo` of `quay` is shadowed"), "{}", run.stdout);
    assert!(words.contains("tools: `odd` of `quay` holds characters"), "{}", run.stdout);
}

#[test]
fn json_is_one_document_with_the_connections_in_it() {
    let config = format!(
        "mcp: {{ servers: {{ tides: {{ fake: steady }}, gone: {{ url: 'http://{}/mcp' }} }} }}\n",
        closed()
    );
    let run = connect("json", &config, &["--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{}", run.stdout);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!(document["sound"], true);
    let connect = &document["connect"];
    assert_eq!((&connect["reached"], &connect["all"]), (&1.into(), &2.into()));
    assert_eq!(connect["servers"][0]["tools"], 2);
    assert_eq!(connect["servers"][0]["protocol"], "2025-11-25");
    assert_eq!(connect["servers"][1]["cause"], "connection refused");
    assert!(connect["servers"][1]["hint"].is_string());
}

#[test]
fn nothing_is_asked_without_the_flag_or_by_a_file_with_errors() {
    let fake = FakeMcpServer::start(McpScript::default());
    let sound = format!("mcp: {{ servers: {{ quay: {{ url: '{}' }} }} }}\n", fake.url());
    let wrong = format!("nonsense: 1\n{sound}");
    let folder = support::folder("connect-offline");
    fs::write(folder.join("tidegate.yaml"), &sound).expect("the folder takes files");
    assert_eq!(run(program(&folder).arg("check")).code, Some(0));
    assert_eq!(connect("wrong", &wrong, &[]).code, Some(1));
    assert!(fake.received().is_empty(), "{:?}", fake.received());
    assert_eq!(connect("sound", &sound, &[]).code, Some(0));
    assert!(!fake.received_of("tools/list").is_empty());
    assert_eq!(fake.counts().sessions, 0, "every session is ended");
}

#[test]
fn no_program_is_left_behind_not_even_one_that_hangs() {
    // Nobody else sleeps for exactly this long.
    let number = 900_000 + std::process::id();
    let program = env!("CARGO_BIN_EXE_tidegate");
    let talks = format!("sleep {number} & exec {program} __fake-mcp");
    let config = format!(
        "mcp: {{ call_timeout: 1s, connect_timeout: 1s, servers: {{\n\
         \x20 talks: {{ command: [sh, -c, '{talks}'] }},\n\
         \x20 hangs: {{ command: [sh, -c, 'sleep {number}; true'] }} }} }}\n"
    );
    let run = connect("left", &config, &[]);
    assert!(row(&run.stdout, "talks")[0].contains("● 1 tool"), "{}", run.stdout);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert_eq!(sleepers(number), Vec::<String>::new());
}

/// Processes that sleep for so many seconds.
fn sleepers(seconds: u32) -> Vec<String> {
    let wanted = format!("sleep\0{seconds}\0");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.path()).filter(|path| is_it(path, &wanted));
    names.map(|path| path.display().to_string()).collect()
}

fn is_it(process: &Path, wanted: &str) -> bool {
    fs::read_to_string(process.join("cmdline")).is_ok_and(|line| line == wanted)
}

#[test]
fn rows_fit_60_80_and_120_columns_and_ascii_is_ascii() {
    let config = format!(
        "mcp: {{ servers: {{ a-server-with-a-name: {{ fake: steady }}, \
         gone: {{ url: 'http://{}/mcp' }} }} }}\n",
        closed()
    );
    let folder = support::folder("connect-widths");
    fs::write(folder.join("tidegate.yaml"), config).expect("the folder takes files");
    for columns in [60, 80, 120] {
        let mut command = program(&folder);
        command.args(["check", "--connect", "--ascii"]).env("COLUMNS", columns.to_string());
        let text = run(&mut command).stdout;
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= columns), "{columns}: {text}");
        assert!(text.is_ascii() && text.contains(" x connection refused"), "{text}");
    }
}
