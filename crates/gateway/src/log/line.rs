//! One event read out, where several of its fields make its words together.
//!
//! Every other line is written without this (`written.rs`).
//!
//! Text: the time, then what a person wants to read. A state change is shown as in
//! `14:02:11 anthropic  closed → open     3 × 529 overloaded in a row; half-open at 14:02:41`;
//! everything else as its sentence and `key=value` fields, marked if it is a warning or an error.
//! JSON: `time`, `level`, `message`, and the fields as they are.

use std::fmt::Debug;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::{
    civil::{rfc3339, short},
    escape,
};

/// One event, read out.
pub(super) struct Line {
    unix_ms: u64,
    level: Level,
    message: String,
    fields: Map<String, Value>,
}

impl Line {
    pub(super) fn of(event: &Event<'_>, unix_ms: u64) -> Self {
        let metadata = event.metadata();
        let mut line =
            Self { unix_ms, level: *metadata.level(), message: String::new(), fields: Map::new() };
        event.record(&mut line);
        line
    }

    /// A state change, as a line of text.
    pub(super) fn transition(self) -> String {
        let now = rfc3339(self.unix_ms);
        format!("{} {}\n", short(&now, &now), self.transition_words(&now))
    }

    /// The server it is about, and its words without that; none if it is about none.
    pub(super) fn about_server(mut self) -> Option<(String, String)> {
        let server = self.fields.get("server")?.as_str()?.to_owned();
        self.fields.retain(|name, _| name != "server");
        // What is overheard is shown beside its server, where a mark would only repeat that
        // something is wrong.
        self.level = Level::INFO;
        Some((server, self.plain_words()))
    }

    fn plain_words(&self) -> String {
        let mark = match self.level {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        };
        let mut words = format!("{mark}{}", escape::words(&self.message));
        for (index, (name, value)) in self.fields.iter().enumerate() {
            words.push_str(if index == 0 { "  " } else { " " });
            let value = value.as_str().map_or_else(|| value.to_string(), escape::value);
            words.push_str(&format!("{name}={value}"));
        }
        words
    }

    fn transition_words(&self, now: &str) -> String {
        let field = |name: &str| self.fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let state = |name: &str| field(name).replace("half_open", "half-open");
        let change = format!("{} → {}", state("from"), state("to"));
        let until = match field("until") {
            "" => String::new(),
            until if field("to") == "open" => format!("; half-open at {}", short(until, now)),
            until => format!("; until {}", short(until, now)),
        };
        let backend = escape::words(field("backend"));
        let detail = escape::words(field("detail"));
        format!("{backend}  {change}     {detail}{until}")
    }

    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.add(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned();
        } else {
            self.add(field, value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }
}
