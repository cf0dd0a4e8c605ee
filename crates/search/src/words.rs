//! Words of a text: what a name like `getPullRequest` or `s3_bucket_create` is made of.
//!
//! Rules kept here:
//! - A run of letters and digits is a word. Where its case or its kind of character changes it is
//!   also the parts between, so that `GitHub` is found by `github` and `DynamoDB` by `dynamo`.
//! - Words are in lower case and at most [`WORD_MAX`] bytes; a longer run is no word.
//! - Scripts without spaces give pairs of characters.
//! - Characters that people do not see are left out: they neither hide a word nor split one.

/// Bytes of a word: the longest in the index are about thirty; anything longer is data.
pub(crate) const WORD_MAX: usize = 48;

/// How a word stands in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A run that has no parts.
    Whole,
    /// A whole run, whose parts follow.
    Joined,
    /// A part of the run before it.
    Part,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) form: Form,
    /// Where its run begins, in bytes.
    pub(crate) at: usize,
}

/// The words of a text, in order.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut run: Vec<char> = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() {
            if run.is_empty() {
                start = at;
            }
            run.push(c);
        } else if !has_no_width(c) {
            take(&mut run, start, &mut found);
        }
    }
    take(&mut run, start, &mut found);
    found
}

fn take(run: &mut Vec<char>, at: usize, found: &mut Vec<Word>) {
    if run.is_empty() {
        return;
    }
    let mut push = |chars: &[char], form| {
        let text: String = chars.iter().flat_map(|c| c.to_lowercase()).collect();
        if text.len() <= WORD_MAX {
            found.push(Word { text, form, at });
        }
    };
    if run.iter().any(|c| is_unspaced(*c)) {
        match run.len() {
            1 => push(run, Form::Whole),
            // A run without end is data: the first pairs are enough.
            _ => run.windows(2).take(256).for_each(|pair| push(pair, Form::Whole)),
        }
    } else {
        let cuts = cuts(run);
        if cuts.is_empty() {
            push(run, Form::Whole);
        } else if run.len() <= WORD_MAX {
            push(run, Form::Joined);
            let mut from = 0;
            for to in cuts.into_iter().chain([run.len()]) {
                push(&run[from..to], Form::Part);
                from = to;
            }
        }
    }
    run.clear();
}

/// Where a run is cut: `aB`, `1a`, `a1`, and before the last capital of `ABCd`, but not in `URLs`.
fn cuts(run: &[char]) -> Vec<usize> {
    let mut cuts = Vec::new();
    for at in 1..run.len() {
        let (before, here) = (run[at - 1], run[at]);
        let next = run.get(at + 1);
        let is_plural = at + 2 == run.len() && next == Some(&'s');
        let is_cut = before.is_numeric() != here.is_numeric()
            || (before.is_lowercase() && here.is_uppercase())
            || (before.is_uppercase()
                && here.is_uppercase()
                && next.is_some_and(|next| next.is_lowercase())
                && !is_plural);
        if is_cut {
            cuts.push(at);
        }
    }
    cuts
}

/// Whether a character is not shown: a soft hyphen, a mark of direction, a joiner, a tag.
const fn has_no_width(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e01ef}')
}

/// Whether a character is of a script that puts no spaces between words.
const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{2ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = words(text).into_iter().map(|word| word.text).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn identifiers_are_split_and_kept() {
        check("getPullRequest", &["getpullrequest", "get", "pull", "request"]);
        check("s3_bucket-create", &["s3", "s", "3", "bucket", "create"]);
        check("HTMLParser", &["htmlparser", "html", "parser"]);
        check("GitHub", &["github", "git", "hub"]);
        check("URLs of APIs", &["urls", "of", "apis"]);
    }

    #[test]
    fn other_scripts_and_hidden_characters_make_words_too() {
        check("検索する", &["検索", "索す", "する"]);
        check("ÜBER größe", &["über", "größe"]);
        check("de\u{200b}lete", &["delete"]);
        check("ابحث عن", &["ابحث", "عن"]);
        check("🌊 -- \"\u{0}\" ", &[]);
    }

    #[test]
    fn data_is_no_word() {
        check(&"a".repeat(WORD_MAX + 1), &[]);
        check(&"aB".repeat(WORD_MAX), &[]);
    }
}
