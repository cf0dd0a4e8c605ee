//! The index of all tools: made once per catalogue, shared by all sessions, never changed.
//!
//! Rules kept here:
//! - Equal documents give an equal index, and an equal request an equal answer, in every run.
//! - What a session may not see is left out at the end, by asking for each document: a session
//!   costs the index nothing.
//! - A changed catalogue makes a new index that takes over the analysis of every document that is
//!   the same by its hash; lists and rarities are worked out anew, as they depend on all.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    action::Action,
    analysis::{Analysis, FIELDS},
    document::Document,
    kinds::{self, Kinds},
    matrix::Matrix,
    model::{DIMENSIONS, model},
    postings::{Postings, Term, index, rarity, term},
    servers::Servers,
    spelling::Spelling,
    stem::stem,
    words::Word,
};

/// What one occurrence counts in name, description and parameters.
const FIELD_WEIGHTS: [f32; FIELDS] = [2.0, 1.0, 0.3];
/// How much the length of each field counts against it.
const LENGTH: [f32; FIELDS] = [0.5, 0.6, 0.6];
/// How soon further occurrences say nothing more.
const SATURATION: f32 = 1.2;

/// All tools, ready to be searched.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) documents: Vec<Document>,
    pub(crate) analyses: Vec<Arc<Analysis>>,
    pub(crate) words: Postings,
    pub(crate) pairs: Postings,
    pub(crate) letters: Postings,
    /// By thing: the documents that are about it.
    pub(crate) concepts: Postings,
    pub(crate) servers: Servers,
    pub(crate) meaning: Matrix,
    /// By document, side by side: a search reads all of them.
    pub(crate) actions: Vec<Action>,
    pub(crate) kinds: Vec<Kinds>,
    pub(crate) kind_rarities: [f32; kinds::COUNT],
    spelling: Spelling<Box<str>>,
}

impl Index {
    /// An index of these documents. A document's place is its number in answers.
    #[must_use]
    pub fn build(documents: Vec<Document>) -> Self {
        let analyses = documents.iter().map(|document| Arc::new(Analysis::new(document))).collect();
        Self::of(documents, analyses)
    }

    /// An index of other documents, with the work done for this one used where they are the same.
    #[must_use]
    pub fn updated(&self, documents: Vec<Document>) -> Self {
        let known: BTreeMap<u64, &Arc<Analysis>> =
            self.analyses.iter().map(|analysis| (analysis.hash, analysis)).collect();
        let analyse = |document: &Document| match known.get(&document.hash()) {
            Some(analysis) => Arc::clone(analysis),
            None => Arc::new(Analysis::new(document)),
        };
        let analyses = documents.iter().map(analyse).collect();
        Self::of(documents, analyses)
    }

    /// All documents, in order.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Bytes held, about, without the texts, which are shared with the documents' owner.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let lists = [&self.words, &self.pairs, &self.letters, &self.concepts];
        let analyses: usize = self.analyses.iter().map(|analysis| analysis.bytes()).sum();
        lists.iter().map(|list| list.bytes()).sum::<usize>()
            + analyses
            + self.servers.bytes()
            + self.meaning.bytes()
            + self.spelling.bytes()
    }

    fn of(documents: Vec<Document>, analyses: Vec<Arc<Analysis>>) -> Self {
        let mut meaning = Matrix::new(DIMENSIONS);
        analyses.iter().for_each(|analysis| meaning.push(&analysis.direction));
        let kinds: Vec<Kinds> = analyses.iter().map(|analysis| analysis.kinds).collect();
        let count = analyses.len();
        let words = words(&analyses);
        Self {
            servers: Servers::new(&documents, &words, &analyses),
            words,
            pairs: pairs(&analyses),
            letters: letters(&analyses),
            concepts: concepts(&analyses),
            meaning,
            actions: analyses.iter().map(|analysis| analysis.action).collect(),
            kind_rarities: kinds::rarities(&kinds, |holding| rarity(count, holding)),
            kinds,
            spelling: Spelling::new(surfaces(&analyses), 1),
            documents,
            analyses,
        }
    }

    /// Whether some tool has this word.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        !self.words.list(term(&stem(word))).is_empty()
    }

    /// Whether some tool or server writes this as one word.
    pub(crate) fn writes(&self, word: &str) -> bool {
        self.has_word(word) || self.servers.has_word(word)
    }

    /// Whether a word is known to the index or the model: then it is no slip.
    pub(crate) fn knows(&self, word: &Word) -> bool {
        self.writes(&word.text) || model().row(&word.text).is_some()
    }

    pub(crate) const fn spelling(&self) -> &Spelling<Box<str>> {
        &self.spelling
    }
}

/// BM25F: occurrences in fields add up before they saturate.
fn words(analyses: &[Arc<Analysis>]) -> Postings {
    let mut mean = [0.0_f32; FIELDS];
    for analysis in analyses {
        mean.iter_mut().zip(analysis.lengths).for_each(|(mean, length)| *mean += length);
    }
    let count = count(analyses);
    let mut entries: Vec<(Term, u32, f32)> = Vec::new();
    for (doc, analysis) in analyses.iter().enumerate() {
        let start = entries.len();
        for field in 0..FIELDS {
            let relative = analysis.lengths[field] * count / mean[field].max(1.0);
            let factor = FIELD_WEIGHTS[field] / (1.0 - LENGTH[field] + LENGTH[field] * relative);
            let terms = analysis.fields[field].iter();
            entries.extend(terms.map(|(term, times)| (*term, index(doc), times * factor)));
        }
        merge(&mut entries, start);
    }
    let docs = analyses.len();
    Postings::new(entries, |_, times, holding| rarity(docs, holding) * times / (SATURATION + times))
}

/// Adds up the entries of one document that have one term.
fn merge(entries: &mut Vec<(Term, u32, f32)>, start: usize) {
    entries[start..]
        .sort_unstable_by(|one, next| one.0.cmp(&next.0).then(one.2.total_cmp(&next.2)));
    let mut last = start;
    for at in start + 1..entries.len() {
        if entries[at].0 == entries[last].0 {
            entries[last].2 += entries[at].2;
        } else {
            last += 1;
            entries[last] = entries[at];
        }
    }
    entries.truncate((last + 1).min(entries.len()));
}

fn pairs(analyses: &[Arc<Analysis>]) -> Postings {
    let docs = analyses.len();
    let mut entries = Vec::new();
    for (doc, analysis) in analyses.iter().enumerate() {
        entries.extend(analysis.pairs.iter().map(|pair| (*pair, index(doc), 1.0)));
    }
    Postings::new(entries, |_, value, holding| value * rarity(docs, holding))
}

/// Runs of letters, with the runs of one document brought to length one.
fn letters(analyses: &[Arc<Analysis>]) -> Postings {
    let docs = analyses.len();
    let mut entries = Vec::new();
    for (doc, analysis) in analyses.iter().enumerate() {
        entries.extend(analysis.grams.iter().map(|(gram, weight)| (*gram, index(doc), *weight)));
    }
    let mut letters = Postings::new(entries, |_, weight, holding| weight * rarity(docs, holding));
    letters.normalise(docs);
    letters
}

/// What documents are about, with the things of one document brought to length one.
fn concepts(analyses: &[Arc<Analysis>]) -> Postings {
    let docs = analyses.len();
    let mut entries = Vec::new();
    for (doc, analysis) in analyses.iter().enumerate() {
        let things = analysis.about.iter();
        entries.extend(things.map(|(thing, weight)| (*thing, index(doc), weight.ln_1p())));
    }
    let mut concepts = Postings::new(entries, |_, weight, holding| weight * rarity(docs, holding));
    concepts.normalise(docs);
    concepts
}

/// The words of all documents, those in many first.
fn surfaces(analyses: &[Arc<Analysis>]) -> Vec<Box<str>> {
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for surface in analyses.iter().flat_map(|analysis| &analysis.surfaces) {
        *all.entry(surface).or_default() += 1;
    }
    let mut sorted: Vec<(&str, usize)> = all.into_iter().collect();
    sorted.sort_by_key(|(_, holding)| std::cmp::Reverse(*holding));
    sorted.into_iter().map(|(word, _)| word.into()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a count of tools")]
const fn count(analyses: &[Arc<Analysis>]) -> f32 {
    analyses.len() as f32
}
