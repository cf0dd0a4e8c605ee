//! What speaks for a tool, part by part, and how the parts become one sum.
//!
//! The sum is linear, so that an explanation can show what each part added. Whether a sum is good
//! enough is in `judge`.

/// What speaks for one tool. Each part is about 0 to 1, the likenesses -1 to 1, the deeds -1 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The request's words found in name, description and parameters (BM25F), of all it could be.
    pub words: f32,
    /// How much of the tool's name the request says.
    pub name: f32,
    /// Pairs of words in the same order.
    pub pairs: f32,
    /// Runs of three and four letters in common.
    pub letters: f32,
    /// How rare the words are that the request says of the server's name.
    pub server: f32,
    /// How much of the server's name the request says.
    pub server_name: f32,
    /// Likeness in meaning to name and description, by the word model or by external vectors.
    pub meaning: f32,
    /// Likeness in meaning to the server's own words.
    pub server_meaning: f32,
    /// 1 if the tool does what the request wants done, -1 if it does something else, 0 if unknown.
    pub deeds: f32,
}

/// How much each part counts: the weights under which the right tools of several labelled sets are
/// most likely, each set counting the same (docs/tool-search.md).
pub(crate) const WEIGHTS: Parts = Parts {
    words: 4.0,
    name: 0.2,
    pairs: 4.0,
    letters: 5.8,
    server: 8.8,
    server_name: 6.8,
    meaning: 14.2,
    server_meaning: 7.0,
    deeds: 0.1,
};

/// How much more the deeds count where the request names the server.
const DEEDS_NAMED: f32 = 1.75;

impl Parts {
    /// What each part adds to the sum, under the name of its field.
    #[must_use]
    pub fn contributions(&self) -> [(&'static str, f32); 9] {
        let weights = WEIGHTS;
        let deeds = weights.deeds + DEEDS_NAMED * self.server_name;
        [
            ("words", weights.words * self.words),
            ("name", weights.name * self.name),
            ("pairs", weights.pairs * self.pairs),
            ("letters", weights.letters * self.letters),
            ("server", weights.server * self.server),
            ("server_name", weights.server_name * self.server_name),
            ("meaning", weights.meaning * self.meaning),
            ("server_meaning", weights.server_meaning * self.server_meaning),
            ("deeds", deeds * self.deeds),
        ]
    }

    /// The weighted sum.
    pub(crate) fn sum(&self) -> f32 {
        let Self {
            words,
            name,
            pairs,
            letters,
            server,
            server_name,
            meaning,
            server_meaning,
            deeds,
        } = WEIGHTS;
        words * self.words
            + name * self.name
            + pairs * self.pairs
            + letters * self.letters
            + server * self.server
            + server_name * self.server_name
            + meaning * self.meaning
            + server_meaning * self.server_meaning
            + (deeds + DEEDS_NAMED * self.server_name) * self.deeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parts_add_is_the_whole_sum() {
        let parts = Parts {
            words: 0.1,
            name: 0.2,
            pairs: 0.3,
            letters: 0.4,
            server: 0.5,
            server_name: 0.6,
            meaning: -0.7,
            server_meaning: 0.8,
            deeds: -1.0,
        };
        let added: f32 = parts.contributions().iter().map(|(_, value)| value).sum();
        assert!((added - parts.sum()).abs() < 1e-4, "{added} {}", parts.sum());
    }
}
