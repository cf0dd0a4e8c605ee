//! `tidegate tools search` against gateways of both kinds, and against a config without one.

mod support;

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;

use serde_json::Value;
use support::{Run, folder, program, run};
use tidegate_config::{secret::FixedEnvironment, source::Source};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_server::server::{Server, Start};

fn tracker() -> FakeMcpServer {
    let issue = Tool::new("create_issue", ToolAct::Echo).about("Opens a new issue in a repository");
    let commits = Tool::new("list_commits", ToolAct::Echo).about("Lists the commits of a branch");
    FakeMcpServer::start(McpScript::of(vec![issue, commits]))
}

fn config(listen: &str, tracker: &FakeMcpServer, mcp: &str) -> String {
    format!(
        "listen: '{listen}'\nadmin: {{ listen: '127.0.0.1:0' }}\n\
         mcp: {{ {mcp} servers: {{ tracker: {{ url: '{}' }}, tides: {{ fake: steady }} }} }}\n",
        tracker.url()
    )
}

/// Searches with a gateway that runs, found by its url.
fn search(test: &str, mcp: &str, args: &[&str]) -> Run {
    let tracker = tracker();
    let text = config("127.0.0.1:0", &tracker, mcp);
    let gateway = Server::start(Start {
        source: Source::new("test.yaml", &text),
        path: None,
        environment: Arc::new(FixedEnvironment::default()),
        threads: 1,
    });
    let gateway = gateway.expect("the gateway starts");
    let url = format!("http://{}", gateway.address());
    let mut command = program(&folder(&format!("search-{test}")));
    let run = run(command.env("TIDEGATE_URL", url).args(["tools", "search"]).args(args));
    gateway.stop();
    run
}

/// An address that nobody listens on.
fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("it is bound").to_string()
}

#[test]
fn both_kinds_of_gateway_find_the_same_tool_and_say_how_to_call_it() {
    for (test, mcp) in [("all", ""), ("search", "tools: search,")] {
        let run = search(test, mcp, &["open", "a new issue"]);
        assert_eq!(run.code, Some(0), "{mcp}: {}", run.stderr);
        let first = run.stdout.lines().next().unwrap_or_default();
        assert!(first.contains("  tracker_create_issue  "), "{mcp}: {}", run.stdout);
        assert!(first.ends_with("Opens a new issue in a repository"), "{mcp}: {}", run.stdout);
        let next = "\nnext: tidegate tools call tracker_create_issue\n";
        assert_eq!(run.stderr, next, "{mcp}");
    }
}

#[test]
fn an_explanation_says_which_words_counted_and_what_each_part_added() {
    for (test, mcp) in [("explain-all", ""), ("explain-search", "tools: search,")] {
        let run = search(test, mcp, &["--explain", "--limit", "1", "open a new isssue"]);
        let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("a good match needs"), "{mcp}: {}", run.stdout);
        assert!(words.contains("issue (corrected) in name+description"), "{}", run.stdout);
        assert!(words.contains("meaning"), "{mcp}: {}", run.stdout);
        assert!(!words.contains("tracker_list_commits"), "{mcp}: {}", run.stdout);
        let json = search(test, mcp, &["--explain", "--json", "open a new isssue"]);
        let document: Value = serde_json::from_str(&json.stdout).expect("one document");
        assert_eq!(document["good_match"], true, "{document:#}");
        assert_eq!(document["query"], "open a new isssue");
        let first = &document["tools"][0];
        assert_eq!(first["name"], "tracker_create_issue", "{document:#}");
        assert!(first["score"].is_number(), "{first}");
        assert!(first["explanation"]["parts"]["words"].is_number(), "{first}");
    }
}

#[test]
fn what_no_tool_does_is_1_with_a_hint() {
    for (test, mcp) in [("none-all", ""), ("none-search", "tools: search,")] {
        let run = search(test, mcp, &["of the"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{mcp}: {}", run.stderr);
        assert!(run.stderr.contains("hint: `tidegate tools list`"), "{}", run.stderr);
    }
}

#[test]
fn where_no_gateway_answers_the_servers_of_the_config_are_asked() {
    let tracker = tracker();
    let folder = folder("search-config");
    let config = config(&closed(), &tracker, "tools: search,");
    let config = config
        .replace("tides: {", &format!("gone: {{ url: 'http://{}/mcp' }}, tides: {{", closed()));
    fs::write(folder.join("tidegate.yaml"), config).expect("the folder takes files");
    let plain = run(program(&folder).args(["tools", "search", "open an issue"]));
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    let first = plain.stdout.lines().next().unwrap_or_default();
    assert!(first.contains("tracker_create_issue  tracker  Opens"), "{}", plain.stdout);
    assert!(plain.stderr.starts_with("no gateway answers at"), "{}", plain.stderr);
    assert!(plain.stderr.contains("`gone` cannot be reached"), "{}", plain.stderr);
    let args = ["tools", "search", "open an issue", "--json", "-q", "-c", "tidegate.yaml"];
    let json = run(program(&folder).args(args));
    let document: Value = serde_json::from_str(&json.stdout).expect("one document");
    assert_eq!(document["config"], "tidegate.yaml");
    assert_eq!(document["unreached"][0]["server"], "gone", "{document:#}");
    assert_eq!(document["tools"][0]["name"], "tracker_create_issue", "{document:#}");
}

#[test]
fn a_named_gateway_that_does_not_answer_is_4_and_empty_words_are_2() {
    let folder = folder("search-nobody");
    let url = format!("http://{}", closed());
    let run_with = |args: &[&str]| run(program(&folder).args(["tools", "search"]).args(args));
    let nobody = run_with(&["send mail", "--url", &url]);
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(4), ""), "{}", nobody.stderr);
    for args in [&[][..], &[" "], &["x", "--limit", "0"], &["x", "--limit", "51"]] {
        let run = run_with(args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn the_help_is_as_committed() {
    let help = run(program(&folder("search-help")).args(["tools", "search", "--help"]));
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("help", help.stdout);
}
