//! Patterns for names of models and tools: `*` for any text, `/` included, `?` for any one
//! character; nothing else is special.
//!
//! Matching looks for the pieces between stars one after the other, each as early as possible, and
//! never goes back: time is at worst the product of both lengths, and there is no pattern that
//! takes longer.

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Vec<char>);

impl Glob {
    /// Any text is a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// Whether a name fits as a whole.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let mut pieces = self.0.split(|c| *c == '*');
        let first = pieces.next().unwrap_or_default();
        let Some(last) = pieces.next_back() else {
            return name.len() == first.len() && fits(first, &name);
        };
        if name.len() < first.len() + last.len() {
            return false;
        }
        let (head, rest) = name.split_at(first.len());
        let (mut rest, tail) = rest.split_at(rest.len() - last.len());
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let Some(at) = rest.windows(piece.len()).position(|part| fits(piece, part)) else {
                return false;
            };
            rest = &rest[at + piece.len()..];
        }
        fits(first, head) && fits(last, tail)
    }

    /// Whether it can fit only its own text.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.0.iter().any(|c| matches!(c, '*' | '?'))
    }
}

/// Whether a text fits a piece of equal length.
fn fits(piece: &[char], text: &[char]) -> bool {
    piece.iter().zip(text).all(|(want, have)| *want == '?' || want == have)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, name, expected) in [
            ("repo_*", "repo_list", true),
            ("repo_*", "repo", false),
            ("*_delete", "a_delete", true),
            ("*", "", true),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("a*b*c", "axxbxxbxc", true),
            ("a*b*c", "axxbxx", false),
            ("ab*ba", "aba", false),
            ("*ab*ab*", "xabyabz", true),
            ("*?b*", "b", false),
            ("*", "a/b", true),
            ("claude-*-haiku", "claude-3-5-haiku", true),
            ("claude-*-haiku", "claude-haiku", false),
            ("gpt-4?", "gpt-4", false),
            ("exact", "exactly", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_ends_quickly() {
        let glob = Glob::new(&"*a".repeat(200));
        assert!(!glob.matches(&"a".repeat(199)));
        assert!(!glob.matches(&"b".repeat(20_000)));
    }
}
