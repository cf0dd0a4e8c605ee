//! The quality gate: labelled requests of the project's own, over `tools.jsonl`.
//!
//! `queries.jsonl` and `requests.jsonl` have different authors. In the second, the style `agent` is
//! a request phrased as the description of `find_tool` asks for, `user` one in a person's words.
//! `household-requests.jsonl` are 150 requests over `household-tools.jsonl` in two voices, of an
//! engineer on call and of an office manager, in people's own words, with no product named and few
//! words shared with the tools: the hard case. `household-second.jsonl` are 100 more over the same
//! tools, by a writer who had read the tools' texts but not the code of the ranking; they are not
//! to be changed with the ranking in view.
//!
//! No weight was chosen by these requests. The bounds have slack: one request is 1.5 points. They
//! catch a ranking that has become worse, not one that is a little different.

use tidegate_search::{
    Index, Query,
    eval::{self, DEPTH, Figures, ratio},
};

const TOOLS: &str = include_str!("tools.jsonl");
const QUERIES: &str = include_str!("queries.jsonl");
const REQUESTS: &str = include_str!("requests.jsonl");
const HOUSEHOLD_TOOLS: &str = include_str!("household-tools.jsonl");
const HOUSEHOLD: &str = include_str!("household-requests.jsonl");

const SECOND: &str = include_str!("household-second.jsonl");

fn figures(pick: impl Fn(usize) -> bool) -> Figures {
    figures_of(TOOLS, QUERIES, pick)
}

fn figures_of(tools: &str, cases: &str, pick: impl Fn(usize) -> bool) -> Figures {
    let index = Index::build(eval::tools(tools).expect("the tools are sound"));
    let cases = eval::cases(cases).expect("labelled requests are sound");
    let mut figures = Figures::default();
    for (_, case) in cases.iter().enumerate().filter(|(at, _)| pick(*at)) {
        let query = Query { description: &case.query, ..Query::default() };
        figures.count(&index, case, &index.search(&query, &|_| true, DEPTH));
    }
    figures
}

#[test]
fn most_requests_find_their_tool_first_and_nearly_all_among_five() {
    let figures = figures(|_| true);
    let [first, _, fifth, _] = figures.shares();
    assert!(figures.n >= 60 && first >= 0.66 && fifth >= 0.88, "{figures:?}");
}

#[test]
fn requests_phrased_as_agents_are_asked_to_find_their_tool_first() {
    let styles: Vec<bool> =
        REQUESTS.lines().map(|line| line.contains(r#""style": "agent""#)).collect();
    let agents = figures_of(TOOLS, REQUESTS, |at| styles[at]);
    assert!(agents.n >= 38 && agents.shares()[0] >= 0.95, "{agents:?}");
    let users = figures_of(TOOLS, REQUESTS, |at| !styles[at]);
    assert!(users.n >= 42 && users.shares()[0] >= 0.5, "{users:?}");
    assert!(users.shares()[2] >= 0.74, "{users:?}");
    assert!(users.unanswerable >= 20 && ratio(users.declined, users.unanswerable) >= 0.5);
}

#[test]
fn requests_in_other_words_than_the_tools_find_them_more_often_than_not_among_five() {
    for voice in [r#""voice": "engineer""#, r#""voice": "office""#] {
        let is_in: Vec<bool> = HOUSEHOLD.lines().map(|line| line.contains(voice)).collect();
        let figures = figures_of(HOUSEHOLD_TOOLS, HOUSEHOLD, |at| is_in[at]);
        let [at_1, _, at_5, _] = figures.shares();
        assert!(figures.n + figures.unanswerable == 75, "{voice} {figures:?}");
        assert!(at_1 >= 0.34 && at_5 >= 0.6, "{voice} {figures:?}");
        assert!(ratio(figures.declined, figures.unanswerable) >= 0.5, "{voice} {figures:?}");
        assert!(ratio(figures.lost, figures.n) <= 0.15, "{voice} {figures:?}");
    }
}

#[test]
fn requests_of_a_writer_who_did_not_know_the_ranking_find_their_tools() {
    let figures = figures_of(HOUSEHOLD_TOOLS, SECOND, |_| true);
    let [at_1, _, at_5, _] = figures.shares();
    assert!(figures.n == 80 && figures.unanswerable == 20, "{figures:?}");
    assert!(at_1 >= 0.41 && at_5 >= 0.68, "{figures:?}");
    assert!(ratio(figures.declined, figures.unanswerable) >= 0.35, "{figures:?}");
    assert!(ratio(figures.lost, figures.n) <= 0.08, "{figures:?}");
}

#[test]
fn requests_with_slips_find_their_tool() {
    // The requests with slips stand after the first sixty.
    let figures = figures(|at| (60..68).contains(&at));
    assert!(figures.n == 8 && figures.hits[2] >= 7, "{figures:?}");
}

#[test]
fn requests_that_no_tool_fulfils_are_declined_and_others_are_not() {
    let figures = figures(|_| true);
    let declined = ratio(figures.declined, figures.unanswerable);
    assert!(figures.unanswerable >= 12 && declined >= 0.8, "{figures:?}");
    assert!(ratio(figures.lost, figures.n) <= 0.05, "{figures:?}");
}
