//! The answer to `find_tool`.
//!
//! Rules kept here:
//! - Only tools of servers that this session sees are found; tools of one that is down at the
//!   moment are, and are marked so.
//! - What `mcp.search.embeddings` did not give in time is done without, and `degraded` is true.
//!
//! What is asked, what is found and how it is told are the business of `tidegate_search`.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value, json, value::RawValue};
use tidegate_mcp::{
    catalogue::{Catalogue, Offered},
    health::{self, Standing},
    raw::Fields,
};
use tidegate_search::{
    External, Hit, LIMIT_MAX, QUERY_MAX, Query, Reply, Request, estimated_tokens, signature,
};

use super::{embed::Outside, failed};
use crate::{client::Client, group::Group};

/// How many servers a poor answer names.
const LIKELY_SERVERS: usize = 3;

/// Answers a `find_tool`.
pub(super) async fn find(client: &Rc<Client>, arguments: Option<&RawValue>) -> String {
    let read = arguments.and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
    let wish = match Request::read(read.as_ref()) {
        Ok(wish) => wish,
        Err(message) => return failed(&message),
    };
    let Some(hub) = client.ground.hub() else { return failed("the gateway is closing") };
    let live = client.ground.live();
    let limit = wish.limit.unwrap_or(live.file.mcp.search.limit as usize).clamp(1, LIMIT_MAX);
    let catalogue = client.catalogue();
    let groups = hub.groups();
    let servers: Vec<(Arc<str>, Arc<str>)> =
        groups.iter().map(|it| (Arc::clone(&it.name), it.words(&client.hello))).collect();
    let (index, version) = hub.indexes.of(&catalogue, &servers).await;
    let outside = match &live.file.mcp.search.embeddings {
        Some(file) => {
            let text = wish.text();
            let text = &text[..text.floor_char_boundary(QUERY_MAX)];
            let (ask, place) = (&client.ground.ask_route, (&index, &version.filling));
            hub.indexes.embeddings.for_search(ask, &file.route, place, text.trim()).await
        }
        None => Outside::default(),
    };
    let seen: Vec<bool> = (0..servers.len()).map(|place| client.sees(place)).collect();
    let is_seen = |tool: usize| {
        catalogue.tools().get(tool).is_some_and(|it| seen.get(it.server).copied().unwrap_or(false))
    };
    let external = outside.vectors.as_ref();
    let external = external.map(|(documents, request)| External { documents, request });
    let query = Query {
        description: &wish.description,
        keywords: &wish.keywords,
        server: &wish.server,
        external,
    };
    let found = index.search(&query, &is_seen, limit);
    let tools: Vec<Value> = found
        .hits
        .iter()
        .filter_map(|hit| Some((hit, catalogue.tools().get(hit.doc)?)))
        .map(|(hit, offered)| {
            let server = groups.get(offered.server);
            let mut tool = tool(client, server, (hit, offered), wish.is_compact);
            if wish.is_explained {
                tool["explanation"] = index.explanation(&query, hit);
            }
            tool
        })
        .collect();
    let likely_servers = if found.has_good_match {
        Vec::new()
    } else {
        index.likely_servers(&query, &is_seen, LIKELY_SERVERS)
    };
    let reply = Reply {
        tools,
        has_good_match: found.has_good_match,
        is_without_servers: !seen.contains(&true),
        is_degraded: outside.is_degraded,
        likely_servers: likely_servers.iter().map(ToString::to_string).collect(),
        baseline: baseline(&catalogue, &seen),
    };
    reply.result().to_string()
}

/// Whether a call would be sent at all: the breaker lets it, and a program that ended is not
/// waiting to be started again.
fn is_available(client: &Client, group: &Group) -> bool {
    let (live, now) = (client.ground.live(), client.ground.now());
    let standing = health::standing(&live.core, &group.name, now);
    let is_waiting = group.servers.iter().all(|it| it.is_child() && it.may_start_at(now) > now);
    !is_waiting && !matches!(standing, Standing::Unhealthy(..))
}

fn tool(
    client: &Client,
    server: Option<&Group>,
    (hit, offered): (&Hit, &Offered),
    is_compact: bool,
) -> Value {
    let fields = Fields::parse(&offered.raw, &[]).unwrap_or_default();
    let schema = fields.get("inputSchema").and_then(|it| serde_json::from_str(it.get()).ok());
    let schema: Value = schema.unwrap_or_else(|| json!({ "type": "object" }));
    let mut tool = Map::new();
    tool.insert("name".to_owned(), (*offered.name).into());
    tool.insert("server".to_owned(), server.map(|it| &*it.name).unwrap_or_default().into());
    tool.insert("description".to_owned(), fields.text("description").unwrap_or_default().into());
    let part = |name| fields.get(name).and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
    if is_compact {
        tool.insert("parameters".to_owned(), signature(&schema).into());
        if let Some(output) = part("outputSchema") {
            tool.insert("returns".to_owned(), signature(&output).into());
        }
    } else {
        tool.insert("input_schema".to_owned(), schema);
        if let Some(output) = part("outputSchema") {
            tool.insert("output_schema".to_owned(), output);
        }
    }
    if let Some(annotations) = part("annotations") {
        tool.insert("annotations".to_owned(), annotations);
    }
    tool.insert("score".to_owned(), json!((f64::from(hit.score) * 1000.0).round() / 1000.0));
    let is_available = server.is_some_and(|it| is_available(client, it));
    tool.insert("available".to_owned(), is_available.into());
    Value::Object(tool)
}

/// What it would have cost to show every tool.
fn baseline(catalogue: &Catalogue, seen: &[bool]) -> usize {
    let visible = catalogue.tools().iter().filter(|it| seen.get(it.server) == Some(&true));
    visible.map(|it| estimated_tokens(it.raw.len())).sum()
}
