//! Odd requests and odd tools: an answer or a clear error, never silence.

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::mcp::text_of;

use super::{gate, names, tracker};

pub(super) fn defined(definition: &Value) -> Tool {
    let name = definition["name"].as_str().expect("a tool has a name");
    Tool::new(name, ToolAct::Echo).defined_as(&definition.to_string())
}

#[test]
fn requests_in_any_script_with_operators_or_without_end_get_an_answer() {
    let tracker = tracker();
    let gate = gate(&[("tracker", &tracker)]);
    let client = gate.open();
    let long = "issue ".repeat(20_000);
    let binary: String = (0..=255_u8).map(char::from).collect();
    for text in [
        "创建一个问题",
        "أنشئ مشكلة",
        "🐛🔥",
        "\"issue\" AND NOT (commit) OR name:* ^2 ~",
        "'; DROP TABLE tools; --",
        "\u{0}\u{1}",
        "\u{200b}\u{202e}\u{feff}",
        &binary,
        &long,
    ] {
        let found = client.call("find_tool", json!({"tool_description": text}));
        assert_ne!(found["isError"], true, "{text:.20}: {found}");
        assert!(found["structuredContent"]["tools"].is_array(), "{text:.20}: {found}");
    }
    let found = client.call("find_tool", json!({"tool_description": long}));
    assert_eq!(names(&found).first(), Some(&"create_issue"), "words beyond the bound are cut");
    for empty in [json!(""), json!(" \t\n"), json!(null), json!(7)] {
        let told = client.call("find_tool", json!({"tool_description": empty.clone()}));
        assert_eq!(told["isError"], true, "{empty}: {told}");
        assert!(text_of(&told).contains("needs `tool_description`"), "{told}");
    }
    for (limit, is_error) in [
        (json!(1_000_000), false),
        (json!("1"), false),
        (json!(0), true),
        (json!(-1), true),
        (json!("many"), true),
        (json!(1.5), true),
    ] {
        let wish = json!({"tool_description": "open an issue", "limit": limit});
        let told = client.call("find_tool", wish);
        assert_eq!(told["isError"] == true, is_error, "{limit}: {told}");
        assert!(!is_error || text_of(&told).contains("`limit`"), "{told}");
    }
}

#[test]
fn a_tool_with_a_schema_of_a_megabyte_is_found_and_called() {
    let property = |at: usize| (format!("field_{at}"), json!({"description": "x".repeat(1000)}));
    let properties: serde_json::Map<String, Value> = (0..1000).map(property).collect();
    let huge = defined(&json!({"name": "file_report", "description": "Files a yearly report",
        "inputSchema": {"type": "object", "properties": properties}}));
    let fake = FakeMcpServer::start(McpScript::of(vec![huge]));
    let gate = gate(&[("office", &fake)]);
    let client = gate.open();
    let wish = json!({"tool_description": "file the yearly report", "detail": "compact"});
    let found = client.call("find_tool", wish);
    assert_eq!(names(&found).first(), Some(&"file_report"), "{found:.200}");
    let call = json!({"tool_name": "file_report", "parameters": {"field_1": "a"}});
    assert_eq!(text_of(&client.call("call_tool", call)), r#"{"field_1":"a"}"#);
}

#[test]
fn one_name_on_two_servers_is_two_tools_with_names_of_their_own() {
    let tool = |about: &str| {
        defined(&json!({"name": "search", "description": about,
            "inputSchema": {"type": "object"}}))
    };
    let books = FakeMcpServer::start(McpScript::of(vec![tool("Searches the library for books")]));
    let code = FakeMcpServer::start(McpScript::of(vec![tool("Searches source code")]));
    let gate = gate(&[("books", &books), ("code", &code)]);
    let client = gate.open();
    let first = |words: &str| {
        let found = client.call("find_tool", json!({"tool_description": words}));
        names(&found).first().map(|it| (*it).to_owned())
    };
    assert_eq!(first("find a book in the library").as_deref(), Some("books_search"));
    assert_eq!(first("look through source code").as_deref(), Some("code_search"));
    client.call("call_tool", json!({"tool_name": "code_search"}));
    assert_eq!((books.counts().delivered("search"), code.counts().delivered("search")), (0, 1));
}

#[test]
fn letters_that_nobody_sees_do_not_hide_a_tool() {
    let hidden = "Sends\u{200b} a let\u{00ad}ter \u{e0041}\u{e0042} to\u{202e} a friend";
    let tool = defined(&json!({"name": "post_letter", "description": hidden,
        "inputSchema": {"type": "object"}}));
    let fake = FakeMcpServer::start(McpScript::of(vec![tool]));
    let gate = gate(&[("post", &fake)]);
    let client = gate.open();
    let found = client.call("find_tool", json!({"tool_description": "send a letter to a friend"}));
    assert_eq!(names(&found).first(), Some(&"post_letter"), "{found}");
}
