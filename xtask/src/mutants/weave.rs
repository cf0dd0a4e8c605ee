//! Every fault of a crate in one program: each function becomes a `match` over the number of the
//! fault that is switched on, with its own body first and one changed copy of it for each fault.
//!
//! So the crate is compiled once instead of once for each fault, and a fault costs only the tests
//! that run through its function.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::faults::{Extent, Fault, Position};

/// The variable that says which fault is switched on, by its number from 1.
pub(super) const CHOSEN: &str = "TIDEGATE_FAULT";
/// The variable with the file to which each function that is run adds its number.
pub(super) const REACHED: &str = "TIDEGATE_FAULT_REACHED";

/// The module that is added to the crate: which fault is on.
pub(super) const SUPPORT: &str = include_str!("support.rs");

/// One function with its faults.
#[derive(Debug)]
pub(super) struct Woven {
    pub(super) name: String,
    /// Where the whole function is in the woven file, in bytes.
    pub(super) extent: Range<usize>,
    /// Where the changed copies are, by the fault's number.
    pub(super) copies: BTreeMap<usize, Range<usize>>,
}

/// A file with faults.
#[derive(Debug)]
pub(super) struct WovenFile {
    pub(super) text: String,
    /// By the number of the function.
    pub(super) functions: BTreeMap<usize, Woven>,
}

/// A function as it stands in the file, and the numbers of its faults.
struct Original {
    name: String,
    extent: Range<usize>,
    faults: Vec<usize>,
}

/// Weaves these faults (by number) into a file. Functions are numbered from `next` on.
pub(super) fn file(
    source: &str,
    faults: &[Fault],
    numbers: &BTreeSet<usize>,
    next: &mut usize,
) -> WovenFile {
    let mut originals = originals(source, faults, numbers);
    originals.sort_by_key(|it| it.extent.start);
    let (mut text, mut functions) = (String::new(), BTreeMap::new());
    let mut at = 0;
    for original in &originals {
        let Some(parts) = Parts::of(source, original) else { continue };
        text.push_str(&source[at..original.extent.start]);
        *next += 1;
        let woven = function(source, faults, original, &parts, *next, &mut text);
        functions.insert(*next, woven);
        at = original.extent.end;
    }
    text.push_str(&source[at..]);
    WovenFile { text, functions }
}

/// The functions with faults; a function inside another is a part of that one.
fn originals(source: &str, faults: &[Fault], numbers: &BTreeSet<usize>) -> Vec<Original> {
    let mut originals: Vec<Original> = Vec::new();
    let with_function =
        numbers.iter().filter_map(|it| Some((*it, faults[*it - 1].function.as_ref()?)));
    let mut sorted: Vec<_> = with_function.collect();
    sorted.sort_by_key(|(number, it)| (it.extent.start, std::cmp::Reverse(it.extent.end), *number));
    for (number, function) in sorted {
        let extent = bytes(source, function.extent);
        match originals.last_mut() {
            Some(last) if extent.end <= last.extent.end => last.faults.push(number),
            _ => originals.push(Original {
                name: function.name.clone(),
                extent,
                faults: vec![number],
            }),
        }
    }
    originals
}

/// Where the parts of a function are.
struct Parts {
    /// Its `const`, which goes: the number of the fault is not known to the compiler.
    constant: Option<Range<usize>>,
    /// What is between the braces.
    body: Range<usize>,
}

impl Parts {
    fn of(source: &str, original: &Original) -> Option<Self> {
        let text = &source[original.extent.clone()];
        let word = format!("fn {}", original.name);
        let is_name = |at: &usize| text[at + word.len()..].starts_with(['(', '<']);
        let name = text.match_indices(&word).map(|(at, _)| at).find(is_name)?;
        let constant = text[..name].ends_with("const ").then(|| name - "const ".len()..name);
        let open = name + text[name..].find('{')?;
        let moved =
            |it: Range<usize>| it.start + original.extent.start..it.end + original.extent.start;
        Some(Self { constant: constant.map(moved), body: moved(open + 1..text.len() - 1) })
    }
}

fn function(
    source: &str,
    faults: &[Fault],
    original: &Original,
    parts: &Parts,
    number: usize,
    text: &mut String,
) -> Woven {
    let start = text.len();
    let signature = original.extent.start..parts.body.start;
    match &parts.constant {
        Some(constant) => {
            text.push_str(&source[signature.start..constant.start]);
            text.push_str(&source[constant.end..signature.end]);
        }
        None => text.push_str(&source[signature]),
    }
    let body = &source[parts.body.clone()];
    let numbers = &original.faults;
    text.push_str(&format!(" match crate::woven_faults::chosen({number}, &{numbers:?}) {{\n"));
    text.push_str(&format!("0 => {{ {body} }}\n"));
    let mut copies = BTreeMap::new();
    for fault in &original.faults {
        text.push_str(&format!("{fault} => "));
        let copy_start = text.len();
        let change = bytes(source, faults[*fault - 1].extent);
        text.push_str(&format!(
            "{{ {}{}{} }}\n",
            &source[parts.body.start..change.start],
            faults[*fault - 1].replacement,
            &source[change.end..parts.body.end],
        ));
        copies.insert(*fault, copy_start..text.len());
    }
    text.push_str("_ => unreachable!() } }");
    Woven { name: original.name.clone(), extent: start..text.len(), copies }
}

/// An extent in bytes.
fn bytes(source: &str, extent: Extent) -> Range<usize> {
    offset(source, extent.start)..offset(source, extent.end)
}

fn offset(source: &str, place: Position) -> usize {
    let before = source.split_inclusive('\n').take(place.line - 1).map(str::len).sum::<usize>();
    let line = &source[before..];
    before + line.char_indices().nth(place.column - 1).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::faults::Function;

    /// A fault of a function that begins on the first line of a source and ends with it.
    fn fault(source: &str, name: &str, from: &str, to: &str) -> Fault {
        let place = |at: usize| Position {
            line: source[..at].matches('\n').count() + 1,
            column: at - source[..at].rfind('\n').map_or(0, |it| it + 1) + 1,
        };
        let at = source.find(from).expect("the source has it");
        let whole = Extent { start: place(0), end: place(source.len()) };
        Fault {
            name: format!("replace {from} with {to}"),
            file: "crates/a/src/b.rs".to_owned(),
            function: Some(Function { name: name.to_owned(), is_opaque: false, extent: whole }),
            extent: Extent { start: place(at), end: place(at + from.len()) },
            replacement: to.to_owned(),
        }
    }

    fn woven(source: &str, faults: &[Fault]) -> WovenFile {
        file(source, faults, &(1..=faults.len()).collect(), &mut 0)
    }

    #[test]
    fn a_function_keeps_its_body_and_gets_a_copy_for_each_fault() {
        let source = "pub const fn sum(a: u8) -> u8 {\n    a + 1\n}";
        let faults = [fault(source, "sum", "+", "-"), fault(source, "sum", "a + 1", "0")];
        let file = woven(source, &faults);
        let wanted = "pub fn sum(a: u8) -> u8 { match crate::woven_faults::chosen(1, &[1, 2]) {\n\
                      0 => { \n    a + 1\n }\n1 => { \n    a - 1\n }\n2 => { \n    0\n }\n\
                      _ => unreachable!() } }";
        assert_eq!(file.text, wanted);
        let copies = &file.functions[&1].copies;
        assert_eq!(&file.text[copies[&1].clone()], "{ \n    a - 1\n }\n");
    }
}
