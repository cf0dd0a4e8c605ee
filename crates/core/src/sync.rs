//! The locks and atomics of the shared cells, exchangeable for loom's.
//!
//! Built normally these are the standard library's. Under `--cfg loom` they are loom's, so that
//! `tests/loom.rs` can run every interleaving of the very code that production runs.
//!
//! A poisoned lock is entered anyway: the data behind the core's locks is valid after every
//! statement, and a panic elsewhere must not take a backend out of service for ever.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// Enters the lock, poisoned or not.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(not(loom))]
    return mutex.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(loom)]
    return mutex.lock().expect("loom models stop at the first panic");
}

/// Lets another thread run while a reader waits for a writer.
pub(crate) fn pause() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
