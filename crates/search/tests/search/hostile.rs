//! Any text is an acceptable request or description: no panic, no endless work, the same each time.

use proptest::prelude::*;
use tidegate_search::{Document, Index, Query};

fn ask(index: &Index, text: &str, limit: usize) -> Vec<usize> {
    let query = Query { description: text, keywords: text, server: text, ..Query::default() };
    let hits = index.search(&query, &|doc| doc % 3 != 0, limit).hits;
    for hit in &hits {
        assert!((0.0..=1.0).contains(&hit.score), "{hit:?}");
        _ = index.explain(&query, hit.doc);
    }
    hits.iter().map(|hit| hit.doc).collect()
}

fn document((server, name, description): (String, String, String)) -> Document {
    Document::plain(&server, &name, &description, [("path", "where to look")])
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,60}",
        "[a-zA-Z_ 0-9'\"/.:-]{0,80}",
        "[\\u{4e00}-\\u{4e20}\\u{600}-\\u{620}\\u{1f600}-\\u{1f610}\\u{200b} ]{0,30}",
        "(get|list|delete|file|message| |_){0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_gets_an_answer_within_its_limit_of_visible_tools(
        tools in proptest::collection::vec((texts(), texts(), texts()), 0..12),
        request in texts(),
        limit in 0_usize..6,
    ) {
        let index = Index::build(tools.into_iter().map(document).collect());
        let found = ask(&index, &request, limit);
        prop_assert!(found.len() <= limit);
        prop_assert!(found.iter().all(|doc| doc % 3 != 0 && *doc < index.documents().len()));
        prop_assert_eq!(found, ask(&index, &request, limit));
    }

    #[test]
    fn an_updated_index_answers_like_one_built_anew(
        before in proptest::collection::vec((texts(), texts(), texts()), 0..8),
        after in proptest::collection::vec((texts(), texts(), texts()), 0..8),
        kept in 0_usize..8,
        request in texts(),
    ) {
        let before: Vec<Document> = before.into_iter().map(document).collect();
        let mut documents: Vec<Document> = before.iter().take(kept).cloned().collect();
        documents.extend(after.into_iter().map(document));
        let updated = Index::build(before).updated(documents.clone());
        let query = Query { description: &request, ..Query::default() };
        let built = Index::build(documents);
        prop_assert_eq!(
            updated.search(&query, &|_| true, 5),
            built.search(&query, &|_| true, 5)
        );
    }
}

#[test]
fn huge_and_odd_requests_are_answered() {
    let tools = ["read_file", "send_message", "读取文件", "\u{0}", ""];
    let index = Index::build(tools.map(|name| Document::plain("s", name, name, [])).to_vec());
    let long = "delete the file ".repeat(7000);
    let ids = "x9".repeat(50_000);
    let quotes = "'\"`".repeat(30_000);
    for text in [
        "",
        " ",
        "\u{0}\u{1}\u{ffff}",
        "🌊🌊",
        "ابحث عن ملف",
        "\" OR 1=1 --",
        "NEAR(a b) *",
        &long,
        &ids,
        &quotes,
    ] {
        _ = ask(&index, text, 5);
    }
    assert!(ask(&index, "", 5).is_empty());
    assert_eq!(ask(&index, "读取文件", 1), [2]);
}

#[test]
fn a_tool_with_a_huge_description_neither_fails_nor_drowns_the_others() {
    let huge = "search the archive for records ".repeat(40_000);
    let tools = [("noise", huge.as_str()), ("x", ""), ("find_record", "Search the archive")];
    let index =
        Index::build(tools.map(|(name, text)| Document::plain("s", name, text, [])).to_vec());
    assert_eq!(ask(&index, "find a record in the archive", 1), [2]);
}
