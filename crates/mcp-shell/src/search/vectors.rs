//! Vectors of tools, by the content of their texts: read from answers, kept within bounds.
//!
//! Rules kept here:
//! - Vectors are compared only within one space: the same model (by its name in the config) and the
//!   same length. Those of another space replace all, or count as none.
//! - Each is kept in a byte per number, which is how it will be compared anyway.
//! - At most [`KEPT_MAX`] are kept, of at most [`DIMENSIONS_MAX`] numbers; the oldest go first.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use tidegate_search::{Document, Vectors};

/// More tools than any gateway is known to stand in front of: at 1 536 numbers each, 25 MB.
pub(super) const KEPT_MAX: usize = 16 * 1024;
/// Longer than what any known service gives.
pub(super) const DIMENSIONS_MAX: usize = 4096;
/// Bytes of a tool's text: what a model reads of it in a glance.
const TEXT_MAX: usize = 2000;
/// The largest whole number of a kept vector.
const LARGEST: f32 = 127.0;

/// Whose vectors can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) model: String,
    pub(super) dimensions: usize,
}

/// A vector in a byte per number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    pub(super) cells: Box<[i8]>,
    /// What one step of its cells is worth.
    pub(super) step: f32,
}

/// All that are known.
#[derive(Debug, Default)]
pub(super) struct Store {
    space: Option<Space>,
    by_hash: BTreeMap<u64, Kept>,
    /// Oldest first.
    order: VecDeque<u64>,
}

impl Store {
    pub(super) fn count(&self) -> usize {
        self.by_hash.len()
    }

    pub(super) fn has(&self, hash: u64) -> bool {
        self.by_hash.contains_key(&hash)
    }

    /// Takes vectors of texts. Whether all that were known before have gone, being of another
    /// space.
    pub(super) fn put(&mut self, space: Space, found: Vec<(u64, Vec<f32>)>) -> bool {
        let is_other = self.space.as_ref().is_some_and(|known| *known != space);
        if is_other {
            *self = Self::default();
        }
        self.space = Some(space);
        for (hash, vector) in found {
            if self.by_hash.insert(hash, Kept::new(&vector)).is_none() {
                self.order.push_back(hash);
            }
            if self.order.len() > KEPT_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_hash.remove(&oldest);
            }
        }
        is_other
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Those of these texts, in their order, and whether each has one.
    pub(super) fn vectors(&self, hashes: &[u64]) -> Option<(Space, Vectors, bool)> {
        let space = self.space.clone()?;
        let known = hashes.iter().map(|hash| self.by_hash.get(hash).map(Kept::numbers));
        let vectors = Vectors::new(space.dimensions, known);
        let is_complete = hashes.iter().all(|hash| self.has(*hash));
        Some((space, vectors, is_complete))
    }
}

impl Kept {
    pub(super) fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let step = (largest / LARGEST).max(f32::MIN_POSITIVE);
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 by the step")]
        let cells = vector.iter().map(|x| (x / step).round() as i8).collect();
        Self { cells, step }
    }

    pub(super) fn numbers(&self) -> Vec<f32> {
        self.cells.iter().map(|cell| f32::from(*cell) * self.step).collect()
    }
}

/// What is sent of a tool.
pub(super) fn text_of(document: &Document) -> String {
    let Document { server, name, description, .. } = document;
    let end = description.floor_char_boundary(TEXT_MAX);
    format!("{server}: {name}\n{}", &description[..end])
}

/// The vectors of an answer to so many texts, in their order; nothing if it is not just that.
pub(super) fn read(body: &[u8], texts: usize) -> Option<Vec<Vec<f32>>> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let rows = answer["data"].as_array().filter(|rows| rows.len() == texts)?;
    let mut found: Vec<Vec<f32>> = vec![Vec::new(); texts];
    for (place, row) in rows.iter().enumerate() {
        let place = row["index"].as_u64().map_or(place, |it| usize::try_from(it).unwrap_or(texts));
        let numbers = row["embedding"].as_array()?;
        #[expect(clippy::cast_possible_truncation, reason = "vectors are of this precision")]
        let numbers: Option<Vec<f32>> =
            numbers.iter().map(|it| it.as_f64().map(|it| it as f32)).collect();
        *found.get_mut(place)? = numbers?;
    }
    let dimensions = found.first()?.len();
    let is_sound = |vector: &Vec<f32>| {
        vector.len() == dimensions
            && vector.iter().all(|x| x.is_finite())
            && vector.iter().any(|x| *x != 0.0)
    };
    let is_usable = (1..=DIMENSIONS_MAX).contains(&dimensions) && found.iter().all(is_sound);
    is_usable.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(model: &str) -> Space {
        Space { model: model.to_owned(), dimensions: 2 }
    }

    #[test]
    fn an_answer_is_read_by_its_places_and_anything_else_is_nothing() {
        let body = br#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0.5]}]}"#;
        assert_eq!(read(body, 2), Some(vec![vec![1.0, 0.5], vec![0.0, 1.0]]));
        assert_eq!(read(body, 3), None, "one is missing");
        for bad in [
            "",
            "{}",
            r#"{"data":[]}"#,
            r#"{"data":[{"embedding":"AAAA"}]}"#,
            r#"{"data":[{"embedding":[]}]}"#,
            r#"{"data":[{"embedding":[0,0]}]}"#,
            r#"{"data":[{"embedding":[1e300]}]}"#,
            r#"{"data":[{"index":1,"embedding":[1]}]}"#,
            r#"{"data":[{"index":-1,"embedding":["1"]}]}"#,
        ] {
            assert_eq!(read(bad.as_bytes(), 1), None, "{bad}");
        }
        let twice = br#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#;
        assert_eq!(read(twice, 2), None, "the second has none");
        let long = format!(r#"{{"data":[{{"embedding":[{}1]}}]}}"#, "1,".repeat(DIMENSIONS_MAX));
        assert_eq!(read(long.as_bytes(), 1), None, "longer than any model's");
    }

    #[test]
    fn vectors_of_another_model_replace_those_that_are_known() {
        let mut store = Store::default();
        assert!(store.vectors(&[1]).is_none());
        assert!(!store.put(space("a"), vec![(1, vec![1.0, 0.0]), (2, vec![0.0, 3.0])]));
        let (known, _, is_complete) = store.vectors(&[2, 1]).expect("some are known");
        assert_eq!((known, is_complete), (space("a"), true));
        assert!(!store.vectors(&[1, 3]).expect("some are known").2);
        assert!(store.put(space("b"), vec![(1, vec![0.5, 0.5])]));
        assert!(store.has(1) && !store.has(2));
    }

    #[test]
    fn only_so_many_are_kept_and_the_oldest_go_first() {
        let mut store = Store::default();
        let many = (0..KEPT_MAX as u64 + 2).map(|hash| (hash, vec![1.0, 0.0])).collect();
        store.put(space("a"), many);
        assert_eq!(store.order.len(), KEPT_MAX);
        assert_eq!(store.by_hash.len(), KEPT_MAX);
        assert!(!store.has(1) && store.has(2));
    }

    #[test]
    fn a_kept_vector_is_the_same_within_a_part_in_a_hundred() {
        let kept = Kept::new(&[0.8, -0.4, 0.01]).numbers();
        for (kept, given) in kept.iter().zip([0.8, -0.4, 0.01]) {
            assert!((kept - given).abs() < 0.008, "{kept} {given}");
        }
    }
}
