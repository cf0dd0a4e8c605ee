//! The sources of the workspace's crates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The text of every file, by its path below `src`.
pub type Sources = BTreeMap<PathBuf, String>;

/// Samples in place of files.
pub fn sources(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect()
}

/// The folders of all crates.
pub fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = fs::read_dir(root.join("crates")).expect("the workspace has crates");
    let mut folders: Vec<PathBuf> = folders.map(|it| it.expect("it can be read").path()).collect();
    folders.push(root.join("xtask"));
    folders.sort();
    folders
}

/// A crate's name, without the prefix that all of them have.
pub fn name_of(folder: &Path) -> String {
    folder.file_name().expect("a folder has a name").to_string_lossy().into_owned()
}

/// Everything below a folder.
pub fn read(folder: &Path) -> Sources {
    let mut found = Sources::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a crate has sources") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).expect("sources are text");
                let below = path.strip_prefix(folder).expect("it is in there").to_owned();
                found.insert(below, text);
            }
        }
    }
    found
}

/// The path of the module that a file is; empty for the root of a crate.
pub fn module(path: &Path) -> Vec<String> {
    let path = path.with_extension("");
    let names = path.iter().map(|it| it.to_string_lossy().into_owned());
    names.filter(|it| !["lib", "main", "mod"].contains(&it.as_str())).collect()
}

/// Whether a file is only there for tests.
pub fn is_test(path: &Path) -> bool {
    module(path).iter().any(|it| it == "tests" || it == "test_bed")
}
