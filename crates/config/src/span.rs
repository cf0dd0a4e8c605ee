//! A place in a file's text, as bytes.

/// A range of bytes in a [`Source`](crate::source::Source).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}
