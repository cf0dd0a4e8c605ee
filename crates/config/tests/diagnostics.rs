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
    secret::Environment,
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

/// What the cases' references lead to; everything else is absent.
struct World;

impl Environment for World {
    fn variable(&self, name: &str) -> Option<String> {
        let value = match name {
            "SHORT" => "short",
            "LONG" => "a-key-that-is-long-enough",
            "STORE" => "redis://ops:hunter2@cache/main",
            "FLEET" => "0123456789abcdef0123456789abcdef",
            "TWO_LINES" => "hunter2\nsecond",
            _ => return None,
        };
        Some(value.to_owned())
    }

    fn file(&self, path: &Path) -> Result<String, String> {
        match path.to_str() {
            Some("public.key") => Ok("a-key-that-everybody-sees".to_owned()),
            Some("crlf.key") => Ok("hunter2\r\nsecond\r\n".to_owned()),
            _ => Err(format!("`{}` does not exist", path.display())),
        }
    }

    fn is_readable_by_others(&self, path: &Path) -> bool {
        matches!(path.to_str(), Some("public.key" | "tidegate.yaml"))
    }
}

#[test]
fn every_case_is_answered_word_for_word() {
    for case in cases() {
        let (name, source) = source_of(&case);
        let loaded = load(&source, &World);
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
        hear(&load(&source, &World).diagnostics);
    }
    for text in ["[".repeat(1000), (0..200).map(|n| format!("k{n}: 1\n")).collect()] {
        hear(&load(&Source::new("t", &text), &World).diagnostics);
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
        let loaded = load(&Source::new("t", text), &World);
        assert!(loaded.config.is_none());
        assert_eq!(loaded.is_unreadable(), unreadable, "{text}");
    }
}

#[test]
fn no_diagnostic_repeats_a_literal_secret() {
    for case in cases() {
        let (name, source) = source_of(&case);
        let loaded = load(&source, &World);
        let drawn = render_all(&source, &loaded.diagnostics, Look::default());
        let json: Vec<String> =
            loaded.diagnostics.iter().map(|it| it.json(&source).to_string()).collect();
        for secret in ["sk-secret", "hunter2", "short\""] {
            assert!(!drawn.contains(secret), "{name}: {drawn}");
            assert!(!json.concat().contains(secret), "{name}: {json:?}");
        }
    }
}

#[test]
fn a_file_with_many_warnings_and_no_error_is_used() {
    let route = |n: usize| format!("  r{n}: {{ tiers: [[p/m{n}]] }}\n");
    let routes: String = (0..300).map(route).collect();
    let text =
        format!("providers: {{ p: {{ api: openai, url: 'http://x/v1' }} }}\nroutes:\n{routes}");
    let loaded = load(&Source::new("t", &text), &World);
    assert!(loaded.config.is_some());
    let last = loaded.diagnostics.last().map(|it| it.message.as_str());
    assert_eq!(last, Some("200 more warnings are not shown"));
}

#[test]
fn an_mcp_server_may_have_a_query_in_its_url() {
    let text = "mcp: {servers: {a: {url: 'https://example.com/mcp?team=a'}}}\n";
    let loaded = load(&Source::new("t", text), &World);
    assert_eq!(loaded.diagnostics, []);
}
