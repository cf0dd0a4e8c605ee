//! A link in a group of equivalent servers: one leg of a tour, which the core has admitted already.
//!
//! The permit is taken before it is known at whose server the call waits in line, because the core
//! chooses the server. The wait is no part of the call's own time; one that was in vain gives the
//! permit back, and the tour goes on.

use std::time::Duration;

use tidegate_core::time::Millis;
use tidegate_mcp::call::{Call, Code, Do, End};
use tidegate_runtime::clock::timer_now;

use super::{Ask, Carried, Link, outcome_of};

impl Link {
    /// One attempt of a call, and how long it waited for its turn, at most `patience`.
    pub(crate) async fn attempt(
        &self,
        mut call: Call,
        ask: &Ask,
        patience: Millis,
    ) -> (Carried, Millis) {
        let asked_at = self.ground.now();
        let turn = self.turn(patience).await;
        let now = self.ground.now();
        let waited = now.since(asked_at);
        call.waited(waited);
        let left = call.deadline().since(now);
        let until = timer_now() + Duration::from_millis(left.0);
        let next = if turn.is_some() { self.go(&mut call) } else { call.no_turn(now) };
        let carried = self.carry(call, next, ask, until).await;
        let outcome = match &carried {
            Carried::Ended(_, _, Some(reply)) => outcome_of(reply),
            Carried::Ended(_, End::Unavailable(it), None) | Carried::Known(it) => it.code.word(),
            Carried::Ended(..) => Code::BackendUnavailable.word(),
        };
        self.ground.gateway().metrics.mcp_call(&self.server.name, outcome);
        (carried, waited)
    }

    /// Sees to it that the connection is there.
    pub(crate) async fn bring(&self, call: &mut Call) -> End {
        let left = call.deadline().since(self.ground.now());
        let until = timer_now() + Duration::from_millis(left.0);
        let next = self.go(call);
        self.brought(call, next, until).await
    }

    fn go(&self, call: &mut Call) -> Do {
        let now = self.ground.now();
        self.ground.with_notes(|notes| call.go(&mut self.machine.borrow_mut(), now, notes))
    }
}
