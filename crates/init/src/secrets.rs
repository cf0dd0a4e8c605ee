//! Which values may be secrets, and the environment variables that stand for them.
//!
//! A value that may be a secret is never copied. It is better to ask for a variable too many than
//! to write a key into one more file, so the rules here lean to caution.

use std::collections::BTreeSet;

/// Parts of names whose values are secrets.
const SENSITIVE: &[&str] = &[
    "key",
    "token",
    "secret",
    "pass",
    "auth",
    "credential",
    "cookie",
    "dsn",
    "private",
    "signature",
    "bearer",
    "webhook",
    "connection_string",
    "database_url",
    "_pat",
];

/// How keys of well-known vendors begin.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "hf_",
    "gsk_",
    "eyJ",
    "ntn_",
    "lin_api_",
    "tvly-",
];

/// How the value of an authorization header begins.
const SCHEMES: &[&str] = &["Bearer ", "Basic "];

/// Runs of letters and digits shorter than this are no random keys.
const MIN_RANDOM: usize = 20;

/// So many changes between letters and digits, or to a capital, are not a word or a date.
const MIN_CHANGES: usize = 5;

/// Whether a name is one whose value is a secret.
pub(crate) fn is_sensitive(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SENSITIVE.iter().any(|part| name.contains(part))
}

/// Whether a value looks like a key, a password in a url, or another random text.
pub(crate) fn looks_secret(value: &str) -> bool {
    let is_run = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let words = || value.split(|c: char| !is_run(c));
    let has_prefix = |word: &str| PREFIXES.iter().any(|it| word.starts_with(it) && word != *it);
    SCHEMES.iter().any(|scheme| value.contains(scheme))
        || words().any(has_prefix)
        || has_user(value)
        || words().any(is_random)
}

/// Whether one of a program's arguments is a secret, given the argument before it.
pub(crate) fn is_secret_argument(argument: &str, before: Option<&str>) -> bool {
    let is_value = |text: &str| {
        let text = text.trim();
        let is_harmless = ["", "true", "false", "none"].contains(&text);
        !is_harmless && !text.starts_with(['/', '.', '~', '-'])
    };
    let (name, value) = argument.split_once(['=', ':']).unwrap_or((argument, ""));
    let is_pair = !value.starts_with("//") && is_sensitive(name) && is_value(value);
    let is_after_flag = before.is_some_and(|before| {
        before.starts_with('-') && !before.contains('=') && is_sensitive(before)
    });
    looks_secret(argument) || is_pair || (is_after_flag && is_value(argument))
}

/// Whether a url has a user or a password in it.
fn has_user(value: &str) -> bool {
    let rest = value.split_once("://").map(|(_, rest)| rest);
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    authority.is_some_and(|authority| authority.contains('@'))
}

fn is_random(run: &str) -> bool {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Lower,
        Upper,
        Digit,
    }
    let class = |c: char| match c {
        'a'..='z' => Some(Class::Lower),
        'A'..='Z' => Some(Class::Upper),
        '0'..='9' => Some(Class::Digit),
        _ => None,
    };
    let classes: Vec<Class> = run.chars().filter_map(class).collect();
    // A capital followed by a small letter is how a word begins.
    let begins_word = |pair: &[Class]| pair == [Class::Upper, Class::Lower];
    let changes = classes.windows(2).filter(|pair| pair[0] != pair[1] && !begins_word(pair));
    run.len() >= MIN_RANDOM && changes.count() >= MIN_CHANGES
}

/// Names of environment variables: one for each literal, and none twice.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// Names that the file itself refers to.
    taken: BTreeSet<String>,
    /// Literals that have a name already, so that the same key gets the same variable.
    literals: Vec<(String, String)>,
}

impl Variables {
    /// Knows the variables that a file refers to, in the ways of the products we read.
    pub(crate) fn of(text: &str) -> Self {
        let marks = ["os.environ/", "${env:", "${"];
        let after = |mark: &'static str| text.split(mark).skip(1);
        let name = |rest: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            rest.chars().take_while(|c| is_part(*c)).collect::<String>()
        };
        let taken = marks.into_iter().flat_map(after).map(name).collect();
        Self { taken, literals: Vec::new() }
    }

    /// The variable that stands for a literal.
    pub(crate) fn stand_in(&mut self, literal: &str, wanted: &str) -> String {
        if let Some((_, name)) = self.literals.iter().find(|(known, _)| known == literal) {
            return name.clone();
        }
        let wanted = variable_name(wanted);
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(numbered);
        let name = names.find(|name| !self.taken.contains(name)).unwrap_or(wanted);
        self.taken.insert(name.clone());
        self.literals.push((literal.to_owned(), name.clone()));
        name
    }
}

/// A name in capitals, digits and underscores.
pub(crate) fn variable_name(text: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = text.chars().map(fits).collect();
    let name = name.trim_matches('_');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_well { name.to_owned() } else { format!("KEY_{name}") }
}

#[cfg(test)]
mod tests {
    use super::{Variables, is_secret_argument, looks_secret, variable_name};

    #[test]
    fn keys_passwords_and_random_texts_look_secret_and_ordinary_values_do_not() {
        for secret in [
            "sk-proj-abc",
            "Bearer abc",
            "Authorization: Bearer abc",
            "postgres://u:p@db/x",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "q7Hx2mPz9LkT4vWb8NcR",
            "token ghp_16C7e42F292c",
            "https://mcp.example.com/s/ZmFrZS1zZWNyZXQtMTIzNDU2Nzg5MA/mcp",
        ] {
            assert!(looks_secret(secret), "{secret}");
        }
        for plain in [
            "claude-sonnet-4-20250514",
            "@modelcontextprotocol/server-filesystem",
            "/home/ada/x",
            "https://example.com/mcp",
            "mcp-server-time@2025.1.1",
            "MyVeryLongProjectDirectory",
            "eu-central-1",
            "application/json",
            "sk-",
            "3000",
            "risk-free",
        ] {
            assert!(!looks_secret(plain), "{plain}");
        }
    }

    #[test]
    fn an_argument_after_a_sensitive_flag_is_a_secret() {
        for (argument, before) in [
            ("hunter2", Some("--password")),
            ("--api-key=hunter2", None),
            ("GITHUB_TOKEN=hunter2", Some("-e")),
            ("X-Api-Key: hunter2", Some("--header")),
        ] {
            assert!(is_secret_argument(argument, before), "{argument}");
        }
        for (argument, before) in [
            ("GITHUB_TOKEN", Some("-e")),
            ("--api-key", None),
            ("/etc/key.pem", Some("--keyfile")),
            ("--verbose", Some("--token")),
            ("https://auth.example.com/mcp", None),
        ] {
            assert!(!is_secret_argument(argument, before), "{argument}");
        }
    }

    #[test]
    fn a_literal_has_one_variable_and_two_literals_have_two() {
        let mut variables = Variables::of("api_key: os.environ/A_API_KEY");
        assert_eq!(variables.stand_in("x", "a_api_key"), "A_API_KEY_2");
        assert_eq!(variables.stand_in("y", "a_api_key"), "A_API_KEY_3");
        assert_eq!(variables.stand_in("x", "whatever"), "A_API_KEY_2");
        assert_eq!(variable_name("4-real.x"), "KEY_4_REAL_X");
    }
}
