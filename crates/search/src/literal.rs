//! Which pieces of a request are data rather than words about a tool.
//!
//! A quoted text, a url, a path, an address, a number or an id is an argument of the tool that is
//! looked for. It says little about which tool that is, and its words may name a wrong one.

use std::ops::Range;

use crate::kinds::{FILE, Kinds, of_piece};

/// Marks that open a quotation, and what closes each.
const QUOTES: [(char, char); 6] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];
/// Letters of a mixture of letters and digits that is an id; `base64` and `oauth2` are not.
const ID_MIN: usize = 7;

/// The data of a request.
#[derive(Debug, Default)]
pub(crate) struct Data {
    /// Where they stand, in order, as bytes.
    pub(crate) spans: Vec<Range<usize>>,
    /// What they are.
    pub(crate) kinds: Kinds,
}

/// The data of a text. Words whose form says what they are, like `tomorrow`, have a kind and are
/// words nevertheless.
pub(crate) fn data(text: &str) -> Data {
    let spans = literals(text);
    let pieces = spans.iter().map(|span| &text[span.clone()]);
    let words = text.split_whitespace().map(|word| word.trim_matches(PUNCTUATION));
    let kinds = pieces.chain(words).fold(0, |kinds, piece| kinds | of_piece(piece));
    Data { spans, kinds }
}

/// Marks around a word that are none of it.
const PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '?', '!', '(', ')', '…'];

/// The spans of a text that are data, in order, as bytes.
fn literals(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let is_start =
            text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
        let end = if is_start { quotation(text, at, c).or_else(|| datum(text, at)) } else { None };
        if let Some(end) = end {
            found.push(at..end);
            at = end;
        } else {
            at += c.len_utf8();
        }
    }
    found
}

/// The end of a quotation that begins here and is closed before a letter would follow.
fn quotation(text: &str, at: usize, open: char) -> Option<usize> {
    let (_, close) = QUOTES.iter().find(|(known, _)| *known == open)?;
    let inside = at + open.len_utf8();
    let rest = &text[inside..];
    let ends = rest.match_indices(*close).map(|(found, mark)| (found, found + mark.len()));
    let is_end = |(_, after): &(usize, usize)| {
        rest[*after..].chars().next().is_none_or(|next| !next.is_alphanumeric())
    };
    let (start, end) = ends.into_iter().find(is_end)?;
    (start > 0).then_some(inside + end)
}

/// The end of a datum that begins here, up to the next white space.
fn datum(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let piece = rest[..length].trim_end_matches(['.', ',', ';', ':', '?', '!', ')', '\'', '"']);
    is_datum(piece).then_some(at + piece.len())
}

fn is_datum(piece: &str) -> bool {
    let letters = piece.chars().filter(|c| c.is_alphabetic()).count();
    let digits = piece.chars().filter(|c| c.is_numeric()).count();
    if letters + digits == 0 {
        return false;
    }
    let is_number = letters == 0;
    let is_id = digits > 0 && letters + digits >= ID_MIN && !piece.contains(['-', '.', '/', '\'']);
    let is_dated = digits >= 4;
    let is_place = piece.contains("://")
        || piece.starts_with(['/', '~', '@'])
        || piece.contains("::")
        || piece.matches(['/', '\\']).count() >= 2
        || (piece.contains('@') && piece.contains('.'));
    let is_file = of_piece(piece) & FILE != 0;
    is_number || is_id || is_dated || is_place || is_file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = literals(text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn quotations_urls_paths_and_ids_are_data() {
        check("commit with message 'fix typo'", &["'fix typo'"]);
        check("open https://example.com/a?b=c, please", &["https://example.com/a?b=c"]);
        check("read ~/notes/todo.md or /etc/hosts.", &["~/notes/todo.md", "/etc/hosts"]);
        check("mail jane@x.com about 86abc123", &["jane@x.com", "86abc123"]);
        check("where age > 30", &["30"]);
        check("rows of sales.csv", &["sales.csv"]);
    }

    #[test]
    fn words_and_short_names_are_not() {
        check("what's in my S3 bucket? don't list EC2's", &[]);
        check("base64 and oauth2 via k8s/helm", &[]);
        check("the 'unclosed", &[]);
        check("", &[]);
    }
}
