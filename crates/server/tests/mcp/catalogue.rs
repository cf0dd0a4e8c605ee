//! One list made of many: names, pages, changes, and definitions as their servers wrote them.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::time::eventually;

use crate::bed::{Setup, count, url};

fn with(names: &[&str]) -> FakeMcpServer {
    let tool = |name: &&str| Tool::new(name, ToolAct::Text((*name).to_owned()));
    FakeMcpServer::start(McpScript::of(names.iter().map(tool).collect()))
}

#[test]
fn one_server_keeps_its_names_and_several_get_prefixes() {
    let (a, b) = (with(&["move", "look"]), with(&["look"]));
    let gate = Setup::of(&[("a", &a)]).start();
    assert_eq!(gate.open().tools(), ["look", "move"]);
    let gate = Setup::of(&[("a", &a), ("b", &b)]).start();
    let client = gate.open();
    assert_eq!(client.tools(), ["a_look", "a_move", "b_look"]);
    assert_eq!(client.text("b_look"), "look");
    assert_eq!(b.received_of("tools/call")[0].name(), Some("look"), "its own name");
}

#[test]
fn filters_and_renames_hold_for_lists_and_calls() {
    let fake = with(&["repo_get", "repo_delete", "user_get", "me"]);
    let more = "include: ['repo_*', me], exclude: ['*_delete'], rename: {me: whoami}";
    let gate = Setup::of(&[]).and("a", url(&fake, more)).start();
    let client = gate.open();
    assert_eq!(client.tools(), ["repo_get", "whoami"]);
    assert_eq!(client.text("whoami"), "me");
    for hidden in ["repo_delete", "user_get", "me"] {
        let told = client.request("tools/call", json!({"name": hidden}));
        assert_eq!(told["error"]["code"], -32602, "{hidden}: {told}");
    }
}

#[test]
fn with_priority_the_first_server_wins_a_name() {
    let (a, b) = (with(&["look", "only_a"]), with(&["look", "only_b"]));
    let mcp = "naming: priority,";
    let gate = Setup { mcp, ..Setup::of(&[("a", &a), ("b", &b)]) }.start();
    let client = gate.open();
    assert_eq!(client.tools(), ["look", "only_a", "only_b"]);
    client.text("look");
    assert_eq!((a.counts().delivered("look"), b.counts().delivered("look")), (1, 0));
}

#[test]
fn long_and_colliding_names_stay_within_the_limit_and_lead_to_their_own_tool() {
    let long = "x".repeat(90);
    let other = format!("{}y", "x".repeat(89));
    let a = with(&[&long, &other, "b_c", "dotted.name"]);
    let ab = with(&["c"]);
    let gate = Setup::of(&[("a", &a), ("a_b", &ab)]).start();
    let client = gate.open();
    let names = client.tools();
    assert_eq!(names.len(), 5);
    let is_fine = |it: &String| {
        it.len() <= 64 && it.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    };
    assert!(names.iter().all(is_fine), "{names:?}");
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 5, "{names:?}");
    let said: Vec<String> = names.iter().map(|name| client.text(name)).collect();
    let mut said = said;
    said.sort();
    assert_eq!(said, ["b_c", "c", "dotted.name", long.as_str(), &other]);
    assert_eq!(gate.open().tools(), names, "the same for everybody");
}

#[test]
fn ten_thousand_tools_over_pages_are_listed_whole_and_hold_nobody_up() {
    let many = FakeMcpServer::start(McpScript { page: 500, ..McpScript::with_many(10_000) });
    let few = with(&["look"]);
    let gate = Setup::of(&[("few", &few), ("many", &many)]).start();
    let client = gate.open();
    assert_eq!(client.text("few_look"), "look");
    let mut names = client.tools();
    eventually("all are listed", || {
        names = client.tools();
        names.len() == 10_001
    });
    assert_eq!(names[10_000], "many_tool_09999");
    assert_eq!(client.text("many_tool_09999"), "{}");
    let first = client.result("tools/list", json!({}));
    assert_eq!(first["tools"].as_array().map(Vec::len), Some(10_001), "in one page");
    let lists = many.counts().of("tools/list");
    gate.open().tools();
    assert_eq!(many.counts().of("tools/list"), lists, "not fetched per session");
}

#[test]
fn a_server_that_changes_its_tools_makes_the_list_change() {
    let (a, b) = (with(&["look", "grow"]), with(&["look"]));
    a.change_tools(|tools| tools[1].acts = vec![ToolAct::Add("grown".to_owned())]);
    let gate = Setup::of(&[("a", &a), ("b", &b)]).start();
    let client = gate.named("one");
    assert_eq!(client.tools().len(), 3);
    let mut stream = client.listen();
    eventually("the server's stream is open", || count(&a, "one", "GET") >= 1);
    client.text("a_grow");
    let told = stream.message().expect("it is told");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(client.tools(), ["a_grow", "a_grown", "a_look", "b_look"]);
    assert_eq!(client.text("a_grown"), "{}");
    a.change_tools(|tools| tools.retain(|tool| tool.name != "look"));
    assert_eq!(stream.message().expect("again")["method"], "notifications/tools/list_changed");
    assert_eq!(client.tools(), ["a_grow", "a_grown", "b_look"]);
    let gone = client.request("tools/call", json!({"name": "a_look"}));
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    let changed = "tidegate_mcp_definitions_changed_total{server=\"a\"}";
    a.change_tools(|tools| tools[0] = Tool::new("grow", ToolAct::Echo).destructive());
    eventually("a changed definition is reported", || gate.metric(changed) >= 1.0);
}

#[test]
fn what_a_server_says_of_its_list_is_handed_on_once_the_list_was_fetched() {
    let a = with(&["look"]);
    let gate = Setup::of(&[("a", &a)]).start();
    let client = gate.named("one");
    client.tools();
    let mut stream = client.listen();
    eventually("the server's stream is open", || count(&a, "one", "GET") >= 1);
    let lists = a.counts().of("tools/list");
    a.tell_all("notifications/tools/list_changed", None);
    assert_eq!(stream.message().expect("a word")["method"], "notifications/tools/list_changed");
    assert!(a.counts().of("tools/list") > lists, "it was looked at first");
}

#[test]
fn definitions_are_listed_byte_for_byte_but_for_the_name() {
    let definition = r#"{"x-vendor":{"b":1.0,"a":[1e3,0.10]},"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["b","a"],"properties":{"b":{"type":"number","default":1.50},"a":{"enum":[12345678901234567890123,"\u00e9"]}},"$defs":{"z":{},"y":{}}},"name":"odd","title":"Odd \ud83c\udf0a","annotations":{"readOnlyHint":false,"x":null},"icons":[{"src":"data:,x","sizes":["48x48"]}],"execution":{"taskSupport":"optional"},"_meta":{"vendor/two":2,"vendor/one":1}}"#;
    let odd = Tool::new("odd", ToolAct::Echo).defined_as(definition);
    let fake = FakeMcpServer::start(McpScript::of(vec![odd]));
    let listed = |gate: &tidegate_testkit::gate::Gate| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let client = gate.open();
        client.tools();
        client.post(&body).expect("a list").text()
    };
    let alone = Setup::of(&[("a", &fake)]).start();
    let text = listed(&alone);
    assert!(text.contains(definition), "{text}");
    let other = with(&["look"]);
    let both = Setup::of(&[("a", &fake), ("b", &other)]).start();
    let text = listed(&both);
    let renamed = definition.replace(r#""name":"odd""#, r#""name":"a_odd""#);
    assert!(text.contains(&renamed), "{text}");
    assert_eq!(both.open().text("a_odd"), "{}", "and it can be called");
}

#[test]
fn instructions_of_servers_reach_the_client() {
    let script =
        |text: &str| McpScript { instructions: Some(text.to_owned()), ..McpScript::default() };
    let (a, b) = (FakeMcpServer::start(script("ask a")), FakeMcpServer::start(script("ask b")));
    let gate = Setup::of(&[("a", &a), ("b", &b)]).start();
    gate.open().tools();
    let told = gate.open().hello["instructions"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("ask a") && told.contains("ask b"), "{told}");
}

#[test]
fn definitions_that_break_the_schema_are_left_out_and_cost_no_other() {
    let tool = |name: &str, definition: &str| Tool::new(name, ToolAct::Echo).defined_as(definition);
    let fake = FakeMcpServer::start(McpScript::of(vec![
        Tool::new("good", ToolAct::Echo),
        tool("bare", r#"{"name":"bare"}"#),
        tool("number", r#"{"name":7,"inputSchema":{"type":"object"}}"#),
        tool(
            "hint",
            r#"{"name":"hint","inputSchema":{"type":"object"},
                "annotations":{"readOnlyHint":"yes"}}"#,
        ),
        tool(
            "output",
            r#"{"name":"output","inputSchema":{"type":"object"},"outputSchema":"none"}"#,
        ),
        tool("nulls", r#"{"name":"nulls","description":null,"inputSchema":{"type":"object"}}"#),
    ]));
    let other = with(&["look"]);
    let gate = Setup::of(&[("a", &fake), ("b", &other)]).start();
    let client = gate.open();
    assert_eq!(client.tools(), ["a_good", "a_nulls", "b_look"]);
    let listed = client.result("tools/list", json!({}));
    assert!(!listed.to_string().contains("null,"), "{listed}");
    assert_eq!(client.text("a_good"), "{}");
    let skipped = gate.metric("tidegate_mcp_definitions_skipped_total{server=\"a\"}");
    assert!(skipped >= 4.0, "{skipped}");
}
