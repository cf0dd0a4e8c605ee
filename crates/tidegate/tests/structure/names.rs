//! A type name stands once per crate, so that it has one meaning there.
//!
//! Tests do not count. [`KNOWN`] lists the crates that are not there yet, with how many names of
//! theirs may stand more than once. The numbers only ever become smaller.

use std::collections::BTreeMap;

use crate::scan;
use crate::sources::{Sources, crates, is_test, name_of, read, sources};

/// Crates in which names stand more than once, and how many names that may be.
const KNOWN: &[(&str, usize)] = &[("wire", 4)];

#[test]
fn a_type_name_stands_once_per_crate() {
    let mut problems = Vec::new();
    for folder in crates() {
        let name = name_of(&folder);
        let known = KNOWN.iter().find(|(known, _)| *known == name).map_or(0, |(_, most)| *most);
        let twice = twice(&read(&folder.join("src")));
        if twice.len() > known {
            let (count, names) = (twice.len(), twice.join("\n  "));
            problems.push(format!("{name}: {count} names ({known} allowed):\n  {names}"));
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
