//! What a text is about, by a table of things and the words people use for them.
//!
//! "Do I need an umbrella" shares no word with `get_forecast`, and the word model puts the two no
//! nearer to each other than many others. The table (`model/concepts.txt`) says that both speak of
//! the weather. It is written by hand, from what such tools are about, a line for each thing.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    lexicon::is_stop,
    postings::{Plain, Term, term},
    stem::stem,
    words::Word,
};

const TABLE: &str = include_str!("../model/concepts.txt");

/// Things and how much a text speaks of each, sorted, each once.
pub(crate) type About = Vec<(Term, f32)>;

/// The things that a word stands for, by the word's stem.
type Table = HashMap<Term, Vec<Term>, Plain>;

fn table() -> &'static Table {
    static READ: LazyLock<Table> = LazyLock::new(|| {
        let mut table = Table::default();
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).zip(0_u64..);
        for (line, thing) in lines {
            for word in line.split_whitespace() {
                let things: &mut Vec<Term> = table.entry(term(&stem(word))).or_default();
                if things.last() != Some(&thing) {
                    things.push(thing);
                }
            }
        }
        table
    });
    &READ
}

/// What weighted words are about. A word that stands for several things counts less for each.
pub(crate) fn about<'a>(words: impl IntoIterator<Item = (&'a Word, f32)>) -> About {
    let mut found: About = Vec::new();
    for (word, weight) in words {
        if is_stop(&word.text) {
            continue;
        }
        let things = table().get(&term(&stem(&word.text))).map(Vec::as_slice).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a few things")]
        let share = weight / (things.len().max(1) as f32).sqrt();
        found.extend(things.iter().map(|thing| (*thing, share)));
    }
    merged(found)
}

/// The same with each thing once.
pub(crate) fn merged(mut found: About) -> About {
    found.sort_unstable_by(|one, next| one.0.cmp(&next.0).then(one.1.total_cmp(&next.1)));
    let sum =
        |same: &[(Term, f32)]| (same[0].0, same.iter().map(|(_, weight)| weight).sum::<f32>());
    found.chunk_by(|one, next| one.0 == next.0).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    fn things(text: &str) -> Vec<Term> {
        about(words(text).iter().map(|word| (word, 1.0))).into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn words_for_one_thing_meet_and_others_do_not() {
        let shared = |one: &str, other: &str| {
            let other = things(other);
            things(one).iter().any(|thing| other.contains(thing))
        };
        assert!(shared("do I need an umbrella", "get_forecast"));
        assert!(shared("which song is this", "current track"));
        assert!(!shared("do I need an umbrella", "create invoice"));
        assert!(things("the of qqqzzz").is_empty());
    }

    #[test]
    fn a_word_of_many_things_counts_less_for_each() {
        let weights = |text: &str| -> Vec<f32> {
            about(words(text).iter().map(|word| (word, 1.0))).into_iter().map(|it| it.1).collect()
        };
        let (one, several) = (weights("smog"), weights("table"));
        assert!(one.len() < several.len() && one[0] > several[0], "{one:?} {several:?}");
    }
}
