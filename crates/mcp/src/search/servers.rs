//! How well each server fits a request, apart from its tools.
//!
//! People name the product they mean: "my Airtable table". A server's name is therefore a score of
//! its own: how much of the name a request says, with words counted by how few servers have them.

use std::collections::BTreeMap;

use super::{
    analysis::{rows, stop_weight},
    document::{Document, cut},
    lexicon::is_stop,
    matrix::{Matrix, Row},
    model::{DIMENSIONS, model},
    postings::{Postings, Term, index, rarity, term},
    query::Step,
    stem::stem,
    words::{Form, words},
};

/// Bytes of what a server says about itself that give its direction.
const HEAD: usize = 400;
/// What words after ` - ` count in a server's name: they say whose it is, not what.
const OWNER: f32 = 0.3;

/// All servers of an index.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// By document.
    of: Vec<u32>,
    names: Postings,
    count: usize,
    directions: Matrix,
}

/// What a request makes of each server.
pub(super) struct Fit {
    /// How much of the server's name it says.
    pub(super) covered: Vec<f32>,
    /// How rare the words are that it says of the name.
    pub(super) said: Vec<f32>,
    /// How alike the meanings are.
    pub(super) meaning: Vec<f32>,
}

impl Servers {
    pub(super) fn new(documents: &[Document]) -> Self {
        let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
        let mut of = Vec::with_capacity(documents.len());
        let mut entries = Vec::new();
        let mut directions = Matrix::new(DIMENSIONS);
        for document in documents {
            let next = index(ids.len());
            let id = *ids.entry(&document.server).or_insert(next);
            of.push(id);
            if id == next {
                entries.extend(
                    name(&document.server).into_iter().map(|(term, weight)| (term, id, weight)),
                );
                directions.push(&direction(document));
            }
        }
        let count = ids.len();
        let mut names =
            Postings::new(entries, |_, weight, holding| weight * rarity(count, holding));
        let mut whole = vec![0.0; count];
        names.each(|server, value| whole[server as usize] += *value);
        names.each(|server, value| *value /= whole[server as usize].max(f32::EPSILON));
        Self { of, names, count, directions }
    }

    /// The server of a document.
    pub(super) fn of(&self, doc: usize) -> usize {
        self.of[doc] as usize
    }

    /// Whether some server's name has this word.
    pub(super) fn has_word(&self, word: &str) -> bool {
        !self.names.list(term(&stem(word))).is_empty()
    }

    /// How each fits.
    pub(super) fn fit(&self, step: &Step) -> Fit {
        let mut covered = vec![0.0_f32; self.count];
        let mut said = vec![0.0_f32; self.count];
        for word in &step.words {
            let list = self.names.list(word.term);
            let rare = rarity(self.count, list.len());
            for entry in list {
                covered[entry.doc as usize] += entry.value * word.weight;
                said[entry.doc as usize] += rare * word.weight * entry.value.min(0.5) * 2.0;
            }
        }
        let most = rarity(self.count, 1) * 2.0;
        said.iter_mut().for_each(|said| *said = (*said / most).min(1.0));
        covered.iter_mut().for_each(|covered| *covered = covered.min(1.0));
        Fit { covered, said, meaning: self.directions.likeness(&step.direction) }
    }

    /// Bytes held, about.
    pub(super) fn bytes(&self) -> usize {
        self.of.len() * 4 + self.names.bytes() + self.directions.bytes()
    }
}

/// The terms of a server's name with their weights.
fn name(server: &str) -> Vec<(Term, f32)> {
    let owner = server.find(" - ").unwrap_or(server.len());
    let telling = words(server).into_iter().filter(|word| !is_stop(&word.text));
    let mut terms: Vec<(Term, f32)> = telling
        .map(|word| {
            let weight = if word.at > owner { OWNER } else { 1.0 };
            let weight = if word.form == Form::Part { weight * 0.5 } else { weight };
            (term(&stem(&word.text)), weight)
        })
        .collect();
    terms.sort_unstable_by(|one, next| one.0.cmp(&next.0).then(next.1.total_cmp(&one.1)));
    terms.dedup_by_key(|(term, _)| *term);
    terms
}

/// Where a server's name and its own words point to.
fn direction(document: &Document) -> Row {
    let model = model();
    let texts = [words(&document.server), words(cut(&document.server_text, HEAD))];
    let weighted = texts.iter().flat_map(|words| rows(model, words));
    let weighted = weighted.map(|(row, word)| (row, model.weight(row) * stop_weight(&word.text)));
    Row::new(&model.direction(weighted))
}
