//! 429: one hit, and back exactly after the time.

use std::time::Duration;

use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::time::{now, pause};

use crate::bed::{Setup, always, good, hits};
use crate::failover::assert_served;

/// When the window of a target that answered like this ends, in seconds from now.
fn window(step: Step) -> Option<i64> {
    let (limited, spare) = (always(step), good());
    let gate = Setup::of(&[&limited, &spare]).start();
    for _ in 0..5 {
        assert_served(&gate.chat(), false, "while one is limited");
    }
    assert_eq!(hits(&limited), 1, "one hit per window");
    assert_eq!(gate.health("a/m")["reason"], "rate_limited");
    let until = gate.health("a/m")["unhealthy_until_unix"].as_i64()?;
    Some(until - unix_s())
}

fn unix_s() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the window is told as a moment of the world")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0, |it| it.as_secs() as i64)
}

/// A moment as HTTP writes it.
fn http_date(unix_s: i64) -> String {
    let (days, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    // Days since 0000-03-01, in eras of 400 years, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (name, month) = (names[days.rem_euclid(7) as usize], months[month as usize]);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{name}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// The window is about so long: telling and asking take a moment, and seconds are rounded.
fn assert_about(found: Option<i64>, wanted: i64, what: &str) {
    let is_about = found.is_some_and(|it| (wanted - 6..=wanted + 1).contains(&it));
    assert!(is_about, "{what}: {found:?} instead of {wanted}");
}

#[test]
fn retry_after_is_understood_in_seconds_milliseconds_and_as_a_date() {
    let limited = |text: &str| Step::status(429).with_retry_after(text);
    assert_about(window(limited("100")), 100, "seconds");
    let in_ms = Step { retry_after_ms: Some("100000".into()), ..Step::status(429) };
    assert_about(window(in_ms), 100, "milliseconds");
    let date = http_date(unix_s() + 100);
    assert_about(window(limited(&date)), 100, &date);
}

#[test]
fn a_retry_after_that_says_nothing_gives_the_usual_window() {
    for text in ["soon", "-5", "0", "", "1e999", "Mon, 01 Jan 1990 00:00:00 GMT"] {
        assert_about(window(Step::status(429).with_retry_after(text)), 30, text);
    }
    assert_about(window(Step::status(429)), 30, "none at all");
}

#[test]
fn a_retry_after_of_ten_to_the_ninth_is_an_hour_at_most() {
    assert_about(window(Step::status(429).with_retry_after("1000000000")), 3600, "10^9");
}

#[test]
fn a_limited_target_is_hit_once_and_is_back_after_exactly_the_time() {
    let steps = vec![Step::status(429).with_retry_after("2")];
    let (limited, spare) = (FakeServer::start(Script::steps(steps)), good());
    let gate = Setup::of(&[&limited, &spare]).start();
    let began = now();
    let mut back = None;
    while back.is_none() && began.elapsed() < Duration::from_secs(20) {
        let asked = began.elapsed();
        let answer = gate.chat();
        assert_served(&answer, false, "all along");
        if answer.header("x-tidegate-resolved") == Some("a/m") {
            back = Some((asked, began.elapsed()));
        }
        pause(Duration::from_millis(10));
    }
    let (asked, answered) = back.expect("it comes back");
    assert!(answered >= Duration::from_secs(2), "too early: {answered:?}");
    assert!(asked < Duration::from_secs(4), "too late: {asked:?}");
    assert_eq!(hits(&limited), 2, "once before the window, once after");
}

#[test]
fn with_everything_limited_the_client_hears_when_to_come_back() {
    let limited = |text: &str| always(Step::status(429).with_retry_after(text));
    let fakes = [limited("20"), limited("90")];
    let gate = Setup::of(&fakes.each_ref()).start();
    let answer = gate.chat();
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let after: u64 = answer.header("retry-after").and_then(|it| it.parse().ok()).unwrap_or(0);
    assert!((15..=20).contains(&after), "the first re-entry is in 20 s, said {after}");
}

#[test]
fn a_nonsense_retry_after_does_not_reach_the_client_as_advice() {
    let limited = always(Step::status(429).with_retry_after("1000000000"));
    let gate = Setup::of(&[&limited]).start();
    let answer = gate.chat();
    let after: u64 = answer.header("retry-after").and_then(|it| it.parse().ok()).unwrap_or(0);
    assert!((3590..=3600).contains(&after), "said {after}");
    assert_eq!(answer.head.matches("retry-after").count(), 1, "{}", answer.head);
}

#[test]
fn a_503_with_retry_after_sets_a_window_too() {
    assert_about(
        window_of_overload(Step::status(503).with_retry_after("60")),
        60,
        "a 503 that says when",
    );
}

fn window_of_overload(step: Step) -> Option<i64> {
    let (bad, spare) = (always(step), good());
    let gate = Setup::of(&[&bad, &spare]).start();
    for _ in 0..5 {
        assert_served(&gate.chat(), false, "while one is overloaded");
    }
    assert_eq!(hits(&bad), 1);
    Some(gate.health("a/m")["unhealthy_until_unix"].as_i64()? - unix_s())
}
