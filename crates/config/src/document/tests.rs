//! Tests of the YAML tree: spans, bounds, and everything that is refused.

use super::*;

fn parse_text(text: &str) -> Parsed {
    parse(&Source::new("t.yaml", text))
}

/// The text that a path's span covers.
fn spanned(text: &str, path: &KeyPath) -> String {
    let document = parse_text(text).document.expect("the text is YAML");
    let span = document.span_of(path).expect("the path exists");
    text[span.start..span.end].to_owned()
}

/// The codes of the problems, and whether a document came out.
fn check(text: &str, codes: &[&str], has_document: bool) {
    let parsed = parse_text(text);
    let found: Vec<&str> = parsed.problems.iter().map(|problem| problem.code.id).collect();
    assert_eq!(found, codes, "{:#?}", parsed.problems);
    assert_eq!(parsed.document.is_some(), has_document);
}

#[test]
fn a_tab_on_the_line_below_is_found_and_its_value_is_hidden() {
    let text = "providers:\n  groq:\n    api: openai\n\tkey: hunter2\n";
    let parsed = parse_text(text);
    let problem = &parsed.problems[0];
    assert_eq!(problem.message, "not YAML: a tab is used for indentation");
    let source = Source::new("t.yaml", text);
    let drawn = crate::render::render(&source, problem, crate::render::Look::default());
    assert!(drawn.contains("4 │  key: *******\n"), "{drawn}");
}

#[test]
fn a_path_finds_its_bytes() {
    let text = "routes:\n  fast:\n    tiers:\n      - [a/b, \"c/d\"]\n      - [e/f]\n";
    let tiers = KeyPath::from("routes").key("fast").key("tiers");
    assert_eq!(spanned(text, &tiers.index(0).index(1)), "\"c/d\"");
    assert_eq!(spanned(text, &tiers.index(1)), "[e/f]");
    assert_eq!(spanned(text, &tiers), "tiers", "a block list is shown by its key");
    let document = parse_text(text).document.expect("the text is YAML");
    let missing = tiers.index(7).index(0);
    assert_eq!(document.span_of(&missing), None);
    assert_eq!(document.nearest_span(&missing), document.span_of(&tiers));
    assert_eq!(document.nearest_span(&KeyPath::root()), None);
}

#[test]
fn an_empty_file_is_an_empty_map() {
    for text in ["", "# only a comment\n", "---\n", "~\n", "\u{feff}"] {
        let parsed = parse_text(text);
        assert!(parsed.problems.is_empty(), "{text:?}: {:?}", parsed.problems);
        let document = parsed.document.expect("an empty file is a document");
        assert!(matches!(&document.root().kind, NodeKind::Map(entries) if entries.is_empty()));
    }
}

#[test]
fn an_alias_is_the_value_it_names() {
    let document = parse_text("a: &x [1, 2]\nb: *x\n").document.expect("the text is YAML");
    let second = document.node(&KeyPath::from("b").index(1)).map(|node| &node.kind);
    assert!(matches!(second, Some(NodeKind::Scalar { text, plain: true }) if text == "2"));
}

#[test]
fn an_alias_bomb_is_refused_before_it_goes_off() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let before = format!("*a{}", level - 1);
        let list = [before.as_str(); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    check(&text, &["TG007"], false);
}

#[test]
fn a_long_recording_is_read_and_a_dense_file_of_its_size_is_not() {
    let line = "- {\"id\":\"req_6282951865d35272\",\"at\":113673,\"route\":\"demo\",\"n\":6258}\n";
    check(&line.repeat(30_000), &[], true);
    check(&format!("[{}]", "1,".repeat(200_000)), &["TG007"], false);
}

#[test]
fn deep_nesting_is_refused_in_every_style() {
    check(&"[".repeat(100_000), &["TG007"], false);
    check(&"- ".repeat(100_000), &["TG007"], false);
    check(&"{a: ".repeat(100_000), &["TG007"], false);
    let mut block = String::new();
    for level in 0..400 {
        block.push_str(&" ".repeat(level));
        block.push_str("a:\n");
    }
    check(&block, &["TG007"], false);
}

#[test]
fn what_is_not_yaml_is_told_from_what_has_problems() {
    check("a: [1\n", &["TG004"], false);
    check("a: *nothing\n", &["TG004"], false);
    check("a: b: c\n", &["TG004"], false);
    check("a: 1\0\nb: 2\n", &["TG004"], false);
    check("a:\n\t- b\n", &["TG004"], false);
    check("a: 1\na: 2\n", &["TG005"], true);
    check("a: 1\n---\nb: 2\n", &["TG006"], true);
    check("a: !mine 1\n", &["TG008"], true);
    check("a: &x {b: 1}\nc: {<<: *x}\n", &["TG008"], true);
    check("[a, b]: 1\n", &["TG008"], true);
    check("a: &x [*x]\n", &["TG008"], true);
}

#[test]
fn a_duplicate_key_names_both_places() {
    let parsed = parse_text("a:\n  b: 1\n  b: 2\n");
    let problem = &parsed.problems[0];
    assert_eq!(problem.path.to_string(), "a.b");
    assert_eq!(problem.help, ["first written at t.yaml:2:3; keep one of them"]);
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let text = "a:\r\n  b: x\r\n";
    assert_eq!(spanned(text, &KeyPath::from("a").key("b")), "x");
    check("\u{feff}a: 1\r\n", &[], true);
}
