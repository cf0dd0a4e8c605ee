//! What the log would say of each server while something is tried out, kept instead of written.
//!
//! `check --connect` has no log, but whoever reads that a program did not start wants the words
//! that a log would hold: its last lines, the system's reason.
//!
//! Rules kept here:
//! - Events of this thread only, up to `info`: tasks of one visit run on the thread that makes it.
//! - The latest [`KEPT`] remarks of a server are kept, each at most [`REMARK_CHARS`] long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber, span};

use super::{OWN, line::Line};

/// Remarks kept of one server: enough for the end of a program's last words.
const KEPT: usize = 6;
/// A remark is a line or two on a terminal.
const REMARK_CHARS: usize = 300;

type Remarks = BTreeMap<String, Vec<String>>;

/// Listens while it lives.
pub struct Overheard {
    remarks: Arc<Mutex<Remarks>>,
    _listening: DefaultGuard,
}

impl Overheard {
    /// Begins to listen on this thread.
    pub fn begin() -> Self {
        let remarks = Arc::<Mutex<Remarks>>::default();
        let listener = Listener(Arc::clone(&remarks));
        Self { remarks, _listening: tracing::subscriber::set_default(listener) }
    }

    /// What was said of a server, oldest first.
    pub fn take(&self, server: &str) -> Vec<String> {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        remarks.remove(server).unwrap_or_default()
    }
}

struct Listener(Arc<Mutex<Remarks>>);

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with(OWN)
            && *metadata.level() <= LevelFilter::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        let Some((server, mut words)) = Line::of(event, 0).about_server() else { return };
        if let Some((end, _)) = words.char_indices().nth(REMARK_CHARS) {
            words.truncate(end);
        }
        let mut remarks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = remarks.entry(server).or_default();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(words);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_remarks_are_kept_by_server_and_control_characters_are_escaped() {
        let overheard = Overheard::begin();
        for number in 0..20 {
            tracing::warn!(server = "files", line = "a\u{1b}b c", number, "a program says");
            tracing::debug!(server = "files", "left out");
            tracing::warn!("about nobody");
        }
        let remarks = overheard.take("files");
        assert_eq!(remarks.len(), KEPT);
        assert_eq!(remarks[0], "a program says  line=\"a\\u001bb c\" number=14");
        assert!(overheard.take("files").is_empty() && overheard.take("git").is_empty());
    }
}
