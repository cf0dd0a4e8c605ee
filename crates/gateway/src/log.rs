//! The log: one line per fact, on stderr, as text for people or JSON for machines.
//!
//! Why a subscriber of our own: a log line here has one shape, and only this gateway's own events
//! are written. Libraries below also report through `tracing`, at `trace` with whole headers; those
//! could hold keys, so they are not listened to at any level (S1).
//!
//! Rules kept here:
//! - Data are fields with the lexicon's names; the message is a constant sentence.
//! - Control characters are escaped, so a field cannot end its line or talk to a terminal (S60).
//! - The access log says who asked for what and how it went, for every request of both listeners:
//!   never headers, bodies, queries or keys. A path is told by its class, because a path can hold
//!   anything.
//! - What an outage or an attacker can repeat without end is bounded (`limit.rs`).
//! - Times are UTC: lines of several machines can be put side by side.
//!
//! Lines are written by a thread of their own (`queue.rs`), so that a reader of stderr who has
//! stopped reading stops nobody. Spans are not used.

mod civil;
mod escape;
mod limit;
mod line;
mod overhear;
mod queue;
mod written;

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Method;
use tidegate_config::file::{LogFile, LogFormat, LogLevel};
use tidegate_core::time::{Millis, Now};
use tidegate_runtime::clock::Clock;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber, span};

pub use self::{civil::rfc3339, limit::LineLimit, overhear::Overheard};
use self::{line::Line, queue::Queue};

/// The `target` of events that tell of a state change: text lines show them as `from → to`.
pub const TRANSITION: &str = "tidegate::transition";
/// The `target` of access lines.
const ACCESS: &str = "tidegate::access";
/// Only events of this project are written.
const OWN: &str = "tidegate";

/// Where lines go. A sink never fails the caller: a full disk must not stop the gateway.
pub(crate) type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// The log's settings, which a reload may change.
#[derive(Clone, Debug)]
pub struct LogSettings(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    level: AtomicU8,
    is_json: AtomicBool,
    /// The lines on their way to stderr, if that is where they go.
    queue: OnceLock<Arc<Queue>>,
}

/// How long the end of the process waits for a reader of stderr.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// There is a log already: it is set up once per process.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the log is already set up")]
pub struct AlreadyLogging;

/// Begins to log to stderr.
///
/// # Errors
/// If the process logs already.
pub fn start(file: &LogFile, clock: Clock) -> Result<LogSettings, AlreadyLogging> {
    // A reader of stderr that has gone is no reason to stop serving.
    let write = |line: &str| drop(std::io::stderr().lock().write_all(line.as_bytes()));
    let tell = |lines: u64| tracing::warn!(lines, "log lines were dropped: stderr is not read");
    let queue = Queue::start(write, tell).ok();
    let into = queue.clone();
    let sink = move |line: &str| match &into {
        Some(queue) => queue.push(line),
        None => write(line),
    };
    let (log, settings) = Log::new(file, clock, Box::new(sink));
    tracing::subscriber::set_global_default(log).map_err(|_| AlreadyLogging)?;
    if let Some(queue) = queue {
        drop(settings.0.queue.set(queue));
    }
    Ok(settings)
}

impl LogSettings {
    /// Takes over what a config says.
    pub fn follow(&self, file: &LogFile) {
        self.0.level.store(rank(file.level), Ordering::Relaxed);
        self.0.is_json.store(file.format == LogFormat::Json, Ordering::Relaxed);
        // Call sites remember whether anybody wanted to hear of them.
        tracing::callsite::rebuild_interest_cache();
    }

    /// Waits a little for what was logged to be written: the last thing before the process ends.
    pub fn flush(&self) {
        if let Some(queue) = self.0.queue.get() {
            queue.flush(FLUSH_WITHIN);
        }
    }

    fn level(&self) -> LevelFilter {
        match self.0.level.load(Ordering::Relaxed) {
            0 => LevelFilter::ERROR,
            1 => LevelFilter::WARN,
            2 => LevelFilter::INFO,
            3 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        }
    }
}

const fn rank(level: LogLevel) -> u8 {
    match level {
        LogLevel::Error => 0,
        LogLevel::Warn => 1,
        LogLevel::Info => 2,
        LogLevel::Debug => 3,
        LogLevel::Trace => 4,
    }
}

/// The subscriber.
pub(crate) struct Log {
    settings: LogSettings,
    clock: Clock,
    sink: Sink,
}

impl Log {
    pub(crate) fn new(file: &LogFile, clock: Clock, sink: Sink) -> (Self, LogSettings) {
        let (level, is_json) = (AtomicU8::new(0), AtomicBool::new(false));
        let shared = Shared { level, is_json, queue: OnceLock::new() };
        let settings = LogSettings(Arc::new(shared));
        settings.follow(file);
        (Self { settings: settings.clone(), clock, sink }, settings)
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with(OWN)
            && *metadata.level() <= self.settings.level()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.settings.level())
    }

    fn event(&self, event: &Event<'_>) {
        let unix_ms = self.clock.unix_ms();
        let is_json = self.settings.0.is_json.load(Ordering::Relaxed);
        if event.metadata().target() == TRANSITION && !is_json {
            return (self.sink)(&Line::of(event, unix_ms).transition());
        }
        written::write(event, unix_ms, is_json, |line| (self.sink)(line));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// One request as the access log tells it.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    pub method: &'a Method,
    pub path: &'a str,
    /// The route's name in metrics; empty for a request that was not routed.
    pub route: &'a str,
    pub target: Option<&'a str>,
    pub status: u16,
    pub attempts: usize,
    pub took: Millis,
    pub request_id: &'a str,
    /// The caller's name; empty without `keys`.
    pub caller: &'a str,
}

macro_rules! access_line {
    ($level:ident, $access:expr) => {
        tracing::$level!(
            target: ACCESS,
            method = known_method($access.method),
            path = path_class($access.path),
            route = Some($access.route).filter(|it| !it.is_empty()),
            target = $access.target,
            status = $access.status,
            attempts = $access.attempts,
            ms = $access.took.0,
            request_id = Some($access.request_id).filter(|it| !it.is_empty()),
            caller = Some($access.caller).filter(|it| !it.is_empty()),
            "request ended"
        )
    };
}

/// Writes an access line: at `info` if the config asks for them, else at `debug`.
pub fn access(file: &LogFile, access: &Access<'_>) {
    if file.access {
        access_line!(info, access);
    } else {
        access_line!(debug, access);
    }
}

/// Something that may be an attack: a wrong key, a forbidden route, a session of another caller.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// What was refused, as a word.
    pub event: &'static str,
    /// The caller's name, where a key was known.
    pub caller: &'a str,
    pub path: &'a str,
    /// The route that was asked for; empty where there is none.
    pub route: &'a str,
    pub request_id: &'a str,
}

/// Logs a refusal that concerns security, unless there were many of its kind just now. If it is
/// logged: how many were not since the last one.
pub fn refused(limit: &LineLimit, now: Now, refused: &Refused<'_>) -> Option<u64> {
    let suppressed = limit.admit(now, refused.event)?;
    let present = |text| Some(text).filter(|it: &&str| !it.is_empty());
    tracing::warn!(
        event = refused.event,
        path = path_class(refused.path),
        route = present(refused.route),
        caller = present(refused.caller),
        request_id = present(refused.request_id),
        suppressed = Some(suppressed).filter(|count| *count > 0),
        "a request was refused"
    );
    Some(suppressed)
}

fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        _ => "OTHER",
    }
}

/// Paths that are told by name.
const PATHS: &[&str] = &[
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/v1/completions",
    "/v1/models",
    "/v1/routes",
    "/v1/health",
    "/health",
    "/ready",
    "/mcp",
    "/",
    "/metrics",
    "/api/snapshot",
    "/api/explain",
    "/api/reload",
    "/api/events",
    "/api/decisions",
    "/api/timeline",
    "/api/incident",
    "/api/login",
    "/api/logout",
    "/api/session",
    "/v1beta/models",
];

/// A path by its class, because a path can hold anything.
pub fn path_class(path: &str) -> &'static str {
    match PATHS.iter().find(|known| **known == path) {
        Some(known) => known,
        None if path.starts_with("/v1/models/") => "/v1/models/{id}",
        None if path.starts_with("/v1/") => "/v1/{other}",
        None if path.starts_with("/v1beta/models/") => "/v1beta/models/{id}",
        None if path.starts_with("/api/decisions/") => "/api/decisions/{id}",
        None if path.starts_with("/api/backends/") => "/api/backends/{id}",
        None => "{other}",
    }
}

#[cfg(test)]
pub mod tests;
