//! Which documents hold which terms, and how much each counts there.
//!
//! A term is the hash of a word, a pair of words or a few letters; all lists stand in one piece of
//! memory. Two terms with one hash would share a list: that costs a wrong place in an order, and
//! nobody gains by looking for such a pair.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A term of the index.
pub(crate) type Term = u64;

/// The term of a word.
pub(crate) fn term(word: &str) -> Term {
    hash(&[word])
}

/// A hash of some texts that is the same in every run. Where one ends and the next begins counts.
pub(crate) fn hash(texts: &[&str]) -> u64 {
    let mut mix = Mix::default();
    for text in texts {
        mix.write(text.as_bytes());
        // No text holds this byte, so it ends one.
        mix.write(&[0xff]);
    }
    // The steps of MurmurHash3 that spread what FNV leaves alike in short texts.
    let mut hash = mix.finish();
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The term of two words that follow each other.
pub(crate) const fn pair(first: Term, second: Term) -> Term {
    (first.rotate_left(17) ^ second).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Hashes without a seed: maps are only asked, never walked, and their keys come from the same
/// texts in every run.
pub(crate) type Plain = BuildHasherDefault<Mix>;

/// FNV-1a for texts; for a term, which is a hash already, the term itself.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.0 ^= self.0 >> 29;
    }

    fn write_u64(&mut self, term: u64) {
        self.0 = term;
    }
}

/// One document in the list of a term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Posting {
    pub(crate) doc: u32,
    pub(crate) value: f32,
}

/// All lists.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    spans: HashMap<Term, (u32, u32), Plain>,
    lists: Vec<Posting>,
}

impl Postings {
    /// Sorts entries of (term, document, value) into lists. `shape` makes the final value of an
    /// entry from its document, its value and the length of its list.
    pub(crate) fn new(
        mut entries: Vec<(Term, u32, f32)>,
        shape: impl Fn(u32, f32, usize) -> f32,
    ) -> Self {
        entries.sort_unstable_by_key(|(term, doc, _)| (*term, *doc));
        let mut lists = Vec::with_capacity(entries.len());
        let mut spans = HashMap::default();
        for list in entries.chunk_by(|one, next| one.0 == next.0) {
            let start = lists.len();
            let docs = list.iter().map(|(_, doc, value)| (*doc, *value));
            lists.extend(
                docs.map(|(doc, value)| Posting { doc, value: shape(doc, value, list.len()) }),
            );
            spans.insert(list[0].0, (index(start), index(list.len())));
        }
        spans.shrink_to_fit();
        Self { spans, lists }
    }

    /// The list of a term; empty if no document has it.
    pub(crate) fn list(&self, term: Term) -> &[Posting] {
        let Some((start, length)) = self.spans.get(&term) else { return &[] };
        &self.lists[*start as usize..(*start + *length) as usize]
    }

    /// Calls for each document of each list, to change its value.
    pub(crate) fn each(&mut self, mut each: impl FnMut(u32, &mut f32)) {
        self.lists.iter_mut().for_each(|entry| each(entry.doc, &mut entry.value));
    }

    /// Brings the values of each of so many documents to length one.
    pub(crate) fn normalise(&mut self, docs: usize) {
        let mut squares = vec![0.0_f32; docs];
        self.each(|doc, value| squares[doc as usize] += *value * *value);
        self.each(|doc, value| *value /= squares[doc as usize].sqrt().max(f32::EPSILON));
    }

    /// Bytes held, about.
    pub(crate) fn bytes(&self) -> usize {
        self.lists.len() * size_of::<Posting>() + self.spans.capacity() * 17
    }
}

/// Numbers of documents and entries: far below the bound, by what a catalogue may hold.
pub(crate) fn index(number: usize) -> u32 {
    u32::try_from(number).expect("an index holds less than four thousand million entries")
}

/// How rare a term is: what finding it in a document says.
pub(crate) fn rarity(docs: usize, holding: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate over counts")]
    let (docs, holding) = (docs as f32, holding as f32);
    (1.0 + (docs - holding + 0.5) / (holding + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_the_documents_of_its_term_in_order() {
        let entries = vec![(7, 2, 1.0), (9, 0, 5.0), (7, 1, 3.0)];
        let postings = Postings::new(entries, |_, value, length| value * length as f32);
        let list: Vec<_> = postings.list(7).iter().map(|entry| (entry.doc, entry.value)).collect();
        assert_eq!(list, [(1, 6.0), (2, 2.0)]);
        assert!(postings.list(8).is_empty());
    }

    #[test]
    fn where_a_text_ends_counts_in_its_hash() {
        assert_ne!(hash(&["a", "bc"]), hash(&["ab", "c"]));
        assert_ne!(hash(&["a"]), hash(&["a", ""]));
        assert_eq!(hash(&["github", "search"]), hash(&["github", "search"]));
    }

    #[test]
    fn order_counts_in_a_pair_and_rare_terms_say_more() {
        assert_ne!(pair(term("a"), term("b")), pair(term("b"), term("a")));
        assert!(rarity(100, 1) > rarity(100, 50) && rarity(1, 1) > 0.0);
    }
}
