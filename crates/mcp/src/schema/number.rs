//! Numbers as JSON means them, when some were rounded on the way.
//!
//! Integers of 64 bits are exact. Everything else went through a double, so two numbers that are
//! nearer than doubles can tell, or equal beyond 2⁵³, are not told apart.

use std::cmp::Ordering;

use serde_json::Number;

/// Up to here every integer is a double of its own: 2⁵³.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Decimals of so many digits survive being a double.
const DIGITS: i128 = 1_000_000_000_000_000;

/// How two numbers compare, if that is sure.
pub(super) fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        return Some(one.cmp(&other));
    }
    let (one, other) = (one.as_f64()?, other.as_f64()?);
    let ordering = one.partial_cmp(&other)?;
    if ordering == Ordering::Equal {
        return (one.abs() < EXACT).then_some(ordering);
    }
    let is_near = (one - other).abs() <= 2.0 * f64::EPSILON * one.abs().max(other.abs());
    (!is_near).then_some(ordering)
}

/// Whether a number is an integer: `1.0` is one. Rounding makes integers and never breaks one.
pub(super) fn is_integer(number: &Number) -> bool {
    whole(number).is_some() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}

/// Whether one number is a multiple of the other, if that is sure.
pub(super) fn is_multiple(number: &Number, step: &Number) -> Option<bool> {
    if let (Some(number), Some(step)) = (whole(number), whole(step)) {
        return (step > 0).then(|| number % step == 0);
    }
    let (number, step) = (Decimal::read(number)?, Decimal::read(step)?);
    if step.digits <= 0 {
        return None;
    }
    if number.exponent < step.exponent {
        // A digit that no multiple has, unless the number has none at all.
        let finer = step.scaled_to(number.exponent)?;
        return Some(number.digits % finer == 0);
    }
    // Counted in the step's last digit. With more digits than a double has, the multiple that was
    // written may not be the number that was read.
    let number = number.scaled_to(step.exponent)?;
    (number.abs() < DIGITS).then(|| number % step.digits == 0)
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// A number as it is written: `digits` × 10^`exponent`.
struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    /// `None` for more digits than survive rounding.
    fn read(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (front, back) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: i128 = format!("{front}{back}").parse().ok()?;
        let mut exponent: i32 = exponent.parse().ok()?;
        exponent = exponent.checked_sub(i32::try_from(back.len()).ok()?)?;
        while digits != 0 && digits % 10 == 0 {
            digits /= 10;
            exponent = exponent.checked_add(1)?;
        }
        (digits.abs() < DIGITS).then_some(Self { digits, exponent })
    }

    /// The digits at a lower exponent, if they are not too many.
    fn scaled_to(&self, exponent: i32) -> Option<i128> {
        let places = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        self.digits.checked_mul(10_i128.checked_pow(places)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_str};

    use super::*;

    fn number(text: &str) -> Number {
        let Ok(Value::Number(number)) = from_str(text) else { panic!("{text} is no number") };
        number
    }

    #[test]
    fn multiples_are_told_without_the_errors_of_doubles() {
        for (value, step, expected) in [
            ("9", "3", Some(true)),
            ("10", "3", Some(false)),
            ("-9", "3", Some(true)),
            ("0", "0.1", Some(true)),
            ("0.3", "0.1", Some(true)),
            ("19.99", "0.01", Some(true)),
            ("1.1", "0.1", Some(true)),
            ("0.35", "0.1", Some(false)),
            ("7", "0.5", Some(true)),
            ("7.25", "0.5", Some(false)),
            ("1.5", "1", Some(false)),
            ("2.0", "1", Some(true)),
            ("1e20", "10", None),
            ("1e-8", "1e-9", Some(true)),
            ("1e-9", "1e-8", Some(false)),
            ("0.30000000000000004", "0.1", None),
            ("18446744073709551615", "5", Some(true)),
            ("123456789012345678901234567890", "7", None),
            ("1e300", "1e-300", None),
            ("5", "0", None),
            ("5", "-1", None),
            ("5.5", "0", None),
        ] {
            assert_eq!(is_multiple(&number(value), &number(step)), expected, "{value} by {step}");
        }
    }

    #[test]
    fn numbers_that_rounding_may_have_made_equal_are_not_compared() {
        use Ordering::{Equal, Greater, Less};
        for (one, other, expected) in [
            ("1", "2", Some(Less)),
            ("1", "1.0", Some(Equal)),
            ("2.5", "2", Some(Greater)),
            ("9007199254740993", "9007199254740992", Some(Greater)),
            ("9007199254740993", "9007199254740992.0", None),
            ("123456789012345678901234567890", "123456789012345678901234567891", None),
            ("0.30000000000000004", "0.3", None),
            ("-1e308", "1e308", Some(Less)),
            ("18446744073709551615", "-1", Some(Greater)),
        ] {
            assert_eq!(compare(&number(one), &number(other)), expected, "{one} and {other}");
        }
    }

    #[test]
    fn an_integer_may_be_written_as_a_decimal() {
        for (text, expected) in [("1", true), ("1.0", true), ("1e3", true), ("1.5", false)] {
            assert_eq!(is_integer(&number(text)), expected, "{text}");
        }
    }
}
