//! Directions of many documents in whole numbers, and how alike each is to another one.
//!
//! A kept row is a direction with its largest part brought to 127, and the one it is compared
//! with to 63: the scan is sums of products of small numbers. They stand in two bytes each,
//! because every processor multiplies eight such at once, and few can do so with bytes. The error
//! is about one percent of a likeness.

/// Rows of equal length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matrix {
    dimensions: usize,
    cells: Vec<i16>,
    /// What one step of a row's cells is worth.
    steps: Vec<f32>,
}

/// One direction in whole numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    cells: Box<[i16]>,
    step: f32,
}

/// The largest cell of a kept row, and of one that rows are compared with.
const KEPT: f32 = 127.0;
const ASKED: f32 = 63.0;

impl Row {
    /// Rounds a direction that is kept; anything that is no number counts as zero.
    pub(crate) fn kept(direction: &[f32]) -> Self {
        Self::new(direction, KEPT)
    }

    /// Rounds a direction that kept ones are compared with.
    pub(crate) fn asked(direction: &[f32]) -> Self {
        Self::new(direction, ASKED)
    }

    /// Adds the direction to a sum.
    pub(crate) fn add_to(&self, sum: &mut [f32]) {
        let cells = self.cells.iter().map(|cell| f32::from(*cell) * self.step);
        sum.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += cell);
    }

    fn new(direction: &[f32], most: f32) -> Self {
        let largest = direction.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let is_usable = largest > 0.0 && largest.is_finite();
        let step = if is_usable { largest / most } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "within the largest cell by the step")]
        let cell = |x: &f32| if is_usable { (x / step).round() as i16 } else { 0 };
        Self { cells: direction.iter().map(cell).collect(), step }
    }
}

impl Matrix {
    /// No rows.
    pub(crate) fn new(dimensions: usize) -> Self {
        Self { dimensions, ..Self::default() }
    }

    /// Adds a row; one of another length counts as nothing.
    pub(crate) fn push(&mut self, row: &Row) {
        if row.cells.len() == self.dimensions {
            self.cells.extend_from_slice(&row.cells);
            self.steps.push(row.step);
        } else {
            self.cells.resize(self.cells.len() + self.dimensions, 0);
            self.steps.push(0.0);
        }
    }

    /// How alike each row is to a direction, from -1 to 1; all 0 if that has another length.
    pub(crate) fn likeness(&self, to: &Row) -> Vec<f32> {
        if to.cells.len() != self.dimensions || self.dimensions == 0 {
            return vec![0.0; self.steps.len()];
        }
        let rows = self.cells.chunks_exact(self.dimensions).zip(&self.steps);
        #[expect(clippy::cast_precision_loss, reason = "sums stay far below 2^24 times a step")]
        let likeness = |(row, step): (&[i16], &f32)| dot(row, &to.cells) as f32 * step * to.step;
        rows.map(likeness).collect()
    }

    /// How alike one row is to a direction.
    pub(crate) fn likeness_of(&self, row: usize, to: &Row) -> f32 {
        let start = row * self.dimensions;
        let Some(cells) = self.cells.get(start..start + self.dimensions) else { return 0.0 };
        if to.cells.len() != self.dimensions {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "as above")]
        let sum = dot(cells, &to.cells) as f32;
        sum * self.steps[row] * to.step
    }

    /// The length of a row.
    pub(crate) const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many rows there are.
    pub(crate) const fn rows(&self) -> usize {
        self.steps.len()
    }

    /// Whether a row has a direction.
    pub(crate) fn has(&self, row: usize) -> bool {
        self.steps.get(row).is_some_and(|step| *step > 0.0)
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.len() * 2 + self.steps.len() * 4
    }
}

/// The sum of products. Four of them fit into sixteen bits (4 · 127 · 63 < 2^15), so that whole
/// lanes of sixteen bits are multiplied and added at once, and widened only every fourth time. The
/// flat form is the one that compilers turn into wide instructions.
fn dot(row: &[i16], to: &[i16]) -> i32 {
    let (rows, row_end) = row.as_chunks::<64>();
    let (tos, to_end) = to.as_chunks::<64>();
    let mut sums = [0_i32; 16];
    for (a, b) in rows.iter().zip(tos) {
        let mut lanes = [0_i16; 16];
        for at in 0..16 {
            lanes[at] = a[at]
                .wrapping_mul(b[at])
                .wrapping_add(a[16 + at].wrapping_mul(b[16 + at]))
                .wrapping_add(a[32 + at].wrapping_mul(b[32 + at]))
                .wrapping_add(a[48 + at].wrapping_mul(b[48 + at]));
        }
        for at in 0..16 {
            sums[at] += i32::from(lanes[at]);
        }
    }
    let end = row_end.iter().zip(to_end).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>();
    sums.iter().sum::<i32>() + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_rows_do_not_overflow() {
        for dimensions in [1, 63, 64, 256, 1000] {
            let mut matrix = Matrix::new(dimensions);
            matrix.push(&Row::kept(&vec![1.0; dimensions]));
            matrix.push(&Row::kept(&vec![-1.0; dimensions]));
            let found = matrix.likeness(&Row::asked(&vec![1.0; dimensions]));
            assert!(
                (found[0] + found[1]).abs() < 0.01 && found[0] > 0.99,
                "{dimensions} {found:?}"
            );
        }
    }

    #[test]
    fn likeness_is_that_of_the_directions_within_two_percent() {
        let one = [0.6, 0.8, 0.0, 0.0];
        let other = [0.0, 0.6, -0.8, 0.0];
        let mut matrix = Matrix::new(4);
        for direction in [&one[..], &other, &[0.0; 4], &[1.0; 3], &[f32::NAN; 4]] {
            matrix.push(&Row::kept(direction));
        }
        let found = matrix.likeness(&Row::asked(&one));
        for (found, expected) in found.iter().zip([1.0, 0.48, 0.0, 0.0, 0.0]) {
            assert!((found - expected).abs() < 0.02, "{found} {expected}");
        }
        assert!(matrix.has(0) && !matrix.has(2) && !matrix.has(3));
        assert_eq!(matrix.likeness(&Row::asked(&[1.0; 7])), [0.0; 5]);
    }
}
