//! Tidegate's core: one pure, deterministic machine that decides about health and routing.
//!
//! Everything else carries bytes or draws pictures. The core takes the time ([`time::Now`]) and
//! random draws as arguments; it opens no socket, reads no clock, spawns nothing, logs nothing.
//! The server drives it with real time, the simulator with a fake clock: the same code.
//!
//! A tour, in the order a request meets it:
//! - [`settings`]: what it is told; [`core::Core`]: everything it knows.
//! - [`plan::Plan`]: one request, `next` → `report` → … → `Finish`.
//! - [`read`] and [`choice`]: what a choice reads of each candidate, and the pure choice over it;
//!   `tactic` picks inside a tier; `pins` remembers sessions; `budget` bounds hops, `last_resort`
//!   attempts past breakers.
//! - [`permit::Permit`]: the right to make one attempt; [`resend`] and [`commit`] decide what the
//!   shell does with its connection and its answer; `report` is how evidence enters.
//! - [`breaker::Breaker`]: closed, open, half-open; `cell` shares it between threads.
//! - [`probe`]: when to ask a backend unasked.
//! - [`wire_format`]: in which format a target gets a request; [`held_state`]: what only one
//!   provider has, and `holder`: which one.
//! - [`mark`]: windows and exclusions. [`outcome`]: how attempts end, and the table of what that
//!   means.
//! - [`hint`] and [`names`]: what replicas of a fleet tell each other, and what they call things;
//!   `tell` makes hints, `hear` takes them, `holdings` lists what is held; `operator` acts by hand.
//! - [`transition`], [`explain`], [`snapshot`]: what the core says about itself.

pub mod attempt;
mod backend;
pub mod breaker;
mod budget;
mod cell;
pub mod choice;
pub mod commit;
pub mod core;
pub mod draw;
pub mod explain;
mod hear;
pub mod held_state;
pub mod hint;
mod holder;
mod holdings;
mod last_resort;
mod latency;
pub mod mark;
pub mod names;
mod obstacle;
mod operator;
pub mod outcome;
pub mod permit;
mod pins;
pub mod plan;
pub mod probe;
pub mod rank;
pub mod read;
mod report;
pub mod resend;
pub mod route;
pub mod settings;
pub mod snapshot;
mod sync;
mod tactic;
mod tell;
pub mod time;
pub mod transition;
pub mod usual;
pub mod wire_format;

pub use backend::Backend;
pub use cell::LastError;
pub use latency::LatencyRead;
