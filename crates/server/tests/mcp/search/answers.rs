//! What an answer of `find_tool` holds: all that an agent needs to choose and to call, and no more.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript};
use tidegate_search::estimated_tokens;
use tidegate_testkit::mcp::text_of;

use super::{gate, input::defined, names};

/// Tools about different things, the first two of them about issues.
fn office() -> FakeMcpServer {
    let tool = |name: &str, about: &str| {
        defined(&json!({"name": name, "description": about, "inputSchema": {"type": "object"}}))
    };
    let count = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
    let issues = defined(&json!({
        "name": "count_issues",
        "description": "Counts the open issues of a repository",
        "inputSchema": {"type": "object"},
        "outputSchema": count,
        "annotations": {"readOnlyHint": true, "title": "Count issues"},
    }));
    FakeMcpServer::start(McpScript::of(vec![
        issues,
        tool("list_issues", "Lists the open issues of a repository"),
        tool("weather_forecast", "Weather forecast of a city"),
        tool("play_song", "Plays a song on the speakers"),
        tool("translate_text", "Translates a text into another language"),
        tool("book_flight", "Books a flight between two airports"),
        tool("resize_image", "Changes the width of a picture"),
    ]))
}

#[test]
fn hints_and_the_form_of_the_result_are_told_as_the_server_told_them() {
    let office = office();
    let gate = gate(&[("office", &office)]);
    let client = gate.open();
    let wish = json!({"tool_description": "count the open issues of a repository"});
    let found = client.call("find_tool", wish.clone());
    let first = &found["structuredContent"]["tools"][0];
    assert_eq!(first["name"], "count_issues", "{found}");
    let hints = json!({"readOnlyHint": true, "title": "Count issues"});
    assert_eq!(first["annotations"], hints, "{found}");
    assert_eq!(first["output_schema"]["properties"]["count"]["type"], "integer", "{found}");
    let plain = client.call("find_tool", json!({"tool_description": "list the open issues"}));
    let plain = &plain["structuredContent"]["tools"][0];
    assert_eq!(plain["name"], "list_issues", "{plain}");
    assert!(plain.get("annotations").is_none() && plain.get("output_schema").is_none(), "{plain}");
    let mut short = wish;
    short["detail"] = json!("compact");
    let short = &client.call("find_tool", short)["structuredContent"]["tools"][0];
    assert_eq!((&short["returns"], &short["annotations"]), (&json!("count?: integer"), &hints));
    assert!(short.get("output_schema").is_none(), "{short}");
}

#[test]
fn the_list_ends_where_relevance_ends_and_not_at_the_limit() {
    let office = office();
    let gate = gate(&[("office", &office)]);
    let wish = json!({"tool_description": "the open issues of a repository", "limit": 7});
    let found = gate.open().call("find_tool", wish);
    let mut names = names(&found);
    names.sort_unstable();
    assert_eq!(names, ["count_issues", "list_issues"], "{found}");
    assert_eq!(found["structuredContent"]["good_match"], true);
}

#[test]
fn the_content_of_an_answer_is_counted_once() {
    let office = office();
    let gate = gate(&[("office", &office)]);
    let wish = json!({"tool_description": "count the open issues of a repository"});
    let found = gate.open().call("find_tool", wish);
    let told = &found["structuredContent"];
    let mut content = told.clone();
    content.as_object_mut().expect("an object").remove("tokens");
    let once = estimated_tokens(content.to_string().len());
    assert_eq!(told["tokens"]["returned"], once, "{told}");
    // The result itself holds it twice.
    assert!(estimated_tokens(found.to_string().len()) > 2 * once, "{found}");
    assert_eq!(estimated_tokens(text_of(&found).len()) / once, 1, "{found}");
}

#[test]
fn a_product_that_no_tool_has_to_do_with_is_told_and_the_nearest_tools_all_the_same() {
    let office = office();
    let gate = gate(&[("office", &office)]);
    let client = gate.open();
    let ask = |words: &str| {
        let found = client.call("find_tool", json!({"tool_description": words}));
        found["structuredContent"].clone()
    };
    let poor = ask("Airtable: add a picture to a record");
    assert_eq!(poor["good_match"], false, "{poor}");
    assert_eq!(poor["tools"][0]["name"], "resize_image", "{poor}");
    let hint = poor["hint"].as_str().expect("a hint");
    assert!(hint.contains("No tool here has to do with Airtable."), "{hint}");
    assert!(hint.contains("Servers that might fit: office."), "{hint}");
    let good = ask("office: change the width of a picture");
    assert_eq!(good["good_match"], true, "{good}");
}
