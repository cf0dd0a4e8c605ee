//! Which words of a request were found where in a tool, for people who wonder about a ranking.

use super::{
    find::text,
    index::Index,
    query::{Query, Step},
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
}
