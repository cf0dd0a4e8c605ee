//! Several gateways and one real `redis-server`: what one replica learns, the others know; and
//! whatever happens to the store, nobody waits for it.
//!
//! `store.rs` starts a store and does things to it, `bed.rs` starts replicas.

mod bed;
mod faults;
mod hints;
mod kinds;
mod records;
mod store;
mod strangers;
