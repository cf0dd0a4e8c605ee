//! When an answer says to come back.
//!
//! Providers say it in three headers: `retry-after-ms` and Azure's `x-ms-retry-after-ms` in
//! milliseconds, `retry-after` in seconds or as an HTTP date. The finer one is asked first.
//!
//! Rules: a header that says zero, something negative or past, or that cannot be read, says
//! nothing, and the next one is asked. Of a header that stands twice, as where a proxy adds its
//! own, the longest time counts. A date needs the wall clock, which comes in as an argument.
//!
//! Left to others: not believing more than an hour (the core's `Outcome::told`).

use std::time::UNIX_EPOCH;

use http::HeaderMap;
use tidegate_core::time::Millis;

/// The time to stay away, if the headers state one.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now_unix_ms: u64) -> Option<Millis> {
    let longest = |name: &str, read: &dyn Fn(&str) -> Option<Millis>| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.filter_map(|text| read(text.trim())).max()
    };
    let in_ms = |name| longest(name, &|text| number_of(text, 1.0));
    let in_s = |text: &str| number_of(text, 1000.0).or_else(|| date(text, now_unix_ms));
    in_ms("retry-after-ms")
        .or_else(|| in_ms("x-ms-retry-after-ms"))
        .or_else(|| longest("retry-after", &in_s))
}

/// A plain decimal number of units of `unit_ms`, if it comes to a millisecond or more.
fn number_of(text: &str, unit_ms: f64) -> Option<Millis> {
    // The parser would also take `inf`, `NaN`, signs and exponents.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let ms = text.parse::<f64>().ok()? * unit_ms;
    // `as` saturates; a fraction of a millisecond waits a whole one.
    (ms.is_finite() && ms > 0.0).then(|| Millis(ms.ceil() as u64))
}

fn date(text: &str, now_unix_ms: u64) -> Option<Millis> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let at_ms = u64::try_from(since.as_millis()).ok()?;
    at_ms.checked_sub(now_unix_ms).filter(|&ms| ms > 0).map(Millis)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, the date of the RFC.
    const NOW: u64 = 784_111_777_000;

    fn check(headers: &[(&'static str, &str)], expected: Option<u64>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("a header value"));
        }
        assert_eq!(retry_after(&map, NOW), expected.map(Millis), "{headers:?}");
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_read() {
        check(&[("retry-after", "2")], Some(2_000));
        check(&[("retry-after", " 1.5 ")], Some(1_500));
        check(&[("retry-after-ms", "250")], Some(250));
        check(&[("x-ms-retry-after-ms", "0.2")], Some(1));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], Some(10_000));
        check(&[("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT")], Some(10_000));
        check(&[("retry-after", "1000000000")], Some(1_000_000_000_000));
    }

    #[test]
    fn the_finer_header_goes_first_unless_it_says_nothing() {
        check(&[("retry-after", "2"), ("retry-after-ms", "1700")], Some(1_700));
        check(&[("retry-after", "2"), ("retry-after-ms", "soon")], Some(2_000));
        check(&[("x-ms-retry-after-ms", "5"), ("retry-after-ms", "0")], Some(5));
    }

    #[test]
    fn of_a_header_that_stands_twice_the_longest_time_counts() {
        check(&[("retry-after", "5"), ("retry-after", "50")], Some(50_000));
        check(&[("retry-after", "soon"), ("retry-after", "50")], Some(50_000));
        let date = "Sun, 06 Nov 1994 08:50:37 GMT";
        check(&[("retry-after", "50"), ("retry-after", date)], Some(60_000));
        check(&[("retry-after-ms", "0"), ("retry-after-ms", "700")], Some(700));
    }

    #[test]
    fn zero_negative_past_and_unreadable_times_say_nothing() {
        let long = "9".repeat(401);
        for value in ["0", "0.0", "-5", "", ".", "1.2.3", "NaN", "inf", "1e3", "soon", "1s", &long]
        {
            check(&[("retry-after", value)], None);
            check(&[("retry-after-ms", value)], None);
        }
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], None);
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:36 GMT")], None);
        check(&[("retry-after", "Sun, 99 Nov 1994 08:49:36 GMT")], None);
        check(&[], None);
    }
}
