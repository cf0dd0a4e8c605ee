//! Directions of many documents in whole numbers, and how alike each is to another one.
//!
//! A row is a direction with its largest part brought to 127, so that a document takes a byte per
//! dimension and the scan is sums of products of small numbers, which compilers turn into wide
//! instructions. The error is below one percent of a likeness.

/// Rows of equal length.
#[derive(Clone, Debug, Default)]
pub(super) struct Matrix {
    dimensions: usize,
    cells: Vec<i8>,
    /// What one step of a row's cells is worth.
    steps: Vec<f32>,
}

/// One direction in whole numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    cells: Box<[i8]>,
    step: f32,
}

impl Row {
    /// Rounds a direction; anything that is no number counts as zero.
    pub(super) fn new(direction: &[f32]) -> Self {
        let largest = direction.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let is_usable = largest > 0.0 && largest.is_finite();
        let step = if is_usable { largest / 127.0 } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "within 127 by the step")]
        let cell = |x: &f32| if is_usable { (x / step).round() as i8 } else { 0 };
        Self { cells: direction.iter().map(cell).collect(), step }
    }
}

impl Matrix {
    /// No rows.
    pub(super) fn new(dimensions: usize) -> Self {
        Self { dimensions, ..Self::default() }
    }

    /// Adds a row; one of another length counts as nothing.
    pub(super) fn push(&mut self, row: &Row) {
        if row.cells.len() == self.dimensions {
            self.cells.extend_from_slice(&row.cells);
            self.steps.push(row.step);
        } else {
            self.cells.resize(self.cells.len() + self.dimensions, 0);
            self.steps.push(0.0);
        }
    }

    /// How alike each row is to a direction, from -1 to 1; all 0 if that has another length.
    pub(super) fn likeness(&self, to: &Row) -> Vec<f32> {
        if to.cells.len() != self.dimensions || self.dimensions == 0 {
            return vec![0.0; self.steps.len()];
        }
        let wide: Vec<i16> = to.cells.iter().map(|cell| i16::from(*cell)).collect();
        let rows = self.cells.chunks_exact(self.dimensions).zip(&self.steps);
        #[expect(clippy::cast_precision_loss, reason = "sums stay far below 2^24 times a step")]
        let likeness = |(row, step): (&[i8], &f32)| dot(row, &wide) as f32 * step * to.step;
        rows.map(likeness).collect()
    }

    /// How alike one row is to a direction.
    pub(super) fn likeness_of(&self, row: usize, to: &Row) -> f32 {
        let start = row * self.dimensions;
        let Some(cells) = self.cells.get(start..start + self.dimensions) else { return 0.0 };
        if to.cells.len() != self.dimensions {
            return 0.0;
        }
        let products = cells.iter().zip(&to.cells).map(|(a, b)| i32::from(*a) * i32::from(*b));
        #[expect(clippy::cast_precision_loss, reason = "as above")]
        let sum = products.sum::<i32>() as f32;
        sum * self.steps[row] * to.step
    }

    /// The length of a row.
    pub(super) const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Whether a row has a direction.
    pub(super) fn has(&self, row: usize) -> bool {
        self.steps.get(row).is_some_and(|step| *step > 0.0)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.cells.len() + self.steps.len() * 4
    }
}

/// The sum of products: `i16` times `i16` into `i32` is one instruction for eight pairs.
fn dot(row: &[i8], wide: &[i16]) -> i32 {
    row.iter().zip(wide).map(|(a, b)| i32::from(i16::from(*a)) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_that_of_the_directions_within_a_percent() {
        let one = [0.6, 0.8, 0.0, 0.0];
        let other = [0.0, 0.6, -0.8, 0.0];
        let mut matrix = Matrix::new(4);
        for direction in [&one[..], &other, &[0.0; 4], &[1.0; 3], &[f32::NAN; 4]] {
            matrix.push(&Row::new(direction));
        }
        let found = matrix.likeness(&Row::new(&one));
        for (found, expected) in found.iter().zip([1.0, 0.48, 0.0, 0.0, 0.0]) {
            assert!((found - expected).abs() < 0.01, "{found} {expected}");
        }
        assert!(matrix.has(0) && !matrix.has(2) && !matrix.has(3));
        assert_eq!(matrix.likeness(&Row::new(&[1.0; 7])), [0.0; 5]);
    }
}
