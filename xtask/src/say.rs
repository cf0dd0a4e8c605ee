//! The only place of `xtask` that prints.
//!
//! Progress goes to stdout, because it is the result of a chore, and trouble to stderr. A closed
//! pipe is no reason to stop a chore, so write errors are dropped.

use std::io::Write;

/// Prints one line of progress.
pub(crate) fn line(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

/// Prints why a chore stopped.
pub(crate) fn trouble(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
