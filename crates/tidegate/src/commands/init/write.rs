//! Writes the config, never over a file that somebody wants to keep.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::Failure;
use crate::exit::Exit;

/// Writes the text. Without `force` the file must not exist; with it, the old one is replaced as a
/// whole or not at all.
pub(super) fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let done = if force { replace(path, text) } else { create(path, text) };
    done.map_err(|error| {
        let name = path.display();
        let (problem, hint) = if error.kind() == io::ErrorKind::AlreadyExists {
            let hint = "`--force` overwrites it; `-o FILE` writes another file";
            (format!("`{name}` exists already"), hint)
        } else {
            (format!("`{name}` cannot be written: {error}"), "`-o -` prints the config instead")
        };
        Failure { problem, hint: hint.to_owned(), exit: Exit::No }
    })
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A file beside it takes the text first: a full disk must not cost the old config.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let done = create(&beside, text).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        drop(fs::remove_file(&beside));
    }
    done
}
