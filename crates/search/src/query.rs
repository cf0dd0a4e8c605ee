//! A request, taken apart against an index.
//!
//! Rules kept here:
//! - A request is cut at [`QUERY_MAX`] bytes and [`WORDS_MAX`] words, so that its cost is bounded.
//! - Words that say nothing are left out, data count little, and a word that neither the index nor
//!   the model knows is joined by the known ones a slip or two away.

use crate::{
    action::Action,
    analysis::{rows, stop_weight},
    concepts::about,
    grams::each_gram,
    index::Index,
    lexicon::is_stop,
    literal::data,
    matrix::Row,
    model::model,
    postings::{Term, pair, term},
    products::products,
    sentences::Reading,
    spelling::LETTERS_MIN,
    stem::{singular, stem},
    step::{Asked, Step},
    vectors::External,
    words::{Form, Word, words},
};

/// Bytes of a request that are looked at.
pub const QUERY_MAX: usize = 4096;
/// Words of a request that are looked at.
const WORDS_MAX: usize = 96;
/// What a piece of data counts, against a word.
const LITERAL: f32 = 0.3;
/// What a part counts beside the known whole.
const PART: f32 = 0.5;
/// What the one known word counts that an unknown one may have been meant as.
const FIXED: [f32; 2] = [1.0, 0.0];
/// What the first two count if there are several.
const FIXED_OF_TWO: [f32; 2] = [0.8, 0.5];

/// What is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// The request in plain words.
    pub description: &'a str,
    /// Words that the tool should have; may be empty.
    pub keywords: &'a str,
    /// The server to look at first; may be empty.
    pub server: &'a str,
    /// Vectors of another model, of the request and of the documents.
    pub external: Option<External<'a>>,
    /// The request as a sentence model reads it.
    pub reading: Option<Reading<'a>>,
}

impl Step {
    /// Takes a text apart.
    pub(crate) fn new(index: &Index, text: &str) -> Self {
        let data = data(text);
        let is_datum = |word: &Word| data.spans.iter().any(|span| span.contains(&word.at));
        let mut step = Self::default();
        let mut meant: Vec<(Word, f32)> = Vec::new();
        let written = words(text);
        let mut known_run = None;
        for word in written.iter().take(WORDS_MAX) {
            let base = if is_datum(word) { LITERAL } else { 1.0 };
            let is_part = word.form == Form::Part && known_run == Some(word.at);
            let is_known = index.knows(word) || is_stop(&word.text);
            let fixes = if is_known || is_part { vec![] } else { fixes(index, &word.text) };
            if word.form == Form::Joined {
                if !is_known && fixes.is_empty() {
                    continue;
                }
                known_run = Some(word.at);
            }
            if fixes.is_empty() {
                let weights = if is_part { (base * PART, 0.0) } else { (base, base) };
                step.push(word.text.clone(), weights, false);
                meant.push((word.clone(), base));
            } else {
                step.push(word.text.clone(), (0.0, 0.0), false);
            }
            for (fix, share) in fixes {
                step.push(fix.clone(), (base * share, base * share), true);
                meant.push((Word { text: fix, form: Form::Whole, at: word.at }, base * share));
            }
        }
        step.add_neighbours(index, &meant);
        step.action = Action::of_request(spoken(&meant));
        step.kinds = data.kinds;
        step.products = products(text, &written, &data.spans);
        step.direction = direction(&meant);
        step.about = about(meant.iter().map(|(word, weight)| (word, *weight)));
        step.meant = meant;
        step
    }

    /// The direction without some words; the whole one if nothing is left.
    pub(crate) fn direction_without(&self, is_left_out: impl Fn(Term) -> bool) -> Option<Row> {
        let left = self.meant.iter().filter(|(word, _)| !is_left_out(term(&singular(&word.text))));
        let left: Vec<_> = left.cloned().collect();
        let tells = left.iter().any(|(word, _)| !is_stop(&word.text));
        (tells && left.len() < self.meant.len()).then(|| direction(&left))
    }

    fn push(&mut self, text: String, (weight, name_weight): (f32, f32), is_fixed: bool) {
        if is_stop(&text) {
            return;
        }
        each_gram(&text, |gram| self.grams.push((gram, weight.max(LITERAL))));
        let name = (term(&singular(&text)), name_weight);
        let asked = Asked { term: term(&stem(&text)), text, weight, name, is_fixed };
        match self.words.iter_mut().find(|known| known.term == asked.term) {
            Some(known) => known.weight = known.weight.max(asked.weight),
            None => self.words.push(asked),
        }
    }

    /// Pairs of words, and words that the index writes as one.
    fn add_neighbours(&mut self, index: &Index, meant: &[(Word, f32)]) {
        let telling = |word: &Word| word.form != Form::Joined && !is_stop(&word.text);
        let words: Vec<_> = meant.iter().filter(|(word, _)| telling(word)).collect();
        for two in words.windows(2) {
            let [(first, weight), (second, _)] = [two[0], two[1]];
            self.pairs.push(pair(term(&stem(&first.text)), term(&stem(&second.text))));
            let joined = format!("{}{}", first.text, second.text);
            if first.at != second.at && index.writes(&joined) {
                self.push(joined, (*weight, *weight), false);
            }
        }
        self.pairs.sort_unstable();
        self.pairs.dedup();
        self.grams.sort_unstable_by(|one, next| one.0.cmp(&next.0).then(next.1.total_cmp(&one.1)));
        self.grams.dedup_by_key(|(gram, _)| *gram);
    }
}

/// Known words that an unknown one may have been meant as, and what each counts: a word of a
/// server's name, of the index, or of the model, in this order.
fn fixes(index: &Index, written: &str) -> Vec<(String, f32)> {
    if written.chars().count() < LETTERS_MIN {
        return vec![];
    }
    let mut found = index.spelling().near(written, 2);
    let server = index.servers.spelling().near(written, 1);
    found.retain(|word| !server.contains(word));
    found.splice(0..0, server);
    if found.is_empty() {
        found = model().spelling.near(written, 1);
    }
    let shares = if found.len() > 1 { FIXED_OF_TWO } else { FIXED };
    found.into_iter().map(str::to_owned).zip(shares).collect()
}

/// The words of a request as they are spoken: without data, and without parts of words.
fn spoken(meant: &[(Word, f32)]) -> impl Iterator<Item = &str> {
    let spoken = meant.iter().filter(|(word, weight)| *weight > LITERAL && word.form != Form::Part);
    spoken.map(|(word, _)| word.text.as_str())
}

fn direction(meant: &[(Word, f32)]) -> Row {
    let model = model();
    let (words, weights): (Vec<Word>, Vec<f32>) = meant.iter().cloned().unzip();
    let weight_of = |word: &Word| {
        let at = words.iter().position(|known| std::ptr::eq(known, word));
        at.map_or(1.0, |at| weights[at])
    };
    let rows = rows(model, &words);
    let weighted = rows
        .into_iter()
        .map(|(row, word)| (row, model.weight(row) * stop_weight(&word.text) * weight_of(word)));
    Row::asked(&model.direction(weighted))
}
