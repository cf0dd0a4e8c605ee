//! A request that clearly writes never finds a tool first that only reads where the same server has
//! one that writes to the same object, and the other way round.

use proptest::{prelude::*, sample::select};
use tidegate_search::{Document, Effect, Index, Query};

const SERVERS: [&str; 4] = ["Acme Desk", "Borealis", "tracker", "Cobalt CRM"];
const OBJECTS: [&str; 8] =
    ["issue", "invoice", "playlist", "branch", "contact", "dashboard", "webhook", "note"];
const READS: [&str; 5] = ["get", "list", "search", "read", "fetch"];
const WRITES: [&str; 5] = ["create", "update", "delete", "rename", "archive"];
/// Words of descriptions and requests: what a tool says beside its action must not decide.
const FILLER: [&str; 10] = [
    "crash",
    "login",
    "monday",
    "customer",
    "blue",
    "quarterly",
    "urgent",
    "release",
    "kitchen",
    "roadmap",
];

fn filler() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(&FILLER[..]), 0..8).prop_map(|words| words.join(" "))
}

/// A tool, whether it writes, and whether its server says so.
fn tool() -> impl Strategy<Value = Document> {
    let verb = prop_oneof![
        select(&READS[..]).prop_map(|verb| (verb, Effect::Reads)),
        select(&WRITES[..]).prop_map(|verb| (verb, Effect::Writes)),
    ];
    let place = (select(&SERVERS[..]), select(&OBJECTS[..]));
    (verb, place, filler(), any::<bool>()).prop_map(
        |((verb, effect), (server, object), filler, is_said)| {
            let name = format!("{verb}_{object}");
            let mut document = Document::plain(server, &name, &filler, []);
            document.effect = if is_said { effect } else { Effect::Unknown };
            document
        },
    )
}

/// The object of a generated tool.
fn object(document: &Document) -> &str {
    document.name.split('_').nth(1).expect("a verb and an object")
}

/// Whether a generated tool reads or writes.
fn effect(document: &Document) -> Effect {
    let is_reading = READS.iter().any(|verb| document.name.starts_with(verb));
    if is_reading { Effect::Reads } else { Effect::Writes }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_first_tool_reads_or_writes_as_is_wanted_if_there_is_one_for_the_object(
        tools in proptest::collection::vec(tool(), 1..40),
        is_reading in any::<bool>(),
        (read, write) in (select(&READS[..]), select(&WRITES[..])),
        wanted in select(&OBJECTS[..]),
        about in filler(),
        server in proptest::option::of(select(&SERVERS[..])),
    ) {
        let mut tools = tools;
        tools.sort_by(|one, next| one.id.cmp(&next.id));
        tools.dedup_by(|one, next| one.id == next.id);
        let (verb, wants) =
            if is_reading { (read, Effect::Reads) } else { (write, Effect::Writes) };
        let at = server.map(|server| format!(" in {server}")).unwrap_or_default();
        let request = format!("{verb} the {wanted} about {about}{at}");
        let index = Index::build(tools.clone());
        let query = Query { description: &request, ..Query::default() };
        let found = index.search(&query, &|_| true, 3);
        prop_assert!(found.hits.len() <= 3);
        if let Some(first) = found.hits.first().map(|hit| &tools[hit.doc])
            && effect(first) != wants
        {
            let better = tools.iter().find(|tool| {
                tool.server == first.server
                    && object(tool) == object(first)
                    && effect(tool) == wants
            });
            prop_assert!(better.is_none(), "{request}: {} before {better:?}", first.id);
        }
    }
}
