//! Requests of the gateway's own to one of its routes, in the process.
//!
//! Whoever needs one holds an [`AskRoute`]; the LLM plane makes it. So the MCP side can ask a route
//! for embeddings without knowing how requests are routed.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;

/// What came back.
#[derive(Clone, Debug)]
pub struct OwnAnswer {
    /// The model that answered, by its name in the config.
    pub model: String,
    pub body: Bytes,
}

/// A request to a route.
#[derive(Clone, Debug)]
pub struct OwnRequest {
    pub path: &'static str,
    /// It names the route as its model.
    pub body: Bytes,
    /// How large the answer may be, in bytes.
    pub answer_max: usize,
}

/// An answer that is being made; nothing unless a target succeeded.
pub type Asking = Pin<Box<dyn Future<Output = Option<OwnAnswer>>>>;

/// Asks a route. A request that is dropped is one whose client left: a deadline is the asker's.
pub type AskRoute = Rc<dyn Fn(OwnRequest) -> Asking>;
