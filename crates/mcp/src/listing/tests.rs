//! Reading definitions, gathering pages, and telling what changed.

use super::*;

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).expect("JSON")
}

fn info(capabilities: &str) -> ServerInfo {
    let text = format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{capabilities}}}"#);
    ServerInfo::read(raw(&text)).expect("an object")
}

fn keys(listing: &Listing, kind: Kind) -> Vec<&str> {
    listing.items(kind).iter().map(|item| item.key.as_ref()).collect()
}

/// Tools are written with their names alone; the schema that each must have is added.
fn sound(page: &str) -> String {
    page.replace(r#"{"name":"#, r#"{"inputSchema":{"type":"object"},"name":"#)
}

fn gather(pages: &[&str]) -> (Listing, Shortfall, Vec<Ask>) {
    let mut gather = Gather::new(info(r#"{"tools":{}}"#));
    let mut asks = Vec::new();
    for page in pages {
        asks.push(gather.ask().expect("more to ask"));
        gather.page(raw(&sound(page))).expect("an object");
    }
    assert_eq!(gather.ask(), None, "everything was asked");
    let (listing, shortfall) = gather.finish();
    (listing, shortfall, asks)
}

#[test]
fn a_definition_is_kept_as_text_and_its_hints_are_read() {
    let text = r#"{"name":"t\u0031", "x":1.0,"annotations":{"readOnlyHint":true,"x":2}}"#;
    let item = Item::read(Kind::Tools, raw(text)).expect("a tool");
    assert_eq!((item.key.as_ref(), item.raw.as_ref()), ("t1", text));
    assert_eq!(item.hints, Hints { read_only: true, ..Hints::default() });
    let odd = r#"{"name":"t","annotations":{"readOnlyHint":"true","idempotentHint":true}}"#;
    let hints = Item::read(Kind::Tools, raw(odd)).expect("a tool").hints;
    assert!(!hints.read_only && hints.may_replay());
    for bad in ["3", "{}", r#"{"name":""}"#, r#"{"name":7}"#, r#"{"name":"a","name":"b"}"#] {
        assert_eq!(Item::read(Kind::Tools, raw(bad)), None, "{bad}");
    }
}

#[test]
fn hidden_text_is_flagged_also_when_it_is_escaped() {
    let flag = |text| Item::read(Kind::Tools, raw(text)).expect("a tool").has_hidden_text;
    assert!(flag(r#"{"name":"a","description":"x\u200by"}"#));
    assert!(flag("{\"name\":\"a\u{e0061}\"}"));
    assert!(!flag(r#"{"name":"a","description":"plain"}"#));
}

#[test]
fn all_pages_are_followed_and_bad_items_are_skipped() {
    let (listing, shortfall, asks) = gather(&[
        r#"{"tools":[{"name":"a"},7],"nextCursor":""}"#,
        r#"{"tools":"none","nextCursor":"c\"2"}"#,
        r#"{"tools":[{"name":"b"}],"nextCursor":null}"#,
    ]);
    assert_eq!(keys(&listing, Kind::Tools), ["a", "b"]);
    assert_eq!((shortfall.skipped, shortfall.cut), (2, vec![]));
    let named = ["tools: `definition` must be a plain object", "tools: the list must be an array"];
    assert_eq!(shortfall.named, named);
    let params: Vec<_> = asks.iter().map(Ask::params).collect();
    let cursor = |text: &str| Some(format!(r#"{{"cursor":{text}}}"#));
    assert_eq!(params, [None, cursor(r#""""#), cursor(r#""c\"2""#)]);
}

#[test]
fn a_tool_that_breaks_the_schema_is_left_out_and_named_and_costs_no_other() {
    let mut gather = Gather::new(info(r#"{"tools":{}}"#));
    let bad = r#"{"name":"b\u001b"},{"name":"c","inputSchema":{"type":"string"}}"#;
    let good = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
    gather.page(raw(&format!(r#"{{"tools":[{bad},{good}]}}"#))).expect("an object");
    let (listing, shortfall) = gather.finish();
    assert_eq!(keys(&listing, Kind::Tools), ["a"]);
    let named = [
        r#"tools "b\u{1b}": `inputSchema` must be there"#,
        r#"tools "c": `inputSchema.type` must be `object`"#,
    ];
    assert_eq!((shortfall.skipped, shortfall.named), (2, named.map(str::to_owned).to_vec()));
}

#[test]
fn a_cursor_that_came_before_ends_the_list() {
    let page = r#"{"tools":[{"name":"a"}],"nextCursor":"x"}"#;
    let (listing, shortfall, _) = gather(&[page, page]);
    assert_eq!(keys(&listing, Kind::Tools), ["a", "a"]);
    assert_eq!(shortfall.cut, [Kind::Tools]);
    assert!(shortfall.to_string().contains("tools cut off"));
}

#[test]
fn a_list_without_end_is_cut() {
    let mut gather = Gather::new(info(r#"{"tools":{}}"#));
    let mut pages = 0;
    while gather.ask().is_some() {
        let page = format!(r#"{{"tools":[],"nextCursor":"{pages}"}}"#);
        gather.page(raw(&page)).expect("an object");
        pages += 1;
    }
    assert_eq!(pages, PAGES_MAX);
    let many = vec!["{\"name\":\"a\"}"; ITEMS_MAX + 1].join(",");
    let (listing, shortfall, _) = super::tests::gather(&[&format!(r#"{{"tools":[{many}]}}"#)]);
    assert_eq!(listing.items(Kind::Tools).len(), ITEMS_MAX);
    assert_eq!(shortfall.cut, [Kind::Tools]);
}

#[test]
fn a_listing_of_too_many_bytes_is_cut() {
    let mut gather = Gather::new(info(r#"{"tools":{},"prompts":{}}"#));
    let large = "x".repeat(LISTING_MAX / 2 - 100);
    let page = sound(&format!(r#"{{"tools":[{{"name":"a","d":"{large}"}},{{"name":"b"}}]}}"#));
    gather.page(raw(&page)).expect("an object");
    let page = page.replace("tools", "prompts");
    gather.page(raw(&page)).expect("an object");
    let (listing, shortfall) = gather.finish();
    assert!(shortfall.is_empty(), "{shortfall}");
    let mut gather = Gather::again(&listing, &[Kind::Prompts]);
    gather.page(raw(&page.replace("\"b\"", &format!("\"b{}\"", "y".repeat(500))))).expect("fits");
    let (listing, shortfall) = gather.finish();
    assert_eq!(keys(&listing, Kind::Prompts), ["a"]);
    assert_eq!((keys(&listing, Kind::Tools).len(), shortfall.cut), (2, vec![Kind::Prompts]));
}

#[test]
fn kinds_that_change_before_anything_was_asked_are_asked_for_together() {
    let mut gather = Gather::new(info(r#"{"tools":{},"prompts":{}}"#));
    gather.page(raw(&sound(r#"{"tools":[{"name":"a"}]}"#))).expect("an object");
    gather.page(raw(r#"{"prompts":[{"name":"p"}]}"#)).expect("an object");
    let (before, _) = gather.finish();
    let mut gather = Gather::again(&before, &[Kind::Prompts]);
    gather.ask_also(&[Kind::Prompts, Kind::Resources]);
    gather.ask_also(&[Kind::Tools]);
    let mut asked = Vec::new();
    while let Some(ask) = gather.ask() {
        asked.push(ask.kind);
        gather.refused();
    }
    assert_eq!(asked, [Kind::Tools, Kind::Prompts], "what it has no word of is not asked for");
    let (after, _) = gather.finish();
    assert_eq!(keys(&after, Kind::Tools), [""; 0], "it was asked for anew");
}

#[test]
fn a_page_that_is_too_large_ends_its_own_kind_and_says_so() {
    let mut gather = Gather::new(info(r#"{"tools":{},"prompts":{}}"#));
    let page = sound(r#"{"tools":[{"name":"a"}],"nextCursor":"x"}"#);
    gather.page(raw(&page)).expect("an object");
    gather.too_large();
    assert_eq!(gather.ask().expect("the other kind").kind, Kind::Prompts);
    gather.page(raw(r#"{"prompts":[{"name":"p"}]}"#)).expect("an object");
    let (listing, shortfall) = gather.finish();
    assert_eq!(keys(&listing, Kind::Tools), ["a"], "what came before it is kept");
    assert_eq!(keys(&listing, Kind::Prompts), ["p"]);
    let told = "tools cut off: a page is larger than `limits.mcp_answer`";
    assert_eq!(shortfall.to_string(), told);
}

#[test]
fn only_what_is_declared_is_asked_and_a_refusal_goes_on() {
    let declared = info(r#"{"prompts":{},"resources":{"subscribe":true},"logging":null}"#);
    assert!(declared.can_subscribe() && !declared.can("logging"));
    let mut gather = Gather::new(declared);
    let mut asked = Vec::new();
    while let Some(ask) = gather.ask() {
        asked.push(ask.kind);
        gather.refused();
    }
    assert_eq!(asked, [Kind::Resources, Kind::Templates, Kind::Prompts]);
}

#[test]
fn what_a_server_fails_to_list_is_kept_as_it_was_known() {
    let declared = r#"{"tools":{},"prompts":{}}"#;
    let mut gather = Gather::new(info(declared));
    gather.page(raw(&sound(r#"{"tools":[{"name":"a"}]}"#))).expect("an object");
    gather.page(raw(r#"{"prompts":[{"name":"p"}]}"#)).expect("an object");
    let (before, _) = gather.finish();
    let mut gather = Gather::new(info(declared));
    gather.fall_back_on(Arc::new(before));
    gather.failed();
    gather.refused();
    let (listing, shortfall) = gather.finish();
    assert_eq!(keys(&listing, Kind::Tools), ["a"]);
    assert_eq!(keys(&listing, Kind::Prompts), [""; 0], "it says that it has none");
    assert_eq!(shortfall.failed, [Kind::Tools]);
    assert_eq!(shortfall.to_string(), "tools not listed: the server failed");
}

#[test]
fn a_page_that_is_no_object_is_a_flaw() {
    let mut gather = Gather::new(info(r#"{"tools":{}}"#));
    assert!(gather.page(raw("[]")).is_err());
}

#[test]
fn changed_definitions_are_told() {
    let listing = |tools| gather(&[tools]).0;
    let old = listing(r#"{"tools":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"a","x":1}]}"#);
    let new = listing(r#"{"tools":[{"name":"b","x":1},{"name":"a"},{"name":"d"}]}"#);
    let changes = old.diff(&new);
    let tool = |key: &str| vec![(Kind::Tools, Arc::from(key))];
    let expected = Changes { added: tool("d"), removed: tool("c"), changed: tool("b") };
    assert_eq!(changes, expected);
    assert!(changes.touches(Kind::Tools) && !changes.touches(Kind::Prompts));
    assert!(old.diff(&old.clone()).is_empty());
}
