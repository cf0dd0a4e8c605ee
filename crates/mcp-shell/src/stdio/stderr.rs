//! What a program says on stderr: for the log, in part, and for a person who looks for a cause.
//!
//! Rules kept here:
//! - It is always read, however much comes: a program never waits for us here. What is too much is
//!   counted and not told.
//! - Terminal sequences and control characters are taken out, and the values of the server's own
//!   `env` are masked (S38): programs like to print their settings when they fail.
//! - The last [`TAIL_BYTES`] are kept as they came and cleaned when somebody looks.

use std::collections::VecDeque;
use std::fmt;

use tidegate_config::secret::Secret;
use tidegate_runtime::clock::timer_now;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::sleep_until;

use super::Shared;
use super::lines::{Line, Lines};
use super::throttle::Throttle;

/// Lines a second that are told: a start's banner or a stack trace fits.
const LINES_PER_SECOND: u32 = 20;
/// A longer line is cut.
const LINE_BYTES: usize = 8 * 1024;
/// What is told of a line.
const LINE_CHARS: usize = 1000;
/// What is kept for diagnosis.
const TAIL_BYTES: usize = 64 * 1024;
/// A shorter value is a switch or a number, not a secret.
const SECRET_MIN: usize = 6;

const MASK: &str = "<redacted>";

/// Listens until the program's stderr is closed.
pub(super) async fn listen(mut stderr: impl AsyncRead + Unpin, shared: &Shared) {
    let mut reader = StderrReader { shared, throttle: Throttle::new(LINES_PER_SECOND) };
    let mut lines = Lines::up_to(LINE_BYTES);
    loop {
        let due = reader.throttle.due();
        tokio::select! {
            // Or a flood would leave no time to say that there is one.
            biased;
            () = sleep_until(due.unwrap_or_else(timer_now)), if due.is_some() => {
                reader.tell_left_out();
                continue;
            }
            read = stderr.read_buf(lines.space()) => if matches!(read, Ok(0) | Err(_)) { break },
        }
        while let Some(line) = lines.next() {
            reader.hear(&line);
        }
        // A flood must not keep this thread from its other work.
        tokio::task::yield_now().await;
    }
    if let Some(line) = lines.finish() {
        reader.hear(&line);
    }
    reader.tell_left_out();
}

struct StderrReader<'a> {
    shared: &'a Shared,
    throttle: Throttle,
}

impl StderrReader<'_> {
    fn hear(&mut self, line: &Line) {
        let cleaner = &self.shared.cleaner;
        let raw = match line {
            Line::Whole(bytes) => &bytes[..],
            Line::TooLong(ends) => cleaner.safe_part(&ends.head),
        };
        self.shared.tail.borrow_mut().add(raw);
        if self.throttle.admits(timer_now()) {
            let line = cleaner.clean(raw);
            tracing::info!(server = &*self.shared.name, line, "a server's program says");
        }
    }

    fn tell_left_out(&mut self) {
        if let Some(lines) = self.throttle.take_left_out() {
            let server = &*self.shared.name;
            tracing::warn!(server, lines, "a server's program says more than is told");
        }
    }
}

/// Makes a program's words fit to be shown.
#[derive(Default)]
pub(super) struct Cleaner {
    /// Longest first, so that a secret that holds another is masked whole.
    secrets: Vec<String>,
}

impl Cleaner {
    /// One that masks these values; of a value of several lines, each.
    pub(super) fn of(env: &[(String, Secret)]) -> Self {
        let lines = env.iter().flat_map(|(_, value)| value.expose().lines()).map(str::trim);
        let mut secrets: Vec<String> =
            lines.filter(|line| line.len() >= SECRET_MIN).map(str::to_owned).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// A line as it may be shown.
    pub(super) fn clean(&self, raw: &[u8]) -> String {
        let mut text = plain(&String::from_utf8_lossy(raw));
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        if let Some((end, _)) = text.char_indices().nth(LINE_CHARS) {
            text.truncate(end);
            text.push('…');
        }
        text
    }

    /// What may be cleaned of a line that was cut: a secret at the cut could not be seen.
    pub(super) fn safe_part<'a>(&self, cut: &'a [u8]) -> &'a [u8] {
        let longest = self.secrets.first().map_or(0, String::len);
        &cut[..cut.len().saturating_sub(longest)]
    }
}

impl fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cleaner({} secrets)", self.secrets.len())
    }
}

/// The text without terminal sequences and control characters.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(it) = rest.next() {
        match it {
            '\t' => out.push(' '),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{1b}' => match rest.next() {
                Some('[') => skip_control_sequence(&mut rest),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                // A character set is chosen by one more character.
                Some('(' | ')' | '#' | '%') => drop(rest.next()),
                _ => {}
            },
            it if it.is_control() => {}
            it => out.push(it),
        }
    }
    out
}

/// `31;1m`: parameters up to a final character.
fn skip_control_sequence(rest: &mut std::str::Chars<'_>) {
    rest.find(|it| ('@'..='~').contains(it));
}

/// A title or a link: up to its terminator.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    while let Some(it) = rest.next() {
        match it {
            '\u{7}' | '\u{9c}' => return,
            // Its other form is an escape and a backslash.
            '\u{1b}' => {
                rest.next();
                return;
            }
            _ => {}
        }
    }
}

/// The last that was said.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    fn add(&mut self, line: &[u8]) {
        self.0.extend(line);
        self.0.push_back(b'\n');
        // A line is shorter than the whole, so only older ones are cut.
        self.0.drain(..self.0.len().saturating_sub(TAIL_BYTES));
        // A line that lost its beginning may begin inside a secret.
        if self.0.len() == TAIL_BYTES {
            let end = self.0.iter().position(|&it| it == b'\n').map_or(0, |at| at + 1);
            self.0.drain(..end);
        }
    }

    /// All that is kept, cleaned.
    pub(super) fn text(&self, cleaner: &Cleaner) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        let lines: Vec<String> =
            bytes.split(|&it| it == b'\n').map(|line| cleaner.clean(line)).collect();
        lines.join("\n")
    }

    /// The last line, cleaned.
    pub(super) fn last_line(&self, cleaner: &Cleaner) -> Option<String> {
        let end = self.0.len().checked_sub(1)?;
        let start = self.0.range(..end).rposition(|&it| it == b'\n').map_or(0, |at| at + 1);
        let line: Vec<u8> = self.0.range(start..end).copied().collect();
        Some(cleaner.clean(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::secret;
    use super::*;

    fn cleaner(values: &[&str]) -> Cleaner {
        let env: Vec<_> = values.iter().map(|value| ("NAME".to_owned(), secret(value))).collect();
        Cleaner::of(&env)
    }

    #[test]
    fn s38_terminal_sequences_and_control_characters_are_taken_out() {
        let check = |raw: &str, expected: &str| {
            assert_eq!(Cleaner::default().clean(raw.as_bytes()), expected, "{raw:?}");
        };
        check("\u{1b}[31;1mred\u{1b}[0m\r", "red");
        check("\u{1b}]0;title\u{7}text", "text");
        check("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("a\tb\u{0}\u{8}c\u{9b}2Jd\u{1b}(Be", "a bcde");
        check("\u{1b}[", "");
        check("\u{1b}", "");
        check("naïve 漢字", "naïve 漢字");
        assert_eq!(Cleaner::default().clean(b"bad \xff byte"), "bad \u{fffd} byte");
    }

    #[test]
    fn values_of_the_environment_are_masked_also_between_colours_and_in_lines() {
        let cleaner = cleaner(&["hunter2!", "hunter2!extra", "1", "first line\nsecond line"]);
        let check = |raw: &str, expected: &str| {
            assert_eq!(cleaner.clean(raw.as_bytes()), expected, "{raw:?}");
        };
        check("token=hunter2! 1", "token=<redacted> 1");
        check("token=hunter2!extra", "token=<redacted>");
        check("token=hun\u{1b}[1mter2!", "token=<redacted>");
        check("say second line", "say <redacted>");
        assert!(!format!("{cleaner:?}").contains("hunter2"));
        assert_eq!(cleaner.safe_part(b"xxhunter2!extr"), b"x");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let cut = Cleaner::default().clean("é".repeat(3000).as_bytes());
        assert_eq!(cut.chars().count(), LINE_CHARS + 1);
        assert!(cut.ends_with("é…"));
    }

    #[test]
    fn the_tail_keeps_whole_last_lines_within_its_bound() {
        let mut tail = Tail::default();
        assert_eq!(tail.last_line(&Cleaner::default()), None);
        for number in 0..100_000 {
            tail.add(format!("line {number}").as_bytes());
            assert!(tail.0.len() <= TAIL_BYTES);
        }
        let text = tail.text(&Cleaner::default());
        assert!(text.starts_with("line 9") && text.ends_with("line 99999\n"), "{text}");
        assert!(text.len() > TAIL_BYTES / 2);
        assert_eq!(tail.last_line(&Cleaner::default()).as_deref(), Some("line 99999"));
    }
}
