//! The embedded word model: a text becomes a direction in 256 dimensions.
//!
//! Texts that mean something alike point into similar directions even if they share no word. The
//! model is a table of words, so a text costs one look-up per word; where the table comes from is
//! told beside its files. It is read once, at first use, and shared by all indexes.
//!
//! Rules kept here:
//! - The files are part of the program and checked by a test: a flaw in them is a programmer error.
//! - A word that the table lacks is tried without its ending, then left out.
//! - Nothing here is random or depends on the machine: equal texts have equal directions.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    postings::{Plain, index},
    spelling::Spelling,
};

/// Dimensions of a direction.
pub(crate) const DIMENSIONS: usize = 256;

const TABLE: &[u8] = include_bytes!("../model/static-256-int8.safetensors");
const WORDS: &str = include_str!("../model/vocab.txt");

/// Endings that are tried off, in this order, from words longer than [`BARE_MIN`].
const ENDINGS: [&str; 6] = ["s", "es", "ed", "ing", "er", "ly"];
const BARE_MIN: usize = 4;

/// A direction: of length one, or all zeros for a text without known words.
pub(crate) type Direction = [f32; DIMENSIONS];

/// The table.
pub(crate) struct Model {
    rows: HashMap<&'static str, u32, Plain>,
    words: Vec<&'static str>,
    vectors: &'static [u8],
    scales: &'static [u8],
    weights: &'static [u8],
    /// Finds its words in spite of a slip.
    pub(crate) spelling: Spelling<&'static str>,
}

/// The one model there is.
pub(crate) fn model() -> &'static Model {
    static MODEL: LazyLock<Model> =
        LazyLock::new(|| Model::read().expect("the files beside the code are read by a test"));
    &MODEL
}

impl Model {
    /// Reads the table: eight bytes of length, a header in JSON, then numbers.
    fn read() -> Option<Self> {
        let length = usize::try_from(u64::from_le_bytes(*TABLE.first_chunk()?)).ok()?;
        let (header, data) = TABLE.get(8..)?.split_at_checked(length)?;
        let header: serde_json::Value = serde_json::from_slice(header).ok()?;
        let part = |name: &str| {
            let ends = header.get(name)?.get("data_offsets")?;
            let end = |at: usize| usize::try_from(ends.get(at)?.as_u64()?).ok();
            data.get(end(0)?..end(1)?)
        };
        let (vectors, scales, weights) = (part("emb")?, part("scale")?, part("sif")?);
        let words: Vec<&'static str> = WORDS.lines().collect();
        let is_whole = vectors.len() == words.len() * DIMENSIONS
            && scales.len() == words.len() * 4
            && weights.len() == words.len() * 4;
        let rows = words.iter().zip(0..).map(|(word, row)| (*word, row)).collect();
        let spelling = Spelling::new(words.clone(), 1);
        is_whole.then_some(Self { rows, words, vectors, scales, weights, spelling })
    }

    /// The row of a word or of what is left of it without an ending.
    pub(crate) fn row(&self, word: &str) -> Option<u32> {
        let of = |word: &str| self.rows.get(word).copied();
        of(word).or_else(|| {
            let bare = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
            bare.filter(|_| word.len() > BARE_MIN).find_map(of)
        })
    }

    /// How many words there are.
    pub(crate) fn rows(&self) -> u32 {
        index(self.words.len())
    }

    /// The word of a row; nothing for one that there is not.
    pub(crate) fn word(&self, row: usize) -> &'static str {
        self.words.get(row).copied().unwrap_or_default()
    }

    /// How much a word says: rare ones say more.
    pub(crate) fn weight(&self, row: u32) -> f32 {
        number(self.weights, row)
    }

    /// The direction of weighted rows.
    pub(crate) fn direction(&self, rows: impl IntoIterator<Item = (u32, f32)>) -> Direction {
        let mut sum = [0.0; DIMENSIONS];
        for (row, weight) in rows {
            let factor = number(self.scales, row) * weight;
            let at = row as usize * DIMENSIONS;
            let vector = &self.vectors[at..at + DIMENSIONS];
            for (sum, byte) in sum.iter_mut().zip(vector) {
                *sum += f32::from(byte.cast_signed()) * factor;
            }
        }
        normalise(&mut sum);
        sum
    }
}

fn number(numbers: &[u8], row: u32) -> f32 {
    let (numbers, _) = numbers.as_chunks::<4>();
    f32::from_le_bytes(numbers[row as usize])
}

/// Brings a direction to length one; nothing stays nothing.
pub(crate) fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > f32::EPSILON && length.is_finite() {
        vector.iter_mut().for_each(|x| *x /= length);
    } else {
        vector.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(words: &[&str]) -> Direction {
        let model = model();
        let rows = words.iter().filter_map(|word| model.row(word));
        model.direction(rows.map(|row| (row, model.weight(row))))
    }

    fn likeness(one: &[&str], other: &[&str]) -> f32 {
        direction(one).iter().zip(direction(other)).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn the_embedded_files_are_whole() {
        assert!(Model::read().is_some());
    }

    #[test]
    fn like_meanings_point_the_same_way() {
        let near = likeness(&["remove", "file"], &["delete", "document"]);
        let far = likeness(&["remove", "file"], &["weather", "forecast"]);
        assert!(near > far + 0.2, "{near} {far}");
        assert!((likeness(&["invoices"], &["invoice"]) - 1.0).abs() < 0.5);
    }

    #[test]
    fn unknown_words_have_no_direction() {
        assert!(direction(&["qqqzzzxxx"]).iter().all(|x| *x == 0.0));
    }
}
