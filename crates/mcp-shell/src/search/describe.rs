//! What `tools/list` shows: the two tools, with the texts of `tidegate_search`, and the pinned
//! ones beside them.

use std::sync::Arc;

use tidegate_mcp::catalogue::{Catalogue, Offered};
use tidegate_search::{OfferedServer, call_tool, find_tool};

use crate::client::Client;

/// The result of `tools/list`.
pub(crate) fn page(client: &Client, catalogue: &Catalogue) -> String {
    let live = client.ground.live();
    let pinned = &live.file.mcp.pinned_tools;
    let is_pinned = |it: &&Offered| pinned.iter().any(|name| **name == *it.name);
    let visible = |it: &&Offered| client.sees(it.server);
    let pinned = catalogue.tools().iter().filter(visible).filter(is_pinned);
    let servers = servers(client, catalogue);
    let mut tools = vec![find_tool(&servers).to_string(), call_tool().to_string()];
    tools.extend(pinned.map(|it| it.raw.to_string()));
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

/// The servers that a client sees, with the names of their tools.
fn servers<'a>(client: &Client, catalogue: &'a Catalogue) -> Vec<OfferedServer<'a>> {
    let places = (0..).map_while(|place| Some((place, client.group(place)?)));
    let seen = places.filter(|(place, _)| client.sees(*place));
    seen.map(|(place, server)| {
        let tools = catalogue.tools().iter().filter(|it| it.server == place);
        OfferedServer { name: Arc::clone(&server.name), tools: tools.map(|it| &*it.own).collect() }
    })
    .collect()
}
