//! Characters that a model reads and a person does not see.

/// Whether a text holds any: letters of the tags block, direction marks, characters without
/// width, selectors of variants that carry data.
#[must_use]
pub fn has_hidden_text(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(is_hidden)
}

const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_seen_and_visible_ones_are_not_taken_for_them() {
        for text in ["a\u{200b}", "\u{e0041}", "x\u{202e}y", "\u{feff}a", "a\u{2066}b"] {
            assert!(has_hidden_text(text), "{text:?}");
        }
        for text in ["plain", "grün", "検索", "🌊\u{fe0f}", "a\nb"] {
            assert!(!has_hidden_text(text), "{text:?}");
        }
    }
}
