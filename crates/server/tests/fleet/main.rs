//! Several gateways and one real `redis-server`: what one replica learns, the others know; and
//! whatever happens to the store, nobody waits for it.
//!
//! `bed.rs` starts replicas, `bare.rs` those without a gateway; the store is the test kit's.

mod bare;
mod bed;
mod cut;
mod faults;
mod hints;
mod kinds;
mod pins;
mod records;
mod sessions;
mod strangers;

use tidegate_testkit::store;
