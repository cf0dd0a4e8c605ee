//! How well each server fits a request, apart from its tools.
//!
//! People name the product they mean: "my Airtable table". A server's name is therefore a score of
//! its own: how much of the name a request says, with words counted by how few servers have them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{
    analysis::{Analysis, rows, stop_weight},
    concepts::{About, about, merged},
    document::{Document, cut},
    lexicon::is_stop,
    matrix::{Matrix, Row},
    model::{DIMENSIONS, model, normalise},
    postings::{Plain, Postings, Term, index, rarity, term},
    spelling::Spelling,
    stem::{singular, stem},
    step::Step,
    words::{Form, Word, words},
};

/// Bytes of what a server says about itself that give its direction.
const HEAD: usize = 400;
/// Bytes of what a server says about itself that say what it is about.
const ABOUT: usize = 500;
/// Bytes of what a server says about itself whose words it is known to write.
const TOLD: usize = 4096;
/// What a word of a server's name counts for what the server is about.
const NAME: f32 = 3.0;
/// What words after ` - ` count in a server's name: they say whose it is, not what.
const OWNER: f32 = 0.3;

/// What all parts of a run count together, against the run: `mongo db` for `MongoDB`.
const PARTS: f32 = 0.8;

/// Weights of the word model between which a word turns from an everyday one into a telling one.
const USUAL: (f32, f32) = (0.7, 0.99);
/// What an everyday word of a server's name counts still.
const USUAL_LEAST: f32 = 0.2;

/// All servers of an index.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// By document.
    of: Vec<u32>,
    names: Postings,
    /// How sure a word means the servers that have it in their names.
    distinct: HashMap<Term, f32, Plain>,
    /// Finds words of names in spite of two slips.
    spelling: Spelling<Box<str>>,
    count: usize,
    /// Names without case and marks, by server.
    plain: Vec<String>,
    /// By server.
    documents: Vec<Vec<u32>>,
    directions: Matrix,
    /// Where the tools of each point to together.
    means: Matrix,
    /// By thing: the servers that are about it.
    concepts: Postings,
    /// By word, as a term of tools: the servers that say it about themselves.
    told: Postings,
}

/// What a request makes of each server.
pub(crate) struct Fit {
    /// How much of the server's name it says.
    pub(crate) covered: Vec<f32>,
    /// How rare the words are that it says of the name.
    pub(crate) said: Vec<f32>,
    /// How alike the meanings are.
    pub(crate) meaning: Vec<f32>,
    /// How alike the meaning of its tools together is.
    pub(crate) tools: Vec<f32>,
    /// How far it is about the same things.
    pub(crate) concepts: Vec<f32>,
}

impl Servers {
    pub(crate) fn new(
        documents: &[Document],
        tools: &Postings,
        analyses: &[Arc<Analysis>],
    ) -> Self {
        let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
        let mut of = Vec::with_capacity(documents.len());
        let mut named: Vec<(u32, Named)> = Vec::new();
        let mut directions = Matrix::new(DIMENSIONS);
        let mut plain_names = Vec::new();
        let mut by_server: Vec<Vec<u32>> = Vec::new();
        let mut told: Vec<(Term, u32, f32)> = Vec::new();
        for document in documents {
            let next = index(ids.len());
            let id = *ids.entry(&document.server).or_insert(next);
            of.push(id);
            if id == next {
                by_server.push(Vec::new());
                plain_names.push(plain(&document.server));
                named.extend(name(&document.server).into_iter().map(|word| (id, word)));
                directions.push(&direction(document));
                let texts = words(cut(&document.server_text, TOLD));
                told.extend(texts.iter().map(|word| (term(&stem(&word.text)), id, 1.0)));
            }
            by_server[id as usize].push(index(of.len() - 1));
        }
        told.sort_unstable_by_key(|(term, server, _)| (*term, *server));
        told.dedup_by_key(|(term, server, _)| (*term, *server));
        let count = ids.len();
        let mut means = Matrix::new(DIMENSIONS);
        by_server.iter().for_each(|docs| means.push(&mean(docs, analyses)));
        let entries = named.iter().map(|(id, word)| (word.term, *id, word.weight)).collect();
        let mut names =
            Postings::new(entries, |_, weight, holding| weight * rarity(count, holding));
        let mut whole = vec![0.0; count];
        for (id, word) in named.iter().filter(|(_, word)| !word.is_part) {
            whole[*id as usize] += word.weight * rarity(count, names.list(word.term).len());
        }
        names.each(|server, value| *value /= whole[server as usize].max(f32::EPSILON));
        let distinct = distinct(&named, &names, tools, &of, &by_server);
        let concepts = concepts(documents, &by_server, analyses);
        let spelling = Spelling::new(surfaces(ids.keys()), 2);
        Self {
            of,
            names,
            spelling,
            distinct,
            count,
            plain: plain_names,
            directions,
            means,
            concepts,
            told: Postings::new(told, |_, value, _| value),
            documents: by_server,
        }
    }

    /// The server of a document.
    pub(crate) fn of(&self, doc: usize) -> usize {
        self.of[doc] as usize
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The documents of a server.
    pub(crate) fn documents(&self, server: usize) -> &[u32] {
        &self.documents[server]
    }

    /// The servers of a name: those that are called so, without regard to case and marks, else
    /// those whose name has all words of it.
    pub(crate) fn called(&self, name: &str) -> Vec<usize> {
        let plain = plain(name);
        let exact = self.plain.iter().enumerate().filter(|(_, known)| **known == plain);
        let exact: Vec<usize> = exact.map(|(server, _)| server).collect();
        if !exact.is_empty() || plain.is_empty() {
            return if plain.is_empty() { Vec::new() } else { exact };
        }
        let words = words(name);
        let words: Vec<&Word> = words.iter().filter(|word| word.form != Form::Part).collect();
        let has_all = |server: &usize| {
            words.iter().all(|word| self.is_in_name(*server, term(&singular(&word.text))))
        };
        (0..self.count).filter(has_all).collect()
    }

    /// Whether a server's name has this word.
    pub(crate) fn is_in_name(&self, server: usize, term: Term) -> bool {
        self.names.list(term).iter().any(|entry| entry.doc as usize == server)
    }

    /// Whether some server's name has this word.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        !self.names.list(term(&singular(word))).is_empty()
    }

    /// The documents of all servers that have this word in their names or say it about themselves.
    pub(crate) fn saying(&self, word: &str) -> impl Iterator<Item = usize> {
        let named = self.names.list(term(&singular(word)));
        let told = self.told.list(term(&stem(word)));
        let servers = named.iter().chain(told).map(|entry| entry.doc as usize);
        servers.flat_map(|server| self.documents(server)).map(|doc| *doc as usize)
    }

    /// Words of servers' names that a written one may have been meant as.
    pub(crate) const fn spelling(&self) -> &Spelling<Box<str>> {
        &self.spelling
    }

    /// How each fits.
    pub(crate) fn fit(&self, step: &Step, asked: &About) -> Fit {
        let mut concepts = vec![0.0_f32; self.count];
        for (thing, value) in asked {
            for entry in self.concepts.list(*thing) {
                concepts[entry.doc as usize] += entry.value * value;
            }
        }
        let mut covered = vec![0.0_f32; self.count];
        let mut said = vec![0.0_f32; self.count];
        for word in &step.words {
            let list = self.names.list(word.name.0);
            let sure = self.distinct.get(&word.name.0).copied().unwrap_or(1.0);
            let rare = rarity(self.count, list.len()) * sure;
            for entry in list {
                covered[entry.doc as usize] += entry.value * word.name.1 * sure;
                said[entry.doc as usize] += rare * word.name.1 * entry.value.min(0.5) * 2.0;
            }
        }
        let most = rarity(self.count, 1) * 2.0;
        said.iter_mut().for_each(|said| *said = (*said / most).min(1.0));
        covered.iter_mut().for_each(|covered| *covered = covered.min(1.0));
        Fit {
            covered,
            said,
            meaning: self.directions.likeness(&step.direction),
            tools: self.means.likeness(&step.direction),
            concepts,
        }
    }

    /// Bytes held, about.
    pub(crate) fn bytes(&self) -> usize {
        self.of.len() * 4
            + self.names.bytes()
            + self.directions.bytes()
            + self.concepts.bytes()
            + self.spelling.bytes()
            + self.told.bytes()
    }
}

/// A name without case and marks.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of servers' names that are long enough to be told from others.
fn surfaces<'a>(servers: impl Iterator<Item = &'a &'a str>) -> Vec<Box<str>> {
    let words = servers.flat_map(|server| words(server));
    let telling = words.filter(|word| word.text.len() > 3 && !is_stop(&word.text));
    let mut surfaces: Vec<Box<str>> = telling.map(|word| word.text.into()).collect();
    surfaces.sort_unstable();
    surfaces.dedup();
    surfaces
}

/// For each word of a server's name, which share of the tools that have it is of such servers:
/// nearly all for a product, few for a word like `search`.
fn distinct(
    words: &[(u32, Named)],
    names: &Postings,
    tools: &Postings,
    of: &[u32],
    documents: &[Vec<u32>],
) -> HashMap<Term, f32, Plain> {
    let share = |word: &Named| {
        let list = names.list(word.term);
        let named: usize = list.iter().map(|entry| documents[entry.doc as usize].len()).sum();
        let is_named = |doc: u32| list.iter().any(|entry| entry.doc == of[doc as usize]);
        let others = tools.list(word.stem).iter().filter(|entry| !is_named(entry.doc)).count();
        #[expect(clippy::cast_precision_loss, reason = "counts of tools")]
        let share = named as f32 / (named + others).max(1) as f32;
        share.sqrt() * unusual(&word.text)
    };
    words.iter().map(|(_, word)| (word.term, share(word))).collect()
}

/// How sure a word is a name at all: less for one that people say about anything, as `now`, `time`
/// and `house` are.
fn unusual(word: &str) -> f32 {
    let model = model();
    let weight = model.row(word).map_or(1.0, |row| model.weight(row));
    let (low, high) = USUAL;
    ((weight - low) / (high - low)).clamp(USUAL_LEAST, 1.0)
}

/// The terms of a server's name with their weights: a run counts once, as a whole or as its parts.
fn name(server: &str) -> Vec<Named> {
    let owner = server.find(" - ").unwrap_or(server.len());
    let words = words(server);
    let telling = words.iter().filter(|word| !is_stop(&word.text));
    let mut named: Vec<Named> = telling
        .map(|word| {
            let weight = if word.at > owner { OWNER } else { 1.0 };
            let parts = words.iter().filter(|part| part.form == Form::Part && part.at == word.at);
            #[expect(clippy::cast_precision_loss, reason = "a few parts")]
            let share = match word.form {
                Form::Part => PARTS / parts.count().max(1) as f32,
                Form::Whole | Form::Joined => 1.0,
            };
            Named {
                term: term(&singular(&word.text)),
                stem: term(&stem(&word.text)),
                text: word.text.clone(),
                weight: weight * share,
                is_part: word.form == Form::Part,
            }
        })
        .collect();
    named.sort_unstable_by(|one, next| {
        one.term.cmp(&next.term).then(next.weight.total_cmp(&one.weight))
    });
    named.dedup_by_key(|named| named.term);
    named
}

/// A word of a server's name.
struct Named {
    text: String,
    term: Term,
    /// The same word as a term of tools.
    stem: Term,
    weight: f32,
    is_part: bool,
}

/// What servers are about: by name, by what they say of themselves, and by their tools, with the
/// things of one server brought to length one. How rare a thing is is counted over tools.
fn concepts(
    documents: &[Document],
    by_server: &[Vec<u32>],
    analyses: &[Arc<Analysis>],
) -> Postings {
    let mut holding: HashMap<Term, usize, Plain> = HashMap::default();
    for (thing, _) in analyses.iter().flat_map(|analysis| &analysis.about) {
        *holding.entry(*thing).or_default() += 1;
    }
    let mut entries = Vec::new();
    for (server, docs) in by_server.iter().enumerate() {
        let Some(first) = docs.first().map(|doc| &documents[*doc as usize]) else { continue };
        let texts = [(words(&first.server), NAME), (words(cut(&first.server_text, ABOUT)), 1.0)];
        let own = texts.iter().flat_map(|(words, weight)| words.iter().map(|it| (it, *weight)));
        let mut things = about(own);
        for doc in docs {
            let tool = analyses[*doc as usize].about.iter();
            things.extend(tool.map(|(thing, weight)| (*thing, weight.sqrt())));
        }
        for (thing, weight) in merged(things) {
            let holding = holding.get(&thing).copied().unwrap_or_default();
            let rare = rarity(documents.len(), holding);
            entries.push((thing, index(server), weight.ln_1p() * rare));
        }
    }
    let mut concepts = Postings::new(entries, |_, value, _| value);
    concepts.normalise(by_server.len());
    concepts
}

/// Where the tools of a server point to together.
fn mean(docs: &[u32], analyses: &[Arc<Analysis>]) -> Row {
    let mut sum = vec![0.0; DIMENSIONS];
    for doc in docs {
        analyses[*doc as usize].direction.add_to(&mut sum);
    }
    normalise(&mut sum);
    Row::kept(&sum)
}

/// Where a server's name and its own words point to.
fn direction(document: &Document) -> Row {
    let model = model();
    let texts = [words(&document.server), words(cut(&document.server_text, HEAD))];
    let weighted = texts.iter().flat_map(|words| rows(model, words));
    let weighted = weighted.map(|(row, word)| (row, model.weight(row) * stop_weight(&word.text)));
    Row::kept(&model.direction(weighted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_words_are_hardly_names() {
        for everyday in ["now", "time", "house", "world", "think"] {
            assert!(unusual(everyday) < 0.3, "{everyday} {}", unusual(everyday));
        }
        for name in ["github", "airtable", "qqqzzz"] {
            assert!((unusual(name) - 1.0).abs() < f32::EPSILON, "{name} {}", unusual(name));
        }
    }

    #[test]
    fn a_name_said_by_chance_counts_less_than_one_that_is_meant() {
        let tools =
            ["ClickHouse", "Airtable"].map(|server| Document::plain(server, "list", "", []));
        let index = crate::Index::build(tools.to_vec());
        let said = |request: &str, server: usize| {
            let step = Step::new(&index, request);
            index.servers.fit(&step, &About::default()).covered[server]
        };
        assert!(said("how far is it from our house to the lake", 0) < 0.2);
        assert!(said("which tables are in ClickHouse", 0) > 0.9);
        assert!(said("put it into Airtable", 1) > 0.9);
    }
}
