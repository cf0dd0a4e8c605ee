//! Soft word match: words of a tool that are near those of a request by the word model.
//!
//! `remove the rule` should find a tool that deletes a pattern. The nearest words of every word of
//! the model are worked out beforehand (`model/near.bin`, made by the `near` example), so that a
//! request costs a few look-ups per word.
//!
//! Rules kept here:
//! - Of the words near one word of the request, a tool gets the best that it has, not the sum: ten
//!   near words are not ten findings.
//! - A word that the tool has itself counts as near to the full.

use crate::{
    index::Index,
    matrix::{Matrix, Row},
    model::{DIMENSIONS, model},
    parts::Parts,
    postings::{Term, rarity, term},
    stem::stem,
    step::Step,
};

/// Words kept per word, and bytes of each: its row in two, its likeness in one.
const NEAR: usize = 8;
const BYTES: usize = 3;
/// The least likeness of words that are kept.
const LIKENESS_MIN: f32 = 0.4;

static TABLE: &[u8] = include_bytes!("../model/near.bin");

/// Words near one of the model's, the nearest first, with their likeness.
fn near(row: u32) -> impl Iterator<Item = (u32, f32)> {
    let start = row as usize * NEAR * BYTES;
    let entries = TABLE.get(start..start + NEAR * BYTES).unwrap_or_default();
    let (entries, _) = entries.as_chunks::<BYTES>();
    let read = |[low, high, likeness]: &[u8; BYTES]| {
        (u32::from(u16::from_le_bytes([*low, *high])), f32::from(*likeness) / 255.0)
    };
    entries.iter().map(read).take_while(|(_, likeness)| *likeness > 0.0)
}

/// Makes the table of near words anew from the word model. It takes about a minute; the program
/// reads the file that it gives.
#[must_use]
pub fn near_table() -> Vec<u8> {
    let model = model();
    let rows = 0..model.rows();
    let vectors: Vec<Vec<f32>> = rows.map(|row| model.direction([(row, 1.0)]).to_vec()).collect();
    let mut matrix = Matrix::new(DIMENSIONS);
    vectors.iter().for_each(|vector| matrix.push(&Row::kept(vector)));
    let mut table = Vec::new();
    for (row, vector) in vectors.iter().enumerate() {
        table.extend(nearest(&matrix, row, vector));
    }
    table
}

/// The entries of one word.
fn nearest(matrix: &Matrix, row: usize, vector: &[f32]) -> Vec<u8> {
    let stem_of = |row: usize| stem(model().word(row));
    let own = stem_of(row);
    let likeness = matrix.likeness(&Row::asked(vector));
    let mut found: Vec<(usize, f32)> =
        likeness.into_iter().enumerate().filter(|(_, it)| *it >= LIKENESS_MIN).collect();
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let mut entries = Vec::with_capacity(NEAR * BYTES);
    let mut stems = vec![own];
    for (other, likeness) in found {
        let stem = stem_of(other);
        // Forms of one word are one word to the index.
        if stems.len() > NEAR || stems.contains(&stem) {
            continue;
        }
        stems.push(stem);
        let other = u16::try_from(other).unwrap_or_default();
        entries.extend(other.to_le_bytes());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
        entries.push((likeness.clamp(0.0, 1.0) * 255.0).round() as u8);
    }
    entries.resize(NEAR * BYTES, 0);
    entries
}

impl Index {
    /// Adds what near words say.
    pub(crate) fn add_soft(&self, step: &Step, parts: &mut [Parts]) {
        let docs = self.documents.len();
        let rarity_of = |term: Term| rarity(docs, self.words.list(term).len());
        let mass: f32 = step.words.iter().map(|word| word.weight * rarity_of(word.term)).sum();
        let mut seen = vec![0_u8; docs];
        for (word, mark) in step.words.iter().filter(|word| word.weight > 0.0).zip(1_u8..) {
            let value = word.weight * rarity_of(word.term) / mass.max(f32::EPSILON);
            let row = model().row(&word.text);
            let near = row
                .into_iter()
                .flat_map(near)
                .map(|(row, likeness)| (term(&stem(model().word(row as usize))), likeness));
            for (term, likeness) in std::iter::once((word.term, 1.0)).chain(near) {
                let whole = rarity_of(term).max(f32::EPSILON);
                for entry in self.words.list(term) {
                    let doc = entry.doc as usize;
                    if seen[doc] != mark {
                        seen[doc] = mark;
                        parts[doc].soft += value * likeness * entry.value / whole;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_model() {
        assert_eq!(TABLE.len(), model().rows() as usize * NEAR * BYTES);
        let vector = |row: u32| model().direction([(row, 1.0)]);
        let mut matrix = Matrix::new(DIMENSIONS);
        (0..model().rows()).for_each(|row| matrix.push(&Row::kept(&vector(row))));
        for row in (0..model().rows()).step_by(2500) {
            let start = row as usize * NEAR * BYTES;
            let kept = &TABLE[start..start + NEAR * BYTES];
            assert_eq!(kept, nearest(&matrix, row as usize, &vector(row)), "row {row}");
        }
    }

    #[test]
    fn near_words_are_near() {
        let words = |word: &str| -> Vec<&str> {
            let row = model().row(word).expect("a known word");
            near(row).map(|(row, _)| model().word(row as usize)).collect()
        };
        assert!(words("delete").contains(&"remove"), "{:?}", words("delete"));
    }
}
