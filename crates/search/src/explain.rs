//! How a ranking came about, for people who wonder: which words of a request were found where in a
//! tool, what each part added, and how much was needed.
//!
//! The same document goes over the wire and to a terminal, so that a gateway and a command line
//! that ranks by itself explain alike.

use serde_json::{Map, Value, json};

use crate::{
    find::{Hit, text},
    index::Index,
    query::Query,
    step::Step,
};

/// Where a word was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the tool's name.
    Name,
    /// In its title or description.
    Description,
    /// In names or descriptions of its parameters.
    Parameters,
    /// In its server's name.
    Server,
}

impl Place {
    /// As it is written in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
            Self::Parameters => "parameters",
            Self::Server => "server",
        }
    }
}

/// One word of a request and where a tool has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    /// The word that was looked for.
    pub word: String,
    /// How much it counts in the request.
    pub weight: f32,
    /// Whether it was put in place of a word that nobody knows.
    pub is_correction: bool,
    /// Where it was found; nowhere if empty.
    pub places: Vec<Place>,
}

impl Index {
    /// The words of a request, in order, and where a document has them. Words that say nothing are
    /// left out.
    #[must_use]
    pub fn explain(&self, query: &Query<'_>, doc: usize) -> Vec<Matched> {
        let Some(analysis) = self.analyses.get(doc) else { return Vec::new() };
        let fields = [Place::Name, Place::Description, Place::Parameters];
        let words = Step::new(self, &text(query)).words.into_iter();
        words
            .filter(|word| word.weight > 0.0)
            .map(|word| {
                let has = |at: &usize| {
                    analysis.fields[*at].binary_search_by_key(&word.term, |(term, _)| *term).is_ok()
                };
                let mut places: Vec<_> =
                    (0..fields.len()).filter(has).map(|at| fields[at]).collect();
                if self.servers.is_in_name(self.servers.of(doc), word.name.0) {
                    places.push(Place::Server);
                }
                Matched {
                    word: word.text,
                    weight: word.weight,
                    is_correction: word.is_fixed,
                    places,
                }
            })
            .collect()
    }

    /// How a hit came to its score, as one JSON object: `parts` (what each added), their `sum`, the
    /// sum `needed` for a good match, and `words` with the places that have them.
    #[must_use]
    pub fn explanation(&self, query: &Query<'_>, hit: &Hit) -> Value {
        let rounded = |value: f32| json!((f64::from(value) * 100.0).round() / 100.0);
        let added = hit.parts.contributions();
        let parts: Map<String, Value> =
            added.iter().map(|(name, value)| ((*name).to_owned(), rounded(*value))).collect();
        let words = self.explain(query, hit.doc).into_iter().map(|word| {
            let places: Vec<&str> = word.places.iter().map(|place| place.as_str()).collect();
            json!({
                "word": word.word,
                "weight": rounded(word.weight),
                "correction": word.is_correction,
                "places": places,
            })
        });
        json!({
            "parts": parts,
            "sum": rounded(hit.parts.sum()),
            "needed": rounded(hit.needed),
            "words": Value::from_iter(words),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    #[test]
    fn an_explanation_adds_up_and_names_words_places_and_corrections() {
        let tools = [("create_issue", "Opens a new issue"), ("list_commits", "Lists commits")];
        let tools = tools.map(|(name, about)| Document::plain("tracker", name, about, []));
        let index = Index::build(tools.to_vec());
        let query = Query { description: "open an isssue", ..Query::default() };
        let found = index.search(&query, &|_| true, 1);
        let told = index.explanation(&query, &found.hits[0]);
        let parts = told["parts"].as_object().expect("parts");
        let sum: f64 = parts.values().filter_map(Value::as_f64).sum();
        assert!((sum - told["sum"].as_f64().expect("a sum")).abs() < 0.1, "{told}");
        assert_eq!(found.has_good_match, sum >= told["needed"].as_f64().expect("a threshold"));
        let words = told["words"].as_array().expect("words");
        let issue = words.iter().find(|it| it["word"] == "issue").expect("the word that is meant");
        assert_eq!(issue["correction"], true);
        assert_eq!(issue["places"], json!(["name", "description"]));
    }
}
