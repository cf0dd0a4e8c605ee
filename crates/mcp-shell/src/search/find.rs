//! The answer to `find_tool`.
//!
//! Rules kept here:
//! - Only tools of servers that this session sees are found; tools of one that is down at the
//!   moment are, and are marked so.
//! - What `mcp.search.embeddings` and `mcp.search.model` did not give in time is done without, and
//!   `degraded` is true.
//! - The model is asked only where the ranking is not clear without it.
//!
//! What is asked, what is found and how it is told are the business of `tidegate_search`.

use std::sync::Arc;

use serde_json::{Map, Value, json, value::RawValue};
use tidegate_config::file::SearchFile;
use tidegate_gateway::{metrics::Metrics, own_request::AskRoute};
use tidegate_mcp::{
    catalogue::{Catalogue, Offered},
    hub::{SearchView, SeenGroup},
    raw::Fields,
};
use tidegate_search::{
    External, Hit, LIMIT_MAX, QUERY_MAX, Query, Reading, Reply, Request, estimated_tokens,
    signature,
};

use super::{embed::Outside, failed, index::Indexes, model::SentenceReading};

/// How many servers a poor answer names.
const LIKELY_SERVERS: usize = 3;

/// What a search needs beside the tools.
pub(super) struct Asked<'a> {
    pub(super) search: &'a SearchFile,
    pub(super) ask_route: &'a AskRoute,
    pub(super) metrics: &'a Metrics,
}

/// Answers a `find_tool`.
pub(super) async fn find(
    indexes: &Indexes,
    asked: &Asked<'_>,
    view: &SearchView,
    arguments: Option<&RawValue>,
) -> String {
    let read = arguments.and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
    let wish = match Request::read(read.as_ref()) {
        Ok(wish) => wish,
        Err(message) => return failed(&message),
    };
    let limit = wish.limit.unwrap_or(asked.search.limit as usize).clamp(1, LIMIT_MAX);
    let SearchView { catalogue, servers: groups } = view;
    let (index, version) = indexes.of(catalogue, &servers(view)).await;
    let text = wish.text();
    let text = text[..text.floor_char_boundary(QUERY_MAX)].trim();
    let outside = match &asked.search.embeddings {
        Some(file) => {
            let (ask, place) = (asked.ask_route, (&index, &version.filling));
            indexes.embeddings.for_search(ask, &file.route, place, text).await
        }
        None => Outside::default(),
    };
    let seen: Vec<bool> = groups.iter().map(|it| it.is_seen).collect();
    let is_seen = |tool: usize| {
        catalogue.tools().get(tool).is_some_and(|it| seen.get(it.server).copied().unwrap_or(false))
    };
    let external = outside.vectors.as_ref();
    let external = external.map(|(documents, request)| External { documents, request });
    let mut query = Query {
        description: &wish.description,
        keywords: &wish.keywords,
        server: &wish.server,
        external,
        reading: None,
    };
    let mut found = index.search(&query, &is_seen, limit);
    let is_wanted = indexes.model.is_wanted() && !index.documents().is_empty();
    let read = if is_wanted && !found.is_clear() {
        indexes.model.read((&index, &version.vectors), text).await
    } else {
        None
    };
    if let Some(SentenceReading { sentences, request }) = &read {
        query.reading = Some(Reading { sentences, request });
        found = index.search(&query, &is_seen, limit);
    }
    let model = match &read {
        _ if !is_wanted => "none",
        Some(_) => "used",
        None if found.is_clear() => "clear",
        None => "missing",
    };
    asked.metrics.mcp_search(model);
    let tools: Vec<Value> = found
        .hits
        .iter()
        .filter_map(|hit| Some((hit, catalogue.tools().get(hit.doc)?)))
        .map(|(hit, offered)| {
            let server = groups.get(offered.server);
            let mut tool = tool(server, (hit, offered), wish.is_compact);
            if wish.is_explained {
                tool["explanation"] = index.explanation(&query, hit);
            }
            tool
        })
        .collect();
    let (likely_servers, missing_products) = if found.has_good_match {
        (Vec::new(), Vec::new())
    } else {
        let likely = index.likely_servers(&query, &is_seen, LIKELY_SERVERS);
        (likely, index.missing_products(&query, &is_seen))
    };
    let reply = Reply {
        tools,
        has_good_match: found.has_good_match,
        is_without_servers: !seen.contains(&true),
        is_degraded: outside.is_degraded || model == "missing",
        likely_servers: likely_servers.iter().map(ToString::to_string).collect(),
        missing_products,
        baseline: baseline(catalogue, &seen),
    };
    reply.result().to_string()
}

/// The names of all servers, and what each says about itself.
pub(super) fn servers(view: &SearchView) -> Vec<(Arc<str>, Arc<str>)> {
    let server = |it: &SeenGroup| (Arc::clone(&it.name), Arc::clone(&it.instructions));
    view.servers.iter().map(server).collect()
}

fn tool(server: Option<&SeenGroup>, (hit, offered): (&Hit, &Offered), is_compact: bool) -> Value {
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
    let is_available = server.is_some_and(|it| it.is_available);
    tool.insert("available".to_owned(), is_available.into());
    Value::Object(tool)
}

/// What it would have cost to show every tool.
fn baseline(catalogue: &Catalogue, seen: &[bool]) -> usize {
    let visible = catalogue.tools().iter().filter(|it| seen.get(it.server) == Some(&true));
    visible.map(|it| estimated_tokens(it.raw.len())).sum()
}
