//! What is worked out of one document by itself, once per content.
//!
//! Everything that depends on other documents (how rare a word is, how long texts are) is left to
//! the index, so that a changed tool costs the analysis of that tool and no other.

use crate::{
    action::{Action, verb_of},
    concepts::{About, about},
    document::{Document, cut},
    grams::each_gram,
    kinds::{self, Kinds},
    lexicon::is_stop,
    matrix::Row,
    model::{Model, model},
    postings::{Term, pair, term},
    stem::stem,
    words::{Form, Word, words},
};

/// Fields whose words are counted.
pub(crate) const FIELDS: usize = 3;
/// Bytes of a description that give pairs, runs of letters and the direction: what a tool is
/// stands at the beginning.
const HEAD: usize = 600;

/// Bytes of a description that say what a tool is about.
const ABOUT: usize = 300;
/// Bytes of a description's first sentence, which counts twice in the direction.
const SENTENCE: usize = 150;
/// How much the whole head counts in the direction against the first sentence: by `fit`, as parts
/// of their own.
const WHOLE: f32 = 0.56;

/// One document, taken apart.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) hash: u64,
    /// By field (name, description, parameters): terms with counts, sorted, and their sum.
    pub(crate) fields: [Vec<(Term, f32)>; FIELDS],
    pub(crate) lengths: [f32; FIELDS],
    pub(crate) pairs: Vec<Term>,
    pub(crate) grams: Vec<(Term, f32)>,
    pub(crate) action: Action,
    /// The words of the name that are no verbs: what the tool acts on.
    pub(crate) objects: Vec<Term>,
    /// Kinds of values that it takes.
    pub(crate) kinds: Kinds,
    pub(crate) direction: Row,
    /// What it is about.
    pub(crate) about: About,
    /// Words as they are written, for corrections.
    pub(crate) surfaces: Vec<Box<str>>,
}

impl Analysis {
    pub(crate) fn new(document: &Document) -> Self {
        let server = words(&document.server);
        let name = own(words(&document.name), &server);
        let description = own(words(&document.description), &server);
        let head = own(words(cut(&document.description, HEAD)), &server);
        let parameters = words(&document.parameters);
        let counted = [&name, &description, &parameters].map(|words| counts(words));
        let lengths = counted.each_ref().map(|terms| terms.iter().map(|(_, count)| count).sum());
        let mut pairs: Vec<Term> = pairs(&name).chain(pairs(&head)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut surfaces: Vec<Box<str>> = [&name, &head, &parameters]
            .into_iter()
            .flatten()
            .chain(&server)
            .filter(|word| word.text.chars().all(char::is_alphabetic) && word.text.len() > 3)
            .map(|word| word.text.as_str().into())
            .collect();
        surfaces.sort_unstable();
        surfaces.dedup();
        Self {
            hash: document.hash(),
            lengths,
            pairs,
            grams: grams(&name, &head),
            action: Action::of_tool(&name, &head, document.effect),
            objects: objects(&name),
            kinds: kinds::of_tool(&[&name, &words(&document.parameter_names)]),
            direction: direction(model(), &name, &head, sentence(&document.description)),
            about: about_tool(document),
            surfaces,
            fields: counted,
        }
    }
}

impl Analysis {
    /// Bytes held, about.
    pub(crate) fn bytes(&self) -> usize {
        let fields: usize = self.fields.iter().map(Vec::len).sum();
        let words: usize = self.surfaces.iter().map(|word| word.len() + 16).sum();
        (fields + self.grams.len()) * 16
            + (self.objects.len() + self.pairs.len()) * 8
            + self.about.len() * 16
            + words
            + 256
    }
}

/// The words of a tool without those of its server's name, which the server's score counts; all of
/// them if nothing else is left.
fn own(words: Vec<Word>, server: &[Word]) -> Vec<Word> {
    let is_own = |word: &Word| server.iter().all(|other| other.text != word.text);
    if words.iter().any(|word| is_own(word) && word.form != Form::Joined && !is_stop(&word.text)) {
        words.into_iter().filter(is_own).collect()
    } else {
        words
    }
}

/// Terms of words and how often each occurs; words that say nothing are left out.
fn counts(words: &[Word]) -> Vec<(Term, f32)> {
    let telling = words.iter().filter(|word| !is_stop(&word.text));
    let mut terms: Vec<Term> = telling.map(|word| term(&stem(&word.text))).collect();
    terms.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "counts of words in a bounded text")]
    let count = |same: &[Term]| (same[0], same.len() as f32);
    terms.chunk_by(|one, next| one == next).map(count).collect()
}

/// The terms of a name, each once; a joined word stands for itself only if it has no parts.
fn distinct(words: &[Word]) -> Vec<Term> {
    let telling = words.iter().filter(|word| word.form != Form::Joined && !is_stop(&word.text));
    let mut terms: Vec<Term> = telling.map(|word| term(&stem(&word.text))).collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// The terms of a name that are no verbs. That it is a tool says nothing of what it is for.
fn objects(name: &[Word]) -> Vec<Term> {
    let verb = verb_of(name);
    let is_left_out =
        |word: &&Word| word.text == "tool" || verb.is_some_and(|verb| verb.text == word.text);
    let nouns: Vec<Word> = name.iter().filter(|word| !is_left_out(word)).cloned().collect();
    distinct(&nouns)
}

/// Words that follow each other, with those left out that say nothing.
fn pairs(words: &[Word]) -> impl Iterator<Item = Term> {
    let telling = words.iter().filter(|word| word.form != Form::Joined && !is_stop(&word.text));
    let terms: Vec<Term> = telling.map(|word| term(&stem(&word.text))).collect();
    (1..terms.len()).map(move |at| pair(terms[at - 1], terms[at]))
}

/// Runs of letters and their weight; those of the name count twice.
fn grams(name: &[Word], description: &[Word]) -> Vec<(Term, f32)> {
    let mut found = Vec::new();
    for (words, weight) in [(name, 2.0), (description, 1.0)] {
        for word in words.iter().filter(|word| word.form != Form::Part && !is_stop(&word.text)) {
            each_gram(&word.text, |gram| found.push((gram, weight)));
        }
    }
    found.sort_unstable_by_key(|(gram, _)| *gram);
    let sum =
        |same: &[(Term, f32)]| (same[0].0, same.iter().map(|(_, weight)| weight).sum::<f32>());
    let summed = found.chunk_by(|one, next| one.0 == next.0).map(sum);
    // The second time a run occurs says less than the first.
    summed.map(|(gram, weight)| (gram, weight.sqrt())).collect()
}

/// Where name and description point to together, with the first sentence counted once more. The
/// two are added and not brought to length one again: a likeness to the sum is the weighted sum of
/// the likenesses.
fn direction(model: &Model, name: &[Word], head: &[Word], sentence: &str) -> Row {
    let words = words(sentence);
    let [mut sum, first] = [head, words.as_slice()].map(|words| {
        let rows = rows(model, name).into_iter().chain(rows(model, words));
        let weighted = rows.map(|(row, word)| (row, model.weight(row) * stop_weight(&word.text)));
        model.direction(weighted)
    });
    sum.iter_mut().zip(first).for_each(|(sum, first)| *sum = *sum * WHOLE + first * (1.0 - WHOLE));
    Row::kept(&sum)
}

/// The first sentence of a description, within its bound.
fn sentence(description: &str) -> &str {
    let end = description.find(['.', '\n']).unwrap_or(description.len());
    cut(&description[..end], SENTENCE)
}

/// What a tool is about: words of its name count twice.
fn about_tool(document: &Document) -> About {
    let texts = [(words(&document.name), 2.0), (words(cut(&document.description, ABOUT)), 1.0)];
    about(texts.iter().flat_map(|(words, weight)| words.iter().map(|word| (word, *weight))))
}

/// How much a word counts for a direction beside its rarity.
pub(crate) fn stop_weight(word: &str) -> f32 {
    if is_stop(word) { 0.15 } else { 1.0 }
}

/// The rows of words: of a run as a whole if the model knows it, else of its parts.
pub(crate) fn rows<'a>(model: &Model, words: &'a [Word]) -> Vec<(u32, &'a Word)> {
    let mut known_run = None;
    let mut found = Vec::with_capacity(words.len());
    for word in words {
        if word.form == Form::Part && known_run == Some(word.at) {
            continue;
        }
        if let Some(row) = model.row(&word.text) {
            if word.form == Form::Joined {
                known_run = Some(word.at);
            }
            found.push((row, word));
        }
    }
    found
}
