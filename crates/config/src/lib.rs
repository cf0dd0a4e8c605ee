//! The config file: its format, its problems, and what it means to the core.
//!
//! A file goes through these steps, each in a module of its own:
//!
//! 1. [`source`]: read it, refusing what is not a modest piece of text.
//! 2. [`document`]: YAML into a tree of nodes that know where they stand.
//! 3. [`shape`]: the tree into plain types, along their JSON Schema, reporting every unknown key,
//!    wrong type and bad value at once.
//!
//! Problems are [`diagnostic::Diagnostic`]s with a code (`codes`), a key path ([`path`]) and a
//! span; [`render`] draws them. Steps 1 to 3 know nothing of the config file, and scenario files
//! are read by them too.
//!
//! This crate opens no sockets, and decides nothing about health or routing.
#![warn(missing_docs)]

pub mod address;
pub mod bytes;
pub mod codes;
pub mod diagnostic;
pub mod document;
pub mod duration;
pub mod file;
pub mod glob;
pub mod path;
pub mod percent;
pub mod render;
pub mod secret;
pub mod shape;
pub mod source;
pub mod suggest;
