//! The MCP gateway: one MCP server made of many.
//!
//! All of it runs on one thread of its own, on state that nothing else touches: no locks, one
//! order of events. The data plane's threads hand requests over (`handle`) and stream the answers.
//!
//! Messages are carried as raw JSON, not through a typed SDK: types drop the fields they do not
//! know, sort keys and change numbers, and what clients and servers say to each other is none of a
//! gateway's business but for names, ids and progress tokens.
//!
//! A tour, in the order a request meets it:
//! - `handle`: from an HTTP request on a worker's thread to the MCP thread and back; `event_body`:
//!   a stream of events on that way; `large`: arguments that would hold the MCP thread up.
//! - `driver`: tells the Hub what happens and does what it says; `clients`: whoever waits for an
//!   answer or reads a stream; `connections`: the connections to servers; `report`: metrics, log
//!   and journal.
//! - `settings`: a config as the Hub wants it; `servers`: how each server is reached; `runtime`:
//!   what all of them stand on; `fakes`: servers inside the process.
//! - `transport`: what a connection to a server looks like; `http`, `sse`, `stdio`; `carrier`: any;
//!   `beside`: their large messages, read on another thread.
//! - [`fleet`]: what is needed of other replicas; `elsewhere`: requests for sessions that are not
//!   here.
//! - `search`: `find_tool` and `call_tool` in place of all tools.
//! - [`guest`]: the other side, a client of a gateway's; [`bridge`]: the same for a client that
//!   speaks over pipes; `visit`: one look at one server; [`child`]: what stands between the gateway
//!   and a server's program.
//!
//! Left to [`tidegate_mcp::hub::Hub`]: everything that is decided about sessions, servers and
//! calls, and their timing. Left to the core: health.

mod beside;
pub mod bridge;
mod carrier;
pub mod child;
mod clients;
mod connections;
mod driver;
mod elsewhere;
mod event_body;
mod fakes;
pub mod fleet;
pub mod guest;
mod handle;
mod http;
mod large;
pub mod memory_fleet;
mod report;
mod runtime;
mod search;
mod servers;
mod settings;
mod sse;
mod stdio;
mod transport;
mod visit;

use std::rc::Rc;

use tidegate_mcp::hub::Event;
use tidegate_runtime::{
    phase::{Phase, Settled, reached},
    task,
};
use tokio::sync::{oneshot, watch};

use self::{driver::Driver, settings::Scope};
pub use self::{
    handle::{Arrivals, McpHandle, PATH, line},
    runtime::McpRuntime,
    settings::naming,
    visit::{NoVisit, all_left, visit},
};

/// Whether closing the connection calls the request off. MCP without sessions has no other way to
/// cancel, so there a client that closes its side has gone, and is not waited for.
#[must_use]
pub fn is_cancelled_by_closing(headers: &::http::HeaderMap) -> bool {
    let stateless = tidegate_mcp::stateless::VERSION.as_bytes();
    headers.get(handle::VERSION).is_some_and(|it| it.as_bytes() >= stateless)
}

/// Runs the MCP thread until the gateway ends.
pub async fn run(
    runtime: Rc<McpRuntime>,
    arrivals: Arrivals,
    phase: (watch::Receiver<Phase>, Settled),
) {
    let (end, ended) = oneshot::channel::<()>();
    // A task among the others: waking the thread's root future costs a system call each time.
    task::spawn("mcp driver", async move {
        drive(runtime, arrivals, phase).await;
        drop(end);
    });
    // It is told by the channel's end, also after a panic.
    drop(ended.await);
}

async fn drive(
    runtime: Rc<McpRuntime>,
    arrivals: Arrivals,
    (phase, mut settled): (watch::Receiver<Phase>, Settled),
) {
    let Arrivals { mut line, clients } = arrivals;
    let mut driver = Driver::new(runtime, clients, Scope::All);
    let mut draining = std::pin::pin!(reached(phase.clone(), Phase::Draining));
    loop {
        tokio::select! {
            Some(arrived) = line.recv() => driver.take(arrived),
            () = driver.step() => {}
            () = &mut draining => break,
        }
    }
    if driver.begin_leaving() {
        // Others go on with the sessions; until all are free, whoever asks is still heard. None is
        // freed while a request for it may be on its way here: its client asks nobody else.
        let released = async {
            let mut settling = std::pin::pin!(settled.wait());
            loop {
                tokio::select! {
                    biased;
                    Some(arrived) = line.recv() => driver.take(arrived),
                    () = &mut settling => break,
                    () = driver.step() => {}
                }
            }
            driver.release();
            while !driver.is_released() {
                tokio::select! {
                    Some(arrived) = line.recv() => driver.take(arrived),
                    () = driver.step() => {}
                }
            }
        };
        tokio::select! {
            () = released => {}
            () = reached(phase.clone(), Phase::Ending) => {}
        }
    }
    // Whoever still asks hears that the gateway is closing, and that nothing was done.
    line.close();
    while let Ok(arrived) = line.try_recv() {
        arrived.refuse();
    }
    driver.tell(Event::Close);
    let closing = async {
        while !driver.is_closed() {
            driver.step().await;
        }
    };
    tokio::select! {
        () = closing => {}
        () = reached(phase, Phase::Stopped) => {}
    }
}
