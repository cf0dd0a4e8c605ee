//! Sizes as files write them: `32MiB`, `64KiB`, `512B`.
//!
//! Rules kept here: a unit is always written, units are binary (`KiB`, `MiB`, `GiB`) or `B`, and a
//! size is a whole number of them. Decimal units are refused by name, because `1MB` means two
//! things.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::diagnostic::quoted;

/// The schema format that makes the decoder parse a scalar as a size.
pub(crate) const FORMAT: &str = "tidegate-bytes";

const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// Understands the text of a size.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (number, unit) =
            text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let known = "use `B`, `KiB`, `MiB` or `GiB`";
        if number.is_empty() {
            return Err(format!(
                "{} is not a size: write a number and a unit, as in `32MiB`",
                quoted(text)
            ));
        }
        if unit.is_empty() {
            return Err(format!("{} has no unit: {known}", quoted(text)));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("{} has an unknown unit {}: {known}", quoted(text), quoted(unit)));
        };
        let bytes = number.parse::<u64>().ok().and_then(|count| count.checked_mul(*factor));
        bytes.map(Self).ok_or_else(|| format!("{} is too large", quoted(text)))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole =
            |(_, factor): &&(&str, u64)| self.0 >= *factor && self.0.is_multiple_of(*factor);
        let (unit, factor) = UNITS.iter().find(whole).unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size: a whole number and a unit (`B`, `KiB`, `MiB`, `GiB`).",
            "type": "string",
            "format": FORMAT,
            "pattern": r"^\d+(B|KiB|MiB|GiB)$",
            "examples": ["32MiB", "64KiB"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_understood_and_written_back() {
        for (text, bytes) in [("32MiB", 32 << 20), ("64KiB", 64 << 10), ("512B", 512), ("0B", 0)] {
            assert_eq!(ByteSize::parse(text), Ok(ByteSize(bytes)), "{text}");
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
    }

    #[test]
    fn every_mistake_has_its_own_words() {
        let cases = [
            ("", "`` is not a size: write a number and a unit, as in `32MiB`"),
            ("-1B", "`-1B` is not a size: write a number and a unit, as in `32MiB`"),
            ("32", "`32` has no unit: use `B`, `KiB`, `MiB` or `GiB`"),
            ("1MB", "`1MB` has an unknown unit `MB`: use `B`, `KiB`, `MiB` or `GiB`"),
            ("99999999999GiB", "`99999999999GiB` is too large"),
        ];
        for (text, expected) in cases {
            assert_eq!(ByteSize::parse(text).err().as_deref(), Some(expected), "{text}");
        }
    }
}
