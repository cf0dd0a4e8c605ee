//! `tools: search`: a client sees two tools, `find_tool` and `call_tool`, and through them all.
//!
//! - `describe`: the two tools as clients see them.
//! - `find`: the answer to `find_tool`. `index`: what it searches, made off this thread.
//! - `embed`: vectors from a route of the gateway's own, where the config wants them; `vectors`:
//!   those that are known.
//! - `model`: a sentence model from a file, where the config names one.
//! - `call`: what `call_tool` really asks for, checked before it goes anywhere.
//!
//! Rules kept here:
//! - `call_tool` is the same path as a direct call: health, breaker, filters, errors. Here only its
//!   wrapping is taken off. Tools can still be called by their own names.
//! - What is wrong with a request is told as a tool's result, where a model reads it.

mod call;
mod describe;
mod embed;
mod find;
mod index;
mod model;
mod vectors;

use std::rc::Rc;
use std::sync::Arc;

use tidegate_gateway::live::Live;
use tidegate_mcp::{
    hub::{SearchAnswer, SearchJob, SearchTask, SearchView},
    message::Params,
    raw::quoted,
};
use tidegate_runtime::task;
use tokio::sync::mpsc;

use self::index::Indexes;
use super::runtime::McpRuntime;

/// The searches of all clients.
pub(crate) struct Searches {
    indexes: Rc<Indexes>,
    /// Bounded by the calls under way.
    sender: mpsc::UnboundedSender<Ended>,
    ended: mpsc::UnboundedReceiver<Ended>,
}

/// The number of a job, and its answer.
type Ended = (u64, SearchAnswer);

impl Default for Searches {
    fn default() -> Self {
        let (sender, ended) = mpsc::unbounded_channel();
        Self { indexes: Rc::default(), sender, ended }
    }
}

impl Searches {
    /// Follows the config, before anything is searched by it.
    pub(crate) fn follow(&self, runtime: &Rc<McpRuntime>, live: &Live) {
        self.indexes.model.follow(runtime.gateway(), live);
    }

    /// Begins a search. What needs no index is answered at once.
    pub(crate) fn begin(
        &self,
        runtime: &Rc<McpRuntime>,
        live: &Arc<Live>,
        SearchJob { job, task, view }: SearchJob,
    ) -> Option<SearchAnswer> {
        match task {
            SearchTask::Describe => {
                self.prepare(&view);
                Some(SearchAnswer::Result(describe::page(&live.file.mcp.pinned_tools, &view)))
            }
            SearchTask::Unwrap { params, may_look } => {
                let params = Params::parse(Some(&params)).unwrap_or_default();
                if may_look && !call::is_known(&view, &params) {
                    return Some(SearchAnswer::Unknown);
                }
                Some(match call::unwrapped(&view, &params) {
                    Ok(params) => SearchAnswer::Call(params),
                    Err(message) => SearchAnswer::Result(failed(&message)),
                })
            }
            SearchTask::Find(arguments) => {
                let (indexes, sender) = (Rc::clone(&self.indexes), self.sender.clone());
                let (runtime, live) = (Rc::clone(runtime), Arc::clone(live));
                task::spawn("mcp search", async move {
                    let search = &live.file.mcp.search;
                    let (ask_route, gateway) = (&runtime.ask_route, runtime.gateway());
                    let asked = find::Asked { search, ask_route, metrics: &gateway.metrics };
                    let found = find::find(&indexes, &asked, &view, arguments.as_deref()).await;
                    // The MCP thread may be about to end.
                    drop(sender.send((job, SearchAnswer::Result(found))));
                });
                None
            }
        }
    }

    /// Has the tools encoded that a client is about to search, if there is a model for it.
    fn prepare(&self, view: &SearchView) {
        if !self.indexes.model.is_wanted() {
            return;
        }
        let (indexes, view) = (Rc::clone(&self.indexes), view.clone());
        task::spawn("mcp search tools", async move {
            let (index, version) = indexes.of(&view.catalogue, &find::servers(&view)).await;
            indexes.model.prepare(&index, &version.vectors);
        });
    }

    /// The next answer that took a while. Dropping this future loses nothing.
    pub(crate) async fn next(&mut self) -> Ended {
        // The sending end is held here as well.
        match self.ended.recv().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }
}

/// A tool's result that says what is wrong.
fn failed(message: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#, quoted(message))
}
