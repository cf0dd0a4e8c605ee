//! A type name stands once per crate, so that it has one meaning there.
//!
//! Tests do not count, and there are no exceptions.

use std::collections::BTreeMap;

use crate::scan;
use crate::sources::{Sources, crates, is_test, name_of, read, sources};

#[test]
fn a_type_name_stands_once_per_crate() {
    let mut problems = Vec::new();
    for folder in crates() {
        let name = name_of(&folder);
        let twice = twice(&read(&folder.join("src")));
        if !twice.is_empty() {
            problems.push(format!("{name}: {} names:\n  {}", twice.len(), twice.join("\n  ")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_second_type_of_the_same_name_is_found_wherever_it_stands() {
    let files = [
        ("lib.rs", "mod a; mod b; type Alias = u8;"),
        ("a.rs", "pub struct Place(u8); impl Body for Place { type Alias = u8; }"),
        ("b/deep.rs", "mod inner { pub(crate) enum Place { A } }"),
        ("b/tests.rs", "struct Place;"),
        ("b.rs", "// struct Alias\n#[cfg(test)] mod tests { enum Place {} }"),
    ];
    assert_eq!(twice(&sources(&files)), ["`Place` stands in a.rs and b/deep.rs"]);
}

/// The names that stand more than once, and where.
fn twice(sources: &Sources) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources.iter().filter(|(path, _)| !is_test(path)) {
        for name in scan::types(text) {
            places.entry(name).or_default().push(path.display().to_string());
        }
    }
    places.retain(|_, files| files.len() > 1);
    let shown = places.into_iter();
    shown.map(|(name, files)| format!("`{name}` stands in {}", files.join(" and "))).collect()
}
