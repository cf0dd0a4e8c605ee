//! How many requests without an answer could be declined at best: the sum that a good match needs
//! is chosen for one set alone, with its answers known, so that 2 % of the requests with an answer
//! among the first five are lost.

use std::error::Error;
use std::fs;
use std::path::Path;

use tidegate_search::{Index, Query, Reading, eval};
use tidegate_sentence::Encoder;

use crate::sets::sentences;

/// How many requests with an answer may be lost.
const LOST: f64 = 0.02;

/// The share of requests without an answer that are below the sum which loses [`LOST`].
pub fn declined(
    tools: &Path,
    queries: &Path,
    model: Option<&Encoder>,
) -> Result<f64, Box<dyn Error>> {
    let index = Index::build(eval::tools(&fs::read_to_string(tools)?)?);
    let model = model.map(|model| (model, sentences(&index, model)));
    let (mut answered, mut unanswerable) = (Vec::new(), Vec::new());
    for case in eval::cases(&fs::read_to_string(queries)?)? {
        let request = model.as_ref().and_then(|(model, _)| model.encode(&case.query));
        let reading = model.as_ref().zip(request.as_deref());
        let reading = reading.map(|((_, sentences), request)| Reading { sentences, request });
        let query = Query { description: &case.query, reading, ..Query::default() };
        let sum = |parts: &tidegate_search::Parts| {
            parts.contributions().iter().map(|(_, value)| value).sum::<f32>()
        };
        let sums: Vec<f32> = index.all_parts(&query).iter().map(sum).collect();
        let best = sums.iter().copied().fold(f32::MIN, f32::max);
        if case.gold.is_empty() {
            unanswerable.push(best);
            continue;
        }
        let is_right = |doc: usize| case.gold.iter().any(|it| **it == *index.documents()[doc].id);
        let right = (0..sums.len()).filter(|doc| is_right(*doc)).map(|doc| sums[doc]);
        let right = right.fold(f32::MIN, f32::max);
        if sums.iter().filter(|sum| **sum > right).count() < 5 {
            answered.push(best);
        }
    }
    answered.sort_by(f32::total_cmp);
    let at = (LOST * answered.len() as f64) as usize;
    let needed = answered.get(at).copied().unwrap_or(f32::MIN);
    let below = unanswerable.iter().filter(|sum| **sum < needed).count();
    Ok(eval::ratio(below, unanswerable.len()))
}
