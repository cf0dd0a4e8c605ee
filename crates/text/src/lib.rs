//! Patterns and escapes of names, as pure functions without a dependency.
//!
//! - [`glob`]: patterns for the names of models and tools.
//! - [`percent`]: percent-encoding, undone.

pub mod glob;
pub mod percent;
