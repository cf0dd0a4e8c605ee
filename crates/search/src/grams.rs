//! Runs of three and four letters: they find a word by a part of it, and in spite of slips.

use crate::postings::{Term, term};

/// Calls for each run of three and four letters of a word, with its edges marked.
pub(crate) fn each_gram(word: &str, mut each: impl FnMut(Term)) {
    let mut edged = String::with_capacity(word.len() + 2);
    edged.push('^');
    edged.push_str(word);
    edged.push('$');
    let mut ends: Vec<usize> = edged.char_indices().map(|(at, _)| at).collect();
    ends.push(edged.len());
    for length in [3, 4] {
        for span in ends.windows(length + 1) {
            each(term(&edged[span[0]..span[length]]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_its_runs_with_edges() {
        let mut found = Vec::new();
        each_gram("größ", |gram| found.push(gram));
        let runs = ["^gr", "grö", "röß", "öß$", "^grö", "größ", "röß$"];
        assert_eq!(found, runs.map(term));
        each_gram("", |_| panic!("two marks are no run"));
    }
}
