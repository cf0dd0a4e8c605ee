//! Cycles between the modules of a crate, as a test.
//!
//! Within a crate the top-level modules import each other in one direction: a reader can begin with
//! one that imports nothing, and a module can be moved out with what it imports. Nested modules may
//! import each other as they like.
//!
//! Rules kept here:
//! - Every crate of the workspace is read, from its sources: paths that begin with `crate`, `super`
//!   or `self`, and what the root of the crate passes on under a name of its own.
//! - Tests do not count: they may stand on a bed that knows everything.
//! - There is no list of exceptions.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::Graph;
use crate::scan;
use crate::sources::{Sources, crates, is_test, module, name_of, read, sources};

#[test]
fn no_top_level_modules_import_each_other_in_a_cycle() {
    let mut problems = Vec::new();
    for folder in crates() {
        let name = name_of(&folder);
        let graph = imports(&read(&folder.join("src")));
        let largest = graph.largest_cycle();
        if !largest.is_empty() {
            let (count, shown) = (largest.len(), graph.shown(&largest));
            problems.push(format!("crates/{name}: {count} modules in a cycle: {shown}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_cycle_is_found_and_shown_however_it_is_written() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use self::c::Thing as Name;"),
        ("a.rs", "use crate::{b::{self, X}, Y};"),
        ("b/deep.rs", "fn f() { super::super::c::g() }"),
        ("c.rs", "#[cfg(test)] mod tests { use crate::b; } fn h() -> crate::a::Z { todo() }"),
    ];
    let graph = imports(&sources(&files));
    assert_eq!(graph.shown(&graph.largest_cycle()), "a → b → c → a");
}

#[test]
fn a_name_that_the_root_passes_on_leads_to_its_module() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::{Thing, Other as Name};"),
        ("a.rs", "use super::b::f;"),
        ("b.rs", "fn f(_: crate::Name) {}"),
    ];
    assert_eq!(imports(&sources(&files)).largest_cycle().len(), 2);
}

#[test]
fn comments_strings_tests_and_nested_modules_make_no_cycle() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "//! crate::b\nfn f() { let _ = (\"crate::b\", r#\"crate::b\"#, 'c'); }"),
        ("b.rs", "use crate::a; use self::inner::g; mod inner { use super::h; }"),
        ("b/inner.rs", "use super::h; use super::other; impl<'a> X<'a> { fn x() { self::y() } }"),
        ("a/tests.rs", "use crate::b;"),
    ];
    assert_eq!(imports(&sources(&files)).largest_cycle(), Vec::<String>::new());
}

/// Which top-level module imports which.
fn imports(sources: &Sources) -> Graph {
    let modules: BTreeSet<String> =
        sources.keys().filter_map(|path| module(path).first().cloned()).collect();
    // A name of the root that stands for something in a module.
    let mut passed_on: BTreeMap<String, String> = BTreeMap::new();
    for (path, text) in sources.iter().filter(|(path, _)| module(path).is_empty()) {
        for used in scan::paths(text, &module(path)) {
            if let [first, .., _] = used.path.as_slice()
                && modules.contains(first)
                && let Some(name) = used.name
            {
                passed_on.insert(name, first.clone());
            }
        }
    }
    let mut graph = Graph::default();
    for (path, text) in sources {
        let own = module(path);
        let Some(top) = own.first().filter(|_| !is_test(path)) else { continue };
        for used in scan::paths(text, &own) {
            let Some(first) = used.path.first() else { continue };
            let first = passed_on.get(first).filter(|_| !modules.contains(first)).unwrap_or(first);
            if first != top && modules.contains(first) {
                graph.add(top, first);
            }
        }
    }
    graph
}
