//! What a warden tells its gateway: one line per fact, over the socket that brings it input.
//!
//! Both sides are the same binary, so the words need no version.

use std::fmt;

/// No word is longer.
pub(crate) const WORD_MAX: usize = 64;

/// A fact about the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It runs, as this process and at the head of a process group of the same number.
    Started(u32),
    /// It cannot be started, for this reason of the operating system's (its error number).
    Failed(i32),
    /// It has ended.
    Ended(End),
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Word {
    /// Understands a line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.trim_end().split_once(' ')?;
        match word {
            "started" => number.parse().ok().map(Self::Started),
            "failed" => number.parse().ok().map(Self::Failed),
            "code" => number.parse().ok().map(|code| Self::Ended(End::Code(code))),
            "signal" => number.parse().ok().map(|signal| Self::Ended(End::Signal(signal))),
            _ => None,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(id) => write!(f, "started {id}"),
            Self::Failed(reason) => write!(f, "failed {reason}"),
            Self::Ended(end) => end.fmt(f),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_understood_as_it_was_said() {
        let ends = [End::Code(3), End::Code(-1), End::Signal(9)].map(Word::Ended);
        for word in [Word::Started(u32::MAX), Word::Failed(2)].into_iter().chain(ends) {
            let line = format!("{word}\n");
            assert!(line.len() <= WORD_MAX, "{line}");
            assert_eq!(Word::parse(&line), Some(word));
        }
        for line in ["", "started", "started x", "hello 1"] {
            assert_eq!(Word::parse(line), None, "{line}");
        }
    }
}
