//! How well a search finds what people ask for: labelled requests, and figures over them.
//!
//! Files are JSON lines. A tool has `server`, `name`, `description`, and may have `schema`
//! (parameter to text), `server_description` and `server_summary`. A request has `query` and
//! `gold`, a list of `server/name`: any of them counts as found. A request with an empty list has
//! no right answer, and is right if it is declined.

use serde_json::{Map, Value};

use crate::{document::Document, find::Answer, index::Index};

/// How many hits are looked at.
pub const DEPTH: usize = 10;

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadLine {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// A labelled request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is asked.
    pub query: String,
    /// The tools that would do, as `server/name`.
    pub gold: Vec<String>,
}

/// Reads tools; each one's id is `server/name`.
///
/// # Errors
/// The first line that is no tool.
pub fn tools(text: &str) -> Result<Vec<Document>, BadLine> {
    lines(text, |fields| {
        let get = |name: &str| fields.get(name).and_then(Value::as_str);
        let server = get("server").ok_or("a tool has a text `server`")?;
        let name = get("name").ok_or("a tool has a text `name`")?;
        let schema = fields.get("schema").and_then(Value::as_object);
        let parameters = schema.into_iter().flatten();
        let parameters =
            parameters.map(|(name, text)| (name.as_str(), text.as_str().unwrap_or("")));
        let description = get("description").unwrap_or_default();
        let mut document = Document::plain(server, name, description, parameters);
        let about =
            ["server_description", "server_summary"].map(|name| get(name).unwrap_or_default());
        document.server_text = about.join(" ").trim().into();
        Ok(document)
    })
}

/// Reads labelled requests.
///
/// # Errors
/// The first line that is none.
pub fn cases(text: &str) -> Result<Vec<Case>, BadLine> {
    lines(text, |fields| {
        let query = fields.get("query").and_then(Value::as_str);
        let query = query.ok_or("a request has a text `query`")?.to_owned();
        let gold =
            fields.get("gold").and_then(Value::as_array).ok_or("a request has a list `gold`")?;
        let gold = gold.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>();
        Ok(Case { query, gold: gold.ok_or("a name in `gold` is no text")? })
    })
}

fn lines<T>(
    text: &str,
    read: impl Fn(&Map<String, Value>) -> Result<T, &'static str>,
) -> Result<Vec<T>, BadLine> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |what: String| BadLine { line: at + 1, what };
        let value: Value = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        let fields = value.as_object().ok_or_else(|| bad("not an object".to_owned()))?;
        found.push(read(fields).map_err(|what| bad(what.to_owned()))?);
    }
    Ok(found)
}

/// Counts over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Requests that have a right answer.
    pub n: usize,
    /// Those with one among the first 1, 3, 5 and 10.
    pub hits: [usize; 4],
    /// Those with one among the first five, but declined as no good match.
    pub lost: usize,
    /// The sum of one by the place of the first right answer.
    pub reciprocal: f64,
    /// Requests that have no right answer.
    pub unanswerable: usize,
    /// Those of them that were declined: no hits, or no good match.
    pub declined: usize,
}

/// The depths of [`Figures::hits`].
pub const DEPTHS: [usize; 4] = [1, 3, 5, DEPTH];

impl Figures {
    /// Counts one answer.
    pub fn count(&mut self, index: &Index, case: &Case, answer: &Answer) {
        if case.gold.is_empty() {
            self.unanswerable += 1;
            self.declined += usize::from(!answer.has_good_match);
            return;
        }
        self.n += 1;
        let is_right =
            |doc: usize| case.gold.iter().any(|gold| **gold == *index.documents()[doc].id);
        let Some(place) = answer.hits.iter().take(DEPTH).position(|hit| is_right(hit.doc)) else {
            return;
        };
        for (hits, depth) in self.hits.iter_mut().zip(DEPTHS) {
            *hits += usize::from(place < depth);
        }
        self.lost += usize::from(place < DEPTHS[2] && !answer.has_good_match);
        self.reciprocal += 1.0 / ratio(place + 1, 1);
    }

    /// The share of requests with a right answer among the first [`DEPTHS`].
    #[must_use]
    pub fn shares(&self) -> [f64; 4] {
        self.hits.map(|hits| ratio(hits, self.n))
    }

    /// The mean of one by the place of the first right answer among the first ten.
    #[must_use]
    pub fn mrr(&self) -> f64 {
        self.reciprocal / ratio(self.n.max(1), 1)
    }
}

/// A share of a whole; 0 of nothing.
#[must_use]
pub fn ratio(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of requests")]
    let (part, whole) = (part as f64, whole.max(1) as f64);
    part / whole
}

/// Between which shares the true one lies with 95 % confidence (Wilson).
#[must_use]
pub fn interval(hits: usize, n: usize) -> (f64, f64) {
    const Z: f64 = 1.96;
    let (share, n) = (ratio(hits, n), ratio(n.max(1), 1));
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hit, Parts};

    #[test]
    fn a_right_answer_counts_at_every_depth_that_holds_it() {
        let tools = ["a", "b", "c"].map(|name| Document::plain("s", name, "", []));
        let index = Index::build(tools.to_vec());
        let hits = [2, 1].map(|doc| Hit { doc, score: 0.9, parts: Parts::default(), needed: 0.0 });
        let answer = Answer { hits: hits.to_vec(), has_good_match: true, margin: 0.0 };
        let mut figures = Figures::default();
        for (query, gold) in [("x", "s/b"), ("y", "s/c"), ("z", "s/a")] {
            figures.count(&index, &Case { query: query.into(), gold: vec![gold.into()] }, &answer);
        }
        figures.count(&index, &Case { query: String::new(), gold: vec![] }, &Answer::default());
        assert_eq!((figures.n, figures.hits), (3, [1, 2, 2, 2]));
        assert_eq!((figures.unanswerable, figures.declined), (1, 1));
        assert!((figures.mrr() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn an_interval_holds_the_share_and_narrows_with_more_requests() {
        let (low, high) = interval(90, 155);
        assert!((0.50..0.51).contains(&low) && (0.65..0.66).contains(&high), "{low} {high}");
        assert!(interval(900, 1550).1 < high);
        assert_eq!(interval(0, 0).0, 0.0);
    }

    #[test]
    fn a_bad_line_is_named() {
        let bad = |text| cases(text).expect_err("a bad line").to_string();
        assert_eq!(
            bad("{\"query\":\"a\",\"gold\":[]}\n\n{}"),
            "line 3: a request has a text `query`"
        );
        assert_eq!(bad("[]"), "line 1: not an object");
        let said = tools("{\"server\":\"s\"}").expect_err("a bad line").to_string();
        assert_eq!(said, "line 1: a tool has a text `name`");
    }
}
