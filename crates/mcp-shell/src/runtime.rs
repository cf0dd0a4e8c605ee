//! What everything on the MCP thread stands on: the gateway, connections, programs, randomness.

use std::rc::Rc;
use std::sync::Arc;

use tidegate_config::secret::Environment;
use tidegate_core::time::Now;
use tidegate_gateway::{gateway::Gateway, live::Live, own_request::AskRoute, worker::Worker};
use tidegate_journal::{request_id::RequestId, trace_context::TraceContext};
use tidegate_mcp::hub::{CallTrace, Random};
use tidegate_net::secret::random_hex;
use tidegate_runtime::rng;

use super::{fakes::Fakes, fleet::SessionFleet, stdio::Children};

/// What the MCP thread runs with.
pub struct McpRuntime {
    pub(crate) worker: Rc<Worker>,
    /// Asks routes of the LLM plane, for embeddings.
    pub(crate) ask_route: AskRoute,
    pub(crate) environment: Arc<dyn Environment + Send + Sync>,
    pub(crate) children: Children,
    pub(crate) fakes: Fakes,
    /// The replicas that this one shares sessions with.
    pub(crate) fleet: Option<Arc<dyn SessionFleet>>,
}

impl McpRuntime {
    pub fn new(
        worker: Rc<Worker>,
        ask_route: AskRoute,
        environment: Arc<dyn Environment + Send + Sync>,
    ) -> Rc<Self> {
        Self::in_fleet(worker, ask_route, environment, None)
    }

    /// What the MCP thread of a replica runs with.
    pub fn in_fleet(
        worker: Rc<Worker>,
        ask_route: AskRoute,
        environment: Arc<dyn Environment + Send + Sync>,
        fleet: Option<Arc<dyn SessionFleet>>,
    ) -> Rc<Self> {
        let children = Children::up_to(worker.gateway.live.load().file.mcp.max_children);
        let fakes = Fakes::default();
        Rc::new(Self { worker, ask_route, environment, children, fakes, fleet })
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.worker.gateway
    }

    /// The config that serves now.
    #[must_use]
    pub fn live(&self) -> Arc<Live> {
        self.worker.gateway.live.load_full()
    }

    /// The moment.
    #[must_use]
    pub fn now(&self) -> Now {
        self.worker.gateway.now()
    }
}

/// Random numbers for the Hub.
pub(crate) struct SystemRandom<'a> {
    pub(crate) fleet: Option<&'a dyn SessionFleet>,
}

impl Random for SystemRandom<'_> {
    fn draw(&mut self) -> u64 {
        rng::draw()
    }

    fn secret_id(&mut self) -> Option<String> {
        random_hex::<16>()
    }

    fn session_id(&mut self) -> Option<String> {
        let random = self.secret_id()?;
        Some(self.fleet.map_or_else(|| random.clone(), |fleet| fleet.session_id(&random)))
    }

    fn parked_id(&mut self) -> Option<String> {
        let random = self.secret_id()?;
        match self.fleet {
            Some(fleet) => fleet.parked_id(&random),
            None => Some(random),
        }
    }

    fn trace(&mut self, parent: &str) -> Option<CallTrace> {
        let context = TraceContext::parse(parent.as_bytes())?;
        let id = RequestId::new();
        Some(CallTrace { id: id.bits(), header: context.header_of_request(id) })
    }
}
