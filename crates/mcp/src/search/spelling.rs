//! Known words that differ from a written one by a single slip: a letter missing, added, changed,
//! or two swapped.
//!
//! Two words one slip apart share a form with at most one letter taken out, so each known word is
//! kept under all such forms, and a written word is looked up under its own. What is found is
//! compared letter by letter before it counts.

use std::cmp::Ordering;

use super::postings::{index, term};

/// Letters of a word that is corrected: in shorter ones a slip makes another word.
pub(super) const LETTERS_MIN: usize = 4;
/// Letters of a word that is worth keeping under its forms.
const LETTERS_MAX: usize = 24;

/// Words and their forms.
#[derive(Debug, Default)]
pub(super) struct Spelling<S> {
    words: Vec<S>,
    /// A form's term and the word it is of, sorted.
    forms: Vec<(u32, u32)>,
}

impl<S: AsRef<str>> Spelling<S> {
    /// Keeps words; those found first are preferred among equals.
    pub(super) fn new(words: Vec<S>) -> Self {
        let mut forms = Vec::with_capacity(words.len() * 8);
        for (at, word) in words.iter().enumerate() {
            each_form(word.as_ref(), |form| forms.push((form, index(at))));
        }
        forms.sort_unstable();
        forms.dedup();
        forms.shrink_to_fit();
        Self { words, forms }
    }

    /// The words one slip away, those that begin alike first, at most `limit`.
    pub(super) fn near(&self, written: &str, limit: usize) -> Vec<&str> {
        let mut found: Vec<u32> = Vec::new();
        each_form(written, |form| {
            let start = self.forms.partition_point(|(known, _)| *known < form);
            let same = self.forms[start..].iter().take_while(|(known, _)| *known == form);
            found.extend(same.map(|(_, word)| *word));
        });
        found.sort_unstable();
        found.dedup();
        let text = |at: u32| self.words[at as usize].as_ref();
        found.retain(|at| is_one_slip(written, text(*at)));
        found.sort_by_key(|at| (text(*at).as_bytes().first() != written.as_bytes().first(), *at));
        found.truncate(limit);
        found.into_iter().map(text).collect()
    }

    /// Bytes held beside the words, about.
    pub(super) fn bytes(&self) -> usize {
        self.forms.len() * 8 + self.words.len() * (size_of::<S>() + 8)
    }
}

/// The word and the word without each of its letters, as terms.
fn each_form(word: &str, mut each: impl FnMut(u32)) {
    #[expect(clippy::cast_possible_truncation, reason = "half a hash finds candidates well enough")]
    let mut take = |text: &str| each(term(text) as u32);
    let letters = word.chars().count();
    if !(LETTERS_MIN - 1..=LETTERS_MAX).contains(&letters) {
        return;
    }
    take(word);
    let mut form = String::with_capacity(word.len());
    for (at, c) in word.char_indices() {
        form.clear();
        form.push_str(&word[..at]);
        form.push_str(&word[at + c.len_utf8()..]);
        take(&form);
    }
}

/// Whether two words differ by exactly one slip.
fn is_one_slip(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let start = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[start..], &other[start..]);
    let (a, b) = (one.len(), other.len());
    match a.cmp(&b) {
        Ordering::Less => b == a + 1 && one == &other[1..],
        Ordering::Greater => a == b + 1 && &one[1..] == other,
        Ordering::Equal if a == 0 => false,
        Ordering::Equal => {
            let is_swap =
                a > 1 && one[0] == other[1] && one[1] == other[0] && one[2..] == other[2..];
            is_swap || one[1..] == other[1..]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_slip_is_found_and_nothing_else() {
        let spelling = Spelling::new(vec!["delete", "search", "message", "repository"]);
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
    fn a_word_that_begins_alike_is_preferred() {
        let spelling = Spelling::new(vec!["mist", "list", "lists"]);
        assert_eq!(spelling.near("lisst", 3), ["list", "lists"]);
        assert_eq!(spelling.near("lost", 1), ["list"]);
    }
}
