//! Wall-clock time as text: UTC, RFC 3339.
//!
//! Only rendering: no clock is read here, and no time zone is known.

/// Days are counted from the first of March of the year 0, so that a leap day ends its year.
/// This is the day 1970-01-01 in that count.
const UNIX_EPOCH_DAYS: u64 = 719_468;
/// Four centuries, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;

/// `2026-11-15T14:02:11Z` of milliseconds since 1970.
pub fn rfc3339(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `14:02:11` of an RFC 3339 time if it is of the same day as `today`, else all of it.
pub(super) fn short<'a>(time: &'a str, today: &str) -> &'a str {
    match (time.get(..10), time.get(11..19)) {
        (Some(date), Some(clock)) if today.starts_with(date) => clock,
        _ => time,
    }
}

fn date(unix_days: u64) -> (u64, u64, u64) {
    let days = unix_days + UNIX_EPOCH_DAYS;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / (ERA_DAYS - 1);
    let year_of_era = (day_of_era - leap_days.min(day_of_era)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, over and over: 153 in five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_around_the_edges_of_the_calendar_are_right() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_704_067_199, "2023-12-31T23:59:59Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1000), expected);
        }
    }

    #[test]
    fn the_date_is_left_out_where_it_is_todays() {
        let today = "2026-11-15T14:02:11Z";
        assert_eq!(short("2026-11-15T14:02:41Z", today), "14:02:41");
        assert_eq!(short("2026-11-16T00:00:00Z", today), "2026-11-16T00:00:00Z");
    }
}
