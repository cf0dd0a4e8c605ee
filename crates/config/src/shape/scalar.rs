//! What a scalar's text means where a schema wants a number, a word or a text.
//!
//! Rules kept here:
//! - Text takes anything. Numbers and booleans are written without quotes, in the spelling of
//!   YAML's core schema; `yes` and `on` are not booleans.
//! - No infinity and no "not a number": they pass every comparison in the wrong way.
//! - A [`Format`] is a text with a rule of its own; its parser is asked here, so that its words
//!   get a place in the file.

use serde_json::{Number, Value};

use super::schema::Schema;
use crate::{
    address, bytes, codes,
    codes::Code,
    diagnostic::quoted,
    document::{Node, NodeKind},
    duration, percent, secret, suggest,
};

/// What is wrong with a scalar; the walk adds the place.
pub(super) struct Problem {
    pub(super) code: &'static Code,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) help: Option<String>,
}

/// A kind of text with a parser of its own.
pub(super) struct Format {
    name: &'static str,
    pub(super) noun: &'static str,
    code: &'static Code,
    check: fn(&str) -> Result<(), String>,
}

static FORMATS: [Format; 5] = [
    Format {
        name: duration::FORMAT,
        noun: "a duration such as `30s`",
        code: &codes::BAD_DURATION,
        check: |text| duration::Duration::parse(text).map(drop),
    },
    Format {
        name: bytes::FORMAT,
        noun: "a size such as `32MiB`",
        code: &codes::BAD_VALUE,
        check: |text| bytes::ByteSize::parse(text).map(drop),
    },
    Format {
        name: percent::FORMAT,
        noun: "a share such as `20%`",
        code: &codes::BAD_VALUE,
        check: |text| percent::Percent::parse(text).map(drop),
    },
    Format {
        name: address::FORMAT,
        noun: "an address such as `127.0.0.1:8700`",
        code: &codes::BAD_VALUE,
        check: |text| address::Address::parse(text).map(drop),
    },
    Format {
        name: secret::FORMAT,
        noun: "a secret such as `env:NAME`",
        code: &codes::BAD_VALUE,
        check: |text| secret::SecretRef::parse(text).map(drop),
    },
];

pub(super) fn format_named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The value of a scalar under a schema that takes scalars.
pub(super) fn convert(schema: Schema<'_>, text: &str, plain: bool) -> Result<Value, Problem> {
    if let Some(format) = schema.format().and_then(format_named) {
        let value = Value::String(text.to_owned());
        return (format.check)(text).map(|()| value).map_err(|message| Problem {
            code: format.code,
            message,
            label: format!("expected {}", format.noun),
            help: None,
        });
    }
    let wants_text = schema.takes("string");
    if plain && schema.takes("boolean") {
        if let Some(value) = boolean(text) {
            return Ok(Value::Bool(value));
        }
        if !wants_text && !schema.takes("integer") && !schema.takes("number") {
            return Err(not_boolean(text));
        }
    }
    let wants_number = schema.takes("integer") || schema.takes("number");
    if wants_number && (plain || !wants_text) {
        match number(schema, text, plain) {
            Err(_) if wants_text => {}
            result => return result,
        }
    }
    if wants_text {
        return Ok(Value::String(text.to_owned()));
    }
    Err(not_boolean(text))
}

/// Whether a scalar is a secret itself, where a reference to one is wanted.
pub(super) fn is_literal_secret(schema: Schema<'_>, text: &str) -> bool {
    schema.format() == Some(secret::FORMAT)
        && secret::SecretRef::parse(text).is_ok_and(|reference| reference.is_literal())
}

fn number(schema: Schema<'_>, text: &str, plain: bool) -> Result<Value, Problem> {
    let noun = if schema.takes("number") { "a number" } else { "a whole number" };
    let bad = |message: String, help: Option<String>| Problem {
        code: &codes::BAD_NUMBER,
        message,
        label: format!("expected {noun}"),
        help,
    };
    let parsed =
        integer(text).map(ParsedScalar::Whole).or_else(|| float(text).map(ParsedScalar::Real));
    let Some(parsed) = parsed else {
        return Err(bad(format!("{} is not {noun}", quoted(text)), None));
    };
    if !plain {
        let help = format!("remove the quotes: {}", quoted(text));
        return Err(bad(format!("{noun} is written without quotes"), Some(help)));
    }
    match parsed {
        ParsedScalar::Whole(value) => {
            in_range(schema, value).map_err(|message| bad(message, None))?;
            let number = u64::try_from(value)
                .map(Number::from)
                .or_else(|_| i64::try_from(value).map(Number::from));
            number
                .map(Value::Number)
                .map_err(|_| bad(format!("{} is out of range", quoted(text)), None))
        }
        ParsedScalar::Real(value) if schema.takes("number") => {
            let least = schema.bound("minimum").and_then(Value::as_f64);
            if let Some(least) = least.filter(|least| value < *least) {
                let message = format!("{} is too small: the least is {least}", quoted(text));
                return Err(bad(message, None));
            }
            let not_finite = || bad(format!("{} is not a finite number", quoted(text)), None);
            Number::from_f64(value).map(Value::Number).ok_or_else(not_finite)
        }
        ParsedScalar::Real(_) => Err(bad(format!("{} is not a whole number", quoted(text)), None)),
    }
}

enum ParsedScalar {
    Whole(i128),
    Real(f64),
}

/// A whole number of YAML's core schema.
fn integer(text: &str) -> Option<i128> {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
    if let Some(rest) = text.strip_prefix("0x").filter(|rest| digits(rest)) {
        return i128::from_str_radix(rest, 16).ok();
    }
    if let Some(rest) = text.strip_prefix("0o").filter(|rest| digits(rest)) {
        return i128::from_str_radix(rest, 8).ok();
    }
    text.parse().ok()
}

/// A real number of YAML's core schema; infinities are found here and refused by the caller.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => return Some(f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    let starts_well = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|_| starts_well)
}

/// Bounds that the schema names, and those of the Rust type behind it.
fn in_range(schema: Schema<'_>, value: i128) -> Result<(), String> {
    let (type_least, type_most) = match schema.format() {
        Some("uint8") => (0, i128::from(u8::MAX)),
        Some("uint16") => (0, i128::from(u16::MAX)),
        Some("uint32") => (0, i128::from(u32::MAX)),
        Some("uint64" | "uint") => (0, i128::from(u64::MAX)),
        Some("int8") => (i128::from(i8::MIN), i128::from(i8::MAX)),
        Some("int16") => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Some("int32") => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    // Whole bounds are small, so the cast of one that is written as a float is exact.
    let named = |name| schema.bound(name).and_then(Value::as_f64).map(|bound| bound as i128);
    let least = named("minimum").unwrap_or(type_least).max(type_least);
    let most = named("maximum").unwrap_or(type_most).min(type_most);
    if value < least {
        return Err(format!("`{value}` is too small: the least is {least}"));
    }
    if value > most {
        return Err(format!("`{value}` is too large: the most is {most}"));
    }
    Ok(())
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn not_boolean(text: &str) -> Problem {
    let meant = match text.to_lowercase().as_str() {
        "yes" | "on" | "y" | "1" | "true" => Some("write `true`, without quotes"),
        "no" | "off" | "n" | "0" | "false" => Some("write `false`, without quotes"),
        _ => None,
    };
    Problem {
        code: &codes::WRONG_TYPE,
        message: format!("expected `true` or `false`, found {}", quoted(text)),
        label: "expected `true` or `false`".to_owned(),
        help: meant.map(str::to_owned),
    }
}

pub(super) fn unknown_word(text: &str, words: &[&str]) -> Problem {
    Problem {
        code: &codes::UNKNOWN_WORD,
        message: format!("{} is not one of the choices", quoted(text)),
        label: format!("expected {}", one_of(words)),
        help: suggest::nearest(text, words.iter().copied())
            .map(|word| format!("did you mean {}?", quoted(word))),
    }
}

/// `a`, `b` or `c`.
pub(super) fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// What kind of node it is, for a message about a value that may be a secret.
pub(super) const fn kind_of(node: &Node) -> &'static str {
    match &node.kind {
        NodeKind::Null => "nothing",
        NodeKind::Scalar { .. } => "text",
        NodeKind::Seq(_) => "a list",
        NodeKind::Map(_) => "a map",
    }
}

/// What a node is, for a message.
pub(super) fn noun_of(node: &Node) -> String {
    match &node.kind {
        NodeKind::Scalar { text, .. } => quoted(text),
        NodeKind::Null | NodeKind::Seq(_) | NodeKind::Map(_) => kind_of(node).to_owned(),
    }
}

/// A node where the schema has no wish, read by YAML's core schema.
pub(super) fn anything(node: &Node) -> Value {
    match &node.kind {
        NodeKind::Null => Value::Null,
        NodeKind::Seq(items) => items.iter().map(anything).collect(),
        NodeKind::Map(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), anything(&entry.value))).collect()
        }
        NodeKind::Scalar { text, plain: false } => Value::String(text.clone()),
        NodeKind::Scalar { text, plain: true } => {
            let whole = integer(text).and_then(|value| i64::try_from(value).ok()).map(Number::from);
            let number = whole.or_else(|| float(text).and_then(Number::from_f64));
            let boolean = boolean(text).map(Value::Bool);
            number.map(Value::Number).or(boolean).unwrap_or_else(|| Value::String(text.clone()))
        }
    }
}
