//! Whether a server without sessions is still there: a session that opens has nothing else to go
//! by, since there is no `initialize` that would tell.
//!
//! Rules kept here:
//! - A server that has answered anything within `answered_within` is not asked.
//! - Sessions that open together share one question; it goes on if the first of them leaves.

use std::cell::RefCell;
use std::rc::Rc;

use tidegate_core::time::Millis;
use tidegate_mcp::{
    call::{Errand, Unavailable},
    stateless::discover,
};
use tidegate_runtime::task;
use tokio::sync::Notify;

use super::{Answered, Ask, Link};

/// A look whether a server still answers.
#[derive(Default)]
pub(super) struct Check {
    ended: Notify,
    found: RefCell<Option<Result<(), Unavailable>>>,
}

impl Check {
    async fn found(&self) -> Result<(), Unavailable> {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if let Some(found) = self.found.borrow().clone() {
                return found;
            }
            ended.await;
        }
    }
}

impl Link {
    /// Whether the server still answers, if it speaks the stateless era and has not said a word
    /// for `answered_within`: there is no session that would tell.
    pub(crate) async fn still_answers(&self, within: Millis) -> Result<(), Unavailable> {
        let is_stateless = self.conversation().is_some_and(|talk| talk.is_stateless());
        let silence = self.ground.now().since(self.heard_at.get());
        if !is_stateless || silence < within {
            return Ok(());
        }
        let under_way = self.checking.borrow().clone();
        match under_way.or_else(|| self.check()) {
            Some(check) => check.found().await,
            None => Ok(()),
        }
    }

    /// Begins to look; also if whoever asked first goes away in the middle of it.
    fn check(&self) -> Option<Rc<Check>> {
        let this = self.this.upgrade()?;
        let check = Rc::new(Check::default());
        *self.checking.borrow_mut() = Some(Rc::clone(&check));
        let begun = Rc::clone(&check);
        task::spawn("mcp check", async move {
            let errand = Errand::Repeatable;
            let ask = Ask { method: discover::METHOD, params: None, errand, party: None };
            let found = match this.ask(ask).await {
                Answered::Reply(_) => Ok(()),
                Answered::Unavailable(unavailable) => Err(unavailable),
            };
            *begun.found.borrow_mut() = Some(found);
            this.checking.borrow_mut().take();
            begun.ended.notify_waiters();
        });
        Some(check)
    }
}
