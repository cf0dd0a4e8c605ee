//! Where in the arguments a value stands.
//!
//! A list on the stack: walking costs nothing, and only a problem writes the path down.

use std::fmt;

use super::problem::cut;

/// Letters of one key that are written down.
const KEY_MAX: usize = 60;

/// A value's place, as steps back to the whole.
pub(super) struct ValuePath<'a> {
    up: Option<&'a ValuePath<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> ValuePath<'a> {
    /// The whole value.
    pub(super) const ROOT: ValuePath<'static> = ValuePath { up: None, step: Step::Item(0) };

    /// The value under a key of this one.
    pub(super) fn key(&'a self, key: &'a str) -> ValuePath<'a> {
        ValuePath { up: Some(self), step: Step::Key(key) }
    }

    /// An item of this one.
    pub(super) fn item(&'a self, at: usize) -> ValuePath<'a> {
        ValuePath { up: Some(self), step: Step::Item(at) }
    }
}

impl fmt::Display for ValuePath<'_> {
    /// As a JSON pointer; the whole value is the empty one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written from the whole downwards. As deep as a check goes, which is bounded.
        let Some(up) = self.up else { return Ok(()) };
        up.fmt(f)?;
        match self.step {
            Step::Key(key) => {
                write!(f, "/{}", cut(key, KEY_MAX).replace('~', "~0").replace('/', "~1"))
            }
            Step::Item(at) => write!(f, "/{at}"),
        }
    }
}
