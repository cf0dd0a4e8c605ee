//! The bytes of events that are held for callers, wherever they are: in a session's memory, on
//! their way to a client's thread, or waiting for a socket.
//!
//! An event carries its own account: it counts from the moment it is written until its last copy is
//! dropped, on whichever thread that is. So the bound is one on memory and not on intentions.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::shares::{Bound, Ledger, Room};

/// Bytes of events of all callers: sixteen of the largest answers.
const RETAINED_MAX: usize = 256 * 1024 * 1024;

/// Hears of every change of what is held, in bytes.
pub type Meter = Arc<dyn Fn(i64) + Send + Sync>;

/// What is held for all callers.
#[derive(Clone, Default)]
pub struct Retained {
    ledger: Arc<Mutex<Ledger>>,
    meter: Option<Meter>,
}

impl fmt::Debug for Retained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retained").finish_non_exhaustive()
    }
}

impl Retained {
    /// Nothing is held. `meter` hears of every change, in bytes.
    #[must_use]
    pub fn new(meter: Option<Meter>) -> Self {
        Self { ledger: Arc::default(), meter }
    }

    /// The account of one caller that may use this fraction of the whole.
    pub(super) fn account(&self, caller: &Arc<str>, share: f64) -> Account {
        let bound = Bound::new(RETAINED_MAX, share);
        Account { retained: self.clone(), caller: Arc::clone(caller), bound }
    }

    fn count(&self, bytes: usize, sign: i64) {
        if let Some(meter) = &self.meter {
            meter(sign * i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
}

/// What is held for one caller.
#[derive(Clone, Debug)]
pub(super) struct Account {
    retained: Retained,
    caller: Arc<str>,
    bound: Bound,
}

impl Account {
    /// These bytes, held; none if the caller, or all of them, have enough.
    pub(super) fn hold(&self, bytes: Vec<u8>) -> Option<Bytes> {
        let mut ledger = self.retained.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let room = ledger.take(&self.caller, bytes.len(), self.bound);
        drop(ledger);
        if room != Room::Free {
            return None;
        }
        self.retained.count(bytes.len(), 1);
        Some(Bytes::from_owner(Held { bytes, account: self.clone() }))
    }
}

/// Bytes that are counted while they are there.
struct Held {
    bytes: Vec<u8>,
    account: Account,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let retained = &self.account.retained;
        let mut ledger = retained.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.give_back(&self.account.caller, self.bytes.len());
        drop(ledger);
        retained.count(self.bytes.len(), -1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_their_last_copy_is_gone() {
        let retained = Retained::default();
        let bound = Bound::new(100, 1.0);
        let account = Account { retained: retained.clone(), caller: "test".into(), bound };
        let held = || retained.ledger.lock().expect("no test panics with it").used("test").own;
        let first = account.hold(vec![0; 60]).expect("there is room");
        let copy = first.slice(10..20);
        assert!(account.hold(vec![0; 60]).is_none());
        drop(first);
        assert_eq!(held(), 60, "a part of it is on its way");
        std::thread::spawn(move || drop(copy)).join().expect("it ends");
        assert_eq!(held(), 0);
        assert!(account.hold(vec![0; 60]).is_some());
    }
}
