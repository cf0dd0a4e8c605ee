//! One event as a line, written straight into a buffer that its thread keeps.
//!
//! Why it exists: an access log is a line per request. A tree of values for each of them costs ten
//! times as much as the line itself. What [`super::line`] says of the two forms holds here; state
//! changes, whose words follow from several fields at once, are left to it.
//!
//! Rules kept here:
//! - Nothing is allocated once the thread's buffers have grown to the length of its lines.
//! - The time is put into words once a second.
//! - Fields stand in the order in which the event has them, whatever stands before the message.

use std::cell::RefCell;
use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::{civil::rfc3339, escape};

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// The buffers of one thread.
#[derive(Debug, Default)]
struct Scratch {
    /// The second that `time` tells, plus one; 0 before the first line.
    second: u64,
    /// As `2026-11-15T14:02:11Z`.
    time: String,
    fields: Fields,
    line: String,
}

/// What the fields of an event come to.
#[derive(Debug, Default)]
struct Fields {
    is_json: bool,
    message: String,
    rest: String,
}

/// Writes an event as a line of the form asked for, and has it taken.
pub(super) fn write(event: &Event<'_>, unix_ms: u64, is_json: bool, take: impl FnOnce(&str)) {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => take(scratch.written(event, unix_ms, is_json)),
        // An event inside the words of another one: it has buffers of its own.
        Err(_) => take(Scratch::default().written(event, unix_ms, is_json)),
    });
}

impl Scratch {
    fn written(&mut self, event: &Event<'_>, unix_ms: u64, is_json: bool) -> &str {
        let second = unix_ms / 1000 + 1;
        if self.second != second {
            (self.second, self.time) = (second, rfc3339(unix_ms));
        }
        let fields = &mut self.fields;
        fields.is_json = is_json;
        fields.message.clear();
        fields.rest.clear();
        event.record(fields);
        self.line.clear();
        let level = *event.metadata().level();
        if is_json {
            self.json(level, unix_ms % 1000);
        } else {
            self.text(level);
        }
        &self.line
    }

    fn text(&mut self, level: Level) {
        let line = &mut self.line;
        line.push_str(self.time.get(11..19).unwrap_or_default());
        line.push_str(match level {
            Level::ERROR => " error: ",
            Level::WARN => " warning: ",
            _ => " ",
        });
        line.push_str(&self.fields.message);
        line.push_str(&self.fields.rest);
        line.push('\n');
    }

    fn json(&mut self, level: Level, ms: u64) {
        let line = &mut self.line;
        line.push_str("{\"time\":\"");
        line.push_str(self.time.trim_end_matches('Z'));
        line.push('.');
        line.extend([ms / 100, ms / 10 % 10, ms % 10].map(|it| char::from(b'0' + it as u8)));
        line.push_str("Z\",\"level\":\"");
        line.push_str(match level {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        });
        line.push_str("\",\"message\":\"");
        line.push_str(&self.fields.message);
        line.push('"');
        line.push_str(&self.fields.rest);
        line.push_str("}\n");
    }
}

impl Fields {
    /// The name of a field, up to its value.
    fn name(&mut self, field: &Field) {
        if self.is_json {
            self.rest.push_str(",\"");
            self.rest.push_str(field.name());
            self.rest.push_str("\":");
        } else {
            self.rest.push_str(if self.rest.is_empty() { "  " } else { " " });
            self.rest.push_str(field.name());
            self.rest.push('=');
        }
    }

    fn plain(&mut self, field: &Field, value: impl std::fmt::Display) {
        self.name(field);
        write!(self.rest, "{value}").expect("a string takes everything");
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Most messages are constant sentences without anything to escape.
            let start = self.message.len();
            write!(self.message, "{value:?}").expect("a string takes everything");
            if !escape::is_plain(&self.message[start..]) {
                let said = self.message.split_off(start);
                escape::push_words(&mut self.message, &said, self.is_json);
            }
        } else {
            self.record_str(field, &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return escape::push_words(&mut self.message, value, self.is_json);
        }
        self.name(field);
        match self.is_json {
            true => {
                self.rest.push('"');
                escape::push_words(&mut self.rest, value, true);
                self.rest.push('"');
            }
            false => escape::push_value(&mut self.rest, value),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        push_number(&mut self.rest, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // As JSON has it: what is no number is `null`.
        self.plain(field, serde_json::Value::from(value));
    }
}

/// A number in digits. (The formatting of the library costs several times as much.)
fn push_number(out: &mut String, value: u64) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), value);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::push_number;

    #[test]
    fn numbers_are_written_as_the_library_writes_them() {
        for value in [0, 9, 10, 99, 100, 1234567890, u64::MAX] {
            let mut text = String::from("n=");
            push_number(&mut text, value);
            assert_eq!(text, format!("n={value}"));
        }
    }
}
