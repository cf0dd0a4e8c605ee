//! What the threads of a gateway share, whichever plane they carry.
//!
//! - [`gateway`]: the live config behind an atomic pointer, the clock, the metrics; [`worker`]: one
//!   thread's part of it.
//! - [`live`]: one config at work, made by [`prepare`]; [`provider`]: what an upstream request
//!   needs; [`caller`] and [`admin_token`]: who may ask; [`certificates`]: what the listeners
//!   present; [`private`]: a gateway of one client's own; [`fixed`]: what only a start can change.
//! - [`guard`]: what is refused before anything else is looked at.
//! - [`status`]: what a gateway tells of itself; [`metrics`], [`log`], and [`report`], which feeds
//!   both with what the core tells.
//! - [`stores`]: the files that the journal is written to.
//! - [`fleet_names`]: what replicas call things, where there are several; [`fleet_view`]: what
//!   is known of them.
//! - [`own_request`]: requests of the gateway's own to one of its routes.

pub mod admin_token;
pub mod caller;
pub mod certificates;
pub mod fixed;
pub mod fleet_names;
pub mod fleet_view;
pub mod gateway;
pub mod guard;
pub mod live;
pub mod log;
pub mod metrics;
pub mod own_request;
pub mod prepare;
pub mod private;
pub mod provider;
pub mod report;
pub mod status;
pub mod stores;
#[cfg(any(test, feature = "test-bed"))]
pub mod test_bed;
pub mod worker;
