//! Patterns for model and tool names: `*` for any text, `?` for any one character.
//!
//! Rules kept here: nothing else is special, and the characters that are special in other pattern
//! languages are refused, so that nobody believes they work. `*` also matches `/`. Matching takes
//! time proportional to pattern times name at worst.

use crate::diagnostic::quoted;

/// A pattern for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Vec<char>);

impl Glob {
    /// Understands a pattern.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("an empty pattern matches nothing".to_owned());
        }
        if let Some(found) =
            text.chars().find(|c| matches!(c, '[' | ']' | '{' | '}') || c.is_whitespace())
        {
            let found = quoted(&found.to_string());
            return Err(format!("{} holds {found}: only `*` and `?` are special", quoted(text)));
        }
        Ok(Self(text.chars().collect()))
    }

    /// Whether a name fits.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut in_name) = (0, 0);
        // Where to go on if what follows the last star does not fit: the star takes one more.
        let mut retry: Option<(usize, usize)> = None;
        while in_name < name.len() {
            match self.0.get(at) {
                Some('*') => {
                    retry = Some((at + 1, in_name));
                    at += 1;
                }
                Some(c) if *c == '?' || *c == name[in_name] => {
                    at += 1;
                    in_name += 1;
                }
                _ => {
                    let Some((after_star, taken)) = retry else { return false };
                    retry = Some((after_star, taken + 1));
                    at = after_star;
                    in_name = taken + 1;
                }
            }
        }
        self.0[at..].iter().all(|c| *c == '*')
    }

    /// Whether it can fit only its own text.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.0.iter().any(|c| matches!(c, '*' | '?'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        let cases = [
            ("claude-*-haiku", "claude-3-5-haiku", true),
            ("claude-*-haiku", "claude-haiku", false),
            ("*", "a/b", true),
            ("*", "", true),
            ("gpt-4?", "gpt-4o", true),
            ("gpt-4?", "gpt-4", false),
            ("a*b*c", "axxbxxbxc", true),
            ("a*b*c", "axxbxx", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
        ];
        for (pattern, name, expected) in cases {
            let glob = Glob::parse(pattern).expect("a pattern");
            assert_eq!(glob.matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_ends_quickly() {
        let glob = Glob::parse(&"*a".repeat(200)).expect("a pattern");
        assert!(!glob.matches(&"a".repeat(199)));
        assert!(!glob.matches(&"b".repeat(20_000)));
    }

    #[test]
    fn other_pattern_languages_are_refused() {
        for text in ["", "[ab]*", "{a,b}", "a b"] {
            assert!(Glob::parse(text).is_err(), "{text}");
        }
    }
}
