//! What `find_tool` searches: one index per version of the catalogue's tools, shared by all
//! sessions that see it.
//!
//! Rules kept here:
//! - Indexes belong to the content of catalogues and never to sessions: a thousand sessions make
//!   none.
//! - One is made when it is first needed, off the MCP thread, and once: whoever comes meanwhile
//!   waits for it. The one before it is reused for all tools that did not change.
//! - Bounded: [`KEPT`] versions; the oldest goes first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_mcp::{
    catalogue::{Catalogue, Offered},
    listing::Kind,
};
use tidegate_search::{Document, Index, Listed};
use tokio::sync::OnceCell;

use super::{
    embed::{Embeddings, Filling},
    model::{SentenceModel, ToolVectors},
};

/// Profiles of clients that are at work at once, and a change or two.
const KEPT: usize = 8;

/// All indexes.
#[derive(Default)]
pub(super) struct Indexes {
    by_version: RefCell<BTreeMap<u64, Rc<Version>>>,
    /// In the order they were made.
    order: RefCell<Vec<u64>>,
    latest: RefCell<Option<Arc<Index>>>,
    /// Vectors from a route, if the config wants them.
    pub(super) embeddings: Embeddings,
    /// A model from a file, if the config names one.
    pub(super) model: SentenceModel,
}

/// What belongs to one version of the tools.
#[derive(Default)]
pub(super) struct Version {
    index: OnceCell<Arc<Index>>,
    pub(super) filling: RefCell<Option<Filling>>,
    pub(super) vectors: RefCell<Option<ToolVectors>>,
}

impl Indexes {
    /// The index of a catalogue's tools: place for place the same tools. `servers` are the names
    /// of the servers and what each says about itself.
    pub(super) async fn of(
        &self,
        catalogue: &Catalogue,
        servers: &[(Arc<str>, Arc<str>)],
    ) -> (Arc<Index>, Rc<Version>) {
        let version = self.version(catalogue.version_of(Kind::Tools));
        let made = version.index.get_or_init(|| async {
            let before = self.latest.borrow().clone();
            let tools: Vec<Offered> = catalogue.tools().to_vec();
            let servers = servers.to_vec();
            let making = tokio::task::spawn_blocking(move || {
                let nobody = (Arc::from(""), Arc::from(""));
                let read = |tool: &Offered| {
                    let (name, text) = servers.get(tool.server).unwrap_or(&nobody);
                    let listed = Listed { id: &tool.name, name: &tool.own, definition: &tool.raw };
                    Document::of(&listed, name, text)
                };
                let documents: Vec<Document> = tools.iter().map(read).collect();
                match before {
                    Some(before) => before.updated(documents),
                    None => Index::build(documents),
                }
            });
            // A panic while indexing leaves nothing to find, and everything else at work.
            let index = Arc::new(making.await.unwrap_or_else(|_| Index::build(Vec::new())));
            *self.latest.borrow_mut() = Some(Arc::clone(&index));
            index
        });
        let index = Arc::clone(made.await);
        (index, version)
    }

    fn version(&self, version: u64) -> Rc<Version> {
        let mut by_version = self.by_version.borrow_mut();
        if let Some(known) = by_version.get(&version) {
            return Rc::clone(known);
        }
        let mut order = self.order.borrow_mut();
        order.push(version);
        if order.len() > KEPT {
            by_version.remove(&order.remove(0));
        }
        Rc::clone(by_version.entry(version).or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};
    use tidegate_mcp::{
        listing::{Gather, ServerInfo},
        names::{Naming, NamingSettings, ServerNames},
    };
    use tidegate_search::Query;

    use super::*;

    fn raw(json: &serde_json::Value) -> Box<RawValue> {
        RawValue::from_string(json.to_string()).expect("it was made from JSON")
    }

    /// A catalogue as each session gets it: made anew, with the same content.
    fn catalogue(tools: usize) -> Arc<Catalogue> {
        let info = ServerInfo::read(&raw(&json!({"capabilities": {"tools": {}}})));
        let mut gather = Gather::new(info.expect("an object"));
        let tool = |at| json!({"name": format!("tool_{at}"), "inputSchema": {"type": "object"}});
        let page = json!({"tools": (0..tools).map(tool).collect::<Vec<_>>()});
        while gather.ask().is_some() {
            gather.page(&raw(&page)).expect("an object");
        }
        let servers = vec![ServerNames::plain("s")];
        let settings = NamingSettings { naming: Naming::Prefix, servers };
        Arc::new(Catalogue::new(&settings, &[Some(Arc::new(gather.finish().0))]))
    }

    #[tokio::test]
    async fn three_thousand_sessions_share_one_index() {
        let indexes = Indexes::default();
        let servers = [(Arc::from("s"), Arc::from(""))];
        let (first, _) = indexes.of(&catalogue(20), &servers).await;
        let (bytes, same) = (first.bytes(), catalogue(20));
        for session in 0..3000 {
            // Every hundredth has a catalogue of its own making.
            let own = if session % 100 == 0 { catalogue(20) } else { Arc::clone(&same) };
            let (index, _) = indexes.of(&own, &servers).await;
            assert!(Arc::ptr_eq(&index, &first), "session {session} got another index");
            // What a session may see is a flag per server, asked for at the end of a search.
            let seen = [session % 2 == 0];
            let query = Query { description: "tool", ..Query::default() };
            let found = index.search(&query, &|tool| seen[own.tools()[tool].server], 3);
            assert_eq!(found.hits.is_empty(), !seen[0]);
        }
        assert_eq!(indexes.by_version.borrow().len(), 1);
        assert_eq!(first.bytes(), bytes);
    }

    #[tokio::test]
    async fn only_the_latest_versions_are_kept() {
        let indexes = Indexes::default();
        let servers = [(Arc::from("s"), Arc::from(""))];
        for tools in 1..=3 * KEPT {
            let (index, _) = indexes.of(&catalogue(tools), &servers).await;
            assert_eq!(index.documents().len(), tools);
        }
        assert_eq!(indexes.by_version.borrow().len(), KEPT);
        assert_eq!(indexes.order.borrow().len(), KEPT);
    }
}
