//! A JSON object as it came: its fields in order, their values untouched.
//!
//! A gateway that reads a message into types and writes it out again loses what the types do not
//! know, and changes what they do: key order, `1.0`, large numbers, escapes. So values are carried
//! as text, and an edit replaces the text of one field.
//!
//! Rules kept here:
//! - What is not edited comes out byte for byte; only white space between the fields of an edited
//!   object may differ.
//! - A key that stands twice is refused, and so is one that differs from a known key only by the
//!   case of its letters: readers disagree about which one counts (S42).
//! - Input is bounded: [`MAX_DEPTH`] levels, [`MAX_FIELDS`] fields of an object that is taken
//!   apart. (Values kept as text are checked without recursion, so the depth is counted here.)
//!
//! What the fields mean is the business of [`crate::message`] and [`crate::listing`].

use std::{borrow::Cow, fmt};

use memchr::memchr2;
use serde::{
    Deserialize,
    de::{Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Levels of nesting a message may have: the limit of `serde_json`, which other readers share.
pub const MAX_DEPTH: usize = 128;
/// Fields an object may have that is taken apart here: far more than any known message has.
pub const MAX_FIELDS: usize = 1000;
/// Fields that are compared each with each.
const FEW_FIELDS: usize = 8;
/// Characters of a key that are repeated in a message about it.
const SHOWN_CHARS: usize = 40;

/// Why a text is not an object that can be carried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It does not follow the grammar, or is not UTF-8.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but no object.
    #[error("not an object")]
    NotAnObject,
    /// A key that stands twice.
    #[error("the key `{0}` stands twice")]
    Twice(String),
    /// A key that is nearly a known one.
    #[error("the key `{written}` must be written `{known}`")]
    OtherCase {
        /// As it stands there.
        written: String,
        /// As the protocol has it.
        known: &'static str,
    },
    /// It is nested too deeply.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A field is missing.
    #[error("the field `{0}` is missing")]
    Absent(String),
    /// It has too many fields.
    #[error("an object of more than {MAX_FIELDS} fields")]
    TooManyFields,
}

impl From<serde_json::Error> for Flaw {
    fn from(error: serde_json::Error) -> Self {
        Self::NotJson(error.to_string())
    }
}

/// An object's fields in order.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a>(Vec<Field<'a>>);

/// One field.
#[derive(Clone, Debug)]
struct Field<'a> {
    /// The key as text of JSON, with its quotes and escapes.
    key: Cow<'a, str>,
    /// What the key says.
    name: Cow<'a, str>,
    value: Cow<'a, RawValue>,
}

impl<'a> Fields<'a> {
    /// Takes a whole text apart. `known` are the keys that no other key may resemble.
    ///
    /// # Errors
    /// What is wrong with it, the first flaw found.
    pub fn parse(text: &'a str, known: &[&'static str]) -> Result<Self, Flaw> {
        check_depth(text)?;
        Self::of_text(text, known)
    }

    /// Takes a part of a text apart that was checked as a whole.
    ///
    /// # Errors
    /// What is wrong with it, the first flaw found.
    pub fn of(value: &'a RawValue, known: &[&'static str]) -> Result<Self, Flaw> {
        Self::of_text(value.get(), known)
    }

    pub(crate) fn of_text(text: &'a str, known: &[&'static str]) -> Result<Self, Flaw> {
        if !text.trim_ascii_start().starts_with('{') {
            serde_json::from_str::<IgnoredAny>(text)?;
            return Err(Flaw::NotAnObject);
        }
        let Entries(entries) = serde_json::from_str(text)?;
        let fields = entries.ok_or(Flaw::TooManyFields)?;
        let fields = fields.into_iter().map(Field::read).collect::<Result<Vec<_>, _>>()?;
        for name in fields.iter().map(|field| &field.name) {
            if let Some(known) = known.iter().find(|known| is_other_case(name, known)) {
                return Err(Flaw::OtherCase { written: shown(name), known });
            }
        }
        match twice(&fields) {
            Some(name) => Err(Flaw::Twice(shown(name))),
            None => Ok(Self(fields)),
        }
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|field| field.name == name).map(|field| field.value.as_ref())
    }

    /// The value of a field as it stands in the source; none if it was replaced.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&'a RawValue> {
        match &self.0.iter().find(|field| field.name == name)?.value {
            Cow::Borrowed(value) => Some(value),
            Cow::Owned(_) => None,
        }
    }

    /// The text a field holds; none if it holds something else.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(as_text)
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|field| field.name.as_ref())
    }

    /// Replaces a field's value in its place, or adds the field at the end.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        let value = Cow::Owned(value);
        match self.0.iter_mut().find(|field| field.name == name) {
            Some(field) => field.value = value,
            None => self.0.push(Field {
                key: Cow::Owned(quoted(name)),
                name: Cow::Owned(name.to_owned()),
                value,
            }),
        }
    }

    /// Replaces a field's value by a text.
    pub fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, text_value(text));
    }

    /// Takes a field out; says whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.retain(|other| other != name)
    }

    /// Keeps the fields whose names fit; says whether any was taken out.
    pub fn retain(&mut self, mut fits: impl FnMut(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|field| fits(&field.name));
        self.0.len() < before
    }

    /// Edits the object that a field holds. A field that is absent or `null` starts as an empty
    /// object, and one that ends empty without having been so is taken out.
    ///
    /// # Errors
    /// The field holds something else than an object, or a flawed one.
    pub fn edit(
        &mut self,
        name: &str,
        known: &[&'static str],
        edit: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), Flaw> {
        let before = self.get(name).filter(|value| value.get() != "null");
        let mut inner = before.map_or(Ok(Fields::default()), |value| Fields::of(value, known))?;
        let was_empty = inner.is_empty();
        edit(&mut inner);
        match (was_empty, inner.is_empty()) {
            (true, true) => {}
            (false, true) => _ = self.remove(name),
            (_, false) => {
                let json = inner.to_json();
                self.set(name, RawValue::from_string(json)?);
            }
        }
        Ok(())
    }

    /// The object as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let size = self.0.iter().map(|field| field.key.len() + field.value.get().len() + 2).sum();
        let mut json = String::with_capacity(size);
        json.push('{');
        for (at, field) in self.0.iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            json.push_str(&field.key);
            json.push(':');
            json.push_str(field.value.get());
        }
        json.push('}');
        json
    }
}

impl<'a> Field<'a> {
    fn read((key, value): (&'a RawValue, &'a RawValue)) -> Result<Self, Flaw> {
        let key = key.get();
        let plain = key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let name = match plain {
            Some(name) if !name.contains('\\') => Cow::Borrowed(name),
            _ => Cow::Owned(serde_json::from_str(key)?),
        };
        Ok(Self { key: Cow::Borrowed(key), name, value: Cow::Borrowed(value) })
    }
}

/// Keys and values as they stand; none if there are too many.
struct Entries<'a>(Option<Vec<(&'a RawValue, &'a RawValue)>>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesReader;
        impl<'de> Visitor<'de> for EntriesReader {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::with_capacity(FEW_FIELDS);
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == MAX_FIELDS {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        return Ok(Entries(None));
                    }
                    entries.push(entry);
                }
                Ok(Entries(Some(entries)))
            }
        }
        deserializer.deserialize_map(EntriesReader)
    }
}

/// A text of an object with one field's value replaced: not even white space changes elsewhere.
///
/// # Errors
/// The text is no clear object, or lacks the field.
pub fn splice(text: &str, name: &str, value: &str) -> Result<String, Flaw> {
    let fields = Fields::of_text(text, &[])?;
    let old = fields.source(name).ok_or_else(|| Flaw::Absent(shown(name)))?.get();
    // The value is borrowed from the text, so the distance of both is its place.
    let at = old.as_ptr() as usize - text.as_ptr() as usize;
    Ok([&text[..at], value, &text[at + old.len()..]].concat())
}

/// Refuses a text that is nested too deeply. Assumes nothing about its grammar.
///
/// # Errors
/// [`Flaw::TooDeep`].
pub fn check_depth(text: &str) -> Result<(), Flaw> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Flaw::TooDeep);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Where the string ends that begins before `at`: behind its closing quote, or at the end.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        match bytes[at + found] {
            b'"' => return at + found + 1,
            _ => at += found + 2,
        }
    }
    bytes.len()
}

/// The text a value holds; none if it is something else.
#[must_use]
pub fn as_text(value: &RawValue) -> Option<String> {
    if value.get().starts_with('"') { serde_json::from_str(value.get()).ok() } else { None }
}

/// A text as a JSON value.
#[must_use]
pub fn text_value(text: &str) -> Box<RawValue> {
    RawValue::from_string(quoted(text)).expect("a quoted text is JSON")
}

/// A number as a JSON value.
#[must_use]
pub fn number_value(number: u64) -> Box<RawValue> {
    RawValue::from_string(number.to_string()).expect("a number is JSON")
}

/// A text in quotes, escaped as JSON wants it.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text has a JSON form")
}

/// Puts JSON on one line: transports end a message at a line end. Inside a text a line end is
/// always escaped, so any that stands here is white space.
#[must_use]
pub fn one_line(mut json: String) -> String {
    if memchr2(b'\n', b'\r', json.as_bytes()).is_some() {
        json = json.replace(['\n', '\r'], " ");
    }
    json
}

/// Whether a name is a known key written with other letter case, by the folding of readers that
/// ignore case: two letters outside ASCII count as `s` and `k` there.
fn is_other_case(name: &str, known: &str) -> bool {
    // Known keys are ASCII; another letter that folds to one of theirs takes more bytes.
    if name.len() <= known.len() {
        return name != known && name.eq_ignore_ascii_case(known);
    }
    if name.is_ascii() {
        return false;
    }
    let folded = name.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    });
    folded.eq(known.chars().map(|c| c.to_ascii_lowercase()))
}

/// The first name, in the order of the alphabet, that two fields have.
fn twice<'f>(fields: &'f [Field<'_>]) -> Option<&'f str> {
    let name = |at: usize| fields[at].name.as_ref();
    // Messages have a handful of fields: comparing each with each is cheaper than a sorted list.
    if fields.len() <= FEW_FIELDS {
        let is_there_twice = |at: &usize| (0..*at).any(|earlier| name(earlier) == name(*at));
        return (1..fields.len()).filter(is_there_twice).map(name).min();
    }
    let mut names: Vec<&str> = fields.iter().map(|field| field.name.as_ref()).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Somebody else's words, short and plain enough for a message or a terminal.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
