//! Products that a request names, and whether any tool has to do with them.
//!
//! "Airtable: add a record" has no answer where nothing is about Airtable, however well some tool
//! adds records. People's own words ("put the milk on my list") score no higher than such a request
//! does, so the sum alone cannot tell the two apart; the name can.
//!
//! Rules kept here:
//! - A product is named by a word of the table (`model/products.txt`), by what stands before a
//!   colon at the beginning as `find_tool` asks for it, or by the server that is asked for.
//! - Names within data, or within a compound, are the user's own.
//! - It is there if a tool or a server writes any of its names, or any word of what stands before
//!   the colon. Of several products one that is there is enough.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use crate::{
    document::cut,
    lexicon::is_stop,
    postings::{Plain, Term, term},
    words::{Form, Word, words},
};

const TABLE: &str = include_str!("../model/products.txt");

/// Words before a colon that can be a name.
const NAME_WORDS: usize = 3;
/// Bytes of a name as it is told again.
const SAID_MAX: usize = 40;

/// A product that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    /// As the request writes it.
    pub(crate) said: String,
    /// All names, in lower case: any of them will do.
    pub(crate) names: Vec<String>,
}

/// A name of the table.
struct KnownName {
    /// All names of the product.
    names: &'static str,
    /// Whether it is a word of the language too.
    is_word: bool,
}

fn table() -> &'static HashMap<Term, KnownName, Plain> {
    static READ: LazyLock<HashMap<Term, KnownName, Plain>> = LazyLock::new(|| {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let mut table = HashMap::default();
        for names in lines.flat_map(str::split_whitespace) {
            for name in names.split('/') {
                let is_word = name.starts_with(char::is_uppercase);
                table.insert(term(&name.to_lowercase()), KnownName { names, is_word });
            }
        }
        table
    });
    &READ
}

/// The products that a text names: its words, and which spans of it are data.
pub(crate) fn products(text: &str, words: &[Word], data: &[Range<usize>]) -> Vec<Product> {
    let mut found: Vec<Product> = opening(text).and_then(whole).into_iter().collect();
    let is_datum = |word: &Word| data.iter().any(|span| span.contains(&word.at));
    for word in words.iter().filter(|word| word.form != Form::Part) {
        let Some(known) = table().get(&term(&word.text)) else { continue };
        let is_product = !known.is_word || is_name(text, word);
        if is_product && !is_datum(word) && !is_compound(text, word) {
            let said = text.get(word.at..word.at + word.text.len()).unwrap_or(&word.text);
            let names = known.names.to_lowercase().split('/').map(str::to_owned).collect();
            found.push(Product { said: said.to_owned(), names });
        }
    }
    found
}

/// What stands before a colon at the beginning, if it looks like a name.
fn opening(text: &str) -> Option<&str> {
    let (name, rest) = text.trim_start().split_once(':')?;
    let is_short = name.split_whitespace().count() <= NAME_WORDS && name.len() <= SAID_MAX;
    let is_written = name.starts_with(char::is_uppercase) || !name.contains(' ');
    let is_named = is_written && rest.starts_with(' ');
    (is_short && is_named).then_some(name)
}

/// A text that is a name as a whole: any of its words will do.
pub(crate) fn whole(name: &str) -> Option<Product> {
    let words = words(name).into_iter().map(|word| word.text);
    let names: Vec<String> = words.filter(|word| word.len() > 1 && !is_stop(word)).collect();
    let said = cut(name.trim(), SAID_MAX).to_owned();
    (!names.is_empty()).then_some(Product { said, names })
}

/// Whether a word is written like a name: with a capital letter that no beginning explains.
fn is_name(text: &str, word: &Word) -> bool {
    let (before, rest) = text.split_at(text.floor_char_boundary(word.at));
    let begins = before.trim_end().chars().next_back();
    let is_inside = begins.is_some_and(|mark| !matches!(mark, '.' | '?' | '!' | '"' | '“' | '\''));
    let after = rest.get(word.text.len()..).unwrap_or_default();
    rest.starts_with(char::is_uppercase) && (is_inside || after.starts_with(':'))
}

/// Whether a word is a part of something longer, like `redis-cache-2`: that is a thing of the
/// user's.
fn is_compound(text: &str, word: &Word) -> bool {
    let is_mark = |c: Option<char>| matches!(c, Some('-' | '_' | '/' | '@'));
    let before = text.get(..word.at).and_then(|it| it.chars().next_back());
    let after = text.get(word.at + word.text.len()..);
    is_mark(before) || is_mark(after.and_then(|it| it.chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::data;

    fn named(text: &str) -> Vec<Product> {
        products(text, &words(text), &data(text).spans)
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = named(text).into_iter().map(|it| it.said).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn known_names_are_products_and_words_only_where_written_like_names() {
        check("add a row to my airtable base", &["airtable"]);
        check("post it to Slack", &["Slack"]);
        check("give me some slack", &[]);
        check("Slack off", &[]);
        check("how many LinkedIn contacts have I", &["LinkedIn"]);
        check("water the tomatoes", &[]);
        check("mail to ann@gmail.com about redis-cache-2", &[]);
    }

    #[test]
    fn what_stands_before_a_colon_is_a_product() {
        check("Vebrik Cloud: list machines", &["Vebrik Cloud"]);
        check("vebrik: list machines", &["vebrik"]);
        check("report a bug: open an issue", &[]);
        check("https://example.com/a", &[]);
        check("This is a long sentence: no name", &[]);
        assert_eq!(whole("the vebrik").map(|it| it.names), Some(vec!["vebrik".to_owned()]));
        assert_eq!(whole(" "), None);
    }

    #[test]
    fn the_table_has_each_name_once() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let all = lines.flat_map(str::split_whitespace).flat_map(|names| names.split('/'));
        let mut all: Vec<String> = all.map(str::to_lowercase).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), table().len()), (count, count));
    }

    #[test]
    fn names_of_one_product_go_together() {
        let names = named("a query on postgresql").remove(0).names;
        assert_eq!(names, ["postgres", "postgresql"]);
    }
}
