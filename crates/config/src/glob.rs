//! Patterns for model and tool names as a config writes them.
//!
//! The characters that are special in other pattern languages are refused, so that nobody believes
//! they work. What a pattern means is [`Glob`]'s.

use tidegate_text::glob::Glob;

use crate::diagnostic::quoted;

/// Understands a pattern.
///
/// # Errors
/// A lowercase fragment that says what is wrong with it.
pub fn parse(text: &str) -> Result<Glob, String> {
    if text.is_empty() {
        return Err("an empty pattern matches nothing".to_owned());
    }
    let special = |c: &char| matches!(c, '[' | ']' | '{' | '}') || c.is_whitespace();
    if let Some(found) = text.chars().find(special) {
        let found = quoted(&found.to_string());
        return Err(format!("{} holds {found}: only `*` and `?` are special", quoted(text)));
    }
    Ok(Glob::new(text))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn other_pattern_languages_are_refused() {
        for text in ["", "[ab]*", "{a,b}", "a b"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("claude-*").is_ok_and(|glob| glob.matches("claude-haiku")));
    }
}
