//! A search: every part of every document, one sum, the best few.
//!
//! Rules kept here:
//! - Each document gets each part; there is no first stage that could lose one. At ten thousand
//!   tools this is still below a millisecond.
//! - Of equal sums the name that sorts first wins.
//! - Where a request names a server, that server's tools are compared with the rest of it.
//!
//! What the parts are worth is in `parts`, whether the best is good enough in `judge`.

use std::sync::Arc;

use crate::{
    action::Action,
    concepts::About,
    document::cut,
    index::Index,
    judge::{FAINT, GOOD, MISSING, score, threshold},
    kinds,
    parts::Parts,
    postings::{Posting, Postings, Term, rarity, term},
    products::whole,
    query::{QUERY_MAX, Query},
    servers::Fit,
    stem::stem,
    step::Step,
};

/// How much of a server's name a request must say to mean that server.
const NAMED: f32 = 0.3;
/// Servers that a request can mean at once.
const SERVERS_MAX: usize = 8;
/// What is left at least of a request without a server's name.
const REST_MIN: f32 = 0.3;

/// How far below the best sum a tool is still worth showing.
const RELEVANT: f32 = 6.0;

/// How far below the first a tool may be that goes before it by its action alone.
const CLOSE: f32 = 2.0;

/// Words of a request that wants one thing done; in a longer one there are several steps as a
/// rule, and which verb is meant for which tool is not known.
const STEP_WORDS: usize = 20;

/// How many of the first are looked at for one that fits the action better.
const RIVALS: usize = 8;

/// How far above the next the best sum is to need no second opinion. Of the labelled requests a
/// tenth to nearly half are, and asking a sentence model for them too finds no more tools.
const CLEAR: f32 = 3.0;

/// How far it is above what a good match needs, for the same. Requests that no tool fulfils are
/// below this with few exceptions, and a sentence model tells them from others better.
const SURE: f32 = 3.0;

/// How sure the meaning of a request of hardly any word is, and from how many words on it is
/// wholly so: the direction of two words says little more than the words themselves.
const SURE_LEAST: f32 = 0.2;
const SURE_WORDS: f32 = 10.0;

/// How far likenesses by the model spread at least: those of a few like tools say too little.
const WIDTH_MIN: f32 = 0.1;

/// Vectors whose likenesses spread less tell no tool from another: what is left is rounding.
const ALIKE: f32 = 1e-4;

/// One tool found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The document's number.
    pub doc: usize,
    /// From 0 to 1, to be compared between requests: one half is where a match begins to be good.
    pub score: f32,
    /// What speaks for it.
    pub parts: Parts,
    /// The sum of its parts that would have made it a good match.
    pub needed: f32,
}

impl Hit {
    /// How far its sum is above what a good match needs; below zero if it is none.
    #[must_use]
    pub fn above(&self) -> f32 {
        self.parts.sum() - self.needed
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The best first; none if nothing fits at all.
    pub hits: Vec<Hit>,
    /// Whether the first hit is likely to be what was looked for.
    pub has_good_match: bool,
    /// How far the best sum is above the next.
    pub margin: f32,
}

impl Answer {
    /// Whether a sentence model would hardly find another tool first, nor call the match a poor
    /// one: it need not be asked then.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.margin >= CLEAR && self.hits.first().is_some_and(|best| best.above() >= SURE)
    }
}

/// Which servers a search may mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meant {
    Any,
    /// The one that was asked for, and it is there.
    ThatServer,
}

impl Index {
    /// Searches what is visible, for at most `limit` tools. Where the query names a server, that
    /// is looked at first, and the others only if it has no match that is about as good.
    #[must_use]
    pub fn search(
        &self,
        query: &Query<'_>,
        visible: &dyn Fn(usize) -> bool,
        limit: usize,
    ) -> Answer {
        let wanted = self.servers.called(query.server);
        if !wanted.is_empty() {
            let is_within = |doc: usize| visible(doc) && wanted.contains(&self.servers.of(doc));
            let alone = Query { server: "", ..*query };
            let found = self.search_among(&alone, Meant::ThatServer, &is_within, limit);
            let others = self.search_among(&alone, Meant::ThatServer, visible, 1);
            // What speaks for a server does not count where the request says which one is meant.
            let best = |answer: &Answer| answer.hits.first().map(|hit| hit.parts.own_sum());
            let is_enough = best(&found) >= best(&others).map(|sum| sum - RELEVANT);
            if found.has_good_match && is_enough {
                return found;
            }
        }
        self.search_among(query, Meant::Any, visible, limit)
    }

    /// Names of visible servers that might have what is looked for, the likeliest first.
    #[must_use]
    pub fn likely_servers(
        &self,
        query: &Query<'_>,
        visible: &dyn Fn(usize) -> bool,
        count: usize,
    ) -> Vec<Arc<str>> {
        let step = Step::new(self, &text(query));
        let fit = self.servers.fit(&step, &self.asked_concepts(&step));
        let value = |server: usize| {
            let parts = Parts {
                server: fit.said[server],
                server_name: fit.covered[server],
                server_meaning: fit.meaning[server],
                server_tools: fit.tools[server],
                server_concepts: fit.concepts[server],
                ..Parts::default()
            };
            parts.sum()
        };
        let is_seen = |server: &usize| {
            self.servers.documents(*server).iter().any(|doc| visible(*doc as usize))
        };
        let mut order: Vec<usize> = (0..fit.said.len()).filter(is_seen).collect();
        order.sort_by(|one, other| value(*other).total_cmp(&value(*one)).then(one.cmp(other)));
        let first = |server: usize| self.servers.documents(server).first().copied();
        let names = order.into_iter().take(count).filter_map(first);
        names.map(|doc| Arc::clone(&self.documents[doc as usize].server)).collect()
    }

    /// Products that the request names, as it writes them, if no visible tool and no server of one
    /// has to do with any of them.
    #[must_use]
    pub fn missing_products(
        &self,
        query: &Query<'_>,
        visible: &dyn Fn(usize) -> bool,
    ) -> Vec<String> {
        self.missing(query, &Step::new(self, &text(query)), visible)
    }

    fn missing(
        &self,
        query: &Query<'_>,
        step: &Step,
        visible: &dyn Fn(usize) -> bool,
    ) -> Vec<String> {
        let server = whole(cut(query.server, QUERY_MAX));
        let named = || server.iter().chain(&step.products);
        let is_said = |name: &String| {
            let tools = self.words.list(term(&stem(name))).iter().map(|entry| entry.doc as usize);
            tools.chain(self.servers.saying(name)).any(visible)
        };
        if named().any(|product| product.names.iter().any(is_said)) {
            return Vec::new();
        }
        let mut said: Vec<String> = named().map(|product| product.said.clone()).collect();
        said.dedup_by_key(|said| said.to_lowercase());
        said
    }

    fn search_among(
        &self,
        query: &Query<'_>,
        meant: Meant,
        visible: &dyn Fn(usize) -> bool,
        limit: usize,
    ) -> Answer {
        let step = Step::new(self, &text(query));
        let parts = self.parts(query, &step);
        let sums: Vec<f32> = parts.iter().map(Parts::sum).collect();
        let mut order: Vec<usize> = (0..sums.len()).filter(|doc| visible(*doc)).collect();
        let compare = |one: &usize, other: &usize| {
            let by_name = || self.documents[*one].id.cmp(&self.documents[*other].id);
            sums[*other].total_cmp(&sums[*one]).then_with(by_name).then(one.cmp(other))
        };
        let looked_at = limit.max(RIVALS);
        if looked_at < order.len() {
            order.select_nth_unstable_by(looked_at, compare);
            order.truncate(looked_at);
        }
        order.sort_unstable_by(compare);
        let sum_at = |at: usize| order.get(at).map(|doc| sums[*doc]);
        let margin = sum_at(0).zip(sum_at(1)).map_or(f32::MAX, |(one, next)| one - next);
        if step.meant.len() <= STEP_WORDS {
            self.prefer_action(step.action, &sums, visible, &mut order);
        }
        order.truncate(limit);
        let is_read = parts.first().is_some_and(|part| part.is_read);
        let threshold = threshold(self.documents.len(), is_read);
        // Beside a server that is named, or among several steps, another name is data.
        let is_alone = meant == Meant::Any
            && order.first().is_some_and(|doc| parts[*doc].server_name < NAMED)
            && step.meant.len() <= STEP_WORDS;
        let is_missing = is_alone && !self.missing(query, &step, visible).is_empty();
        let needed = threshold + if is_missing { MISSING } else { 0.0 };
        let hit =
            |doc: usize| Hit { doc, score: score(sums[doc], needed), parts: parts[doc], needed };
        let mut hits: Vec<Hit> = order.into_iter().map(hit).collect();
        let first = hits.first().map_or(f32::MIN, |hit| sums[hit.doc]);
        hits.retain(|hit| sums[hit.doc] >= first - RELEVANT);
        match hits.first() {
            // That a product is missing makes no list empty: its name may have been data.
            Some(best) if score(first, threshold) >= FAINT && !step.words.is_empty() => {
                Answer { has_good_match: best.score >= GOOD, hits, margin }
            }
            _ => Answer::default(),
        }
    }

    /// Brings the tool to the front that does what is wanted, where the first one does something
    /// else to the same object of the same server.
    fn prefer_action(
        &self,
        wanted: Action,
        sums: &[f32],
        visible: &dyn Fn(usize) -> bool,
        order: &mut Vec<usize>,
    ) {
        let Some(&first) = order.first() else { return };
        if wanted.agreement(self.actions[first]) < 0.0
            && let Some(better) = self.agreeing(wanted, sums, visible, first)
        {
            order.retain(|doc| *doc != better);
            order.insert(0, better);
            return;
        }
        let rivals = order.iter().take(RIVALS).position(|rival| {
            self.servers.of(*rival) == self.servers.of(first)
                && self.is_preferred(wanted, sums, (*rival, first))
        });
        if let Some(at) = rivals {
            order[..=at].rotate_right(1);
        }
    }

    /// The best tool of the same server and for the same object that reads or writes as is wanted,
    /// however many are between: of those that do just what is wanted if there are any.
    fn agreeing(
        &self,
        wanted: Action,
        sums: &[f32],
        visible: &dyn Fn(usize) -> bool,
        other: usize,
    ) -> Option<usize> {
        let objects = &self.analyses[other].objects;
        let docs = self.servers.documents(self.servers.of(other)).iter().map(|doc| *doc as usize);
        let fitting = docs.filter(|doc| {
            !objects.is_empty()
                && self.analyses[*doc].objects == *objects
                && wanted.agreement(self.actions[*doc]) > 0.0
                && visible(*doc)
        });
        fitting.max_by(|one, next| {
            let shared = |doc: usize| wanted.shared(self.actions[doc]);
            let by_class = shared(*one).total_cmp(&shared(*next));
            let by_name = || self.documents[*next].id.cmp(&self.documents[*one].id);
            by_class.then(sums[*one].total_cmp(&sums[*next])).then_with(by_name)
        })
    }

    /// Whether one tool does what is wanted and the other does not, as far as can be told.
    fn is_preferred(&self, wanted: Action, sums: &[f32], (one, other): (usize, usize)) -> bool {
        let (own, others) = (self.actions[one], self.actions[other]);
        let does = wanted.shared(own) > 0.0 && wanted.shared(others) == 0.0;
        let is_opposite = wanted.agreement(others) < 0.0;
        let objects = [one, other].map(|doc| &self.analyses[doc].objects);
        let is_same = objects[0] == objects[1] && !objects[0].is_empty();
        let are_nameless = objects.iter().all(|objects| objects.is_empty());
        let has_common = are_nameless || objects[0].iter().any(|it| objects[1].contains(it));
        let is_close = sums[one] >= sums[other] - CLOSE;
        let is_fitting =
            if is_opposite { is_same || (is_close && has_common) } else { is_same && is_close };
        does && wanted.agreement(own) >= 0.0 && is_fitting
    }

    /// Every part of every document for a request, as the weights are fitted to it.
    #[must_use]
    pub fn all_parts(&self, query: &Query<'_>) -> Vec<Parts> {
        self.parts(query, &Step::new(self, &text(query)))
    }

    /// Every part of every document.
    fn parts(&self, query: &Query<'_>, step: &Step) -> Vec<Parts> {
        let mut parts = vec![Parts::default(); self.documents.len()];
        self.add_words(step, &mut parts);
        self.add_letters(step, &mut parts);
        let concepts = self.asked_concepts(step);
        for (thing, value) in &concepts {
            for entry in self.concepts.list(*thing) {
                parts[entry.doc as usize].concepts += entry.value * value;
            }
        }
        let fit = self.servers.fit(step, &concepts);
        let mut meaning = self.meaning.likeness(&step.direction);
        self.within_servers(step, &fit, &mut meaning, &mut parts);
        self.add_soft(step, &mut parts);
        let external = query.external.and_then(|it| it.likeness(self.documents.len()));
        if let Some(external) = external {
            stand_in(&mut meaning, &external);
        }
        let sureness = sureness(step);
        for (doc, part) in parts.iter_mut().enumerate() {
            let server = self.servers.of(doc);
            part.meaning = meaning[doc] * sureness;
            part.server = fit.said[server];
            part.server_name = fit.covered[server];
            part.server_meaning = fit.meaning[server];
            part.server_tools = fit.tools[server];
            part.server_concepts = fit.concepts[server];
            part.action = step.action.shared(self.actions[doc]) * part.server_name;
            part.effect = step.action.agreement(self.actions[doc]);
            part.kinds = kinds::likeness(step.kinds, self.kinds[doc], &self.kind_rarities);
        }
        if let Some(read) = query.reading.and_then(|it| it.fit(self)) {
            for (doc, part) in parts.iter_mut().enumerate() {
                let server = self.servers.of(doc);
                part.sentence = read.tools[doc];
                part.server_sentence = read.servers[server];
                part.server_sentences = read.means[server];
                part.is_read = true;
            }
        }
        parts
    }

    /// Where a request names a server, its tools are compared with the rest of the request.
    fn within_servers(&self, step: &Step, fit: &Fit, meaning: &mut [f32], parts: &mut [Parts]) {
        let named = |server: &usize| fit.covered[*server] >= NAMED;
        for server in (0..fit.covered.len()).filter(named).take(SERVERS_MAX) {
            let is_said = |term| self.servers.is_in_name(server, term);
            let (mut mass, mut said) = (f32::EPSILON, 0.0);
            for word in &step.words {
                let value = word.weight * self.rarity(&self.words, word.term);
                mass += value;
                said += if is_said(word.name.0) { value } else { 0.0 };
            }
            let factor = mass / (mass - said).max(REST_MIN * mass);
            let rest = step.direction_without(is_said);
            for doc in self.servers.documents(server).iter().map(|doc| *doc as usize) {
                parts[doc].words *= factor;
                if let Some(rest) = &rest {
                    meaning[doc] = self.meaning.likeness_of(doc, rest);
                }
            }
        }
    }

    fn add_words(&self, step: &Step, parts: &mut [Parts]) {
        let masses =
            step.words.iter().map(|word| word.weight * self.rarity(&self.words, word.term));
        let mass = masses.sum::<f32>().max(f32::EPSILON);
        for word in &step.words {
            for entry in self.words.list(word.term) {
                parts[entry.doc as usize].words += entry.value * word.weight / mass;
            }
        }
        let masses = step.pairs.iter().map(|pair| self.rarity(&self.pairs, *pair));
        let mass = masses.sum::<f32>().max(f32::EPSILON);
        for entry in step.pairs.iter().flat_map(|pair| self.pairs.list(*pair)) {
            parts[entry.doc as usize].pairs += entry.value / mass;
        }
    }

    /// What a request is about, by how rare each thing is, brought to length one.
    fn asked_concepts(&self, step: &Step) -> About {
        let value =
            |(thing, weight): &(Term, f32)| (*thing, weight * self.rarity(&self.concepts, *thing));
        let mut asked: About = step.about.iter().map(value).collect();
        let length = asked.iter().map(|(_, value)| value * value).sum::<f32>().sqrt();
        asked.iter_mut().for_each(|(_, value)| *value /= length.max(f32::EPSILON));
        asked
    }

    fn add_letters(&self, step: &Step, parts: &mut [Parts]) {
        let docs = self.documents.len();
        let lists: Vec<(&[Posting], f32)> = step
            .grams
            .iter()
            .map(|(gram, weight)| (self.letters.list(*gram), *weight))
            .map(|(list, weight)| (list, rarity(docs, list.len()) * weight))
            .collect();
        let squares = lists.iter().map(|(_, value)| value * value).sum::<f32>();
        let length = squares.sqrt().max(f32::EPSILON);
        for (list, value) in lists {
            for entry in list {
                parts[entry.doc as usize].letters += entry.value * value / length;
            }
        }
    }

    fn rarity(&self, lists: &Postings, term: Term) -> f32 {
        rarity(self.documents.len(), lists.list(term).len())
    }
}

/// What is looked for, as one text within its bounds.
pub(crate) fn text(query: &Query<'_>) -> String {
    [query.server, query.description, query.keywords].map(|it| cut(it, QUERY_MAX)).join("\n")
}

/// How much the meaning of a request counts, by how many words it has.
fn sureness(step: &Step) -> f32 {
    let words: f32 = step.words.iter().map(|word| word.weight).sum();
    SURE_LEAST + (1.0 - SURE_LEAST) * (words / SURE_WORDS).min(1.0)
}

/// Puts external likenesses in place of the model's, brought to the same mean and spread: models
/// differ in both, and the weights are made for one.
fn stand_in(meaning: &mut [f32], external: &[Option<f32>]) {
    let own = spread(meaning.iter().copied());
    let width = own.1.max(WIDTH_MIN);
    let other = spread(external.iter().flatten().copied());
    if other.1 < ALIKE {
        return;
    }
    for (meaning, external) in meaning.iter_mut().zip(external) {
        if let Some(external) = external {
            *meaning = own.0 + (external - other.0) / other.1 * width;
        }
    }
}

/// Mean and standard deviation.
fn spread(numbers: impl Iterator<Item = f32> + Clone) -> (f32, f32) {
    #[expect(clippy::cast_precision_loss, reason = "a count of tools")]
    let count = numbers.clone().count().max(1) as f32;
    let mean = numbers.clone().sum::<f32>() / count;
    let variance = numbers.map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
    (mean, variance.sqrt())
}
