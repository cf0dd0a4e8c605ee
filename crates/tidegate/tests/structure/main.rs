//! How the sources of the workspace are built up, as tests.
//!
//! - `cycles`: the top-level modules of a crate import each other in one direction.
//! - `names`: a type name stands once per crate.

mod cycles;
mod graph;
mod names;
mod scan;
mod sources;
