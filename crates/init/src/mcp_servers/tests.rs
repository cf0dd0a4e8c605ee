//! Lists of servers of several products, and what becomes of each part.

use tidegate_config::{secret::ProcessEnvironment, source::Source};

use crate::{draft::Finished, import, notes::Note};

/// Imports a text that must be understood.
fn check(text: &str) -> (Finished, Vec<Note>) {
    let imported = import(&Source::new("mcp.json", text)).expect("a list of servers");
    let finished = imported.draft.finish(&ProcessEnvironment).expect("sound");
    (finished, imported.notes)
}

#[test]
fn a_desktop_clients_file_becomes_servers_and_its_secrets_references() {
    let text = r#"{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "files": {
      "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"],
      "env": { "DEBUG": "1", "API_TOKEN": "canary-a", "OTHER": "${env:HOME_KEY}" },
      "autoApprove": ["read"], "cwd": "/srv"
    },
    "my search": {
      "url": "https://example.com/mcp",
      "headers": { "Authorization": "Bearer canary-b", "X-Region": "eu" }
    },
    "off": { "command": "x", "disabled": true },
    "arguments": { "command": "x", "args": ["--api-key", "canary-c"] },
    "query": { "url": "https://example.com/mcp?apiKey=canary-d" },
    "folder": { "command": "x", "args": ["${workspaceFolder}"] },
    "neither": {}
  }
}"#;
    let (finished, notes) = check(text);
    assert_eq!(finished.counts.servers, 2, "{}", finished.text);
    assert_eq!(finished.variables, ["API_TOKEN", "HOME_KEY", "MY_SEARCH_AUTHORIZATION"]);
    for line in ["DEBUG: \"1\"", "X-Region: eu", "my-search:", "server-filesystem\", /data]"] {
        assert!(finished.text.contains(line), "{line}: {}", finished.text);
    }
    let said = format!("{}{notes:?}", finished.text);
    assert!(!said.contains("canary"), "{said}");
    let places: Vec<_> = notes.iter().map(|note| (note.line, note.path.as_str())).collect();
    let expected = [
        (2, "globalShortcut"),
        (6, "mcpServers.files.env.API_TOKEN"),
        (7, "mcpServers.files.autoApprove"),
        (7, "mcpServers.files.cwd"),
        (9, "mcpServers.\"my search\""),
        (11, "mcpServers.\"my search\".headers.Authorization"),
        (13, "mcpServers.off"),
        (14, "mcpServers.arguments"),
        (15, "mcpServers.query"),
        (16, "mcpServers.folder"),
        (17, "mcpServers.neither"),
    ];
    assert_eq!(places, expected);
}

#[test]
fn vs_codes_file_may_have_comments_and_asks_for_inputs() {
    let text = "{\n  // what the editor asks for\n  \"inputs\": [{ \"id\": \"gh-token\" }],\n  \
                \"servers\": {\n    \"github\": { \"type\": \"http\", \"url\": \
                \"https://example.com/mcp/\", \"headers\": { \"Authorization\": \
                \"${input:gh-token}\" }, },\n  },\n}\n";
    let (finished, notes) = check(text);
    assert_eq!(finished.variables, ["GH_TOKEN"]);
    assert_eq!(notes.iter().map(|note| note.line).collect::<Vec<_>>(), [3, 5], "{notes:?}");
}

#[test]
fn a_part_that_check_would_refuse_is_left_out_with_the_reason() {
    let text = r#"{"mcpServers": {
        "bad": {"url": "not a url"},
        "good": {"url": "http://127.0.0.1:9/mcp"}
    }}"#;
    let (finished, _) = check(text);
    assert_eq!(finished.counts.servers, 1);
    let [note] = finished.notes.as_slice() else { panic!("{:?}", finished.notes) };
    assert_eq!((note.line, note.path.as_str()), (2, "mcpServers.bad"));
    assert!(note.reason.contains("TG"), "{}", note.reason);
}

#[test]
fn a_server_of_the_old_transport_is_carried_over_without_a_remark() {
    let text = r#"{"servers": {"old": {"type": "sse", "url": "http://127.0.0.1:9/sse"}}}"#;
    let (finished, notes) = check(text);
    assert_eq!((finished.counts.servers, notes.len()), (1, 0), "{notes:?}");
}
