//! Whether other evidence than the sum tells requests without an answer apart.
//!
//! A logistic model over what a search knows is fitted to the sets of all other catalogues, and
//! checked on one set: what is learnt must hold for tools that it has not seen. Requests whose
//! tool is not among the first five count for nothing, as in `hindsight`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use tidegate_search::{Index, PARTS, Parts, Query, eval};

/// The sum, three distances, its place among all sums, how many tools there are, the parts of the
/// first tool, where that is by words and by meaning, and how long the request is.
pub const EVIDENCE: usize = 6 + PARTS + 3;
/// Steps of the fit, how far each goes, and how strongly weights are drawn to zero.
const STEPS: usize = 4000;
const RATE: f64 = 0.5;
const RIDGE: f64 = 0.02;
/// How many requests with an answer may be lost.
const LOST: f64 = 0.02;

/// What is known of one request, and whether a tool fulfils it.
#[derive(Clone)]
struct Known([f64; EVIDENCE], bool);

/// How well something tells the requests of a set apart: how often one with an answer has more of
/// it than one without, and how many without are declined at [`LOST`].
pub struct Told {
    pub set: String,
    pub by_sum: [f64; 2],
    pub by_all: [f64; 2],
}

/// Fits to the sets of other catalogues and checks on each set. Paths are tools and requests, in
/// turns.
pub fn told(paths: &[PathBuf]) -> Result<Vec<Told>, Box<dyn Error>> {
    let mut sets = Vec::new();
    for pair in paths.chunks_exact(2) {
        sets.push((pair[0].clone(), pair[1].clone(), known(&pair[0], &pair[1])?));
    }
    let mut all = Vec::new();
    for (tools, requests, checked) in &sets {
        let others = sets.iter().filter(|(other, ..)| other != tools);
        let others: Vec<&[Known]> = others.map(|(_, _, known)| &known[..]).collect();
        let judge = Judge::fitted(&others);
        let of = |value: &dyn Fn(&Known) -> f64| -> [f64; 2] {
            let values = |is: bool| checked.iter().filter(move |it| it.1 == is).map(value);
            let mut answered: Vec<f64> = values(true).collect();
            let without: Vec<f64> = values(false).collect();
            apart(&mut answered, &without)
        };
        let set = requests.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (by_sum, by_all) = (of(&|it| it.0[0]), of(&|it| judge.value(&it.0)));
        all.push(Told { set, by_sum, by_all });
    }
    Ok(all)
}

fn apart(answered: &mut [f64], without: &[f64]) -> [f64; 2] {
    answered.sort_by(f64::total_cmp);
    let less = |value: f64| answered.iter().filter(|it| **it > value).count();
    let more: usize = without.iter().map(|value| less(*value)).sum();
    let needed = answered.get((LOST * answered.len() as f64) as usize).copied();
    let needed = needed.unwrap_or(f64::MIN);
    let below = without.iter().filter(|value| **value < needed).count();
    [eval::ratio(more, answered.len() * without.len()), eval::ratio(below, without.len())]
}

fn known(tools: &Path, requests: &Path) -> Result<Vec<Known>, Box<dyn Error>> {
    let index = Index::build(eval::tools(&fs::read_to_string(tools)?)?);
    let mut all = Vec::new();
    for case in eval::cases(&fs::read_to_string(requests)?)? {
        let query = Query { description: &case.query, ..Query::default() };
        let parts = index.all_parts(&query);
        let sum = |parts: &Parts| -> f64 {
            parts.contributions().iter().map(|(_, value)| f64::from(*value)).sum()
        };
        let sums: Vec<f64> = parts.iter().map(sum).collect();
        let right = |doc: &usize| case.gold.iter().any(|it| **it == *index.documents()[*doc].id);
        let best_right = (0..sums.len()).filter(right).map(|doc| sums[doc]);
        let best_right = best_right.fold(f64::MIN, f64::max);
        let is_far = sums.iter().filter(|sum| **sum > best_right).count() >= 5;
        if case.gold.is_empty() || !is_far {
            all.push(Known(evidence(&parts, &sums, &case.query), !case.gold.is_empty()));
        }
    }
    Ok(all)
}

fn evidence(parts: &[Parts], sums: &[f64], request: &str) -> [f64; EVIDENCE] {
    let mut order: Vec<usize> = (0..sums.len()).collect();
    order.sort_by(|one, other| sums[*other].total_cmp(&sums[*one]));
    let count = sums.len() as f64;
    let at = |place: usize| order.get(place).or(order.last()).map_or(0.0, |doc| sums[*doc]);
    let mean = sums.iter().sum::<f64>() / count;
    let width = (sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / count).sqrt();
    let best = order.first().map(|doc| parts[*doc]).unwrap_or_default();
    let place = |value: &dyn Fn(&Parts) -> f32| {
        let before = parts.iter().filter(|it| value(it) > value(&best)).count() as f64;
        before.ln_1p() / count.ln_1p()
    };
    let ahead = [at(0) - at(1), at(0) - at(4), at(0) - at(9)];
    let mut all = vec![at(0), ahead[0], ahead[1], ahead[2], (at(0) - mean) / width.max(1e-6)];
    all.push(count.ln());
    all.extend(best.values().map(f64::from));
    all.extend([place(&|it| it.words + it.letters), place(&|it| it.meaning)]);
    all.push(request.split_whitespace().count() as f64);
    std::array::from_fn(|at| all[at])
}

/// A logistic model over evidence that is brought to mean zero and spread one.
struct Judge {
    mean: [f64; EVIDENCE],
    width: [f64; EVIDENCE],
    weights: [f64; EVIDENCE],
}

impl Judge {
    /// Each set counts the same, and in each those with an answer and those without.
    fn fitted(sets: &[&[Known]]) -> Self {
        let all: Vec<&Known> = sets.iter().flat_map(|set| set.iter()).collect();
        let count = all.len().max(1) as f64;
        let mean = std::array::from_fn(|at| all.iter().map(|it| it.0[at]).sum::<f64>() / count);
        let width = std::array::from_fn(|at| {
            let square = all.iter().map(|it| (it.0[at] - mean[at]).powi(2)).sum::<f64>() / count;
            square.sqrt().max(1e-6)
        });
        let mut judge = Self { mean, width, weights: [0.0; EVIDENCE] };
        let mut floor = 0.0;
        for _ in 0..STEPS {
            let (mut slope, mut floor_slope) = (judge.weights.map(|it| RIDGE * it), 0.0);
            for set in sets {
                let answered = set.iter().filter(|it| it.1).count();
                for Known(values, has_answer) in *set {
                    let of = if *has_answer { answered } else { set.len() - answered };
                    let share = 0.5 / of as f64 / sets.len() as f64;
                    let likely = 1.0 / (1.0 + (-(judge.value(values) + floor)).exp());
                    let wrong = share * (likely - f64::from(u8::from(*has_answer)));
                    floor_slope += wrong;
                    for (at, slope) in slope.iter_mut().enumerate() {
                        *slope += wrong * judge.scaled(values, at);
                    }
                }
            }
            floor -= RATE * floor_slope;
            judge.weights.iter_mut().zip(slope).for_each(|(it, slope)| *it -= RATE * slope);
        }
        judge
    }

    fn scaled(&self, values: &[f64; EVIDENCE], at: usize) -> f64 {
        (values[at] - self.mean[at]) / self.width[at]
    }

    fn value(&self, values: &[f64; EVIDENCE]) -> f64 {
        (0..EVIDENCE).map(|at| self.weights[at] * self.scaled(values, at)).sum()
    }
}
