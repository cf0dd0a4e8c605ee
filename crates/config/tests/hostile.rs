//! Bad input never panics and always ends: random bytes, YAML-like text, bombs, odd files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use tidegate_config::{
    load,
    render::{Look, render_all},
    secret::FixedEnvironment,
    source::{FileProblem, Source, read_file},
};

/// Loads and draws everything, which is all that the program does with a file.
fn survive(text: &str) -> String {
    let source = Source::new("t.yaml", text);
    let loaded = load(&source, &FixedEnvironment::default());
    let has_error = loaded.diagnostics.iter().any(|problem| problem.is_error());
    assert_eq!(loaded.config.is_none(), has_error, "a config comes out exactly without errors");
    for diagnostic in &loaded.diagnostics {
        assert!(!diagnostic.json(&source)["message"].as_str().unwrap_or_default().is_empty());
    }
    render_all(&source, &loaded.diagnostics, Look::default())
}

/// A file of its own for one test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("the temporary folder can be written");
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on the file being gone.
        drop(fs::remove_file(&self.0));
    }
}

/// Pieces that files are made of, so that random text gets past the first characters.
const PIECES: &[&str] = &[
    "routes:",
    "providers:",
    "health:",
    "fast:",
    "tiers:",
    "mcp:",
    "servers:",
    "keys:",
    "api:",
    "openai",
    "url:",
    "http://",
    "env:X",
    "30s",
    "-5s",
    "1e400",
    ".nan",
    "0x1F",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ": ",
    "&a ",
    "*a",
    "|\n",
    ">\n",
    "'",
    "\"",
    "#",
    "?",
    "!!str ",
    "!x ",
    "<<: ",
    "---\n",
    "...\n",
    "\t",
    "\r\n",
    "\u{feff}",
    "ä",
    "日本",
    "~",
    "null",
    "true",
    "%YAML 1.2\n",
    "\\x00",
    "\u{85}",
    "\u{2028}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(text in any::<String>()) {
        survive(&text);
    }

    #[test]
    fn yaml_like_text_never_panics(picks in prop::collection::vec(0..PIECES.len(), 0..80)) {
        let text: String = picks.into_iter().map(|pick| PIECES[pick]).collect();
        survive(&text);
    }

    #[test]
    fn a_damaged_example_never_panics(
        cut in any::<prop::sample::Index>(),
        piece in 0..PIECES.len(),
    ) {
        let example = include_str!("../../../docs/example.yaml");
        let mut at = cut.index(example.len());
        while !example.is_char_boundary(at) {
            at -= 1;
        }
        survive(&format!("{}{}{}", &example[..at], PIECES[piece], &example[at..]));
        survive(&example[..at]);
    }
}

#[test]
fn random_bytes_in_a_file_are_refused_or_read() {
    let mut state = 1_u64;
    for round in 0..50 {
        let bytes: Vec<u8> = (0..400)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let file = Scratch::new(&format!("bytes-{round}"), &bytes);
        match read_file(file.path()) {
            Ok(source) => drop(survive(source.text())),
            Err(problem) => assert!(matches!(problem, FileProblem::NotUtf8 { .. }), "{problem}"),
        }
    }
}

#[test]
fn a_file_of_50_mb_is_refused_unread() {
    let file = Scratch::new("large", b"");
    let handle = fs::File::options().write(true).open(file.path()).expect("the file was made");
    handle.set_len(50_000_000).expect("a sparse file costs nothing");
    let problem = read_file(file.path()).expect_err("too large");
    assert!(matches!(problem, FileProblem::TooLarge { .. }));
    assert!(problem.diagnostic().is_unreadable());
}

#[test]
fn a_bad_byte_is_named_by_offset_and_line() {
    let file = Scratch::new("latin1", b"a: 1\nb: caf\xe9\n");
    let said = read_file(file.path()).expect_err("not UTF-8").to_string();
    assert!(said.ends_with("the byte at offset 11 (line 2) starts no character"), "{said}");
}

#[test]
fn a_secret_file_is_relative_to_the_config_file() {
    let file = Scratch::new("config", b"providers: {p: {api: openai, key: 'file:no-such-key'}}\n");
    let source = read_file(file.path()).expect("readable");
    let expected = std::env::temp_dir().join("no-such-key");
    let loaded = load(&source, &tidegate_config::secret::ProcessEnvironment);
    let expected = expected.display().to_string();
    let names_it = |it: &tidegate_config::diagnostic::Diagnostic| it.message.contains(&expected);
    assert!(loaded.diagnostics.iter().any(names_it), "{:?}", loaded.diagnostics);
}

#[test]
fn large_hostile_texts_come_to_an_end() {
    let size = 4_000_000;
    let fill = |piece: &str| piece.repeat(size / piece.len());
    let texts = [
        fill("["),
        fill("- "),
        fill("a: "),
        fill("? "),
        fill("x"),
        fill("x: y\n"),
        fill("- &a [x]\n- *a\n"),
        fill("a,"),
        format!("\"{}", fill("\\n")),
        format!("a: |\n{}", fill(" \n")),
        fill("#\n"),
        fill("{a: 1}, "),
        format!("[{}]", fill("x, ")),
        fill("\t"),
        fill("&a "),
        fill("!a "),
    ];
    for text in texts {
        survive(&text);
    }
}
