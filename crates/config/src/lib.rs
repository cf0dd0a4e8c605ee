//! The config file: its format, its problems, and what it means to the core.
//!
//! A file goes through these steps, each in a module of its own:
//!
//! 1. [`source`]: read it, refusing what is not a modest piece of text.
//! 2. [`document`]: YAML into a tree of nodes that know where they stand.
//! 3. [`shape`]: the tree into plain types, along their JSON Schema, reporting every unknown key,
//!    wrong type and bad value at once.
//! 4. `check`: rules between keys, all of them at once.
//! 5. `resolve`: what the file means to the core, in settings without anything left open.
//!
//! [`load`] does 2 to 5 for the config file, whose format is in [`mod@file`].
//!
//! Problems are [`diagnostic::Diagnostic`]s with a code (`codes`), a key path ([`path`]) and a
//! span; [`render`] draws them. Steps 1 to 3 know nothing of the config file, and scenario files
//! are read by them too.
//!
//! This crate opens no sockets, and decides nothing about health or routing.
#![warn(missing_docs)]

mod abilities;
pub mod address;
pub mod bytes;
mod check;
pub mod codes;
pub mod diagnostic;
pub mod document;
pub mod duration;
pub mod file;
pub mod glob;
mod load;
mod mask;
pub mod model_name;
pub mod path;
pub mod percent;
pub mod redact;
pub mod render;
mod resolve;
pub mod schema;
pub mod secret;
pub mod shape;
pub mod source;
mod span;
pub mod store_url;
pub mod suggest;

pub use crate::{
    load::{Loaded, Overrides, Summary, load, load_with},
    resolve::{Config, FleetState, ResolvedProvider, provider_url},
};
