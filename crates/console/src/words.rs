//! Times, spans, figures and names, as people read them.

/// A text from outside, without characters that a terminal could act on or that turn around what
/// follows them.
#[must_use]
pub fn calm(text: &str) -> String {
    let is_unruly = |sign: char| {
        sign.is_control() || matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|sign| if is_unruly(sign) { '?' } else { sign }).collect()
}

/// A span in at most two units: `45s`, `2m14s`, `1h05m`, `6d03h`.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        3600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// How long until a moment, rounded up: what is still to come is never `0s`.
#[must_use]
pub fn until(now_unix_ms: u64, at_unix_ms: u64) -> String {
    span(at_unix_ms.saturating_sub(now_unix_ms).div_ceil(1000) * 1000)
}

/// How long something took: `410ms`, `1.9s`, `12s`.
#[must_use]
pub fn took(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..10_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => span(ms),
    }
}

/// The same of a figure that may be missing.
#[must_use]
pub fn took_or_dash(ms: Option<u64>) -> String {
    ms.map_or_else(|| "-".to_owned(), took)
}

/// A number in groups of three: `12 000`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `1 session`, `2 sessions`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A share: `100`, `99.9`, `0`.
#[must_use]
pub fn percent(share: f64) -> String {
    let text = format!("{share:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// The time of day of a moment, in UTC: `14:02:11Z`.
#[must_use]
pub fn clock(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A moment with its day, in UTC: `2026-11-17T14:02:11Z`.
#[must_use]
pub fn date(unix_ms: u64) -> String {
    // The civil date of a count of days (Howard Hinnant's algorithm), in 400-year eras from March.
    let days = unix_ms / 86_400_000 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}T{}", era * 400 + year + carry, clock(unix_ms))
}

/// A moment as it is told at another: the time of day, with the date where that is another day's.
#[must_use]
pub fn moment(now_unix_ms: u64, at_unix_ms: u64) -> String {
    let day = |unix_ms: u64| unix_ms / 86_400_000;
    if day(now_unix_ms) == day(at_unix_ms) { clock(at_unix_ms) } else { date(at_unix_ms) }
}

/// Reads what [`date`] writes; seconds may be left out. The moment in milliseconds since 1970.
#[must_use]
pub fn parse_date(text: &str) -> Option<u64> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, sign: char| -> Option<Vec<u64>> {
        text.split(sign)
            .map(|part| part.parse().ok().filter(|_| part.bytes().all(|it| it.is_ascii_digit())))
            .collect()
    };
    let [year, month, day] = numbers(day, '-')?.try_into().ok()?;
    let (hour, minute, second) = match numbers(time, ':')?.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let is_right = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !is_right {
        return None;
    }
    // The inverse of the above: days since 1970 of a year that begins in March.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) * 1000)
}

/// Words as lines of at most `width` columns, each after the first indented.
#[must_use]
pub fn filled(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{}{word}", " ".repeat(indent))),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_at_most_two_units() {
        for (ms, expected) in [
            (0, "0s"),
            (59_999, "59s"),
            (134_000, "2m14s"),
            (3_900_000, "1h05m"),
            (529_200_000, "6d03h"),
        ] {
            assert_eq!(span(ms), expected);
        }
        assert_eq!(until(1_000, 1_001), "1s");
        assert_eq!(
            (took(410), took(1_999), took(12_000)),
            ("410ms".into(), "1.9s".into(), "12s".into())
        );
    }

    #[test]
    fn figures_are_grouped_and_shares_short() {
        assert_eq!((grouped(7), grouped(1_234_567)), ("7".into(), "1 234 567".into()));
        assert_eq!((percent(99.94), percent(100.0)), ("99.9".into(), "100".into()));
        assert_eq!(counted(1, "hop"), "1 hop");
    }

    #[test]
    fn moments_are_civil_dates() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_799_999_999_999), "2027-01-15T07:59:59Z");
    }

    #[test]
    fn a_moment_of_another_day_has_its_date() {
        let late = 1_799_999_999_999 / 86_400_000 * 86_400_000 + 86_340_000;
        assert_eq!(moment(late, late + 59_000), "23:59:59Z");
        assert_eq!(moment(late, late + 60_000), "2027-01-16T00:00:00Z");
        assert_eq!(moment(late + 60_000, late), "2027-01-15T23:59:00Z");
    }

    #[test]
    fn a_date_is_read_as_it_is_written() {
        for ms in [0, 951_782_400_000, 1_799_999_999_000, 1_709_164_800_000] {
            assert_eq!(parse_date(&date(ms)), Some(ms), "{}", date(ms));
        }
        assert_eq!(parse_date("2000-02-29T00:00Z"), Some(951_782_400_000));
        for wrong in
            ["", "2000-02-29", "2000-13-01T00:00Z", "2000-01-01T24:00Z", "15m", "+1-1-1T1:1Z"]
        {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_text_from_outside_cannot_move_the_cursor() {
        assert_eq!(calm("a\u{1b}[2Jb\nc\u{202e}d"), "a?[2Jb?c?d");
    }

    #[test]
    fn lines_are_filled_to_the_width() {
        assert_eq!(filled("one two three", 8, 2), ["one two", "  three"]);
    }
}
