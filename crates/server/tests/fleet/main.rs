//! Several gateways and one real `redis-server`: what one replica learns, the others know; and
//! whatever happens to the store, nobody waits for it.
//!
//! `bed.rs` starts replicas; the store is the test kit's.

mod bed;
mod cut;
mod faults;
mod hints;
mod kinds;
mod records;
mod sessions;
mod strangers;

use tidegate_testkit::store;
