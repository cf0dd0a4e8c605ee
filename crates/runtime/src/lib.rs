//! What every shell stands on, and nothing about gateways.
//!
//! - [`clock`] and [`rng`]: the files that read clocks and make random numbers.
//! - [`task`]: the one way to start a task.
//! - [`phase`]: how far a gateway is on its way out.

pub mod clock;
pub mod phase;
pub mod rng;
pub mod task;
