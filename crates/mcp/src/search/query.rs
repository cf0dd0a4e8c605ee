//! A request, taken apart against an index.
//!
//! Rules kept here:
//! - A request is cut at [`QUERY_MAX`] bytes and [`WORDS_MAX`] words, so that its cost is bounded.
//! - Words that say nothing are left out, data count little, and a word that neither the index nor
//!   the model knows is joined by the known ones a single slip away.
//! - A request of several sentences or steps is also looked at step by step.

use std::sync::LazyLock;

use super::{
    analysis::{rows, stop_weight},
    grams::each_gram,
    index::Index,
    lexicon::{ASKED, Deeds, deeds, is_stop, stop_words},
    literal::literals,
    matrix::Row,
    model::model,
    postings::{Term, pair, term},
    spelling::{LETTERS_MIN, Spelling},
    stem::stem,
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
/// What a corrected word counts: the written one might be right.
const FIXED: f32 = 0.8;

/// What is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// The request in plain words.
    pub description: &'a str,
    /// Words that the tool should have; may be empty.
    pub keywords: &'a str,
    /// The request's vector by the model that made the index's external vectors.
    pub vector: Option<&'a [f32]>,
}

/// A word of a request that counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) term: Term,
    pub(super) weight: f32,
    /// Whether it was put in place of another.
    pub(super) is_fixed: bool,
}

/// A request or a step of one, taken apart.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) words: Vec<Asked>,
    pub(super) pairs: Vec<Term>,
    pub(super) grams: Vec<(Term, f32)>,
    pub(super) deeds: Deeds,
    pub(super) direction: Row,
}

impl Step {
    /// Takes a text apart.
    pub(super) fn new(index: &Index, text: &str) -> Self {
        let data = literals(text);
        let is_datum = |word: &Word| data.iter().any(|span| span.contains(&word.at));
        let mut step = Self::default();
        let mut meant: Vec<(Word, f32)> = Vec::new();
        let written = words(text);
        let mut known_run = None;
        for word in written.iter().take(WORDS_MAX) {
            let base = if is_datum(word) { LITERAL } else { 1.0 };
            let is_known = index.knows(word) || is_stop(&word.text);
            match word.form {
                Form::Joined if !is_known => continue,
                Form::Joined => known_run = Some(word.at),
                Form::Whole | Form::Part => {}
            }
            let part = word.form == Form::Part && known_run == Some(word.at);
            let weight = if part { base * PART } else { base };
            if is_known || word.text.chars().count() < LETTERS_MIN {
                step.push(word.text.clone(), weight, false);
                meant.push((word.clone(), base));
            } else {
                let fixes = fixes(index, &word.text);
                step.push(word.text.clone(), if fixes.is_empty() { weight } else { 0.0 }, false);
                #[expect(clippy::cast_precision_loss, reason = "two at most")]
                let share = FIXED / fixes.len().max(1) as f32;
                for fix in fixes {
                    step.push(fix.clone(), weight * share, true);
                    meant.push((Word { text: fix, ..word.clone() }, base * share));
                }
            }
        }
        step.add_neighbours(index, &meant);
        step.deeds = asked_deeds(&meant);
        step.direction = direction(&meant);
        step
    }

    fn push(&mut self, text: String, weight: f32, is_fixed: bool) {
        if is_stop(&text) {
            return;
        }
        each_gram(&text, |gram| self.grams.push((gram, weight.max(LITERAL))));
        let asked = Asked { term: term(&stem(&text)), text, weight, is_fixed };
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
            if first.at != second.at && index.has_word(&joined) {
                self.push(joined, *weight, false);
            }
        }
        self.pairs.sort_unstable();
        self.pairs.dedup();
        self.grams.sort_unstable_by(|one, next| one.0.cmp(&next.0).then(next.1.total_cmp(&one.1)));
        self.grams.dedup_by_key(|(gram, _)| *gram);
    }
}

/// The steps of a request: the whole first, then, if there are several, each.
pub(super) fn steps(index: &Index, text: &str) -> Vec<Step> {
    let mut steps = vec![Step::new(index, text)];
    let clauses = clauses(text);
    if clauses.len() > 1 {
        steps.extend(clauses.into_iter().map(|clause| Step::new(index, clause)));
        steps.retain(|step| !step.words.is_empty());
    }
    steps
}

/// Steps of a request that are looked at by themselves.
const CLAUSES_MAX: usize = 4;
/// Words that a step needs to be one.
const CLAUSE_WORDS_MIN: usize = 3;

/// Sentences, and parts of sentences that begin with a verb after a joining word.
fn clauses(text: &str) -> Vec<&str> {
    let data = literals(text);
    let mut cuts = vec![0];
    let mut before: Option<Word> = None;
    for word in words(text).into_iter().filter(|word| word.form != Form::Part) {
        if let Some(before) = &before
            && !data.iter().any(|span| span.contains(&before.at))
        {
            let gap = &text[(before.at + before.text.len()).min(word.at)..word.at];
            let is_sentence =
                gap.contains(['.', ';', '!', '?', '\n']) && gap.contains(char::is_whitespace);
            let is_next = matches!(before.text.as_str(), "and" | "then" | "also" | "afterwards")
                && deeds(&word.text) != 0;
            if is_sentence || is_next {
                cuts.push(word.at);
            }
        }
        before = Some(word);
    }
    cuts.push(text.len());
    let pieces = cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]);
    pieces.filter(|piece| words(piece).len() >= CLAUSE_WORDS_MIN).take(CLAUSES_MAX).collect()
}

/// Known words one slip away: none if the written one was meant to say nothing.
fn fixes(index: &Index, written: &str) -> Vec<String> {
    static STOPS: LazyLock<Spelling<&'static str>> =
        LazyLock::new(|| Spelling::new(stop_words().to_vec()));
    let stop = STOPS.near(written, 1);
    let mut found = index.spelling().near(written, 2);
    if found.is_empty() {
        found = stop;
    }
    if found.is_empty() {
        found = model().spelling.near(written, 2);
    }
    found.into_iter().map(str::to_owned).collect()
}

/// What a request wants done: its first verb, and what a question wants.
fn asked_deeds(meant: &[(Word, f32)]) -> Deeds {
    let mut verbs = meant.iter().filter(|(_, weight)| *weight > LITERAL).map(|(word, _)| word);
    let first = verbs.clone().next();
    let is_question = first.is_some_and(|word| {
        matches!(
            word.text.as_str(),
            "what"
                | "which"
                | "who"
                | "whose"
                | "where"
                | "when"
                | "how"
                | "is"
                | "are"
                | "do"
                | "does"
                | "did"
                | "has"
                | "have"
                | "was"
                | "were"
        )
    });
    let verb = verbs.find_map(|word| Some(deeds(&word.text)).filter(|found| *found != 0));
    if is_question { ASKED } else { verb.unwrap_or(0) }
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
    Row::new(&model.direction(weighted))
}
