//! The MCP gateway: one MCP server made of many.
//!
//! All of it runs on one thread of its own, on state that nothing else touches: no locks, one
//! order of events. The data plane's threads hand requests over (`door`) and stream the answers.
//!
//! Messages are carried as raw JSON, not through a typed SDK: types drop the fields they do not
//! know, sort keys and change numbers, and what clients and servers say to each other is none of a
//! gateway's business but for names, ids and progress tokens.
//!
//! A tour, in the order a request meets it:
//! - `door`: from an HTTP request on a worker's thread to the MCP thread and back; `large`:
//!   arguments that would hold it up.
//! - `front`: one request; `hub`: sessions, servers and what they share; `client`: one session;
//!   `stream`: events to a client, with replay.
//! - `relay`: which server answers what; `party`: whose call it is; `search`: `find_tool` and
//!   `call_tool` in place of all tools.
//! - `link`: a kept connection at work; `conversation`: requests and answers over it; `hearing`:
//!   what a server says of its own accord; `hello`: how the gateway introduces itself.
//! - `transport`: what a way to a server looks like; `http`, `sse`, `stdio`; `carrier`: any.
//! - `group`: what clients see as one server; `server`: one configured server; `shelf`: what it
//!   offers; `keeper`: the gateway's own eye on it; `keep`: a client's idle connection; `fakes`:
//!   servers inside the process.
//! - [`guest`]: the other side, a client of a gateway's; [`bridge`]: the same for a client that
//!   speaks over pipes; `visit`: one look at one server.
//!
//! Left to `tidegate_mcp`: what messages mean, what a session sees, when a connection is lost and
//! whether a call may be replayed. Left to the core: health.

pub mod bridge;
mod carrier;
pub mod child;
mod client;
mod conversation;
mod door;
mod fakes;
mod front;
mod ground;
mod group;
pub mod guest;
mod hearing;
mod hello;
mod http;
mod hub;
mod keep;
mod keeper;
mod large;
mod link;
mod party;
mod relay;
mod search;
mod server;
mod shelf;
mod sse;
mod stdio;
mod stream;
mod transport;
mod visit;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_config::secret::Environment;
use tidegate_gateway::{own_request::AskRoute, worker::Worker};
use tidegate_mcp::{cause::Cause, health};
use tidegate_runtime::{
    phase::{Phase, reached},
    task,
};
use tokio::sync::watch;

use self::{door::Arrived, hub::Hub};
pub use self::{
    door::{Door, Knocks, PATH, line},
    ground::Ground,
    hub::naming,
    stdio::Children,
    visit::{NoVisit, all_left, visit},
};

/// How late a reload, an idle session or a change of health may be noticed.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Whether closing the connection calls the request off. MCP without sessions has no other way to
/// cancel, so there a client that closes its side has gone, and is not waited for.
#[must_use]
pub fn is_cancelled_by_closing(headers: &::http::HeaderMap) -> bool {
    let stateless = tidegate_mcp::stateless::VERSION.as_bytes();
    headers.get("mcp-protocol-version").is_some_and(|it| it.as_bytes() >= stateless)
}

/// Runs the MCP thread until the gateway ends.
pub async fn run(
    worker: Rc<Worker>,
    ask_route: AskRoute,
    mut knocks: Knocks,
    environment: Arc<dyn Environment + Send + Sync>,
    phase: watch::Receiver<Phase>,
) {
    let children = Children::up_to(worker.gateway.live.load().file.mcp.max_children);
    let hub = Hub::new(Ground::new(worker, ask_route, environment, children));
    task::spawn("mcp watch", watch(Rc::clone(&hub)));
    loop {
        tokio::select! {
            arrived = knocks.recv() => match arrived {
                Some(Arrived::Knock(knock)) => {
                    task::spawn("mcp knock", front::answer(Rc::clone(&hub), knock));
                }
                Some(Arrived::Probe { server, answer }) => {
                    let hub = Rc::clone(&hub);
                    task::spawn("mcp probe", async move {
                        // An operator may not wait for it.
                        let _ = answer.send(hub.probe(&server).await);
                    });
                }
                None => break,
            },
            () = reached(phase.clone(), Phase::Draining) => break,
        }
    }
    // Whoever still knocks hears that the gateway is closing.
    drop(knocks);
    tokio::select! {
        () = hub.close() => {}
        () = reached(phase, Phase::Stopped) => {}
    }
}

/// Follows what changes by itself: the config, health, and how long sessions have been idle.
async fn watch(hub: Rc<Hub>) {
    let mut standings: Vec<(Arc<str>, Option<Cause>)> = Vec::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        hub.follow();
        hub.reap();
        hub.ground.worker.pool.sweep();
        let live = hub.ground.live();
        let now = hub.ground.now();
        let read = |server: &Rc<server::Server>| {
            let standing = health::standing(&live.core, &server.name, now);
            let trouble = match standing {
                health::Standing::Unhealthy(cause, _) => Some(cause),
                health::Standing::SlotTaken => Some(Cause::Busy),
                health::Standing::Healthy | health::Standing::HalfOpenFree => None,
            };
            (Arc::clone(&server.name), trouble)
        };
        let current: Vec<_> = hub.servers().iter().map(read).collect();
        if current != standings {
            for server in hub.servers() {
                let is_well = |all: &[(Arc<str>, Option<Cause>)]| {
                    let own = all.iter().find(|(name, _)| *name == server.name);
                    own.is_some_and(|(_, trouble)| trouble.is_none())
                };
                let was_known = standings.iter().any(|(name, _)| *name == server.name);
                if was_known && !is_well(&standings) && is_well(&current) {
                    // What recovered may have been deployed anew.
                    server.doubt_lists();
                }
            }
            for client in hub.clients() {
                (0..current.len()).for_each(|place| client.follow(place));
            }
            standings = current;
        }
    }
}
