//! The `date` of answers, put into words once a second on each thread.

use std::cell::RefCell;
use std::io::Write;
use std::time::Duration;

use httpdate::HttpDate;
use tidegate_runtime::clock::{timer_now, wall_now};
use tokio::time::Instant;

/// How long a line is good for.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The line, and until when it is good.
struct DateLine {
    text: Vec<u8>,
    until: Option<Instant>,
}

thread_local! {
    static LINE: RefCell<DateLine> =
        const { RefCell::new(DateLine { text: Vec::new(), until: None }) };
}

/// Adds the header line of this moment.
pub(super) fn push(out: &mut Vec<u8>) {
    LINE.with_borrow_mut(|line| {
        let now = timer_now();
        if line.until.is_none_or(|until| until <= now) {
            line.text.clear();
            // Writing to memory does not fail.
            drop(write!(line.text, "date: {}\r\n", HttpDate::from(wall_now())));
            line.until = Some(now + GOOD_FOR);
        }
        out.extend_from_slice(&line.text);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_date_is_one_line_and_of_this_moment() {
        let mut out = Vec::new();
        push(&mut out);
        push(&mut out);
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert!(lines.len() == 2 && lines[0] == lines[1], "{text:?}");
        let said =
            lines[0].strip_prefix("date: ").and_then(|it| httpdate::parse_http_date(it).ok());
        let apart = wall_now().duration_since(said.expect("a date")).expect("not later than now");
        assert!(apart < Duration::from_secs(60));
    }
}
