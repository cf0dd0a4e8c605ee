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
    search::{Document, Index},
};
use tokio::sync::OnceCell;

/// Profiles of clients that are at work at once, and a change or two.
const KEPT: usize = 8;

/// All indexes.
#[derive(Default)]
pub(crate) struct Indexes {
    by_version: RefCell<BTreeMap<u64, Rc<OnceCell<Arc<Index>>>>>,
    /// In the order they were made.
    order: RefCell<Vec<u64>>,
    latest: RefCell<Option<Arc<Index>>>,
}

impl Indexes {
    /// The index of a catalogue's tools: place for place the same tools. `servers` are the names
    /// of the servers and what each says about itself.
    pub(crate) async fn of(
        &self,
        catalogue: &Rc<Catalogue>,
        servers: &[(Arc<str>, Arc<str>)],
    ) -> Arc<Index> {
        let cell = self.cell(catalogue.version_of(Kind::Tools));
        let made = cell.get_or_init(|| async {
            let before = self.latest.borrow().clone();
            let tools: Vec<Offered> = catalogue.tools().to_vec();
            let servers = servers.to_vec();
            let making = tokio::task::spawn_blocking(move || {
                let nobody = (Arc::from(""), Arc::from(""));
                let read = |tool: &Offered| {
                    let (name, text) = servers.get(tool.server).unwrap_or(&nobody);
                    Document::of(tool, name, text)
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
        Arc::clone(made.await)
    }

    fn cell(&self, version: u64) -> Rc<OnceCell<Arc<Index>>> {
        let mut by_version = self.by_version.borrow_mut();
        if let Some(cell) = by_version.get(&version) {
            return Rc::clone(cell);
        }
        let mut order = self.order.borrow_mut();
        order.push(version);
        if order.len() > KEPT {
            by_version.remove(&order.remove(0));
        }
        Rc::clone(by_version.entry(version).or_default())
    }
}
