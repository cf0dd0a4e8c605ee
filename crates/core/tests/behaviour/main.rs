//! The rules of health and routing, one claim per test, through the core's public door.
//!
//! One file per subject; `bed.rs` is the harness they share. They are one test binary so that the
//! harness is built and linked once. What no single example can show is in `properties.rs` and,
//! against a reference model, in `tests/model`.

mod affinity;
mod bed;
mod breaker;
mod choosing;
mod commit;
mod failover;
mod fleet;
mod fleet_pins;
mod fleet_properties;
mod held_state;
mod key_pins;
mod keys;
mod last_resort;
mod operator;
mod outcomes;
mod patience;
mod plain_cache;
mod probes;
mod properties;
mod reload;
mod resend;
mod scopes;
mod tenants;
mod too_long;
mod words;
