//! A server as it really is: up, silent or gone, slow or quick, with its tools. All of this is
//! made up.
//!
//! A server forgets its sessions when it loses them or starts anew (`epoch`); its connections
//! break only when it dies (`incarnation`).

use serde_json::{Value, json};
use tidegate_core::time::Millis;

use super::{Deed, ServerPlan, file::EraWord};

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
    pub(super) era: EraWord,
    /// How long every answer takes.
    pub(super) delay: Millis,
    pub(super) incarnation: u64,
    pub(super) epoch: u64,
    pub(super) tools: Vec<String>,
}

impl World {
    pub(super) fn new(plan: &ServerPlan) -> Self {
        let (mode, delay, tools) = (Mode::Up, Millis::ZERO, plan.tools.clone());
        Self { mode, era: plan.era, delay, incarnation: 0, epoch: 0, tools }
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
            // It was deployed anew, and knows nothing of what was before.
            Deed::Era(era) => {
                self.era = *era;
                self.epoch += 1;
            }
            Deed::Heal => {
                self.mode = Mode::Up;
                self.delay = Millis::ZERO;
            }
        }
    }

    /// What it lists.
    pub(super) fn tools(&self, plan: &ServerPlan) -> Value {
        let tools: Vec<Value> = self.tools.iter().map(|name| definition(plan, name)).collect();
        json!({ "tools": tools })
    }
}

/// A tool as its server lists it: a scenario's tools have a name, and say whether they may be
/// called twice.
pub(super) fn definition(plan: &ServerPlan, name: &String) -> Value {
    let hints = json!({"idempotentHint": plan.repeatable.contains(name)});
    json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
}
