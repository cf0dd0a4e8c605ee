//! What holds for all messages, names, catalogues and calls through groups, and for input that is
//! none of them.
//!
//! Inputs are drawn by proptest, which shrinks a failing one and prints it; nothing is kept on
//! disk, so a run depends on its seed alone (`PROPTEST_RNG_SEED`).

mod catalogue;
mod group_calls;
mod hostile;
mod messages;
mod names;
mod schemas;
mod support;
