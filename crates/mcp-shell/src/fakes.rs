//! Servers inside the process, for the demo: real sockets on loopback, no network needed.
//!
//! They are started when first asked for and live as long as the MCP thread: their outages go by
//! their age.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tidegate_config::file::FakeServer;
use tidegate_fakes::{demo, fake_mcp::FakeMcpServer};

/// The fake servers of this gateway, by name.
#[derive(Default)]
pub(crate) struct Fakes(RefCell<BTreeMap<String, FakeMcpServer>>);

impl Fakes {
    /// Where the fake server of this name is; it is started if it is not there yet.
    pub(crate) fn url(&self, name: &str, fake: FakeServer) -> String {
        let mut fakes = self.0.borrow_mut();
        let start = || FakeMcpServer::start(demo::mcp_script(name, fake));
        fakes.entry(name.to_owned()).or_insert_with(start).url()
    }
}
