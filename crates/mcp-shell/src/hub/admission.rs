//! Whether a caller may have one more session, or one more call under way: its fair share.
//!
//! Rules kept here ([`tidegate_mcp::shares`] has the arithmetic):
//! - At its limit of sessions, or of programs that sessions have for themselves, a caller's own
//!   session goes that has been idle for longest; never another caller's.
//! - With none idle, or with the whole full, the new session is refused: 503 and when to come back.
//! - A session that needs several programs opens if there is room for one of them; it goes without
//!   the others, by name.
//! - Calls are counted from their request to their end, over all sessions of a caller.
//!
//! Left to others: the bound on programs that really run (`stdio/children.rs`); how a call that may
//! not begin is told (`relay`).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_config::file::McpFile;
use tidegate_gateway::caller::Caller;
use tidegate_mcp::shares::{Bound, Ledger, Room, Used};

use super::{Client, Hub};
use crate::door::Answer;

/// Calls of all callers at once. Each is a task and its message: some kilobytes.
const CALLS_MAX: usize = 4096;

/// The calls under way, by caller.
#[derive(Clone, Default)]
pub(crate) struct Calls(Rc<RefCell<Ledger>>);

/// The right to have one call under way, given back when dropped.
pub(crate) struct CallTurn {
    calls: Calls,
    caller: Arc<str>,
}

impl Calls {
    fn take(&self, caller: &Caller) -> Option<CallTurn> {
        let bound = Bound::new(CALLS_MAX, caller.share);
        let room = self.0.borrow_mut().take(&caller.name, 1, bound);
        let turn = || CallTurn { calls: self.clone(), caller: Arc::clone(&caller.name) };
        (room == Room::Free).then(turn)
    }
}

impl Drop for CallTurn {
    fn drop(&mut self) {
        self.calls.0.borrow_mut().give_back(&self.caller, 1);
    }
}

impl Hub {
    /// The right to begin a call; none if the caller, or all of them, have enough under way.
    pub(crate) fn take_call(&self, caller: &Caller) -> Option<CallTurn> {
        let turn = self.calls.take(caller);
        if turn.is_none() {
            self.ground.gateway().metrics.mcp_refused("call");
        }
        turn
    }

    /// Makes room for one more session of a caller, at the cost of its own ones.
    pub(super) fn make_room(&self, caller: &Caller, mcp: &McpFile) -> Result<(), Answer> {
        let room = self.room_for_a_session(caller, mcp);
        let room = room.and_then(|()| self.room_for_programs(caller, mcp));
        room.map_err(|message| {
            self.ground.gateway().metrics.mcp_refused("session");
            Answer::busy(message)
        })
    }

    fn room_for_a_session(&self, caller: &Caller, mcp: &McpFile) -> Result<(), &'static str> {
        let bound = Bound::new(mcp.session.max as usize, caller.share);
        loop {
            let clients = self.clients();
            let own = clients.iter().filter(|it| it.caller().name == caller.name).count();
            match bound.room(Used { all: clients.len(), own }, 1) {
                Room::Free => return Ok(()),
                Room::OwnLimit if self.end_oldest_idle(caller, |_| true) => {}
                Room::OwnLimit => return Err("you have as many sessions as you may; end one"),
                Room::WholeFull => return Err("as many sessions are open as may be; try again"),
            }
        }
    }

    fn room_for_programs(&self, caller: &Caller, mcp: &McpFile) -> Result<(), &'static str> {
        let needs_one = |it: &super::Group| {
            it.is_own_child() && it.is_usable() && caller.may_use_server(&it.name)
        };
        let needed = self.groups().iter().filter(|it| needs_one(it)).count();
        if needed == 0 {
            return Ok(());
        }
        let bound = Bound::new(mcp.max_children as usize, caller.share);
        loop {
            let clients = self.clients();
            let of = |it: &&Rc<Client>| it.caller().name == caller.name;
            let own = clients.iter().filter(of).map(|it| it.children()).sum();
            let used = Used { all: clients.iter().map(|it| it.children()).sum(), own };
            let room = bound.room(used, needed.min(bound.share));
            if room == Room::OwnLimit && self.end_oldest_idle(caller, |it| it.children() > 0) {
                continue;
            }
            return match bound.room(used, 1) {
                Room::Free => Ok(()),
                Room::OwnLimit => Err("your sessions have as many programs as they may; end one"),
                Room::WholeFull => Err("as many programs run as may be; try again"),
            };
        }
    }

    /// Ends the session of a caller's that has been idle for longest, among those that fit.
    pub(super) fn end_oldest_idle(&self, caller: &Caller, fits: impl Fn(&Client) -> bool) -> bool {
        let own = self.clients().into_iter().filter(|it| it.caller().name == caller.name);
        let idle = own.filter(|it| fits(it)).filter_map(|it| Some((it.idle_order()?, it)));
        match idle.min_by_key(|(order, _)| *order) {
            Some((_, client)) => {
                self.end(&client);
                true
            }
            None => false,
        }
    }
}
