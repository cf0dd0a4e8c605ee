//! What every shell stands on, and nothing about gateways.
//!
//! - [`clock`] and [`rng`]: the files that read clocks and make random numbers.
//! - [`task`]: the one way to start a task.
//! - [`dormant`]: waiting for what is not likely to come, at no cost until it does.
//! - [`phase`]: how far a gateway is on its way out.

pub mod clock;
pub mod dormant;
pub mod phase;
pub mod rng;
pub mod task;
