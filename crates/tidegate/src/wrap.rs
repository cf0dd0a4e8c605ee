//! Fits prose to a width.
//!
//! Rules:
//! - lines that follow each other are one paragraph and are filled again; a blank line ends it;
//! - a line that begins with a space is an example or a table row and stays as it is;
//! - a word longer than the width stands on a line of its own: nothing is ever cut.
//!
//! Columns are counted in characters, which is right for the words we print.

/// `text` with every paragraph filled to at most `width` columns.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with(' ') {
            out.push_str(&fill(&paragraph, width, 0));
            paragraph.clear();
            out.push_str(line);
            out.push('\n');
        } else {
            paragraph.extend(line.split_whitespace());
        }
    }
    out.push_str(&fill(&paragraph, width, 0));
    out
}

/// `words` as lines of at most `width` columns; lines after the first begin with `indent` spaces.
/// Nothing for no words.
pub(crate) fn fill(words: &[&str], width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in words {
        let length = word.chars().count();
        if column == 0 {
            column = length;
        } else if column + 1 + length <= width {
            out.push(' ');
            column += 1 + length;
        } else {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent + length;
        }
        out.push_str(word);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// `text` with every line that is wider than `width` filled to it: what does not fit stands below,
/// two columns further in than the line begins. Lines that fit stay as they are.
pub(crate) fn hanging(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.chars().count() <= width {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let indent = line.chars().take_while(|it| *it == ' ').count();
        let filled = fill(&words, width.saturating_sub(indent).max(1), 2);
        for part in filled.lines() {
            out.push_str(&" ".repeat(indent));
            out.push_str(part);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{fill, hanging, wrap};

    #[test]
    fn a_line_that_is_too_wide_goes_on_below_further_in() {
        let text = "short   and kept\n  one two three four\n";
        assert_eq!(hanging(text, 16), "short   and kept\n  one two three\n    four\n");
        assert_eq!(hanging("  averyveryverylongword\n", 5), "  averyveryverylongword\n");
        assert_eq!(hanging("", 5), "");
    }

    #[test]
    fn a_paragraph_is_filled_and_an_example_is_kept() {
        let text = "one two three\nfour\n\n  kept  as it is, however long\nfive\n";
        let expected = "one two\nthree four\n\n  kept  as it is, however long\nfive\n";
        assert_eq!(wrap(text, 10), expected);
    }

    #[test]
    fn a_word_longer_than_the_width_is_not_cut() {
        assert_eq!(wrap("a breaker b", 3), "a\nbreaker\nb\n");
    }

    #[test]
    fn later_lines_are_indented_and_no_words_make_no_line() {
        assert_eq!(fill(&["aa", "bb", "cc"], 6, 2), "aa bb\n  cc\n");
        assert_eq!(fill(&[], 6, 2), "");
    }
}
