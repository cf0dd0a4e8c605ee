//! What the servers of a scenario are like at a moment: the only part of a run that is made up.
//!
//! A server forgets its sessions when it loses them or starts anew (`epoch`); its connections
//! break only when it dies (`incarnation`).

use std::sync::Arc;

use tidegate_core::time::Millis;
use tidegate_mcp::listing::{Item, Kind, Listing};

use super::Deed;

/// Whether a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It does.
    Up,
    /// It takes requests and is silent.
    Silent,
    /// There is nobody.
    Down,
}

/// One server.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) mode: Mode,
    /// How long every answer takes.
    pub(super) delay: Millis,
    pub(super) incarnation: u64,
    pub(super) epoch: u64,
    pub(super) tools: Vec<String>,
    /// Tool calls that reached it.
    pub(super) requests: u64,
}

impl World {
    pub(super) fn new(tools: Vec<String>) -> Self {
        let (mode, delay) = (Mode::Up, Millis::ZERO);
        Self { mode, delay, incarnation: 0, epoch: 0, tools, requests: 0 }
    }

    /// Something happens to it.
    pub(super) fn suffer(&mut self, deed: &Deed) {
        match deed {
            Deed::Crash => {
                self.mode = Mode::Down;
                self.incarnation += 1;
                self.epoch += 1;
            }
            Deed::Hang => self.mode = Mode::Silent,
            Deed::LoseSession => self.epoch += 1,
            Deed::Slow(by) => self.delay = *by,
            Deed::Tools(list) => self.tools.clone_from(list),
            Deed::Heal => {
                self.mode = Mode::Up;
                self.delay = Millis::ZERO;
            }
        }
    }

    /// What it would list now; `repeatable` tools are declared idempotent.
    pub(super) fn listing(&self, repeatable: &[String]) -> Arc<Listing> {
        let item = |name: &String| {
            let hint = serde_json::json!({"idempotentHint": repeatable.contains(name)});
            let schema = serde_json::json!({"type": "object"});
            let tool =
                serde_json::json!({"name": name, "inputSchema": schema, "annotations": hint});
            let raw = serde_json::value::to_raw_value(&tool).ok()?;
            Item::read(Kind::Tools, &raw)
        };
        let mut listing = Listing::default();
        listing.set_items(Kind::Tools, self.tools.iter().filter_map(item).collect());
        Arc::new(listing)
    }
}
