//! `tidegate tools` against a gateway with scripted MCP servers.

mod support;

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use support::{Run, folder, program, run};
use tidegate_config::{secret::FixedEnvironment, source::Source};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_server::server::{Server, Start};

/// A gateway in front of one scripted server and a built-in one.
struct Bed {
    gateway: Option<Server>,
    _fake: FakeMcpServer,
}

impl Bed {
    /// `top`: further top-level keys.
    fn new(tools: Vec<Tool>, top: &str) -> Self {
        let fake = FakeMcpServer::start(McpScript::of(tools));
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: '127.0.0.1:0' }}\n{top}\n\
             mcp: {{ servers: {{ quay: {{ url: '{}' }}, tides: {{ fake: steady }} }} }}\n",
            fake.url()
        );
        let gateway = Server::start(Start {
            source: Source::new("test.yaml", &text),
            path: None,
            environment: Arc::new(FixedEnvironment::default()),
            threads: 1,
        });
        Self { gateway: Some(gateway.expect("the gateway starts")), _fake: fake }
    }

    fn url(&self) -> String {
        let gateway = self.gateway.as_ref().expect("it runs until it is dropped");
        format!("http://{}", gateway.address())
    }

    fn tools(&self, test: &str, args: &[&str]) -> Run {
        let mut command = program(&folder(&format!("tools-{test}")));
        run(command.env("TIDEGATE_URL", self.url()).arg("tools").args(args))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop();
        }
    }
}

#[test]
fn the_list_has_every_tool_with_the_first_line_of_what_it_is_for() {
    let tool = Tool::new("move", ToolAct::Echo).about("\nMoves a crate\nand more");
    let bed = Bed::new(vec![tool], "");
    let list = bed.tools("list", &["list"]);
    assert_eq!((list.code, list.stderr.as_str()), (Some(0), ""));
    let expected = "\
quay_move        Moves a crate
tides_echo       Says what it was told
tides_next_tide  When the next tide comes
";
    assert_eq!(list.stdout, expected);
    let json = bed.tools("list-json", &["list", "--json"]);
    let document: Value = serde_json::from_str(&json.stdout).expect("one document");
    assert_eq!(document["tools"][0]["description"], "\nMoves a crate\nand more");
    assert_eq!(document["url"], format!("{}/mcp", bed.url()));
}

#[test]
fn the_config_says_where_the_gateway_is_and_which_servers_it_has() {
    let bed = Bed::new(vec![Tool::new("move", ToolAct::Echo)], "");
    let folder = folder("tools-config");
    let address = bed.url().replace("http://", "");
    let config = format!(
        "listen: {address}\nmcp: {{ servers: {{ quay: {{ fake: steady }}, \
         tides: {{ fake: steady }} }} }}\n"
    );
    fs::write(folder.join("tidegate.yaml"), config).expect("the folder takes files");
    let list = run(program(&folder).args(["tools", "list"]));
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    assert!(list.stdout.contains("tides_echo       tides  Says what"), "{}", list.stdout);
    fs::write(folder.join("tidegate.yaml"), "listen: nowhere\n").expect("the folder takes files");
    let refused = run(program(&folder).args(["tools", "list"]));
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""));
    assert!(refused.stderr.contains("hint: `tidegate check "), "{}", refused.stderr);
}

#[test]
fn a_call_prints_the_text_of_its_result_however_its_arguments_were_written() {
    let bed = Bed::new(vec![Tool::new("say", ToolAct::Echo)], "");
    let expected = "{\"text\":\"hello\",\"count\":3}\n";
    for args in [
        &["call", "quay_say", "text=hello", "count=3"][..],
        &["call", "quay_say", r#"{"text": "hello", "count": 3}"#],
    ] {
        let call = bed.tools("call", args);
        assert_eq!((call.code, call.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert_eq!(call.stdout, expected, "{args:?}");
    }
    let json = bed.tools("call-json", &["call", "quay_say", "--json"]);
    let document: Value = serde_json::from_str(&json.stdout).expect("one document");
    assert_eq!(document["content"], json!([{"type": "text", "text": "{}"}]));
}

#[test]
fn a_tool_that_failed_is_1_with_its_words_on_stderr() {
    let failed = Tool::new("fails", ToolAct::Failed("the crane is stuck".into()));
    let error = Tool::new("errs", ToolAct::Error { code: -32602, message: "no such berth".into() });
    let bed = Bed::new(vec![failed, error], "");
    for (tool, words) in [
        ("quay_fails", "error: the crane is stuck\n"),
        ("quay_errs", "error: no such berth\n"),
        ("quay_fials", "did you mean `quay_fails`?"),
    ] {
        let call = bed.tools("fails", &["call", tool]);
        assert_eq!((call.code, call.stdout.as_str()), (Some(1), ""), "{tool}");
        assert!(call.stderr.contains(words), "{tool}: {}", call.stderr);
    }
    let json = bed.tools("fails-json", &["call", "quay_errs", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (Some(1), ""));
    let document: Value = serde_json::from_str(&json.stdout).expect("one document");
    assert_eq!(document["error"]["code"], -32602);
}

#[test]
fn no_gateway_is_4_and_says_how_to_start_one() {
    let bed = Bed::new(Vec::new(), "");
    let url = bed.url();
    drop(bed);
    for args in [&["list"][..], &["call", "x"]] {
        let mut command = program(&folder("tools-nobody"));
        let run = run(command.env("TIDEGATE_URL", &url).arg("tools").args(args));
        assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""), "{args:?}");
        assert!(run.stderr.contains("connection refused"), "{}", run.stderr);
        assert!(run.stderr.contains("hint: `tidegate serve`"), "{}", run.stderr);
    }
}

#[test]
fn what_is_no_mcp_is_4_too() {
    let bed = Bed::new(Vec::new(), "");
    let url = format!("{}/v1/nothing", bed.url());
    let run = bed.tools("no-mcp", &["list", "--url", &url]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""), "{}", run.stderr);
    assert!(run.stderr.contains("is no MCP gateway"), "{}", run.stderr);
}

#[test]
fn a_gateway_with_keys_wants_one_from_the_environment() {
    let bed = Bed::new(vec![Tool::new("say", ToolAct::Echo)], "keys: [{ name: ci, key: s3cret }]");
    let without = bed.tools("no-key", &["list"]);
    assert_eq!((without.code, without.stdout.as_str()), (Some(1), ""));
    assert!(without.stderr.contains("TIDEGATE_KEY"), "{}", without.stderr);
    let mut command = program(&folder("tools-key"));
    command.env("TIDEGATE_URL", bed.url()).env("TIDEGATE_KEY", "s3cret");
    let with = run(command.args(["tools", "list"]));
    assert_eq!(with.code, Some(0), "{}", with.stderr);
}

#[test]
fn progress_is_talk_and_the_answer_is_the_result() {
    let tool = Tool::new("lift", ToolAct::Progress { steps: 3, every_ms: 1 });
    let bed = Bed::new(vec![tool], "");
    let call = bed.tools("progress", &["call", "quay_lift"]);
    assert_eq!(call.code, Some(0), "{}", call.stderr);
    assert_eq!(call.stderr.lines().count(), 3, "{}", call.stderr);
    assert!(!call.stdout.is_empty());
    let quiet = bed.tools("progress-quiet", &["-q", "call", "quay_lift"]);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let bed = Bed::new(vec![Tool::new("wait", ToolAct::Hang)], "");
    let call = bed.tools("timeout", &["call", "quay_wait", "--timeout", "300ms"]);
    assert_eq!((call.code, call.stdout.as_str()), (Some(1), ""), "{}", call.stderr);
    assert!(call.stderr.contains("timed out after 300ms"), "{}", call.stderr);
    assert!(call.stderr.contains("hint: `--timeout"), "{}", call.stderr);
}

#[test]
fn a_tool_cannot_talk_to_the_terminal() {
    let tool = Tool::new("odd", ToolAct::Text("a\u{1b}]0;title\u{7}b".into()));
    let bed = Bed::new(vec![tool], "");
    let call = bed.tools("terminal", &["--color", "always", "call", "quay_odd"]);
    assert_eq!(call.stdout, "a\\u{1b}]0;title\\u{7}b\n");
}
