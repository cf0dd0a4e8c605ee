//! Known words that differ from a written one by a slip or two: a letter missing, added, changed,
//! or two swapped.
//!
//! Two words one slip apart share a form with at most one letter taken out, so each known word is
//! kept under all such forms, and a written word is looked up under its own; with two slips, two
//! letters. What is found is compared letter by letter before it counts.

use crate::postings::{index, term};

/// Letters of a word that is corrected: in shorter ones a slip makes another word.
pub(crate) const LETTERS_MIN: usize = 3;
/// Letters of a word in which two slips are looked for.
const LETTERS_TWO: usize = 6;
/// Letters of a word that is worth keeping under its forms.
const LETTERS_MAX: usize = 24;

/// Words and their forms.
#[derive(Debug, Default)]
pub(crate) struct Spelling<S> {
    words: Vec<S>,
    slips: usize,
    /// Half of a form's hash and the word it is of, sorted.
    forms: Vec<(u32, u32)>,
}

impl<S: AsRef<str>> Spelling<S> {
    /// Keeps words, to be found in spite of one or two slips; those that come first are preferred.
    pub(crate) fn new(words: Vec<S>, slips: usize) -> Self {
        let mut forms = Vec::with_capacity(words.len() * 8);
        for (at, word) in words.iter().enumerate() {
            each_form(word.as_ref(), slips, &mut |form| forms.push((form, index(at))));
        }
        forms.sort_unstable();
        forms.dedup();
        forms.shrink_to_fit();
        Self { words, slips, forms }
    }

    /// The nearest words, those that begin alike first, at most `limit`.
    pub(crate) fn near(&self, written: &str, limit: usize) -> Vec<&str> {
        let mut found: Vec<u32> = Vec::new();
        each_form(written, self.slips, &mut |form| {
            let start = self.forms.partition_point(|(known, _)| *known < form);
            let same = self.forms[start..].iter().take_while(|(known, _)| *known == form);
            found.extend(same.map(|(_, word)| *word));
        });
        found.sort_unstable();
        found.dedup();
        let letters = written.chars().count();
        let text = |at: u32| self.words[at as usize].as_ref();
        let rank = |at: u32| {
            let slips = strsim::osa_distance(written, text(at));
            let is_short = letters <= LETTERS_MIN && text(at).len() <= written.len();
            let begins_alike = text(at).as_bytes().first() == written.as_bytes().first();
            (1..=self.slips)
                .contains(&slips)
                .then_some((slips, !begins_alike, at))
                .filter(|_| !is_short)
        };
        let mut ranked: Vec<_> = found.into_iter().filter_map(rank).collect();
        ranked.sort_unstable();
        ranked.truncate(limit);
        ranked.into_iter().map(|(_, _, at)| text(at)).collect()
    }

    /// Bytes held beside the words, about.
    pub(crate) fn bytes(&self) -> usize {
        self.forms.len() * 8 + self.words.len() * (size_of::<S>() + 8)
    }
}

/// The word and the word without one or two of its letters, hashed.
fn each_form(word: &str, slips: usize, each: &mut dyn FnMut(u32)) {
    let letters = word.chars().count();
    if !(LETTERS_MIN..=LETTERS_MAX).contains(&letters) {
        return;
    }
    let slips = if letters < LETTERS_TWO { slips.min(1) } else { slips };
    without(word, slips, each);
}

fn without(word: &str, slips: usize, each: &mut dyn FnMut(u32)) {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "half a hash finds candidates well enough"
    )]
    each(term(word) as u32);
    if slips == 0 {
        return;
    }
    let mut form = String::with_capacity(word.len());
    for (at, c) in word.char_indices() {
        form.clear();
        form.push_str(&word[..at]);
        form.push_str(&word[at + c.len_utf8()..]);
        without(&form, slips - 1, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_slip_is_found_and_nothing_else() {
        let spelling = Spelling::new(vec!["delete", "search", "message", "repository"], 1);
        for (written, meant) in [
            ("delte", "delete"),
            ("deelete", "delete"),
            ("dekete", "delete"),
            ("seacrh", "search"),
            ("mesage", "message"),
            ("epository", "repository"),
        ] {
            assert_eq!(spelling.near(written, 2), [meant], "{written}");
        }
        for other in ["delete", "dlt", "deleting", "", "日本語"] {
            assert!(spelling.near(other, 2).is_empty(), "{other}");
        }
    }

    #[test]
    fn two_slips_are_found_in_long_words_if_asked_for() {
        let spelling = Spelling::new(vec!["stripe", "dart"], 2);
        assert_eq!(spelling.near("stwripx", 2), ["stripe"]);
        assert_eq!(spelling.near("dat", 2), ["dart"]);
        assert!(spelling.near("dxrx", 2).is_empty());
    }

    #[test]
    fn a_word_that_begins_alike_is_preferred() {
        let spelling = Spelling::new(vec!["mist", "list", "lists"], 1);
        assert_eq!(spelling.near("lisst", 3), ["list", "lists"]);
        assert_eq!(spelling.near("lost", 1), ["list"]);
    }
}
