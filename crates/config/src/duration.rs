//! Durations as files write them: `500ms`, `31s`, `1m30s`, `1h`, `7d`.
//!
//! Rules kept here:
//! - Numbers with units, largest unit first, each unit once; a number may have decimals (`1.5s`).
//! - A unit is always written; `30` alone is refused with the spelling that was probably meant.
//! - Nothing negative, nothing above 100 years, nothing finer than a millisecond is kept.
//! - The text is kept as written, because a scenario's output echoes it.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tidegate_core::time::Millis;

use crate::diagnostic::quoted;

/// The schema format that makes the decoder parse a scalar as a duration.
pub(crate) const FORMAT: &str = "tidegate-duration";

/// Units from large to small, with their length in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// 100 years: longer is a typing error, and all arithmetic on it stays far from overflow.
const MAX_MS: u64 = 100 * 365 * 86_400_000;

/// A duration as a file writes it.
#[derive(Clone, Debug)]
pub struct Duration {
    millis: Millis,
    written: String,
}

impl Duration {
    /// Understands the text of a duration.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("an empty text is not a duration".to_owned());
        }
        if text.starts_with('-') {
            return Err(format!("a duration cannot be negative: {}", quoted(text)));
        }
        let mut total = 0.0;
        let mut units = UNITS.iter();
        let mut rest = text;
        while !rest.is_empty() {
            let (number, after) = split_at(rest, |c| !c.is_ascii_digit() && c != '.');
            let (unit, after) = split_at(after, |c| c.is_ascii_digit() || c == '.');
            total += amount(text, number, unit)? * unit_ms(text, number, unit, &mut units)? as f64;
            rest = after;
        }
        if total > MAX_MS as f64 {
            return Err(format!("{} is longer than 100 years", quoted(text)));
        }
        // At most MAX_MS and never negative, so the cast is exact but for the rounding wanted here.
        Ok(Self { millis: Millis(total.round() as u64), written: text.to_owned() })
    }

    /// The time it stands for.
    #[must_use]
    pub const fn millis(&self) -> Millis {
        self.millis
    }

    /// The text as the file has it.
    #[must_use]
    pub fn as_written(&self) -> &str {
        &self.written
    }
}

fn split_at(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn amount(text: &str, number: &str, unit: &str) -> Result<f64, String> {
    if number.is_empty() {
        return Err(format!(
            "{} is not a duration: write a number before {}, as in `30s` or `1h30m`",
            quoted(text),
            quoted(unit)
        ));
    }
    let number: f64 = number.parse().map_err(|_| format!("{} is not a number", quoted(number)))?;
    Ok(number)
}

/// The length of a unit, which has to come after the units that were used before it.
fn unit_ms(
    text: &str,
    number: &str,
    unit: &str,
    left: &mut std::slice::Iter<'_, (&str, u64)>,
) -> Result<u64, String> {
    if unit.is_empty() {
        return Err(format!(
            "{} has no unit: write {}",
            quoted(text),
            quoted(&format!("{number}s"))
        ));
    }
    if let Some((_, length)) = left.find(|(name, _)| *name == unit) {
        return Ok(*length);
    }
    if UNITS.iter().any(|(name, _)| *name == unit) {
        return Err(format!("{}: write larger units first and each unit once", quoted(text)));
    }
    let known = "use `ms`, `s`, `m`, `h` or `d`";
    Err(format!("{} has an unknown unit {}: {known}", quoted(text), quoted(unit)))
}

/// A span of time in the fewest units, as files write it: `1m30s`.
#[must_use]
pub fn written(millis: Millis) -> String {
    let mut left = millis.0;
    let mut text = String::new();
    for (unit, length) in UNITS {
        let count = left / length;
        left %= length;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

impl From<Millis> for Duration {
    fn from(millis: Millis) -> Self {
        Self { millis, written: written(millis) }
    }
}

impl PartialEq for Duration {
    /// Two spellings of the same time are equal.
    fn eq(&self, other: &Self) -> bool {
        self.millis == other.millis
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration: numbers with units `d`, `h`, `m`, `s`, `ms`.",
            "type": "string",
            "format": FORMAT,
            "pattern": r"^(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?(\d+(\.\d+)?ms)?$",
            "minLength": 2,
            "examples": ["500ms", "30s", "1m30s", "1h"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_understood() {
        let cases = [
            ("0s", 0),
            ("500ms", 500),
            ("31s", 31_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("168h", 604_800_000),
            ("7d", 604_800_000),
            ("1.5s", 1500),
            ("1d2h3m4s5ms", 93_784_005),
        ];
        for (text, expected) in cases {
            let duration = Duration::parse(text).expect(text);
            assert_eq!(duration.millis(), Millis(expected), "{text}");
            assert_eq!(duration.as_written(), text);
        }
    }

    #[test]
    fn every_mistake_has_its_own_words() {
        let cases = [
            ("", "an empty text is not a duration"),
            ("-5s", "a duration cannot be negative: `-5s`"),
            ("30", "`30` has no unit: write `30s`"),
            ("1e400", "`1e400` has an unknown unit `e`: use `ms`, `s`, `m`, `h` or `d`"),
            ("5 s", "`5 s` has an unknown unit ` s`: use `ms`, `s`, `m`, `h` or `d`"),
            ("s", "`s` is not a duration: write a number before `s`, as in `30s` or `1h30m`"),
            ("1..5s", "`1..5` is not a number"),
            ("30s1m", "`30s1m`: write larger units first and each unit once"),
            ("1s1s", "`1s1s`: write larger units first and each unit once"),
            ("101d", ""),
            ("36501d", "`36501d` is longer than 100 years"),
            (
                "99999999999999999999999999h",
                "`99999999999999999999999999h` is longer than 100 years",
            ),
        ];
        for (text, expected) in cases {
            let said = Duration::parse(text).err().unwrap_or_default();
            assert_eq!(said, expected, "{text}");
        }
    }

    #[test]
    fn a_time_is_written_in_the_fewest_units() {
        assert_eq!(written(Millis(90_000)), "1m30s");
        assert_eq!(written(Millis(0)), "0s");
        assert_eq!(written(Millis(1500)), "1s500ms");
    }
}
