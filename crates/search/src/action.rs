//! What a request wants done and what a tool does: classes of actions.
//!
//! A verb belongs to one or more classes, and so does a phrase: to open an issue is to create it,
//! to open a page is to look at it. A class reads, or it writes. Request and tool agree in two
//! ways, which are scored apart: whether they share a class, and whether both read or both write.

use crate::{
    classes::{
        CAPTURE, COMPARE, CONNECT, CONVERT, COUNT, Classes, GET, JUDGE, LIST, NAVIGATE, RUN,
        SEARCH, TYPE,
    },
    verbs::{PHRASES, VERBS},
    words::{Form, Word},
};

/// Classes that change nothing.
const READS: Classes = GET | LIST | SEARCH | COUNT | JUDGE | CAPTURE | COMPARE;
/// Classes that change nothing in some tools and something in others.
const EITHER: Classes = CONVERT | NAVIGATE | RUN | CONNECT | TYPE;
/// What a request wants that names a thing and no action.
pub(crate) const ASKED: Classes = GET | LIST | SEARCH;

/// Words of a description that may hold the verb of a tool whose name has none.
const DESCRIPTION_WORDS: usize = 4;
/// Words between the verb of a phrase and its object.
const GAP: usize = 4;

/// Whether something reads, writes, or may do either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// It is not known.
    #[default]
    Unknown,
    /// It changes nothing.
    Reads,
    /// It changes something.
    Writes,
}

/// What a request wants done, or what a tool does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) classes: Classes,
    pub(crate) effect: Effect,
}

impl Action {
    fn new(classes: Classes) -> Self {
        let effect = match (classes & READS != 0, classes & !(READS | EITHER) != 0) {
            (true, false) => Effect::Reads,
            (false, true) => Effect::Writes,
            _ => Effect::Unknown,
        };
        Self { classes, effect }
    }

    /// What a tool does: by the verbs of its name, else by the first of its description. A verb of
    /// the name that is usually a noun, as in `git_log`, says less than a description that begins
    /// with reading ("Shows the commit logs"). What its server says outright, that it only reads or
    /// that it destroys, goes before any verb.
    pub(crate) fn of_tool(name: &[Word], description: &[Word], said: Effect) -> Self {
        let verb = verb_of(name);
        let named = Self::new(verb.map_or(0, |word| classes(&word.text)));
        let described = description.iter().filter(|word| word.form != Form::Joined);
        let begun = described.clone().next().map_or(0, |word| classes(&word.text));
        let begun = Self::new(begun);
        let is_noun = verb.is_some_and(|word| NOUNS.contains(&bare(&word.text)));
        let action = if verb.is_none() {
            let mut classes = described.take(DESCRIPTION_WORDS).map(|word| classes(&word.text));
            Self::new(classes.find(|found| *found != 0).unwrap_or(0))
        } else if is_noun && named.effect == Effect::Writes && begun.effect == Effect::Reads {
            begun
        } else {
            named
        };
        if said == Effect::Unknown { action } else { Self { effect: said, ..action } }
    }

    /// What a request wants: by its first phrase or verb. A question reads.
    pub(crate) fn of_request<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let words: Vec<&str> = words.collect();
        let phrase = (0..words.len()).find_map(|at| Some((at, phrase(&words[at..])?)));
        let verb = (0..words.len()).find_map(|at| Some((at, verb(&words, at)?)));
        // In "find open issues" the first verb says what is wanted, and `open` is no verb.
        let phrase = phrase.filter(|(at, _)| verb.is_none_or(|(first, _)| *at <= first));
        match (phrase, verb) {
            (Some((_, found)), _) => Self::new(found),
            _ if is_question(&words) => {
                Self::new(asked(&words) | verb.map_or(0, |(_, found)| found & READS))
            }
            (None, Some((_, found))) => Self::new(found),
            (None, None) => Self { classes: ASKED, effect: Effect::Unknown },
        }
    }

    /// Whether the two share a class: 1 if so, 0 if they do not or if either is unknown.
    pub(crate) const fn shared(self, other: Self) -> f32 {
        if self.classes & other.classes == 0 { 0.0 } else { 1.0 }
    }

    /// 1 if both read or both write, -1 if one reads and the other writes, 0 if either is unknown.
    pub(crate) fn agreement(self, other: Self) -> f32 {
        match (self.effect, other.effect) {
            (Effect::Unknown, _) | (_, Effect::Unknown) => 0.0,
            (one, two) if one == two => 1.0,
            _ => -1.0,
        }
    }
}

/// The word of a name that says what the tool does: the first verb, and the first one that is no
/// usual noun if there is any.
pub(crate) fn verb_of(name: &[Word]) -> Option<&Word> {
    let verbs = || name.iter().filter(|word| classes(&word.text) != 0);
    verbs().find(|word| !NOUNS.contains(&bare(&word.text))).or_else(|| verbs().next())
}

/// Verbs that are nouns more often in names of tools.
const NOUNS: &[&str] = &[
    "backup",
    "benchmark",
    "block",
    "book",
    "call",
    "charge",
    "chart",
    "comment",
    "commit",
    "count",
    "design",
    "diff",
    "email",
    "end",
    "file",
    "filter",
    "flag",
    "forecast",
    "fork",
    "hash",
    "host",
    "invoice",
    "issue",
    "label",
    "link",
    "log",
    "merge",
    "message",
    "name",
    "note",
    "order",
    "patch",
    "plan",
    "post",
    "profile",
    "pull",
    "purchase",
    "push",
    "query",
    "queue",
    "rank",
    "rate",
    "record",
    "refund",
    "release",
    "reply",
    "review",
    "schedule",
    "score",
    "screenshot",
    "share",
    "snapshot",
    "stage",
    "star",
    "summary",
    "tag",
    "test",
    "text",
    "trade",
    "transfer",
    "type",
    "view",
    "watch",
];

/// Words that begin a question.
const QUESTIONS: &[&str] = &[
    "what", "which", "who", "whose", "where", "when", "how", "is", "are", "do", "does", "did",
    "has", "have", "was", "were", "why", "any",
];

/// Whether a request is a question: `have` begins one only before whom it asks about.
fn is_question(words: &[&str]) -> bool {
    match words {
        ["have" | "has" | "do" | "does" | "did", next, ..] => !VERB_AFTER.contains(next),
        [first, ..] => QUESTIONS.contains(first),
        [] => false,
    }
}

/// Words after which `have` and `do` begin an order: "have the report sent", "do a search".
const VERB_AFTER: &[&str] = &["a", "an", "it", "this", "that", "these", "those"];

/// What a question wants: a list if it asks for things, one of them or a list else.
fn asked(words: &[&str]) -> Classes {
    let is_plural =
        |word: &&str| word.len() > 4 && bare(word).len() < word.len() && *word != "does";
    let is_which = matches!(words.first(), Some(&("what" | "which" | "any")));
    let is_of_many = is_which && words.iter().skip(1).take(2).any(is_plural);
    if is_of_many { LIST | SEARCH } else { ASKED }
}

/// The classes of a phrase that begins here.
fn phrase(words: &[&str]) -> Option<Classes> {
    let (first, rest) = words.split_first()?;
    let first = bare(first);
    let found = PHRASES.iter().filter(|phrase| phrase.verb == first).find(|phrase| {
        let near = rest.iter().take(if phrase.is_close { 1 } else { GAP });
        let mut near = near.take_while(|word| !CLAUSES.contains(word));
        near.any(|word| phrase.then.contains(word) || phrase.then.contains(&bare(word)))
    })?;
    Some(found.classes)
}

/// Words that begin another clause: what follows is no object of the verb before.
const CLAUSES: &[&str] = &["and", "then", "that", "which", "because", "so", "but"];

/// The classes of a verb that stands here. A word after an article or a preposition is a noun.
fn verb(words: &[&str], at: usize) -> Option<Classes> {
    let before = at.checked_sub(1).map(|at| words[at]);
    let is_noun = before.is_some_and(|word| NOUN_AFTER.contains(&word));
    let found = classes(words[at]);
    (found != 0 && !is_noun).then_some(found)
}

/// Words before a noun.
const NOUN_AFTER: &[&str] = &[
    "a", "an", "the", "my", "our", "your", "his", "her", "their", "this", "that", "these", "those",
    "of", "in", "on", "at", "for", "from", "by", "with", "some", "any", "each", "every", "all",
];

/// The classes of a verb; none if it is no verb that is known.
pub(crate) fn classes(word: &str) -> Classes {
    let of = |word: &str| VERBS.binary_search_by(|(verb, _)| (*verb).cmp(word)).ok();
    let hissing = || word.strip_suffix("es").and_then(of);
    of(word).or_else(|| of(bare(word))).or_else(hissing).map_or(0, |at| VERBS[at].1)
}

/// A word without the ending of a plural or of a third person.
fn bare(word: &str) -> &str {
    word.strip_suffix('s').filter(|bare| bare.len() > 2 && !bare.ends_with('s')).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    fn asked(text: &str) -> Action {
        let words = words(text);
        Action::of_request(words.iter().map(|word| word.text.as_str()))
    }

    fn tool(name: &str) -> Action {
        Action::of_tool(&words(name), &[], Effect::Unknown)
    }

    #[test]
    fn the_table_is_sorted_and_without_doubles() {
        assert!(VERBS.is_sorted_by(|one, next| one.0 < next.0));
    }

    #[track_caller]
    fn check(request: &str, better: &str, worse: &str) {
        let value = |name| asked(request).shared(tool(name)) + asked(request).agreement(tool(name));
        assert!(value(better) > value(worse), "{request}: {better}, not {worse}");
    }

    #[test]
    fn phrases_say_more_than_their_verbs() {
        check("open an issue about the crash", "create_issue", "get_issue");
        check("open the page in a browser", "navigate_page", "create_page");
        check("commit my staged changes", "git_commit", "git_diff_staged");
        check("roll back the last release", "restore_release", "get_release");
        check("get rid of the old branch", "delete_branch", "get_branch");
        check("let Maria know that I am late", "send_message", "get_message");
        check("set up a new project", "create_project", "list_projects");
        check("put the milk on my list", "add_item", "list_items");
        check("turn this page into a PDF", "convert_page", "delete_page");
        check("change the list of guests", "update_list", "list_guests");
    }

    #[test]
    fn questions_read_and_nouns_are_no_verbs() {
        assert_eq!(asked("which updates are there for my phone").effect, Effect::Reads);
        assert_eq!(asked("show the post of yesterday").effect, Effect::Reads);
        assert_eq!(asked("delete the list of names").effect, Effect::Writes);
        assert_eq!(asked("weather in Rome").effect, Effect::Unknown);
        assert_eq!(asked("find open issues about the login").effect, Effect::Reads);
        assert_eq!(asked("do a backup of the disk").effect, Effect::Unknown);
        assert_eq!(asked("did anybody delete the backup").effect, Effect::Reads);
    }

    #[test]
    fn a_name_that_ends_in_a_noun_does_not_write_what_its_description_shows() {
        let does = |name: &str, text: &str| {
            Action::of_tool(&words(name), &words(text), Effect::Unknown).effect
        };
        assert_eq!(does("git_log", "Shows the commit logs"), Effect::Reads);
        assert_eq!(does("container_logs", "Fetch the logs of a container"), Effect::Reads);
        assert_eq!(does("log_call", "Record a phone call with a contact"), Effect::Writes);
        assert_eq!(does("git_commit", "Records changes to the repository"), Effect::Writes);
        assert_eq!(does("create_log", "Shows nothing, creates a log"), Effect::Writes);
    }

    #[test]
    fn what_a_server_says_goes_before_the_verb() {
        let said = Action::of_tool(&words("run_query"), &[], Effect::Reads);
        assert_eq!((said.effect, said.classes), (Effect::Reads, tool("run_query").classes));
    }
}
