//! `tidegate serve` as an operator meets it: what it says at the start, what its log tells, and
//! which config it takes.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::served::{PATIENCE, Served};
use support::{program, run};

/// Two fake providers; a model name says how one behaves.
const ROUTES: &str = "\
providers: { a: { api: fake }, b: { api: fake } }
routes:
  fine: { tiers: [[a/ok], [b/ok]] }
  broken: { tiers: [[a/status-500, b/status-503]] }
  leaving: { tiers: [[a/status-500], [b/ok]] }
";

fn folder(test: &str) -> PathBuf {
    support::folder(&format!("serve-{test}"))
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("the build's own folder takes files");
}

#[test]
fn the_start_tells_what_check_tells() {
    let folder = folder("warnings");
    let config = format!("{ROUTES}  alone: {{ tiers: [[c/ok]] }}\n");
    let config = config.replace("providers: {", "providers: { c: { api: openai, key: env:UNSET },");
    write(&folder, "tidegate.yaml", &config);
    let served = Served::start(&folder, &[]);
    let said = served.heard.join("\n");
    for words in [
        "warning[TG033]: `providers.c.key` cannot be resolved",
        "= help: set `UNSET` and restart",
        "warning[TG023]: route `alone` has a single target",
    ] {
        assert!(said.contains(words), "no `{words}` in:\n{said}");
    }
    let health = served.get("/v1/health", "");
    assert!(health.contains(r#""standing":"unconfigured""#), "{health}");
    let metrics = served.ask(
        &served.admin,
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    );
    let series = r#"tidegate_backend_standing{backend="c/ok",standing="unconfigured"} 1"#;
    assert!(metrics.contains(series), "{metrics}");
}

#[test]
fn a_json_log_is_json_from_its_first_line() {
    let folder = folder("json");
    write(
        &folder,
        "tidegate.yaml",
        &format!("{ROUTES}  alone: {{ tiers: [[b/ok]] }}\nlog: {{ format: json }}\n"),
    );
    let mut served = Served::start(&folder, &[]);
    served.until("TG023");
    for line in &served.heard {
        let line: Result<Value, _> = serde_json::from_str(line);
        assert!(line.is_ok_and(|line| line["message"].is_string()), "{:#?}", served.heard);
    }
}

#[test]
fn a_failed_request_is_one_line_with_its_attempts() {
    let folder = folder("failed");
    write(&folder, "tidegate.yaml", ROUTES);
    let mut served = Served::start(&folder, &[]);
    let answer = served.chat("broken", "");
    assert!(answer.starts_with("HTTP/1.1 50"), "{answer}");
    let line = served.until("a client got no whole answer");
    for words in ["warning: ", "request_id=req_", "route=broken", "a/status-500 500 server_error"] {
        assert!(line.contains(words), "no `{words}` in {line}");
    }
    for _ in 0..3 {
        served.chat("leaving", "");
    }
    let line = served.until("traffic moved  route=leaving");
    assert!(line.ends_with("from=a/status-500 to=b/ok"), "{line}");
}

#[test]
fn refusals_and_every_request_are_logged() {
    let folder = folder("refused");
    let keys = "keys:\n  - { name: ci, key: a-key-of-a-caller, routes: [fine] }\n";
    write(
        &folder,
        "tidegate.yaml",
        &format!("{ROUTES}{keys}log: {{ access: true }}\nadmin: {{ token: an-admin-token }}\n"),
    );
    let mut served = Served::start(&folder, &[]);
    served.get("/v1/models", "authorization: Bearer wrong\r\n");
    let line = served.until("event=unknown_key");
    assert!(line.contains("path=/v1/models request_id=req_") && !line.contains("wrong"), "{line}");
    let line = served.until("request ended");
    assert!(line.contains("method=GET path=/v1/models status=401"), "{line}");
    served.chat("broken", "authorization: Bearer a-key-of-a-caller\r\n");
    let line = served.until("event=route_not_allowed");
    assert!(line.contains("route=broken caller=ci"), "{line}");
    let reload = "POST /api/reload HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                  authorization: Bearer wrong\r\ncontent-length: 0\r\n\r\n";
    served.ask(&served.admin, reload);
    served.until("event=wrong_admin_token path=/api/reload");
    served.get("/health", "");
    served.until("method=GET path=/health status=200");
    served.chat("fine", "authorization: Bearer a-key-of-a-caller\r\n");
    let line = served.until("route=fine");
    assert!(line.contains("status=200 attempts=1"), "{line}");
}

#[test]
fn a_reload_tells_what_changed_and_what_needs_a_restart() {
    let folder = folder("reload");
    let config = ROUTES.replace(
        "b: { api: fake }",
        "b: { api: openai, url: 'http://127.0.0.1:9', key: 'file:key' }",
    );
    write(&folder, "key", "first");
    write(&folder, "tidegate.yaml", &config);
    let mut served = Served::start(&folder, &[]);
    write(&folder, "key", "second-key");
    let line = served.until("config reloaded");
    assert!(line.contains("by=file") && line.ends_with("changed=providers.b.key"), "{line}");
    let changed = format!("{config}default_route: fine\nshutdown: {{ drain: 1s }}\n");
    write(&folder, "tidegate.yaml", &changed);
    let line = served.until("config reloaded");
    assert!(line.ends_with("changed=\"default_route, shutdown\""), "{line}");
    let line = served.until("after a restart");
    assert!(line.ends_with("keys=shutdown.drain"), "{line}");
    write(&folder, "tidegate.yaml", &format!("{changed}apikey: hunter2-secret\n"));
    served.until("config not reloaded: the previous one stays in force");
    let line = served.until("the config has an error");
    assert!(line.contains("code=TG010 at=tidegate.yaml:8:1"), "{line}");
    assert!(!served.heard.concat().contains("hunter2"), "{:#?}", served.heard);
}

#[test]
fn the_demo_is_served_loudly_and_never_in_place_of_a_config() {
    let none = folder("none");
    let served = Served::start(&none, &[]);
    let said = served.heard.join("\n");
    assert!(said.contains("warning: no config file: there is no `tidegate.yaml`"), "{said}");
    assert!(said.contains("warning: serving the built-in demo"), "{said}");
    assert!(served.address.starts_with("127.0.0.1:") && served.address != "127.0.0.1:8700");
    let near = folder("near");
    write(&near, "tidegate.prod.yaml", ROUTES);
    let refused = run(program(&near).arg("serve"));
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("there is a `tidegate.prod.yaml`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: `tidegate serve -c tidegate.prod.yaml`"));
    let named = run(program(&none).arg("serve").env("TIDEGATE_CONFIG", "missing.yaml"));
    assert_eq!(named.code, Some(3), "{}", named.stderr);
    assert!(named.stderr.contains("missing.yaml"), "{}", named.stderr);
    let short = folder("yml");
    write(&short, "tidegate.yml", ROUTES);
    let served = Served::start(&short, &[]);
    assert!(served.heard.join("\n").contains("tidegate.yml (sha"), "{:#?}", served.heard);
}

#[test]
fn an_empty_file_and_an_open_listener_are_refused_as_check_refuses_them() {
    let folder = folder("empty");
    write(&folder, "tidegate.yaml", "# nothing yet\n");
    let (served, checked) =
        (run(program(&folder).arg("serve")), run(program(&folder).arg("check")));
    assert_eq!((served.code, checked.code), (Some(5), Some(1)));
    for said in [&served.stderr, &checked.stdout] {
        assert!(said.contains("error[TG055]: `tidegate.yaml` has no route"), "{said}");
    }
    write(&folder, "tidegate.yaml", ROUTES);
    let open = run(program(&folder).args(["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(open.code, Some(5), "{}", open.stderr);
    assert!(open.stderr.contains("error[TG029]"), "{}", open.stderr);
}

#[test]
fn s31_a_session_of_another_caller_is_refused_and_logged() {
    let folder = folder("foreign");
    let keys = "keys:\n  - { name: ada, key: the-key-of-ada-1234 }\n\
                \x20 - { name: bob, key: the-key-of-bob-1234 }\n\
                mcp: { servers: { tides: { fake: steady } } }\n";
    write(&folder, "tidegate.yaml", &format!("{ROUTES}{keys}"));
    let mut served = Served::start(&folder, &[]);
    let session = opened_session(&served, "the-key-of-ada-1234");
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let refused = served.ask(&served.address, &mcp_post("the-key-of-bob-1234", &session, list));
    assert!(refused.starts_with("HTTP/1.1 404"), "{refused}");
    let line = served.until("event=foreign_session");
    assert!(line.contains("path=/mcp caller=bob"), "{line}");
}

#[test]
fn a_call_that_an_mcp_server_could_not_answer_is_logged_with_its_cause() {
    let folder = folder("mcp-failure");
    let keys = "keys:\n  - { name: ada, key: the-key-of-ada-1234 }\n\
                mcp:\n  servers:\n    tides: { fake: steady }\n\
                \x20   gone: { url: 'http://127.0.0.1:1/mcp' }\n";
    write(&folder, "tidegate.yaml", &format!("{ROUTES}{keys}"));
    let mut served = Served::start(&folder, &[]);
    let session = opened_session(&served, "the-key-of-ada-1234");
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{
        "name":"gone_anything","arguments":{}}}"#;
    let answer = served.ask(&served.address, &mcp_post("the-key-of-ada-1234", &session, call));
    assert!(answer.contains("backend_unavailable"), "{answer}");
    let line = served.until("an MCP server could not answer a client");
    for part in ["server=gone", "method=tools/call", "code=backend_unavailable", "caller=ada"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn what_was_decided_survives_kill_9() {
    let folder = folder("killed");
    let config = format!("{ROUTES}history: {{ file: tidegate.db }}\naudit: {{ file: a.jsonl }}\n");
    write(&folder, "tidegate.yaml", &config);
    drop(fs::remove_file(folder.join("a.jsonl")));
    for name in ["tidegate.db", "tidegate.db-wal", "tidegate.db-shm"] {
        drop(fs::remove_file(folder.join(name)));
    }
    let served = Served::start(&folder, &[]);
    let answer = served.chat("fine", "");
    let id = answer.lines().find_map(|it| it.strip_prefix("x-tidegate-request-id: "));
    let id = id.unwrap_or_else(|| panic!("no id in {answer}")).to_owned();
    // Nobody asks for it: within a second or so it is on the disk by itself.
    let until = std::time::Duration::from_millis(20);
    let mut waited = std::time::Duration::ZERO;
    while !fs::read_to_string(folder.join("a.jsonl")).is_ok_and(|it| it.contains(&id)) {
        assert!(waited < PATIENCE, "the audit log has no line of {id}");
        tidegate_testkit::time::pause(until);
        waited += until;
    }
    let get = |served: &Served, path: &str| {
        let head = "HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        served.ask(&served.admin, &format!("GET {path} {head}"))
    };
    // The list waits for what is on its way to the history file.
    assert!(get(&served, "/api/decisions").contains(&id));
    served.stop_dead();
    let served = Served::start(&folder, &[]);
    let found = get(&served, &format!("/api/decisions/{id}"));
    assert!(found.starts_with("HTTP/1.1 200") && found.contains("a/ok"), "{found}");
    assert!(get(&served, "/api/snapshot").contains(r#""status":"ok""#));
    assert_eq!(
        fs::read_to_string(folder.join("a.jsonl")).map(|it| it.lines().count()).ok(),
        Some(1)
    );
}

#[test]
fn a_disk_that_takes_no_more_fails_no_request_and_is_told() {
    let folder = folder("full");
    let config = format!("{ROUTES}history: {{ file: tidegate.db }}\naudit: {{ file: a.jsonl }}\n");
    write(&folder, "tidegate.yaml", &config);
    for name in ["a.jsonl", "tidegate.db", "tidegate.db-wal", "tidegate.db-shm"] {
        drop(fs::remove_file(folder.join(name)));
    }
    // No file may grow beyond so many blocks: a write fails then, as on a full disk.
    let limited = "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_tidegate"), "serve"]);
    command.args(["--listen", ":0", "--admin-listen", "localhost:0"]);
    let mut served = Served::spawn(command.current_dir(&folder).env_clear());
    let get = |served: &Served, path: &str| {
        let head = "HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        served.ask(&served.admin, &format!("GET {path} {head}"))
    };
    let mut asked = 0;
    while !get(&served, "/api/snapshot").contains(r#""status":"failed""#) {
        assert!(asked < 5_000, "the limit was never reached");
        for _ in 0..100 {
            assert!(served.chat("fine", "").starts_with("HTTP/1.1 200"));
            asked += 1;
        }
    }
    let line = served.until("cannot be written: records are dropped");
    assert!(line.contains("problem="), "{line}");
    assert!(served.chat("fine", "").starts_with("HTTP/1.1 200"), "serving goes on");
    let counted = |store: &str| {
        let metrics = get(&served, "/metrics");
        let name = format!("tidegate_records_dropped_total{{store=\"{store}\"}} ");
        let value = metrics.lines().find_map(|it| it.strip_prefix(&name)?.parse::<u64>().ok());
        value.unwrap_or(0)
    };
    assert!(counted("history") + counted("audit") > 0, "what is lost is counted");
    // The newest requests are still in memory.
    assert!(get(&served, "/api/decisions?limit=1").contains("a/ok"));
}

#[test]
fn a_history_that_cannot_be_kept_is_told_at_the_start_and_nothing_waits_for_it() {
    let folder = folder("foreign");
    let config = format!("{ROUTES}history: {{ file: mine.txt }}\naudit: {{ file: no/a.jsonl }}\n");
    write(&folder, "tidegate.yaml", &config);
    write(&folder, "mine.txt", "a text of somebody's\n");
    let mut served = Served::start(&folder, &[]);
    let line = served.until("what=history");
    assert!(line.contains("records are not kept") && line.contains("mine.txt"), "{line}");
    assert!(line.contains("not a history of tidegate"), "{line}");
    let line = served.until("what=audit");
    assert!(line.contains("records are not kept") && line.contains("a.jsonl"), "{line}");
    assert!(served.chat("fine", "").starts_with("HTTP/1.1 200"));
    let text = fs::read_to_string(folder.join("mine.txt")).expect("it is still there");
    assert_eq!(text, "a text of somebody's\n");
}

/// A request to `/mcp`; `session` is a header line with its end, or nothing.
fn mcp_post(key: &str, session: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {key}\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{session}\r\n{body}",
        body.len()
    )
}

/// The header line of a session that was opened with this key.
fn opened_session(served: &Served, key: &str) -> String {
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{},
        "clientInfo":{"name":"t","version":"1"}}}"#;
    let opened = served.ask(&served.address, &mcp_post(key, "", hello));
    let session = opened.lines().find(|line| line.starts_with("mcp-session-id:"));
    format!("{}\r\n", session.unwrap_or_else(|| panic!("no session in {opened}")))
}
