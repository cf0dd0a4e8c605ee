//! Shares as files write them: `20%` or `0.2`.
//!
//! Rules kept here: a share lies between nothing and all of it, both included; it is finite.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::diagnostic::quoted;

/// The schema format that makes the decoder parse a scalar as a share.
pub(crate) const FORMAT: &str = "tidegate-percent";

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    /// Understands the text of a share.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (number, scale) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        let is_number =
            !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let parsed = number.parse::<f64>().ok().filter(|_| is_number);
        let share = parsed
            .ok_or_else(|| format!("{} is not a share: write `20%` or `0.2`", quoted(text)))?
            / scale;
        if share > 1.0 {
            return Err(format!("{} is more than all of it: the most is `100%`", quoted(text)));
        }
        Ok(Self(share))
    }

    /// A share given as a fraction; out of range is cut to the nearest end.
    #[must_use]
    pub const fn of(fraction: f64) -> Self {
        Self(fraction.clamp(0.0, 1.0))
    }

    /// The share as a fraction between 0 and 1.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", (self.0 * 1e6).round() / 1e4)
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A share: `20%`, or the same as a fraction, `0.2`.",
            "type": ["string", "number"],
            "format": FORMAT,
            "pattern": r"^\d+(\.\d+)?%?$",
            "minimum": 0,
            "maximum": 1,
            "examples": ["20%", 0.2],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_mean_the_same() {
        assert_eq!(Percent::parse("20%"), Percent::parse("0.2"));
        assert_eq!(Percent::parse("100%"), Ok(Percent(1.0)));
        assert_eq!(Percent::parse("0"), Ok(Percent(0.0)));
        assert_eq!(Percent(0.2).to_string(), "20%");
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in ["", "%", "-1%", "1e400", "NaN", "inf", "a few"] {
            let said = Percent::parse(text).expect_err(text);
            assert!(said.contains("is not a share"), "{text}: {said}");
        }
        assert_eq!(
            Percent::parse("101%").err().as_deref(),
            Some("`101%` is more than all of it: the most is `100%`")
        );
    }
}
