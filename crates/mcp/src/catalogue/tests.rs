//! Who gets which name, what clients read, and what is reported.

use std::sync::Arc;

use serde_json::{Value, value::RawValue};

use super::*;
use crate::{
    listing::{Gather, Listing, ServerInfo},
    names::{Naming, NamingSettings, ServerNames},
};

/// Definitions are written with their keys alone; what each must have beside it is added.
fn sound(offers: &str) -> String {
    let offers = offers.replace(r#"{"name":"#, r#"{"inputSchema":{"type":"object"},"name":"#);
    let offers = offers.replace(r#"{"uri":"#, r#"{"name":"r","uri":"#);
    offers.replace(r#"{"uriTemplate":"#, r#"{"name":"r","uriTemplate":"#)
}

/// A listing from pages: `{"tools": [...], "prompts": [...], ...}`.
fn listing(offers: &str) -> Option<Arc<Listing>> {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
    let offers = &sound(offers);
    let greeting =
        r#"{"capabilities":{"tools":{},"resources":{},"prompts":{}},"instructions":"use it"}"#;
    let mut gather = Gather::new(ServerInfo::read(&raw(greeting)).expect("an object"));
    while gather.ask().is_some() {
        gather.page(&raw(offers)).expect("an object");
    }
    Some(Arc::new(gather.finish().0))
}

fn settings(naming: Naming, servers: &[&str]) -> NamingSettings {
    let servers = servers.iter().map(|name| ServerNames::plain(name)).collect();
    NamingSettings { naming, servers }
}

fn names(offers: &[Offered]) -> Vec<(&str, usize)> {
    offers.iter().map(|offered| (offered.name.as_ref(), offered.server)).collect()
}

fn reasons(catalogue: &Catalogue) -> Vec<(&str, &str, ConflictReason)> {
    let conflicts = catalogue.conflicts().iter();
    conflicts.map(|conflict| (&*conflict.server, &*conflict.own, conflict.reason)).collect()
}

const SEARCH: &str = r#"{"tools":[{"name":"search"},{"name":"open"}],"prompts":[{"name":"p"}]}"#;

#[test]
fn a_definition_differs_from_the_servers_in_its_name_alone() {
    let text = r#"{ "x": 1.0, "name" : "t", "inputSchema": {"type":"object","b":1,"a":2} }"#;
    let offers = format!(r#"{{"tools":[{text}]}}"#);
    let catalogue =
        Catalogue::new(&settings(Naming::Prefix, &["s", "other"]), &[listing(&offers), None]);
    let tool = catalogue.tool("s_t").expect("offered");
    assert_eq!(tool.raw.as_ref(), text.replace("\"t\"", "\"s_t\""));
    assert_eq!((tool.own.as_ref(), tool.server), ("t", 0));
    assert_eq!(catalogue.tool("t"), None);
}

#[test]
fn prefixes_keep_equal_names_apart() {
    let both = [listing(SEARCH), listing(SEARCH)];
    let catalogue = Catalogue::new(&settings(Naming::Prefix, &["b", "a"]), &both);
    let expected = [("a_open", 1), ("a_search", 1), ("b_open", 0), ("b_search", 0)];
    assert_eq!(names(catalogue.tools()), expected);
    assert_eq!(names(catalogue.prompts()), [("a_p", 1), ("b_p", 0)]);
    assert_eq!(catalogue.conflicts(), []);
}

#[test]
fn priority_gives_a_name_to_the_first_server() {
    let both = [listing(r#"{"tools":[{"name":"search"}]}"#), listing(SEARCH)];
    let catalogue = Catalogue::new(&settings(Naming::Priority, &["a", "b"]), &both);
    assert_eq!(names(catalogue.tools()), [("open", 1), ("search", 0)]);
    assert_eq!(reasons(&catalogue), [("b", "search", ConflictReason::Shadowed)]);
    assert_eq!(
        catalogue.conflicts()[0].to_string(),
        "tools: `search` is that of `a`; `search` of `b` is shadowed until one of them is renamed"
    );
}

#[test]
fn manual_drops_what_two_have_unless_a_rename_settles_it() {
    let both = [listing(SEARCH), listing(SEARCH)];
    let mut manual = settings(Naming::Manual, &["a", "b"]);
    manual.servers[1].rename = [("search".to_owned(), "find".to_owned())].into();
    let catalogue = Catalogue::new(&manual, &both);
    assert_eq!(names(catalogue.tools()), [("find", 1), ("search", 0)]);
    let dropped = [("a", "open"), ("b", "open"), ("a", "p"), ("b", "p")];
    assert_eq!(
        reasons(&catalogue),
        dropped.map(|(server, own)| (server, own, ConflictReason::Unresolved))
    );
    assert!(catalogue.conflicts().iter().all(|conflict| conflict.winner.is_none()));
}

#[test]
fn of_two_with_one_name_in_one_server_the_first_counts() {
    let twice = listing(r#"{"tools":[{"name":"a","x":1},{"name":"a","x":2}]}"#);
    let catalogue = Catalogue::new(&settings(Naming::Prefix, &["s"]), &[twice]);
    assert_eq!(catalogue.tool("a").expect("offered").raw.as_ref(), sound(r#"{"name":"a","x":1}"#));
    assert_eq!(reasons(&catalogue), [("s", "a", ConflictReason::Twice)]);
}

#[test]
fn a_uri_belongs_to_the_first_server_that_has_it() {
    let first = listing(r#"{"resources":[{"uri":"f:///a"}],"resourceTemplates":[]}"#);
    let second = listing(
        r#"{"resources":[{"uri":"f:///a"},{"uri":"g:///b"}],
            "resourceTemplates":[{"uriTemplate":"f:///{+p}"},{"uriTemplate":"f:///x/{y}"}]}"#,
    );
    let catalogue = Catalogue::new(&settings(Naming::Manual, &["a", "b"]), &[first, second]);
    assert_eq!(names(catalogue.resources()), [("f:///a", 0), ("g:///b", 1)]);
    assert_eq!(reasons(&catalogue), [("b", "f:///a", ConflictReason::SameUri)]);
    assert_eq!(catalogue.server_of("f:///a"), Some(0));
    assert_eq!(catalogue.server_of("f:///else"), Some(1));
    assert_eq!(catalogue.server_of("h:///"), None);
    let best = catalogue.template_for("f:///x/1").expect("it fits");
    assert_eq!(best.name.as_ref(), "f:///x/{y}");
    assert_eq!(catalogue.template("f:///{+p}").expect("offered").server, 1);
}

#[test]
fn a_name_with_the_prefix_of_a_server_that_was_never_reached_is_that_servers() {
    let catalogue =
        Catalogue::new(&settings(Naming::Prefix, &["a", "b"]), &[listing(SEARCH), None]);
    assert_eq!(catalogue.unreached_owner("b_search"), Some(1));
    assert_eq!(catalogue.unreached_owner("a_nothing"), None, "its tools are known");
    assert_eq!(catalogue.unreached_owner("c_search"), None);
}

#[test]
fn the_only_server_is_asked_about_any_uri() {
    let catalogue = Catalogue::new(&settings(Naming::Prefix, &["s"]), &[None]);
    assert_eq!(catalogue.server_of("any:///thing"), Some(0));
}

#[test]
fn pages_show_what_is_visible_and_bad_cursors_are_refused() {
    let both = [listing(SEARCH), listing(SEARCH)];
    let catalogue = Catalogue::new(&settings(Naming::Prefix, &["a", "b"]), &both);
    let page = |cursor, size| catalogue.page(Kind::Tools, |server| server == 1, cursor, size);
    let first = page(None, 1).expect("no cursor");
    assert_eq!(first.items, sound(r#"{"name":"b_open"}"#));
    let second = page(first.next_cursor.as_deref(), 1).expect("its cursor");
    assert_eq!(second.to_result(), sound(r#"{"tools":[{"name":"b_search"}]}"#));
    let result: Value = serde_json::from_str(&first.to_result()).expect("JSON");
    assert_eq!(result["nextCursor"].as_str(), first.next_cursor.as_deref());
    for bad in ["", "x", "t0", "tzz", "tff", "p61", "té"] {
        let error = page(Some(bad), 1).expect_err(bad).to_string();
        assert!(error.starts_with("unknown cursor"), "{error}");
    }
    let all = page(None, usize::MAX).expect("no cursor");
    assert_eq!(all.next_cursor, None);
}

#[test]
fn a_list_is_one_page_until_it_is_larger_than_an_answer_may_be() {
    let tools: Vec<String> = (0..3000).map(|n| format!(r#"{{"name":"t{n:04}"}}"#)).collect();
    let page = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
    let catalogue = Catalogue::new(&settings(Naming::Prefix, &["a"]), &[listing(&page)]);
    let page = |cursor, max| catalogue.page(Kind::Tools, |_| true, cursor, max).expect("a page");
    let whole = page(None, 16 << 20);
    assert_eq!(whole.next_cursor, None);
    assert_eq!(whole.items.matches("inputSchema").count(), 3000);
    let half = page(None, whole.items.len() / 2);
    assert!(half.items.len() <= whole.items.len() / 2);
    let rest = page(half.next_cursor.as_deref(), whole.items.len());
    assert_eq!(format!("{},{}", half.items, rest.items), whole.items);
    assert_eq!(rest.next_cursor, None);
}

#[test]
fn a_version_follows_what_is_offered() {
    let two = settings(Naming::Prefix, &["a", "b"]);
    let both = Catalogue::new(&two, &[listing(SEARCH), listing(SEARCH)]);
    let again = Catalogue::new(&two, &[listing(SEARCH), listing(SEARCH)]);
    assert_eq!(both.version(), again.version());
    let changed = SEARCH.replace(r#"{"name":"open"}"#, r#"{"name":"open","title":"x"}"#);
    let changed = Catalogue::new(&two, &[listing(&changed), listing(SEARCH)]);
    assert_ne!(both.version(), changed.version());
    assert_ne!(both.version_of(Kind::Tools), changed.version_of(Kind::Tools));
    assert_eq!(both.version_of(Kind::Prompts), changed.version_of(Kind::Prompts));
}

#[test]
fn an_unknown_tool_gets_a_suggestion_that_the_session_can_call() {
    let both = [listing(SEARCH), listing(SEARCH)];
    let catalogue = Catalogue::new(&settings(Naming::Prefix, &["alpha", "beta"]), &both);
    let nearest = |name| catalogue.nearest_tool(name, |server| server == 1);
    assert_eq!(nearest("beta_saerch"), Some("beta_search"));
    assert_eq!(nearest("search"), Some("beta_search"));
    assert_eq!(nearest("alpha_open"), None);
    assert_eq!(nearest(&"x".repeat(5000)), None);
}

#[test]
fn instructions_are_joined_under_their_servers_names() {
    let one = Catalogue::new(&settings(Naming::Prefix, &["a"]), &[listing("{}")]);
    assert_eq!(one.instructions(|_| true).as_deref(), Some("use it"));
    let servers = [listing("{}"), None, listing("{}")];
    let three = Catalogue::new(&settings(Naming::Prefix, &["a", "b", "c"]), &servers);
    let all = three.instructions(|_| true);
    assert_eq!(all.as_deref(), Some("# a\n\nuse it\n\n# c\n\nuse it"));
    assert_eq!(three.instructions(|server| server == 1), None);
}

#[test]
fn long_instructions_are_cut_at_a_character() {
    let mut long = Listing::clone(&listing("{}").expect("a listing"));
    long.info.instructions = Some("é".repeat(INSTRUCTIONS_MAX));
    let catalogue = Catalogue::new(&settings(Naming::Prefix, &["a"]), &[Some(Arc::new(long))]);
    let text = catalogue.instructions(|_| true).expect("instructions");
    assert!(text.len() <= INSTRUCTIONS_MAX && text.ends_with("é…"), "{}", text.len());
}

#[test]
fn the_capabilities_are_an_object_that_declares_every_list() {
    let declared: Value = serde_json::from_str(CAPABILITIES).expect("JSON");
    for kind in Kind::ALL {
        assert_eq!(declared[kind.capability()]["listChanged"], true, "{kind}");
    }
}
