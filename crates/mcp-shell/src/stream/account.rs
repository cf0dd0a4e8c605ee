//! The bytes of events that are held for callers, wherever they are: in a session's memory, on
//! their way to a worker's thread, or waiting for a socket.
//!
//! An event carries its own account: it counts from the moment it is written until its last copy is
//! dropped, on whichever thread that is. So the bound is one on memory and not on intentions.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tidegate_gateway::{caller::Caller, gateway::Gateway};
use tidegate_mcp::shares::{Bound, Ledger, Room};

/// Bytes of events of all callers: sixteen of the largest answers.
const RETAINED_MAX: usize = 256 * 1024 * 1024;

/// What is held for all callers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retained(Arc<Mutex<Ledger>>);

impl Retained {
    /// The account of one caller.
    pub(crate) fn account(&self, caller: &Caller, gateway: &Arc<Gateway>) -> Account {
        let bound = Bound::new(RETAINED_MAX, caller.share);
        let (name, gateway) = (Arc::clone(&caller.name), Some(Arc::clone(gateway)));
        Account { retained: self.clone(), caller: name, bound, gateway }
    }
}

/// What is held for one caller.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    retained: Retained,
    caller: Arc<str>,
    bound: Bound,
    /// Where answers that are gone are counted.
    gateway: Option<Arc<Gateway>>,
}

impl Account {
    /// That of the program itself, where it is a client.
    pub(crate) fn own() -> Self {
        let bound = Bound::new(RETAINED_MAX, 1.0);
        Self { retained: Retained::default(), caller: "".into(), bound, gateway: None }
    }

    /// These bytes, held; none if the caller, or all of them, have enough.
    pub(super) fn hold(&self, bytes: Vec<u8>) -> Option<Bytes> {
        let mut ledger = self.retained.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = ledger.take(&self.caller, bytes.len(), self.bound);
        drop(ledger);
        if room != Room::Free {
            return None;
        }
        let held = Held { bytes, account: self.clone() };
        held.count(1);
        Some(Bytes::from_owner(held))
    }

    /// An answer is gone because there was no room for it.
    pub(super) fn count_gone(&self) {
        if let Some(gateway) = &self.gateway {
            gateway.metrics.mcp_refused("answer");
        }
    }
}

/// Bytes that are counted while they are there.
struct Held {
    bytes: Vec<u8>,
    account: Account,
}

impl Held {
    fn count(&self, sign: i64) {
        if let Some(gateway) = &self.account.gateway {
            let bytes = i64::try_from(self.bytes.len()).unwrap_or(i64::MAX);
            gateway.metrics.mcp_retained(sign * bytes);
        }
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut ledger = self.account.retained.0.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.give_back(&self.account.caller, self.bytes.len());
        drop(ledger);
        self.count(-1);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The account of a caller that may hold this much.
    pub(in crate::stream) fn account(whole: usize) -> Account {
        let bound = Bound::new(whole, 1.0);
        Account { retained: Retained::default(), caller: "test".into(), bound, gateway: None }
    }

    /// Bytes that are held.
    pub(in crate::stream) fn held(account: &Account) -> usize {
        account.retained.0.lock().expect("no test panics with it").used(&account.caller).own
    }

    #[test]
    fn bytes_count_until_their_last_copy_is_gone() {
        let account = account(100);
        let first = account.hold(vec![0; 60]).expect("there is room");
        let copy = first.slice(10..20);
        assert!(account.hold(vec![0; 60]).is_none());
        drop(first);
        assert_eq!(held(&account), 60, "a part of it is on its way");
        std::thread::spawn(move || drop(copy)).join().expect("it ends");
        assert_eq!(held(&account), 0);
        assert!(account.hold(vec![0; 60]).is_some());
    }
}
