//! A file's text, and how it is read without surprises.
//!
//! Rules kept here:
//! - Reading ends: only regular files are opened (a fifo or device could wait for ever), the size
//!   is looked at first, and the read itself is bounded as well because a file may grow.
//! - A byte order mark is dropped, so byte offsets count from the first character a person sees.
//! - Lines end at `\n`, `\r\n` or `\r`, as YAML has it; lines and columns count from 1, columns
//!   count characters.
//!
//! What is wrong with a file as a file is a [`FileProblem`]; what is wrong inside it is a
//! diagnostic of a later step.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::span::Span;

/// The largest file that is read: a thousand times a large config, and quick to refuse.
pub const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The largest scenario that is read: 20 000 recorded requests, the most that a gateway hands out,
/// take about 12 MiB, and more where many of them hopped.
pub const SCENARIO_MAX_BYTES: u64 = 32 * 1024 * 1024;

/// A file's text with the name to show for it.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    folder: PathBuf,
    text: String,
    line_starts: Vec<usize>,
}

/// A position for humans: both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Source {
    /// A source from text that is already in memory; relative paths in it start at the working
    /// directory.
    #[must_use]
    pub fn new(name: impl Into<String>, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let line_starts = line_starts(&text);
        Self { name: name.into(), folder: PathBuf::new(), text, line_starts }
    }

    /// The name to show, as the user gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, without a byte order mark.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folder that relative paths inside the file start from.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a byte offset is, for humans.
    #[must_use]
    pub fn place(&self, offset: usize) -> Place {
        let (line, start) = self.line_of(offset);
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or_default();
        Place { line, column: before.chars().count() + 1 }
    }

    /// `file:line:column` of a span's start.
    #[must_use]
    pub fn location(&self, span: Span) -> String {
        let place = self.place(span.start);
        format!("{}:{}:{}", self.name, place.line, place.column)
    }

    /// The line that holds a byte offset, without its line break, and where it starts.
    #[must_use]
    pub(crate) fn line_at(&self, offset: usize) -> (usize, &str) {
        let (line, start) = self.line_of(offset);
        let end = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..end).unwrap_or_default();
        (start, text.trim_end_matches(['\n', '\r']))
    }

    /// The number of the line that holds `offset`, and where that line starts.
    fn line_of(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset).max(1);
        (line, self.line_starts[line - 1])
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let breaks = bytes.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
}

/// Why a file could not become a [`Source`].
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    Missing(String),
    /// A directory is there.
    #[error("`{0}` is a directory, not a file")]
    Directory(String),
    /// A fifo, socket or device is there, which might never end.
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    /// It holds more than may be read.
    #[error("`{name}` is larger than {max_mib} MiB")]
    TooLarge {
        /// The file's name.
        name: String,
        /// The bound.
        max_mib: u64,
    },
    /// It is not text.
    #[error("`{name}` is not UTF-8: the byte at offset {offset} (line {line}) starts no character")]
    NotUtf8 {
        /// The file's name.
        name: String,
        /// The first bad byte.
        offset: usize,
        /// The line it is on, from 1.
        line: usize,
    },
    /// The system refused.
    #[error("`{name}` cannot be read: {source}")]
    Refused {
        /// The file's name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Reads a file, refusing whatever is not a modest piece of text.
///
/// # Errors
/// A [`FileProblem`] that says what is there instead.
pub fn read_file(path: &Path) -> Result<Source, FileProblem> {
    read_up_to(path, MAX_BYTES)
}

/// The same for a scenario, which may be the recording of a gateway.
///
/// # Errors
/// As [`read_file`].
pub fn read_scenario(path: &Path) -> Result<Source, FileProblem> {
    read_up_to(path, SCENARIO_MAX_BYTES)
}

fn read_up_to(path: &Path, max: u64) -> Result<Source, FileProblem> {
    let name = path.display().to_string();
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => FileProblem::Missing(name.clone()),
        _ => FileProblem::Refused { name: name.clone(), source },
    };
    let metadata = fs::metadata(path).map_err(refused)?;
    if metadata.is_dir() {
        return Err(FileProblem::Directory(name));
    }
    if !metadata.is_file() {
        return Err(FileProblem::NotAFile(name));
    }
    let too_large = |name| FileProblem::TooLarge { name, max_mib: max >> 20 };
    if metadata.len() > max {
        return Err(too_large(name));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(max + 1).read_to_end(&mut bytes))
        .map_err(refused)?;
    if bytes.len() as u64 > max {
        return Err(too_large(name));
    }
    let text = String::from_utf8(bytes).map_err(|error| not_utf8(&name, &error))?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(Source { folder, ..Source::new(name, &text) })
}

fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> FileProblem {
    let offset = error.utf8_error().valid_up_to();
    let before = &error.as_bytes()[..offset];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    FileProblem::NotUtf8 { name: name.to_owned(), offset, line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_in_three_ways() {
        let source = Source::new("x", "ä: 1\r\nb\rc\n");
        assert_eq!(source.place(2), Place { line: 1, column: 2 });
        assert_eq!(source.place(7), Place { line: 2, column: 1 });
        assert_eq!(source.place(9), Place { line: 3, column: 1 });
        assert_eq!(source.line_at(0).1, "ä: 1");
        assert_eq!(source.place(9999).line, 4, "an offset past the end is on the last line");
    }

    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(Source::new("x", "\u{feff}a: 1").text(), "a: 1");
    }

    #[test]
    fn each_thing_that_is_not_a_file_is_named() {
        let folder = std::env::temp_dir();
        assert!(matches!(read_file(&folder), Err(FileProblem::Directory(_))));
        assert!(matches!(read_file(&folder.join("absent.yaml")), Err(FileProblem::Missing(_))));
        assert!(matches!(read_file(Path::new("/dev/null")), Err(FileProblem::NotAFile(_))));
    }
}
