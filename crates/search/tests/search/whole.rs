//! What holds for an index as a whole: visibility, ties, equal names, external vectors, memory.

use tidegate_search::{
    Answer, Document, External, FAINT, GOOD, Index, Place, Query, Vectors, eval,
};

const TOOLS: &str = include_str!("tools.jsonl");

fn index() -> Index {
    Index::build(eval::tools(TOOLS).expect("tools.jsonl is sound"))
}

fn first(index: &Index, text: &str) -> String {
    let query = Query { description: text, ..Query::default() };
    let answer = index.search(&query, &|_| true, 1);
    answer.hits.first().map_or(String::new(), |hit| index.documents()[hit.doc].id.to_string())
}

#[test]
fn a_tool_that_is_not_visible_is_never_found_and_the_next_best_is() {
    let index = index();
    // All of these read, so the rule that prefers a tool by its action changes no order.
    let query = Query { description: "columns of tables in the database", ..Query::default() };
    let all = index.search(&query, &|_| true, 3);
    let best = all.hits[0].doc;
    let rest = index.search(&query, &|doc| doc != best, 3);
    assert!(rest.hits.iter().all(|hit| hit.doc != best));
    assert_eq!(rest.hits[0].doc, all.hits[1].doc);
    assert!(index.search(&query, &|_| false, 3).hits.is_empty());
}

#[test]
fn equal_tools_stand_in_the_order_of_their_names() {
    let twin = |id: &str| {
        let mut document = Document::plain("mail", "send", "Send a letter", []);
        document.id = id.into();
        document
    };
    let index = Index::build(["c", "a", "b"].map(twin).to_vec());
    let query = Query { description: "send a letter", ..Query::default() };
    let order: Vec<_> = index.search(&query, &|_| true, 3).hits.iter().map(|hit| hit.doc).collect();
    assert_eq!(order, [1, 2, 0]);
}

#[test]
fn keywords_count_like_words_of_the_request() {
    let index = index();
    let query =
        Query { description: "make a new one", keywords: "github issue", ..Query::default() };
    let best = index.search(&query, &|_| true, 1).hits[0].doc;
    assert_eq!(&*index.documents()[best].id, "GitHub/create_issue");
}

#[test]
fn an_external_vector_takes_the_place_of_the_embedded_model() {
    let tools = ["alpha", "beta"].map(|name| Document::plain("s", name, "Convert a picture", []));
    let index = Index::build(tools.to_vec());
    let ask = |documents: &[Option<&[f32]>], request: Option<&[f32]>| {
        let vectors = Vectors::new(2, documents.iter().map(|it| it.map(<[f32]>::to_vec)));
        let external = request.map(|request| External { documents: &vectors, request });
        let query = Query { description: "convert a picture", external, ..Query::default() };
        index.search(&query, &|_| true, 2).hits[0].doc
    };
    let both = [Some(&[1.0, 0.0][..]), Some(&[0.0, 1.0])];
    assert_eq!(ask(&both, Some(&[0.1, 0.9])), 1);
    assert_eq!(ask(&both, Some(&[0.9, 0.1])), 0);
    // One of another length counts like none, and so do vectors that tell no tool from another.
    let without = ask(&both, None);
    assert_eq!(ask(&both, Some(&[1.0; 7])), without);
    assert_eq!(ask(&[None, None], Some(&[0.1, 0.9])), without);
    assert_eq!(ask(&[both[0], both[0]], Some(&[0.1, 0.9])), without);
    assert_eq!(ask(&[], Some(&[0.1, 0.9])), without);
}

#[test]
fn an_explanation_says_where_each_word_was_found() {
    let index = index();
    let query = Query { description: "create an isue on github", ..Query::default() };
    let best = index.search(&query, &|_| true, 1).hits[0];
    let words = index.explain(&query, best.doc);
    let of =
        |word: &str| words.iter().find(|matched| matched.word == word).expect("was looked for");
    assert!(of("issue").is_correction && of("issue").places.contains(&Place::Name));
    assert_eq!(of("github").places, [Place::Server]);
    assert!(best.score > GOOD && GOOD > FAINT);
}

#[test]
fn two_servers_with_one_tool_are_told_apart_by_the_name_that_is_said() {
    let tools =
        ["Alpha Mail", "Beta Mail"].map(|server| Document::plain(server, "send_mail", "Send", []));
    let index = Index::build(tools.to_vec());
    assert_eq!(first(&index, "send it with beta"), "Beta Mail/send_mail");
    assert_eq!(first(&index, "send it with Alpha"), "Alpha Mail/send_mail");
}

#[test]
fn hidden_characters_neither_hide_a_word_nor_make_one() {
    let tools = [("a", "De\u{200b}lete a rec\u{2060}ord"), ("b", "List all users")];
    let index =
        Index::build(tools.map(|(name, text)| Document::plain("s", name, text, [])).to_vec());
    assert_eq!(first(&index, "delete a record"), "s/a");
}

#[test]
fn three_thousand_tools_take_less_than_forty_megabytes() {
    let tools = eval::tools(TOOLS).expect("tools.jsonl is sound");
    let many = (0..3000).map(|at| {
        let tool = &tools[at % tools.len()];
        let server = format!("{} {}", tool.server, at / tools.len());
        Document::plain(&server, &tool.name, &tool.description, [("item", "which one")])
    });
    let index = Index::build(many.collect());
    assert!(index.bytes() < 40 << 20, "{}", index.bytes());
    assert!(index.bytes() > 1 << 20, "{}", index.bytes());
}

/// Two tools of one server on one object: the one that reads has more of the request's words.
fn issues() -> Index {
    let tool = |name: &str, description: &str| Document::plain("tracker", name, description, []);
    Index::build(vec![
        tool("get_issue", "Get an issue about a crash, a bug or a problem of the login page"),
        tool("create_issue", "Create an issue"),
        tool("list_projects", "List projects"),
    ])
}

#[test]
fn a_request_that_writes_finds_the_tool_that_writes_and_a_question_the_one_that_reads() {
    let index = issues();
    let first = |request: &str| {
        let query = Query { description: request, ..Query::default() };
        let found = index.search(&query, &|_| true, 3);
        found.hits.first().map(|hit| index.documents()[hit.doc].name.to_string())
    };
    let wanted = |name: &str| Some(name.to_owned());
    assert_eq!(first("open an issue about the crash of the login page"), wanted("create_issue"));
    assert_eq!(first("show the issue about the login page"), wanted("get_issue"));
    assert_eq!(first("what does the issue about the login page say?"), wanted("get_issue"));
}

#[test]
fn a_value_finds_the_tool_that_takes_its_kind() {
    let index = Index::build(vec![
        Document::plain("a", "translate", "Turns a text into another", [("text", "")]),
        Document::plain("b", "fetch", "Gets the text of something", [("url", "")]),
    ]);
    let query = Query { description: "the text of https://example.org/a", ..Query::default() };
    let hits = index.search(&query, &|_| true, 2).hits;
    let kinds = |doc: usize| hits.iter().find(|hit| hit.doc == doc).map(|hit| hit.parts.kinds);
    assert!(kinds(1) > kinds(0), "{hits:?}");
}

#[test]
fn a_named_server_is_looked_at_first_and_others_only_if_it_has_no_good_match() {
    let tool = |server: &str, name: &str, text: &str| Document::plain(server, name, text, []);
    let index = Index::build(vec![
        tool("Git Hub", "create_issue", "Create an issue in a repository"),
        tool("tracker", "create_issue", "Create an issue in a project"),
        tool("tracker", "delete_issue", "Delete an issue from a project"),
        tool("mailer", "send_mail", "Send an email to a person"),
    ]);
    let found = |description: &str, server: &str| {
        let query = Query { description, server, ..Query::default() };
        let found = index.search(&query, &|_| true, 8);
        found.hits.iter().map(|hit| index.documents()[hit.doc].id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("create an issue", "github"), ["Git Hub/create_issue"]);
    assert_eq!(found("create an issue", "Tracker")[0], "tracker/create_issue");
    assert_eq!(found("send an email", "tracker")[0], "mailer/send_mail");
    assert_eq!(found("send an email", "no such server")[0], "mailer/send_mail");
}

#[test]
fn the_list_ends_where_relevance_ends() {
    let index = Index::build(eval::tools(TOOLS).expect("tools.jsonl is sound"));
    let query = Query { description: "Stripe: refund a charge", ..Query::default() };
    let found = index.search(&query, &|_| true, 50);
    assert!(found.has_good_match && found.hits.len() < 10, "{} tools", found.hits.len());
    assert_eq!(&*index.documents()[found.hits[0].doc].name, "refund_payment");
}

#[test]
fn servers_that_might_fit_are_those_about_the_same_thing() {
    let index = Index::build(eval::tools(TOOLS).expect("tools.jsonl is sound"));
    let query = Query { description: "the weather in Rome", ..Query::default() };
    let all = index.likely_servers(&query, &|_| true, 3);
    assert_eq!(all.len(), 3);
    assert!(all.iter().any(|it| **it == *"OpenWeather"), "{all:?}");
    let is_seen = |doc: usize| &*index.documents()[doc].server == "Slack";
    assert_eq!(index.likely_servers(&query, &is_seen, 3), ["Slack".into()]);
}

#[test]
fn a_product_that_nothing_visible_has_to_do_with_makes_no_good_match() {
    let index = Index::build(eval::tools(TOOLS).expect("tools.jsonl is sound"));
    let all = |_: usize| true;
    let found = |text: &str, server: &str| {
        let query = Query { description: text, server, ..Query::default() };
        (index.search(&query, &all, 5), index.missing_products(&query, &all))
    };
    let needed = |found: &Answer| found.hits.first().map(|hit| hit.needed);
    let (good, missing) = found("GitHub: create an issue", "");
    assert!(good.has_good_match && missing.is_empty(), "{missing:?}");
    for (text, server) in [("Airtable: create an issue", ""), ("create an issue", "Vebrik")] {
        let (poor, missing) = found(text, server);
        assert!(needed(&poor) > needed(&good), "{text} {server}: {:?}", needed(&poor));
        assert_eq!(missing.len(), 1, "{text} {server}: {missing:?}");
    }
    let poor = found("Airtable: colour a cell", "").0;
    assert!(!poor.has_good_match && !poor.hits.is_empty(), "{poor:?}");
    // A server that is there goes before a name that is data.
    assert!(found("create an issue about airtable", "GitHub").0.has_good_match);
    assert!(found("GitHub: create an issue about airtable", "").0.has_good_match);
    let is_seen = |doc: usize| &*index.documents()[doc].server != "GitHub";
    let query = Query { description: "GitHub: create an issue", ..Query::default() };
    assert_eq!(index.missing_products(&query, &is_seen), ["GitHub"]);
}
