//! What speaks for a tool, part by part, and how the parts become one sum.
//!
//! The sum is linear, so that an explanation can show what each part added. Whether a sum is good
//! enough is in `judge`.

/// How many parts there are.
pub const PARTS: usize = 17;

/// The names of the parts, in order.
pub const NAMES: [&str; PARTS] = [
    "words",
    "pairs",
    "letters",
    "soft",
    "server",
    "server_name",
    "meaning",
    "server_meaning",
    "server_tools",
    "action",
    "effect",
    "kinds",
    "concepts",
    "server_concepts",
    "sentence",
    "server_sentence",
    "server_sentences",
];

/// How much each part counts: the weights under which the right tools of several labelled sets are
/// most likely (docs/tool-search.md says how they were fitted).
static WEIGHTS: [f32; PARTS] =
    [3.3, 6.4, 2.5, 2.1, 6.1, 7.8, 16.6, 2.6, 1.6, 2.2, 0.6, 1.0, 1.9, 9.1, 0.0, 0.0, 0.0];

/// The same where a sentence model has read the request: it takes the place of much that letters,
/// near words and the word model say.
static SENTENCE_WEIGHTS: [f32; PARTS] =
    [2.9, 6.5, 1.3, 0.2, 3.6, 6.7, 13.5, 1.0, 0.0, 2.2, 0.5, 1.0, 1.4, 8.4, 8.4, 2.5, 1.4];

/// What speaks for one tool. Each part is about 0 to 1; likenesses and the effect are -1 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The request's words found in name, description and parameters (BM25F), of all it could be.
    pub words: f32,
    /// Pairs of words in the same order.
    pub pairs: f32,
    /// Runs of three and four letters in common.
    pub letters: f32,
    /// Words found that are near those of the request by the word model.
    pub soft: f32,
    /// How rare the words are that the request says of the server's name.
    pub server: f32,
    /// How much of the server's name the request says.
    pub server_name: f32,
    /// Likeness in meaning to name and description, by the word model or by external vectors; less
    /// for a request of few words.
    pub meaning: f32,
    /// Likeness in meaning to the server's own words.
    pub server_meaning: f32,
    /// Likeness in meaning to the server's tools together.
    pub server_tools: f32,
    /// Whether the tool does what the request wants done, as far as the request names its server.
    pub action: f32,
    /// 1 if both read or both write, -1 if one reads and the other writes, 0 if that is unknown.
    pub effect: f32,
    /// Which share of the kinds of values in the request the tool takes.
    pub kinds: f32,
    /// How far it is about the same things, by the table of them.
    pub concepts: f32,
    /// How far its server is about the same things.
    pub server_concepts: f32,
    /// Likeness to the tool by a sentence model.
    pub sentence: f32,
    /// Likeness to what its server says of itself, by that model.
    pub server_sentence: f32,
    /// Likeness to its server's tools together, by that model.
    pub server_sentences: f32,
    /// Whether a sentence model has read the request, which changes what the parts count.
    pub is_read: bool,
}

impl Parts {
    /// The values, in the order of [`NAMES`].
    #[must_use]
    pub const fn values(&self) -> [f32; PARTS] {
        [
            self.words,
            self.pairs,
            self.letters,
            self.soft,
            self.server,
            self.server_name,
            self.meaning,
            self.server_meaning,
            self.server_tools,
            self.action,
            self.effect,
            self.kinds,
            self.concepts,
            self.server_concepts,
            self.sentence,
            self.server_sentence,
            self.server_sentences,
        ]
    }

    /// What each part adds to the sum, under the name of its field.
    #[must_use]
    pub fn contributions(&self) -> [(&'static str, f32); PARTS] {
        let values = self.values();
        let weights = self.weights();
        std::array::from_fn(|at| (NAMES[at], weights[at] * values[at]))
    }

    /// The weighted sum.
    pub(crate) fn sum(&self) -> f32 {
        self.values().iter().zip(self.weights()).map(|(value, weight)| value * weight).sum()
    }

    const fn weights(&self) -> &'static [f32; PARTS] {
        if self.is_read { &SENTENCE_WEIGHTS } else { &WEIGHTS }
    }

    /// The weighted sum of what speaks for the tool itself, whatever its server.
    pub(crate) fn own_sum(&self) -> f32 {
        let own = Self {
            server: 0.0,
            server_name: 0.0,
            server_meaning: 0.0,
            server_tools: 0.0,
            server_concepts: 0.0,
            server_sentence: 0.0,
            server_sentences: 0.0,
            ..*self
        };
        own.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parts_add_is_the_whole_sum() {
        let parts = Parts { words: 0.1, meaning: -0.7, kinds: 0.5, ..Parts::default() };
        let added: f32 = parts.contributions().iter().map(|(_, value)| value).sum();
        assert!((added - parts.sum()).abs() < 1e-4, "{added} {}", parts.sum());
    }
}
