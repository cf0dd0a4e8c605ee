//! The code of every problem, with the page that `tidegate explain TG010` prints.
//!
//! A [`Diagnostic`](crate::diagnostic::Diagnostic) holds its [`Code`], so no problem can lack a
//! page. Numbers are never reused: people search for them. Scenario files have codes of their own
//! from TG100 on, next to the checks that use them.
//!
//! The pages of problems that any file can have are here; those of the config file's own rules are
//! in [`config`].

pub mod config;

/// A kind of problem and its page.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// What is printed, e.g. `TG010`.
    pub id: &'static str,
    /// One line.
    pub title: &'static str,
    /// One paragraph: what it means, why it is refused, what to do.
    pub text: &'static str,
}

/// The codes of this module and of [`config`], in order.
pub static ALL: &[&[&Code]] = &[SHARED, config::ALL];

/// The codes that any file can have.
static SHARED: &[&Code] = &[
    &UNREADABLE,
    &NOT_UTF8,
    &TOO_LARGE,
    &NOT_YAML,
    &DUPLICATE_KEY,
    &MANY_DOCUMENTS,
    &TOO_COMPLEX,
    &UNSUPPORTED_YAML,
    &TOO_MANY_PROBLEMS,
    &UNKNOWN_KEY,
    &WRONG_TYPE,
    &MISSING_KEY,
    &UNKNOWN_WORD,
    &BAD_NUMBER,
    &BAD_DURATION,
    &BAD_VALUE,
];

/// The codes that mean that a file could not be read as YAML at all.
pub(crate) const UNREADABLE_CODES: &[&str] =
    &[UNREADABLE.id, NOT_UTF8.id, TOO_LARGE.id, NOT_YAML.id];

/// The page of a code, whatever its case.
#[must_use]
pub fn find(id: &str) -> Option<&'static Code> {
    ALL.iter().copied().flatten().copied().find(|code| code.id.eq_ignore_ascii_case(id))
}

/// The file is missing, a directory, not a regular file, or the system refuses it.
pub static UNREADABLE: Code = Code {
    id: "TG001",
    title: "the file cannot be read",
    text: "Nothing readable is at this path: no file, a directory, a device, or a file the system \
           does not let you open. Only regular files are read, because reading a fifo could wait \
           for ever.",
};

/// The file holds bytes that are no text.
pub static NOT_UTF8: Code = Code {
    id: "TG002",
    title: "the file is not UTF-8",
    text: "YAML files are text in UTF-8. The message names the first byte that starts no \
           character. Save the file as UTF-8, or check that it is the file you meant.",
};

/// The file is above the size bound.
pub static TOO_LARGE: Code = Code {
    id: "TG003",
    title: "the file is too large",
    text: "Configs above 8 MiB and scenarios above 32 MiB are not read. A large config has a few \
           thousand lines, so this is almost always the wrong file.",
};

/// The file breaks YAML's own rules.
pub static NOT_YAML: Code = Code {
    id: "TG004",
    title: "the file is not YAML",
    text: "The text breaks the rules of YAML at the place shown, so nothing after it can be \
           trusted and no further problem is reported. Common causes: a tab used for indentation, \
           a missing bracket or quote, a colon inside an unquoted value.",
};

/// A key stands twice in one map.
pub static DUPLICATE_KEY: Code = Code {
    id: "TG005",
    title: "a key is written twice",
    text: "The same key stands twice in one map. Some tools silently take the last one; here both \
           places are named and you decide.",
};

/// The file holds several documents.
pub static MANY_DOCUMENTS: Code = Code {
    id: "TG006",
    title: "more than one YAML document",
    text: "A line `---` starts a second document in the same file. One file holds one document.",
};

/// The file breaks a bound on nodes or depth.
pub static TOO_COMPLEX: Code = Code {
    id: "TG007",
    title: "the file is too complex",
    text: "The file is nested deeper than 128 levels, or holds more than 100000 values once its \
           aliases are expanded; a large file may hold one value per 5 bytes. The bounds exist so \
           that a small hostile file cannot take all memory.",
};

/// A part of YAML that is not accepted here.
pub static UNSUPPORTED_YAML: Code = Code {
    id: "TG008",
    title: "a YAML feature that is not supported",
    text: "Custom tags, merge keys, keys that are lists or maps, and aliases inside their own \
           value are YAML, but not accepted here: each has a plainer spelling. Plain anchors and \
           aliases work.",
};

/// The list of problems was cut.
pub static TOO_MANY_PROBLEMS: Code = Code {
    id: "TG009",
    title: "too many problems to show",
    text: "A file's first hundred problems are shown and the rest are counted. Fix the first ones: \
           many of the rest usually go with them.",
};

/// A key that does not exist.
pub static UNKNOWN_KEY: Code = Code {
    id: "TG010",
    title: "unknown key",
    text: "The file holds a key that means nothing here. It is an error and not ignored, because \
           a misspelt key would otherwise silently leave a default in place. The help names the \
           nearest key, or lists the keys of the section.",
};

/// A list where text belongs, and the like.
pub static WRONG_TYPE: Code = Code {
    id: "TG012",
    title: "wrong type of value",
    text: "A list, map, word or number stands where something else belongs, for example a single \
           word where a list is expected. The message says what was expected and what was found.",
};

/// A key that has to be written.
pub static MISSING_KEY: Code = Code {
    id: "TG013",
    title: "a key is missing",
    text: "This section makes no sense without the key that the message names. Keys without a \
           sensible default have to be written.",
};

/// A word that is not in the list of choices.
pub static UNKNOWN_WORD: Code = Code {
    id: "TG014",
    title: "a word that is not one of the choices",
    text: "The key takes one of a few words. The help names the nearest one or lists them all.",
};

/// A number that is not one or out of range.
pub static BAD_NUMBER: Code = Code {
    id: "TG015",
    title: "not a usable number",
    text: "A number is expected, and the value is not one, is not a whole number where one is \
           needed, is infinite, or is outside the range that the key can take.",
};

/// A duration that cannot be understood.
pub static BAD_DURATION: Code = Code {
    id: "TG016",
    title: "not a duration",
    text: "Durations are numbers with units, largest unit first: `500ms`, `30s`, `1m30s`, `1h`, \
           `7d`. A unit is always needed, a duration cannot be negative, and 100 years is the \
           most.",
};

/// A value that a key's own rule refuses.
pub static BAD_VALUE: Code = Code {
    id: "TG017",
    title: "a value the key cannot take",
    text: "The value has the right type but not the form that the key needs: a size such as \
           `32MiB`, a share such as `20%`, an address such as `127.0.0.1:8700`. The message says \
           what is wrong with it.",
};
