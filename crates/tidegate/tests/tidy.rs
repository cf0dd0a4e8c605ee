//! What can be checked about the text of the repository itself.
//!
//! Rules: [`RULES`] lists them, each a function from a file's path and text to complaints, and
//! each with a sample that it must refuse, so that no rule can fall asleep. Generated files and
//! snapshots are not read. A complaint names the file and line.
//!
//! What rustfmt and clippy check is left to them.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing written by hand.
const SKIPPED_FOLDERS: &[&str] = &[".git", "target", "node_modules", "snapshots", "vendor"];

/// Files that are generated, or that are somebody else's words.
const SKIPPED_FILES: &[&str] = &["Cargo.lock", "LICENSE", "vocab.txt"];

/// Endings of files that are written by hand.
const ENDINGS: &[&str] = &["rs", "md", "toml", "yaml", "yml", "txt", "js", "css", "html", "run"];

/// No file of code is longer: one idea fits into less.
const MAX_LINES: usize = 600;

/// Wide enough for code, narrow enough for two windows side by side.
const MAX_COLUMNS: usize = 100;

/// Words that mean something the vocabulary has a word for.
const SYNONYMS: &[(&str, &str)] = &[
    ("upstream_manager", "backend"),
    ("circuit_breaker", "breaker"),
    ("CircuitBreaker", "Breaker"),
    ("failover_group", "tier"),
    ("blacklist", "exclusion"),
    ("cooldown", "window or open deadline"),
    ("health_check", "probe"),
    ("HealthCheck", "Probe"),
];

/// A file as a rule sees it: its path from the root, and its text.
struct Text<'a> {
    path: &'a Path,
    text: &'a str,
}

/// One rule, and a file that breaks it.
struct Rule {
    name: &'static str,
    complaints: fn(&Text<'_>) -> Vec<String>,
    bad_path: &'static str,
    bad_text: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        name: "a module doc opens every Rust file",
        complaints: module_doc,
        bad_path: "a.rs",
        bad_text: "use std::fs;\n//! too late\n",
    },
    Rule {
        name: "no Rust file has more than 600 lines",
        complaints: file_length,
        bad_path: "a.rs",
        bad_text: LONG,
    },
    Rule {
        name: "no line of code is wider than 100 columns",
        complaints: line_width,
        bad_path: "a.rs",
        bad_text: concat!(
            "//! 0123456789 0123456789 0123456789 0123456789 0123456789 ",
            "0123456789 0123456789 0123456789 0123456789\n"
        ),
    },
    Rule {
        name: "an unfinished mark names an issue",
        complaints: unfinished,
        bad_path: "a.rs",
        bad_text: concat!("// TO", "DO: later\n"),
    },
    Rule {
        name: "no tabs, no spaces at line ends, one newline at the end",
        complaints: whitespace,
        bad_path: "a.md",
        bad_text: "a\tb\n",
    },
    Rule {
        name: "a relative link in a page leads somewhere",
        complaints: dead_links,
        bad_path: "a.md",
        bad_text: "see [this](no/such/file.md#part)\n",
    },
    Rule {
        name: "one word per idea",
        complaints: synonyms,
        bad_path: "a.rs",
        bad_text: concat!("struct Circuit", "Breaker;\n"),
    },
];

/// 601 lines.
const LONG: &str = {
    const BYTES: [u8; 601] = [b'\n'; 601];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => panic!("newlines are UTF-8"),
    }
};

#[test]
fn every_file_keeps_the_rules() {
    let root = root();
    let mut complaints = Vec::new();
    let files = files(&root);
    assert!(files.len() > 20, "the walk found only {} files", files.len());
    for file in files {
        let path = file.strip_prefix(&root).expect("the walk starts at the root");
        match fs::read_to_string(&file) {
            Ok(text) => {
                let text = Text { path, text: &text };
                complaints.extend(RULES.iter().flat_map(|rule| (rule.complaints)(&text)));
            }
            Err(error) => complaints.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_rule_refuses_its_bad_sample() {
    for rule in RULES {
        let bad = Text { path: Path::new(rule.bad_path), text: rule.bad_text };
        assert!(!(rule.complaints)(&bad).is_empty(), "`{}` is asleep", rule.name);
    }
}

#[test]
fn a_tidy_file_gets_no_complaint() {
    let code = Text { path: Path::new("a.rs"), text: "//! What this is.\n\nfn a() {}\n" };
    let page = Text {
        path: Path::new("a.md"),
        text: "See [the web](https://example.com), [below](#x) and [it](Cargo.toml).\n",
    };
    for rule in RULES {
        assert_eq!((rule.complaints)(&code), Vec::<String>::new(), "{}", rule.name);
        assert_eq!((rule.complaints)(&page), Vec::<String>::new(), "{}", rule.name);
    }
}

#[test]
fn each_kind_of_stray_whitespace_is_refused() {
    for text in ["a\tb\n", "a \n", "a", "a\n\n", "a\r\n"] {
        let bad = Text { path: Path::new("a.md"), text };
        assert!(!whitespace(&bad).is_empty(), "{text:?}");
    }
}

fn module_doc(file: &Text<'_>) -> Vec<String> {
    let first = file.text.lines().find(|line| !line.is_empty()).unwrap_or_default();
    if !is_rust(file) || first.starts_with("//! ") {
        return Vec::new();
    }
    vec![format!("{}:1: no module doc (`//!`) in the first line", file.path.display())]
}

fn file_length(file: &Text<'_>) -> Vec<String> {
    let lines = file.text.lines().count();
    if !is_rust(file) || lines <= MAX_LINES {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines; {MAX_LINES} are the most", file.path.display())]
}

/// A link, a row of a table in a comment and a pattern cannot be broken.
fn line_width(file: &Text<'_>) -> Vec<String> {
    let whole = ["https://", "//! |", "/// |", "r\"^"];
    each_line(file, |line| {
        let columns = line.chars().count();
        let is_wide = is_rust(file) && columns > MAX_COLUMNS;
        let is_wide = is_wide && !whole.iter().any(|mark| line.contains(mark));
        is_wide.then(|| format!("{columns} columns; {MAX_COLUMNS} are the most"))
    })
}

/// The marks are put together here so that this file does not refuse itself.
fn unfinished(file: &Text<'_>) -> Vec<String> {
    const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    each_line(file, |line| {
        let mark = MARKS.into_iter().find(|mark| has_word(line, mark))?;
        let names_issue = line.contains(&format!("{mark}(#"));
        (!names_issue).then(|| format!("`{mark}` without an issue: write `{mark}(#12)`"))
    })
}

fn whitespace(file: &Text<'_>) -> Vec<String> {
    let mut complaints = each_line(file, |line| {
        // A sample of a broken file is broken on purpose.
        let is_sample = file.path.ends_with("tests/diagnostics/not-yaml.yaml");
        if line.contains('\t') && !is_sample {
            return Some("a tab".to_owned());
        }
        line.ends_with([' ', '\r']).then(|| "space at the end of the line".to_owned())
    });
    let ends_well = file.text.ends_with('\n') && !file.text.ends_with("\n\n");
    if !file.text.is_empty() && !ends_well {
        complaints.push(format!("{}: does not end with one newline", file.path.display()));
    }
    complaints
}

fn dead_links(file: &Text<'_>) -> Vec<String> {
    if file.path.extension().is_none_or(|ending| ending != "md") {
        return Vec::new();
    }
    let folder = root().join(file.path.parent().unwrap_or(Path::new("")));
    each_line(file, |line| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let is_relative = |target: &&str| !target.contains("://") && !target.starts_with('#');
        let path = |target: &str| target.split('#').next().unwrap_or_default().to_owned();
        let mut dead = targets.filter(is_relative).map(path).filter(|to| !folder.join(to).exists());
        dead.next().map(|target| format!("the link to `{target}` leads nowhere"))
    })
}

fn synonyms(file: &Text<'_>) -> Vec<String> {
    if !is_rust(file) || file.path.ends_with("tests/tidy.rs") {
        return Vec::new();
    }
    each_line(file, |line| {
        let (synonym, word) = SYNONYMS.iter().find(|(synonym, _)| line.contains(synonym))?;
        Some(format!("`{synonym}`: our word is {word}"))
    })
}

/// One complaint per line at most, with file and line in front.
fn each_line(file: &Text<'_>, complaint: impl Fn(&str) -> Option<String>) -> Vec<String> {
    // Not `lines()`: that would hide a carriage return.
    let lines = file.text.split('\n').enumerate();
    lines
        .filter_map(|(index, line)| Some((index + 1, complaint(line)?)))
        .map(|(number, text)| format!("{}:{number}: {text}", file.path.display()))
        .collect()
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_part);
        let after = line[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

fn is_rust(file: &Text<'_>) -> bool {
    file.path.extension().is_some_and(|ending| ending == "rs")
}

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    crates.expect("this crate stands two folders below the root").to_owned()
}

/// Every file written by hand, in a stable order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).expect("the repository can be listed");
    for entry in entries {
        let path = entry.expect("the repository can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_skipped = SKIPPED_FOLDERS.contains(&name.as_str()) || name.starts_with("target-");
        if path.is_dir() && !path.is_symlink() && !is_skipped {
            found.extend(files(&path));
        } else if path.is_file() && is_hand_written(&path, &name) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_hand_written(path: &Path, name: &str) -> bool {
    let ending = path.extension().map_or(name, |ending| ending.to_str().unwrap_or_default());
    !SKIPPED_FILES.contains(&name) && ENDINGS.contains(&ending)
}
