//! What `check` says about each file under `diagnostics/`, word for word; and that every code of
//! the table is said by one of them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use tidegate_config::{
    codes,
    diagnostic::Diagnostic,
    load,
    render::{Look, render_all},
    secret::FixedEnvironment,
    source::{Source, read_file},
};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let entries = fs::read_dir(folder).expect("the cases are there");
    let mut cases: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    cases.sort();
    cases
}

/// A case under its file name, so that no path of a machine gets into a snapshot.
fn source_of(case: &Path) -> (String, Source) {
    let stem = case.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let text = fs::read_to_string(case).expect("a case can be read");
    (stem, Source::new("tidegate.yaml", &text))
}

#[test]
fn every_case_is_answered_word_for_word() {
    for case in cases() {
        let (name, source) = source_of(&case);
        let loaded = load(&source, &FixedEnvironment::default());
        let drawn = render_all(&source, &loaded.diagnostics, Look::default());
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, drawn);
        });
    }
}

#[test]
fn every_code_is_said_by_some_case_and_has_a_page() {
    let mut said: BTreeSet<&str> = BTreeSet::new();
    let mut hear = |diagnostics: &[Diagnostic]| {
        said.extend(diagnostics.iter().map(|diagnostic| diagnostic.code.id));
    };
    for case in cases() {
        let (_, source) = source_of(&case);
        hear(&load(&source, &FixedEnvironment::default()).diagnostics);
    }
    for text in ["[".repeat(1000), (0..200).map(|n| format!("k{n}: 1\n")).collect()] {
        hear(&load(&Source::new("t", &text), &FixedEnvironment::default()).diagnostics);
    }
    hear(&file_problems());
    let all: BTreeSet<&str> = codes::ALL.iter().copied().flatten().map(|code| code.id).collect();
    assert_eq!(said, all);
    for code in codes::ALL.iter().copied().flatten() {
        assert!(code.text.len() > 60 && !code.title.is_empty(), "{} has no page", code.id);
        assert_eq!(codes::find(&code.id.to_lowercase()), Some(*code));
    }
    assert_eq!(codes::find("TG999"), None);
}

/// One of each problem of a file as a file.
fn file_problems() -> Vec<Diagnostic> {
    let path = std::env::temp_dir().join(format!("tidegate-{}-problem", std::process::id()));
    let problem = |path: &Path| read_file(path).expect_err("a problem").diagnostic();
    let mut problems = vec![problem(&path)];
    fs::write(&path, b"\xff").expect("the temporary folder can be written");
    problems.push(problem(&path));
    let file = fs::File::create(&path).expect("the temporary folder can be written");
    file.set_len(9 << 20).expect("a sparse file costs nothing");
    problems.push(problem(&path));
    fs::remove_file(&path).expect("the file was made above");
    problems
}

#[test]
fn what_is_not_yaml_is_told_from_what_has_problems() {
    for (text, unreadable) in [("a: [", true), ("nonsense: 1", false), ("a: 1\na: 2", false)] {
        let loaded = load(&Source::new("t", text), &FixedEnvironment::default());
        assert!(loaded.config.is_none());
        assert_eq!(loaded.is_unreadable(), unreadable, "{text}");
    }
}

#[test]
fn no_diagnostic_repeats_a_literal_secret() {
    for case in cases() {
        let (name, source) = source_of(&case);
        let loaded = load(&source, &FixedEnvironment::default());
        let drawn = render_all(&source, &loaded.diagnostics, Look::default());
        assert!(!drawn.contains("sk-secret"), "{name}: {drawn}");
        for diagnostic in &loaded.diagnostics {
            let json = diagnostic.json(&source).to_string();
            assert!(!json.contains("sk-secret"), "{name}: {json}");
        }
    }
}
