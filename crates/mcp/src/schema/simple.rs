//! Rules about a value alone: its type, which one it is, how large.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::{
    check::{Check, Rule},
    number,
    problem::{Problem, shown},
    verdict::Verdict,
};

/// Choices that a problem lists.
const CHOICES_SHOWN: usize = 8;

impl Check<'_> {
    /// `type`, one or several.
    pub(super) fn kind(&mut self, rule: Rule<'_>) -> Verdict {
        let names = match rule.says {
            Value::Array(names) => names.as_slice(),
            one => std::slice::from_ref(one),
        };
        if names.is_empty() {
            return Verdict::Unknown;
        }
        let mut wanted = Vec::new();
        for name in names {
            if !self.spend(1) {
                return Verdict::Unknown;
            }
            let Some((words, fits)) = name.as_str().and_then(|it| is_kind(it, rule.value)) else {
                // Not a type of JSON: whatever it is, the value may be one.
                return Verdict::Unknown;
            };
            if fits {
                return Verdict::Fits;
            }
            if !wanted.contains(&words) {
                wanted.push(words);
            }
        }
        self.tell(Problem::of_kind(rule.place.to_string(), wanted, rule.value))
    }

    /// `enum`.
    pub(super) fn one_of_values(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Array(choices) = rule.says else { return Verdict::Unknown };
        let mut is_sure = true;
        for choice in choices {
            match self.equal(choice, rule.value) {
                Some(true) => return Verdict::Fits,
                Some(false) => {}
                None => is_sure = false,
            }
            if !self.spend(1) {
                return Verdict::Unknown;
            }
        }
        if !is_sure || choices.is_empty() {
            return Verdict::Unknown;
        }
        let mut list: Vec<String> = choices.iter().take(CHOICES_SHOWN).map(shown).collect();
        if choices.len() > CHOICES_SHOWN {
            list.push(format!("… ({} in all)", choices.len()));
        }
        let what = format!("must be one of {}, and is {}", list.join(", "), shown(rule.value));
        self.breaks(rule.place, &what)
    }

    /// `const`.
    pub(super) fn constant(&mut self, rule: Rule<'_>) -> Verdict {
        let verdict = Verdict::of(self.equal(rule.says, rule.value));
        if verdict != Verdict::Breaks {
            return verdict;
        }
        let what = format!("must be {}, and is {}", shown(rule.says), shown(rule.value));
        self.breaks(rule.place, &what)
    }

    /// The bounds of numbers.
    pub(super) fn number(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Number(value) = rule.value else { return Verdict::Fits };
        // Draft 4 has `true` for a bound that is exclusive.
        let Value::Number(bound) = rule.says else { return Verdict::Unknown };
        let ordering = number::compare(value, bound);
        let (met, words) = match rule.name {
            "minimum" => (ordering.map(Ordering::is_ge), "at least"),
            "maximum" => (ordering.map(Ordering::is_le), "at most"),
            "exclusiveMinimum" => (ordering.map(Ordering::is_gt), "more than"),
            "exclusiveMaximum" => (ordering.map(Ordering::is_lt), "less than"),
            _ => (number::is_multiple(value, bound), "a multiple of"),
        };
        let verdict = Verdict::of(met);
        if verdict != Verdict::Breaks {
            return verdict;
        }
        self.breaks(rule.place, &format!("must be {words} `{bound}`, and is `{value}`"))
    }

    /// How many letters, items or properties there may be.
    pub(super) fn size(&mut self, rule: Rule<'_>) -> Verdict {
        let (size, what) = match (rule.value, rule.name) {
            (Value::String(text), "minLength" | "maxLength") => {
                if !self.spend_on(text) {
                    return Verdict::Unknown;
                }
                (text.chars().count(), "characters")
            }
            (Value::Array(items), "minItems" | "maxItems") => (items.len(), "items"),
            (Value::Object(map), "minProperties" | "maxProperties") => (map.len(), "properties"),
            _ => return Verdict::Fits,
        };
        let Value::Number(bound) = rule.says else { return Verdict::Unknown };
        let ordering = number::compare(&Number::from(size), bound);
        let (met, words) = match rule.name {
            "minLength" | "minItems" | "minProperties" => {
                (ordering.map(Ordering::is_ge), "at least")
            }
            _ => (ordering.map(Ordering::is_le), "at most"),
        };
        let verdict = Verdict::of(met);
        if verdict != Verdict::Breaks {
            return verdict;
        }
        self.breaks(rule.place, &format!("must have {words} {bound} {what}, and has {size}"))
    }
}

/// A type in words, and whether a value is of it; `None` for a type that JSON does not have.
fn is_kind(name: &str, value: &Value) -> Option<(&'static str, bool)> {
    Some(match name {
        "null" => ("null", value.is_null()),
        "boolean" => ("a boolean", value.is_boolean()),
        "integer" => {
            ("an integer", matches!(value, Value::Number(number) if number::is_integer(number)))
        }
        "number" => ("a number", value.is_number()),
        "string" => ("a string", value.is_string()),
        "array" => ("an array", value.is_array()),
        "object" => ("an object", value.is_object()),
        _ => return None,
    })
}
