//! `tools: search`: what a client finds, and that calling it is like any other call.

mod answers;
mod input;
mod model;
mod vectors;

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{gate::Gate, mcp::text_of, time::eventually};

use crate::bed::{Setup, assert_unavailable};

/// A breaker that opens at the first failure and stays open.
const STAYS: &str = "failure_threshold: 1, open_for: 60s, recovery_threshold: 1";

fn tool(name: &str, about: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "title": { "type": "string" }, "count": { "type": "integer" } },
        "required": ["title"],
    });
    let definition = json!({ "name": name, "description": about, "inputSchema": schema });
    Tool::new(name, ToolAct::Echo).defined_as(&definition.to_string())
}

fn tracker() -> FakeMcpServer {
    FakeMcpServer::start(McpScript::of(vec![
        tool("create_issue", "Opens a new issue in a repository"),
        tool("list_commits", "Lists the commits of a branch"),
    ]))
}

fn mailer() -> FakeMcpServer {
    FakeMcpServer::start(McpScript::of(vec![tool("send_message", "Sends an email to a person")]))
}

fn gate(servers: &[(&'static str, &FakeMcpServer)]) -> Gate {
    Setup { mcp: "tools: search,", health: STAYS, ..Setup::of(servers) }.start()
}

fn names(found: &Value) -> Vec<&str> {
    let tools = found["structuredContent"]["tools"].as_array().expect("tools");
    tools.iter().filter_map(|it| it["name"].as_str()).collect()
}

#[test]
fn two_tools_are_listed_and_say_what_is_behind_them() {
    let (tracker, mailer) = (tracker(), mailer());
    let gate = gate(&[("tracker", &tracker), ("mailer", &mailer)]);
    let client = gate.open();
    assert_eq!(client.tools(), ["find_tool", "call_tool"]);
    let listed = client.list("tools/list", "tools");
    let about = listed[0]["description"].as_str().expect("a description");
    assert!(about.contains("tracker (2: create_issue, list_commits)"), "{about}");
    assert!(about.contains("mailer (1: send_message)"), "{about}");
}

#[test]
fn a_tool_is_found_by_what_it_does_and_called_by_the_name_that_was_found() {
    let (tracker, mailer) = (tracker(), mailer());
    let gate = gate(&[("tracker", &tracker), ("mailer", &mailer)]);
    let client = gate.open();
    let found =
        client.call("find_tool", json!({"tool_description": "report a bug: open an issue"}));
    assert_eq!(names(&found).first(), Some(&"tracker_create_issue"), "{found}");
    let first = &found["structuredContent"]["tools"][0];
    assert_eq!((&first["server"], &first["available"]), (&json!("tracker"), &json!(true)));
    assert_eq!(first["input_schema"]["required"], json!(["title"]));
    assert!(first["score"].as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)), "{first}");
    let tokens = &found["structuredContent"]["tokens"];
    let count = |key: &str| tokens[key].as_u64().expect("a count");
    assert_eq!(count("saved"), count("baseline").saturating_sub(count("returned")));
    let text: Value = serde_json::from_str(&text_of(&found)).expect("the text is JSON");
    assert_eq!(text, found["structuredContent"], "the same twice");
    let called = json!({"tool_name": "tracker_create_issue", "parameters": {"title": "it broke"}});
    assert_eq!(text_of(&client.call("call_tool", called)), r#"{"title":"it broke"}"#);
}

#[test]
fn nothing_is_found_for_what_no_tool_does() {
    let tracker = tracker();
    let gate = gate(&[("tracker", &tracker)]);
    let client = gate.open();
    let found = client.call("find_tool", json!({"tool_description": "water the tomatoes at noon"}));
    assert_eq!(found["structuredContent"]["good_match"], false, "{found}");
    assert!(found["structuredContent"]["hint"].as_str().is_some(), "{found}");
    let good = client.call("find_tool", json!({"tool_description": "open a new issue"}));
    assert_eq!(good["structuredContent"]["good_match"], true, "{good}");
    assert!(good["structuredContent"].get("hint").is_none(), "{good}");
}

#[test]
fn a_named_server_is_looked_at_first_and_a_poor_answer_names_servers() {
    let (tracker, mailer) = (tracker(), mailer());
    let gate = gate(&[("tracker", &tracker), ("mailer", &mailer)]);
    let client = gate.open();
    let listed = client.list("tools/list", "tools");
    let about = listed[0]["description"].as_str().expect("a description");
    assert!(about.contains("the action, the kind of thing and the product"), "{about}");
    assert!(listed[0]["inputSchema"]["properties"].get("server").is_some(), "{listed:?}");
    let wish = json!({"tool_description": "create an issue", "server": "Tracker"});
    let found = client.call("find_tool", wish);
    assert_eq!(names(&found).first(), Some(&"tracker_create_issue"), "{found}");
    assert!(names(&found).iter().all(|name| name.starts_with("tracker_")), "{found}");
    let wish = json!({"tool_description": "water the tomatoes at noon"});
    let poor = client.call("find_tool", wish);
    let hint = poor["structuredContent"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("Servers that might fit: "), "{hint}");
}

#[test]
fn wrong_arguments_are_told_with_what_the_tool_takes_and_never_reach_it() {
    let (tracker, mailer) = (tracker(), mailer());
    let gate = gate(&[("tracker", &tracker), ("mailer", &mailer)]);
    let client = gate.open();
    let wrong = json!({"tool_name": "tracker_create_issue", "parameters": {"count": "many"}});
    let told = client.call("call_tool", wrong);
    assert_eq!(told["isError"], true, "{told}");
    let text = text_of(&told);
    assert!(text.contains("title: string, count?: integer"), "{text}");
    assert!(text.contains("- `title` is missing\n"), "{text}");
    assert!(text.contains("- `/count`: must be an integer, and is a string: `\"many\"`"), "{text}");
    assert_eq!(tracker.counts().delivered("create_issue"), 0);
    let unknown = client.call("call_tool", json!({"tool_name": "tracker_create_isue"}));
    assert!(text_of(&unknown).contains("Did you mean `tracker_create_issue`?"), "{unknown}");
    for bad in [json!({}), json!({"tool_name": 7}), json!({"tool_name": "x", "parameters": 3})] {
        assert_eq!(client.call("call_tool", bad.clone())["isError"], true, "{bad}");
    }
    for bad in [json!({}), json!({"tool_description": ""}), json!({"tool_description": 3})] {
        assert_eq!(client.call("find_tool", bad.clone())["isError"], true, "{bad}");
    }
}

#[test]
fn tools_of_a_server_that_was_down_at_the_start_are_not_found_and_later_sessions_find_them() {
    let (tracker, mailer) = (tracker(), mailer());
    mailer.crash();
    let setup =
        Setup { mcp: "tools: search,", ..Setup::of(&[("tracker", &tracker), ("mailer", &mailer)]) };
    let gate = setup.start();
    let wish = json!({"tool_description": "send an email to a person"});
    let early = gate.open();
    assert!(!names(&early.call("find_tool", wish.clone())).contains(&"mailer_send_message"));
    mailer.restart();
    eventually("a new session finds it", || {
        names(&gate.open().call("find_tool", wish.clone())).first() == Some(&"mailer_send_message")
    });
    assert!(!names(&early.call("find_tool", wish)).contains(&"mailer_send_message"));
}

#[test]
fn tools_of_a_server_that_failed_meanwhile_are_marked_and_a_call_names_it() {
    let (tracker, mailer) = (tracker(), mailer());
    let gate = gate(&[("tracker", &tracker), ("mailer", &mailer)]);
    let client = gate.open();
    let wish = json!({"tool_description": "send an email to a person"});
    assert_eq!(
        names(&client.call("find_tool", wish.clone())).first(),
        Some(&"mailer_send_message")
    );
    mailer.crash();
    let call = json!({"tool_name": "mailer_send_message", "parameters": {"title": "x"}});
    assert_unavailable(&client.call("call_tool", call), "mailer", "backend_unavailable");
    let found = client.call("find_tool", wish);
    assert_eq!(found["structuredContent"]["tools"][0]["available"], false, "{found}");
}

#[test]
fn pinned_tools_stand_beside_the_two_and_compact_answers_are_short() {
    let (tracker, mailer) = (tracker(), mailer());
    let servers = [("tracker", &tracker), ("mailer", &mailer)];
    let mcp = "tools: search, pinned_tools: [mailer_send_message],";
    let gate = Setup { mcp, ..Setup::of(&servers) }.start();
    let client = gate.open();
    assert_eq!(client.tools(), ["find_tool", "call_tool", "mailer_send_message"]);
    assert_eq!(client.text("mailer_send_message"), "{}");
    let wish = json!({"tool_description": "open an issue", "detail": "compact", "limit": 1});
    let found = client.call("find_tool", wish);
    assert_eq!(names(&found), ["tracker_create_issue"]);
    let first = &found["structuredContent"]["tools"][0];
    assert_eq!(first["parameters"], "title: string, count?: integer");
    assert!(first.get("input_schema").is_none(), "{first}");
}

#[test]
fn with_every_server_down_a_search_finds_nothing_and_says_why_at_once() {
    let (tracker, mailer) = (tracker(), mailer());
    let gate = gate(&[("tracker", &tracker), ("mailer", &mailer)]);
    let before = gate.open();
    let wish = json!({"tool_description": "open a new issue"});
    assert_eq!(
        names(&before.call("find_tool", wish.clone())).first(),
        Some(&"tracker_create_issue")
    );
    tracker.crash();
    mailer.crash();
    for (tool, server) in [("tracker_create_issue", "tracker"), ("mailer_send_message", "mailer")] {
        let call = json!({"tool_name": tool, "parameters": {"title": "x"}});
        assert_unavailable(&before.call("call_tool", call), server, "backend_unavailable");
    }
    let after = gate.open();
    assert_eq!(after.tools(), ["find_tool", "call_tool"]);
    let found = after.call("find_tool", wish.clone());
    assert_eq!(names(&found), Vec::<&str>::new(), "{found}");
    let hint = found["structuredContent"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("No server is available"), "{hint}");
    let marked = before.call("find_tool", wish);
    assert_eq!(marked["structuredContent"]["tools"][0]["available"], false, "{marked}");
}

#[test]
fn an_explanation_is_given_to_whoever_asks_for_it() {
    let tracker = tracker();
    let gate = gate(&[("tracker", &tracker)]);
    let client = gate.open();
    let wish = json!({"tool_description": "open a new issue", "explain": true});
    let told = client.call("find_tool", wish);
    let first = &told["structuredContent"]["tools"][0]["explanation"];
    assert!(first["parts"]["words"].as_f64().is_some_and(|words| words > 0.0), "{told}");
    let plain = client.call("find_tool", json!({"tool_description": "open a new issue"}));
    assert!(plain["structuredContent"]["tools"][0].get("explanation").is_none(), "{plain}");
}
