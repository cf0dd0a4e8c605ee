//! How well requests without an answer are declined, with as many of them as there are labelled
//! requests: each is asked once with all tools, and once without the servers that have its answer
//! (without the tools that are right, where all tools are of one server).
//!
//! Some are answered all the same, by a tool of another server that does the same, so the share
//! that is declined is a lower bound. What the set itself labels as without an answer is counted
//! apart. With a model it is asked as in a gateway: where the ranking is not clear without it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::path::Path;

use tidegate_search::{
    Document, Index, Query, Reading, Sentences,
    eval::{self, Case},
};
use tidegate_sentence::Encoder;

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

/// A model and what it made of texts so far.
struct Reader<'a> {
    model: &'a Encoder,
    vectors: HashMap<String, Option<Vec<f32>>>,
}

impl Reader<'_> {
    fn vector(&mut self, text: &str) -> Option<Vec<f32>> {
        let model = self.model;
        self.vectors.entry(text.to_owned()).or_insert_with(|| model.encode(text)).clone()
    }

    fn sentences(&mut self, index: &Index) -> Sentences {
        let texts = index.sentence_texts();
        let tools: Vec<_> = texts.tools.iter().map(|text| self.vector(text)).collect();
        let servers: Vec<_> = texts.servers.iter().map(|text| self.vector(text)).collect();
        index.sentences(self.model.dimensions(), &tools, &servers)
    }
}

/// An index, and its texts as a model reads them.
struct Place<'a> {
    index: &'a Index,
    sentences: Option<Sentences>,
}

impl<'a> Place<'a> {
    fn new(index: &'a Index, reader: Option<&mut Reader<'_>>) -> Self {
        Self { index, sentences: reader.map(|reader| reader.sentences(index)) }
    }
}

/// Asks all requests of a set.
pub fn asked(
    tools: &Path,
    requests: &Path,
    model: Option<&Encoder>,
) -> Result<Asked, Box<dyn Error>> {
    let mut reader = model.map(|model| Reader { model, vectors: HashMap::new() });
    let index = Index::build(eval::tools(&fs::read_to_string(tools)?)?);
    let cases = eval::cases(&fs::read_to_string(requests)?)?;
    let mut asked = Asked::default();
    let mut by_taken: BTreeMap<BTreeSet<&str>, Vec<&Case>> = BTreeMap::new();
    let servers: BTreeSet<&str> = index.documents().iter().map(|it| &*it.server).collect();
    let is_one = servers.len() == 1;
    let place = Place::new(&index, reader.as_mut());
    for case in &cases {
        let (above, is_found) = first(&place, case, reader.as_mut());
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
        let place = Place::new(&rest, reader.as_mut());
        for case in cases {
            asked.left_out.push(first(&place, case, reader.as_mut()).0);
        }
    }
    Ok(asked)
}

/// What is taken out for a right tool.
fn taken(gold: &str, is_one: bool) -> &str {
    if is_one { gold } else { gold.split('/').next().unwrap_or(gold) }
}

/// How good the first tool found is, and whether a right one is among the first five.
fn first(place: &Place<'_>, case: &Case, reader: Option<&mut Reader<'_>>) -> (f32, bool) {
    let Place { index, sentences } = place;
    let query = Query { description: &case.query, ..Query::default() };
    let mut found = index.search(&query, &|_| true, eval::DEPTH);
    let asks = reader.filter(|_| !found.is_clear());
    let request = asks.and_then(|reader| reader.vector(&case.query));
    if let (Some(sentences), Some(request)) = (sentences, &request) {
        let reading = Some(Reading { sentences, request });
        found = index.search(&Query { reading, ..query }, &|_| true, eval::DEPTH);
    }
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
