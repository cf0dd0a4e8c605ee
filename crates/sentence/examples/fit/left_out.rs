//! How well requests without an answer are declined, with as many of them as there are labelled
//! requests: each is asked once with all tools, and once without the servers that have its answer
//! (without the tools that are right, where all tools are of one server).
//!
//! Some are answered all the same, by a tool of another server that does the same, so the share
//! that is declined is a lower bound. What the set itself labels as without an answer is counted
//! apart.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use tidegate_search::{
    Document, Index, Query,
    eval::{self, Case},
};

/// Shares of requests with an answer that may be lost.
pub const LOST: [f64; 3] = [0.02, 0.05, 0.1];

/// How far the first tool found is above what a good match needs, by kind of request. Where
/// nothing is found at all it is the least number.
#[derive(Default)]
pub struct Asked {
    /// Requests whose tool is among the first five.
    pub answered: Vec<f32>,
    /// Requests that have no answer, by their label.
    pub labelled: Vec<f32>,
    /// Requests whose answer was taken out.
    pub left_out: Vec<f32>,
}

/// Asks all requests of a set.
pub fn asked(tools: &Path, requests: &Path) -> Result<Asked, Box<dyn Error>> {
    let index = Index::build(eval::tools(&fs::read_to_string(tools)?)?);
    let cases = eval::cases(&fs::read_to_string(requests)?)?;
    let mut asked = Asked::default();
    let mut by_taken: BTreeMap<BTreeSet<&str>, Vec<&Case>> = BTreeMap::new();
    let servers: BTreeSet<&str> = index.documents().iter().map(|it| &*it.server).collect();
    let is_one = servers.len() == 1;
    for case in &cases {
        let (above, is_found) = first(&index, case);
        if case.gold.is_empty() {
            asked.labelled.push(above);
            continue;
        }
        if is_found {
            asked.answered.push(above);
        }
        let taken = case.gold.iter().map(|gold| taken(gold, is_one));
        by_taken.entry(taken.collect()).or_default().push(case);
    }
    for (taken, cases) in by_taken {
        let is_left = |it: &&Document| !taken.contains(if is_one { &*it.id } else { &*it.server });
        let rest = index.updated(index.documents().iter().filter(is_left).cloned().collect());
        asked.left_out.extend(cases.iter().map(|case| first(&rest, case).0));
    }
    Ok(asked)
}

/// What is taken out for a right tool.
fn taken(gold: &str, is_one: bool) -> &str {
    if is_one { gold } else { gold.split('/').next().unwrap_or(gold) }
}

/// How good the first tool found is, and whether a right one is among the first five.
fn first(index: &Index, case: &Case) -> (f32, bool) {
    let query = Query { description: &case.query, ..Query::default() };
    let found = index.search(&query, &|_| true, eval::DEPTH);
    let is_right = |doc: usize| case.gold.iter().any(|it| **it == *index.documents()[doc].id);
    let is_found = found.hits.iter().take(5).any(|hit| is_right(hit.doc));
    (found.hits.first().map_or(f32::MIN, tidegate_search::Hit::above), is_found)
}

/// How many of some requests are below what so large a share of the answered ones stays below.
pub fn below(answered: &[f32], others: &[f32], lost: f64) -> usize {
    let mut sorted = answered.to_vec();
    sorted.sort_by(f32::total_cmp);
    let at = (lost * sorted.len() as f64) as usize;
    let needed = sorted.get(at).copied().unwrap_or(f32::MIN);
    others.iter().filter(|above| **above < needed).count()
}
