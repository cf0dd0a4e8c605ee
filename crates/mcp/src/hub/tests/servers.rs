//! Servers that come, go and change.

use serde_json::json;
use tidegate_core::time::Millis;

use super::bed::{Bed, server_settings};
use crate::{
    hub::{GroupSettings, HttpMethod, ServerKey},
    names::ServerNames,
};

#[test]
fn a_changed_list_is_fetched_and_told_to_who_sees_it() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    assert_eq!(bed.tools(&session).len(), 4);
    let standing = bed.send(HttpMethod::Get, &session, None);
    bed.servers[0].tools.pop();
    // The lists may have been fetched again meanwhile; a doubt makes sure of it.
    bed.reload();
    bed.pass(Millis::seconds(1));
    let told = bed.messages(standing);
    let is_it = |it: &serde_json::Value| it["method"] == json!("notifications/tools/list_changed");
    assert!(told.iter().any(is_it), "{told:?}");
    assert_eq!(bed.tools(&session).len(), 3);
}

#[test]
fn a_change_that_a_server_tells_over_each_connection_is_fetched_and_told_once() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    assert_eq!(bed.tools(&session).len(), 4);
    let standing = bed.send(HttpMethod::Get, &session, None);
    bed.pass(Millis::seconds(1));
    bed.servers[0].tools.pop();
    let asked = bed.servers[0].count("tools/list");
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let connections: Vec<_> = bed.connections.keys().copied().collect();
    assert!(connections.len() > 1, "the gateway's own, and the session's");
    for connection in connections {
        bed.say(connection, &changed, None);
        bed.settle();
    }
    bed.pass(Millis::seconds(1));
    assert_eq!(bed.servers[0].count("tools/list"), asked + 1);
    let told = bed.messages(standing);
    let told = told.iter().filter(|it| it["method"] == changed["method"]).count();
    assert_eq!((told, bed.tools(&session).len()), (1, 3));
}

#[test]
fn a_reload_brings_servers_into_open_sessions_and_takes_them_away() {
    let mut bed = Bed::new(&["a", "b"]);
    let both = bed.settings.clone();
    bed.settings.servers.truncate(1);
    bed.settings.groups.truncate(1);
    bed.settings.naming.servers.truncate(1);
    let mut bed = bed.start();
    let session = bed.open();
    assert_eq!(bed.tools(&session), ["ask", "echo", "read", "wait"]);
    bed.settings = both;
    bed.reload();
    bed.pass(Millis::seconds(1));
    assert_eq!(bed.tools(&session).len(), 8);
    let connections = bed.hub.sizes().connections;
    bed.settings.servers.truncate(1);
    bed.settings.groups.truncate(1);
    bed.settings.naming.servers.truncate(1);
    bed.reload();
    assert_eq!(bed.hub.sizes().connections, connections - 2);
    assert_eq!(bed.tools(&session).len(), 4);
}

#[test]
fn a_server_with_another_key_is_another_server() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let before = bed.opened;
    // The same script under another key.
    bed.servers.push(super::bed::Scripted::new("a"));
    bed.settings.servers = vec![server_settings(1, "a")];
    assert_eq!(bed.settings.servers[0].key, ServerKey(1));
    bed.settings.groups = vec![GroupSettings { name: "a".into(), members: vec![0] }];
    bed.settings.naming.servers = vec![ServerNames::plain("a")];
    bed.reload();
    bed.pass(Millis::seconds(1));
    assert_eq!(bed.opened, before + 2, "the gateway's own, and the session's");
    let token = bed.call(&session, 1, "echo");
    assert_eq!(bed.last(token)["id"], 1);
    assert_eq!(bed.servers[1].count("tools/call"), 1);
}

#[test]
fn lists_that_could_not_be_fetched_at_first_are_fetched_without_being_asked_for() {
    let mut bed = Bed::new(&["a", "b"]);
    bed.servers[0].hides_tools = true;
    let mut bed = bed.start();
    let session = bed.open();
    assert_eq!(bed.tools(&session).len(), 4, "only those of b");
    let standing = bed.send(HttpMethod::Get, &session, None);
    let token = bed.call(&session, 1, "a_echo");
    bed.pass(Millis::seconds(1));
    let text = &bed.last(token)["result"]["content"][0]["text"];
    assert_eq!(text, "backend \"a\" unavailable: its lists are not known yet");
    bed.pass(Millis::seconds(60));
    let before = bed.servers[0].count("tools/list");
    bed.pass(Millis::seconds(50));
    let more = bed.servers[0].count("tools/list") - before;
    assert!(more <= 2, "{more}: the pauses grow");
    bed.servers[0].hides_tools = false;
    bed.pass(Millis::seconds(61));
    let told = bed.streams[&bed.reader(standing)].concat();
    assert!(told.contains("notifications/tools/list_changed"), "{told}");
    assert_eq!(bed.tools(&session).len(), 8);
    let settled = bed.servers[0].count("tools/list");
    bed.pass(Millis::seconds(200));
    assert_eq!(bed.servers[0].count("tools/list"), settled);
}
