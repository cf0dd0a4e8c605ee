//! What a search costs over thousands of tools, and what an index costs to make and to update.
//!
//! The tools are those of the quality gate, varied: words are replaced by others of the same
//! tools, so that lists of words are about as long as in real catalogues. Budgets, for a machine
//! of today: a search below 0.3 ms over 2 792 tools and below 1 ms over 10 000, an index of 3 000
//! tools within half a second.

use divan::{Bencher, black_box};
use tidegate_search::{Document, Index, Query, eval};

const TOOLS: &str = include_str!("../tests/search/tools.jsonl");
const QUERIES: &str = include_str!("../tests/search/queries.jsonl");

fn main() {
    divan::main();
}

/// So many tools, about nine to a server, made by mixing the texts of known ones.
fn tools(count: usize) -> Vec<Document> {
    let known = eval::tools(TOOLS).expect("tools.jsonl is sound");
    let words: Vec<&str> = known.iter().flat_map(|tool| tool.description.split(' ')).collect();
    let mixed = (0..count).map(|at| {
        let tool = &known[at % known.len()];
        let other = &known[(at * 7 + at / known.len()) % known.len()];
        let word = |step: usize| words[(at * 31 + step * 17) % words.len()];
        let server = format!("{} {}", other.server, at / 9);
        let name = format!("{}_{}", tool.name, word(1));
        let description = format!("{} {} {} {}", tool.description, word(2), word(3), word(4));
        Document::plain(
            &server,
            &name,
            &description,
            [("item", "which one"), ("limit", "how many")],
        )
    });
    mixed.collect()
}

#[divan::bench(args = [2792, 10_000])]
fn search(bencher: Bencher<'_, '_>, count: usize) {
    let index = Index::build(tools(count));
    let cases = eval::cases(QUERIES).expect("queries.jsonl is sound");
    let mut next = cases.iter().cycle();
    bencher.bench_local(|| {
        let case = next.next().expect("a cycle has no end");
        let query = Query { description: &case.query, ..Query::default() };
        index.search(black_box(&query), &|_| true, 8)
    });
}

#[divan::bench(args = [3000], sample_count = 10)]
fn build(bencher: Bencher<'_, '_>, count: usize) {
    bencher.with_inputs(|| tools(count)).bench_local_values(Index::build);
}

#[divan::bench(args = [3000], sample_count = 10)]
fn update_one_tool(bencher: Bencher<'_, '_>, count: usize) {
    let before = tools(count);
    let index = Index::build(before.clone());
    let mut after = before;
    after[count / 2].description = "Something else entirely".into();
    bencher.with_inputs(|| after.clone()).bench_local_values(|after| index.updated(after));
}
