//! What the properties share: texts of JSON, servers, and listings made of tools.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::value::RawValue;
use tidegate_mcp::{
    listing::{Gather, Kind, Listing, ServerInfo},
    names::{Naming, NamingSettings, ServerNames},
    raw::quoted,
};

/// This many cases, unless a longer run was asked for.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_asked { asked.cases } else { usual };
    ProptestConfig { cases, failure_persistence: None, ..asked }
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

/// A text in quotes, written in one of the ways JSON has.
pub(crate) fn json_string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-z]{0,8}",
        Just("\\u00e9".to_owned()),
        Just("\\ud83d\\ude00\\/".to_owned()),
        Just("\\\"}{".to_owned()),
        Just("é😀".to_owned()),
        Just("\\n\\\\".to_owned()),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

/// Any JSON value, with white space and numbers that a reader into types would change.
pub(crate) fn json_value() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?";
    let word = prop::sample::select(vec!["true", "false", "null"]).prop_map(str::to_owned);
    let leaf = prop_oneof![json_string(), number, word];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let member = (json_string(), "[ \n\t\r]{0,2}", inner.clone())
            .prop_map(|(key, space, value)| format!("{key}{space}:{space}{value}{space}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(", "))),
            prop::collection::vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

/// Names that servers might be given to confuse who is meant.
pub(crate) fn servers() -> impl Strategy<Value = Vec<String>> {
    let name = prop_oneof![
        4 => "[ab_]{1,4}",
        1 => "[a-z.-]{1,12}",
        1 => "[ab]{60,64}",
    ];
    prop::collection::btree_set(name, 2..5).prop_map(|names| names.into_iter().collect())
}

/// Names of tools: short and alike, long and alike, odd, and with an end like digits of ours.
pub(crate) fn tool() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab_]{1,6}",
        1 => "[ab]{50,70}",
        1 => "\\PC{1,12}",
        1 => "[ab_]{0,4}_[0-9a-f]{8}",
    ]
}

pub(crate) fn settings(naming: Naming, servers: &[String]) -> NamingSettings {
    let servers = servers.iter().map(|name| ServerNames::plain(name)).collect();
    NamingSettings { naming, servers }
}

/// A listing of tools, taken in pages of `size`.
pub(crate) fn listing(tools: &[String], size: usize) -> Arc<Listing> {
    let greeting = raw(r#"{"capabilities":{"tools":{}}}"#);
    let mut gather = Gather::new(ServerInfo::read(&greeting).expect("an object"));
    let pages: Vec<&[String]> = tools.chunks(size.max(1)).collect();
    for (at, page) in pages.iter().enumerate() {
        let schema = "\"inputSchema\": {\"type\":\"object\"}";
        let define = |tool: &String| format!("{{ \"x\":1.0,\"name\" : {},{schema}}}", quoted(tool));
        let items: Vec<String> = page.iter().map(define).collect();
        let next =
            if at + 1 < pages.len() { format!(",\"nextCursor\":\"{at}\"") } else { String::new() };
        let page = raw(&format!("{{\"tools\":[{}]{next}}}", items.join(",")));
        gather.page(&page).expect("an object");
    }
    let (listing, shortfall) = gather.finish();
    assert!(shortfall.is_empty(), "{shortfall}");
    assert_eq!(listing.items(Kind::Tools).len(), tools.len());
    Arc::new(listing)
}
