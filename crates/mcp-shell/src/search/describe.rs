//! What `tools/list` shows: the two tools, with the texts of `tidegate_search`, and the pinned
//! ones beside them.

use std::sync::Arc;

use tidegate_mcp::{catalogue::Offered, hub::SearchView};
use tidegate_search::{OfferedServer, call_tool, find_tool};

/// The result of `tools/list`.
pub(super) fn page(pinned: &[String], view: &SearchView) -> String {
    let is_seen = |it: &&Offered| view.servers.get(it.server).is_some_and(|it| it.is_seen);
    let is_pinned = |it: &&Offered| pinned.iter().any(|name| **name == *it.name);
    let pinned = view.catalogue.tools().iter().filter(is_seen).filter(is_pinned);
    let mut tools = vec![find_tool(&servers(view)).to_string(), call_tool().to_string()];
    tools.extend(pinned.map(|it| it.raw.to_string()));
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

/// The servers that a client sees, with the names of their tools.
fn servers(view: &SearchView) -> Vec<OfferedServer<'_>> {
    let seen = view.servers.iter().enumerate().filter(|(_, server)| server.is_seen);
    seen.map(|(place, server)| {
        let tools = view.catalogue.tools().iter().filter(|it| it.server == place);
        OfferedServer { name: Arc::clone(&server.name), tools: tools.map(|it| &*it.own).collect() }
    })
    .collect()
}
