//! When two values are the same one.
//!
//! As JSON Schema means it: `1` is `1.0`, and the order of keys does not count.

use serde_json::Value;

use super::{
    check::{Check, DEPTH_MAX},
    number,
};

impl Check<'_> {
    /// Whether two values are equal, if that is sure.
    pub(super) fn equal(&mut self, one: &Value, other: &Value) -> Option<bool> {
        self.equal_at(one, other, 0)
    }

    fn equal_at(&mut self, one: &Value, other: &Value, depth: usize) -> Option<bool> {
        if depth == DEPTH_MAX || !self.spend(1) {
            return None;
        }
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                number::compare(one, other).map(std::cmp::Ordering::is_eq)
            }
            (Value::String(one), Value::String(other)) => {
                if one.len() != other.len() {
                    return Some(false);
                }
                self.spend_on(one).then(|| one == other)
            }
            (Value::Array(one), Value::Array(other)) => {
                if one.len() != other.len() {
                    return Some(false);
                }
                self.all_equal(one.iter().zip(other).map(|(one, other)| (one, Some(other))), depth)
            }
            (Value::Object(one), Value::Object(other)) => {
                if one.len() != other.len() {
                    return Some(false);
                }
                self.all_equal(one.iter().map(|(key, one)| (one, other.get(key))), depth)
            }
            (one, other) => Some(one == other),
        }
    }

    fn all_equal<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'v Value, Option<&'v Value>)>,
        depth: usize,
    ) -> Option<bool> {
        let mut all = Some(true);
        for (one, other) in pairs {
            let Some(other) = other else { return Some(false) };
            match self.equal_at(one, other, depth + 1) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => all = None,
            }
        }
        all
    }
}
