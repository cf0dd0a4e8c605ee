//! The fit: weights, none below zero, under which the right tools are most likely.
//!
//! Each set counts the same, however many requests it has; the likelihood of a tool is the softmax
//! of its sum over the candidates. Adam with the same start in every run: no randomness.

use tidegate_search::PARTS;

/// Steps of the fit, and how far each goes.
const STEPS: usize = 1500;
const RATE: f64 = 0.15;
/// How strongly weights are drawn to zero.
const RIDGE: f64 = 2e-4;

/// Weights of the parts.
pub type Weights = [f64; PARTS];

/// A request: the parts of its candidates, and whether each is right.
#[derive(Clone)]
pub struct Example(pub Vec<([f32; PARTS], bool)>);

/// Several of them.
#[derive(Clone)]
pub struct Examples(pub Vec<Example>);

/// The weights that fit some sets.
pub fn fitted(sets: &[(Examples, f64)]) -> Weights {
    fitted_without(sets, None)
}

/// The same with one part left out.
pub fn fitted_without(sets: &[(Examples, f64)], part: Option<usize>) -> Weights {
    let mut weights = [1.0; PARTS];
    let (mut mean, mut square) = ([0.0; PARTS], [0.0; PARTS]);
    let whole: f64 = sets.iter().map(|(_, counts)| counts).sum();
    for step in 1..=STEPS {
        let mut slope = weights.map(|weight| RIDGE * weight);
        for (set, counts) in sets {
            let share = counts / whole / set.0.len().max(1) as f64;
            for example in &set.0 {
                example.add_slope(&weights, share, &mut slope);
            }
        }
        let rate = RATE * (1.0 - step as f64 / (STEPS + 1) as f64).sqrt();
        for at in 0..PARTS {
            mean[at] = 0.9 * mean[at] + 0.1 * slope[at];
            square[at] = 0.99 * square[at] + 0.01 * slope[at] * slope[at];
            let (first, second) =
                (1.0 - 0.9_f64.powi(step as i32), 1.0 - 0.99_f64.powi(step as i32));
            let change = mean[at] / first / ((square[at] / second).sqrt() + 1e-9);
            weights[at] =
                if part == Some(at) { 0.0 } else { (weights[at] - rate * change).max(0.0) };
        }
    }
    weights
}

impl Example {
    /// Adds the slope of the negative log likelihood.
    fn add_slope(&self, weights: &Weights, share: f64, slope: &mut Weights) {
        let sums: Vec<f64> = self.0.iter().map(|(parts, _)| dot(parts, weights)).collect();
        let most = sums.iter().copied().fold(f64::MIN, f64::max);
        let likely: Vec<f64> = sums.iter().map(|sum| (sum - most).exp()).collect();
        let all: f64 = likely.iter().sum();
        let right: f64 = likely.iter().zip(&self.0).filter(|(_, it)| it.1).map(|(it, _)| it).sum();
        for ((parts, is_right), likely) in self.0.iter().zip(&likely) {
            let wanted = if *is_right { likely / right.max(1e-30) } else { 0.0 };
            let factor = share * (likely / all - wanted);
            if factor.abs() > 1e-12 {
                slope.iter_mut().zip(parts).for_each(|(it, part)| *it += factor * f64::from(*part));
            }
        }
    }
}

impl Examples {
    /// How many requests find a right tool first, how many among five, and how many there are.
    pub fn figures(&self, weights: &Weights) -> [usize; 3] {
        let mut figures = [0, 0, self.0.len()];
        for Example(rows) in &self.0 {
            let best = |is: bool| {
                let sums = rows.iter().filter(|row| row.1 == is).map(|row| dot(&row.0, weights));
                sums.fold(f64::MIN, f64::max)
            };
            let right = best(true);
            let better = rows.iter().filter(|row| !row.1 && dot(&row.0, weights) >= right).count();
            figures[0] += usize::from(better == 0);
            figures[1] += usize::from(better < 5);
        }
        figures
    }
}

fn dot(parts: &[f32; PARTS], weights: &Weights) -> f64 {
    parts.iter().zip(weights).map(|(part, weight)| f64::from(*part) * weight).sum()
}
