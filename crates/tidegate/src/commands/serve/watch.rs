//! Whether the files of a config have changed, by looking now and then.
//!
//! Looking at what the path leads to finds every way a file is changed: written in place, replaced
//! by a rename, or moved by a symlink as in a mounted secret. A change counts once the file has
//! been the same for a while, so that a half-written one is not read.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tidegate_server::server::Server;

/// What is seen of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sight {
    modified: SystemTime,
    length: u64,
}

/// The config file and the files with its secrets, under watch.
#[derive(Debug)]
pub(crate) struct FileWatches(Vec<FileWatch>);

impl FileWatches {
    pub(crate) fn new(server: &Server) -> Self {
        let watch = |path: &PathBuf| FileWatch::new(path, server.debounce());
        Self(server.watched_files().iter().map(watch).collect())
    }

    /// Watches what the config names by now; what was watched before goes on as it was.
    pub(crate) fn follow(&mut self, server: &Server) {
        let mut before = std::mem::take(&mut self.0);
        for path in server.watched_files() {
            let known = before.iter().position(|watch| watch.path == path);
            let watch = known.map(|at| before.swap_remove(at));
            self.0.push(watch.unwrap_or_else(|| FileWatch::new(&path, server.debounce())));
        }
    }

    /// Whether one of them has changed and settled.
    pub(crate) fn have_changed(&mut self, since_last: Duration) -> bool {
        // Every one is asked, so that two which change together cause one reload.
        self.0.iter_mut().filter_map(|it| it.has_changed(since_last).then_some(())).count() > 0
    }
}

/// A file under watch.
#[derive(Debug)]
struct FileWatch {
    path: PathBuf,
    debounce: Duration,
    known: Option<Sight>,
    seen: Option<Sight>,
    same_for: Duration,
}

impl FileWatch {
    fn new(path: &Path, debounce: Duration) -> Self {
        let known = sight(path);
        Self { path: path.to_owned(), debounce, known, seen: known, same_for: Duration::ZERO }
    }

    /// Whether it has changed and settled; `since_last` is the time since it was last asked.
    fn has_changed(&mut self, since_last: Duration) -> bool {
        self.look(sight(&self.path), since_last)
    }

    fn look(&mut self, now: Option<Sight>, since_last: Duration) -> bool {
        if now != self.seen {
            self.seen = now;
            self.same_for = Duration::ZERO;
            return false;
        }
        self.same_for = self.same_for.saturating_add(since_last);
        // A file that is gone for a moment is about to be replaced; the old config stays.
        let is_settled = now.is_some() && self.same_for >= self.debounce;
        let has_changed = is_settled && now != self.known;
        if has_changed {
            self.known = now;
        }
        has_changed
    }
}

fn sight(path: &Path) -> Option<Sight> {
    let found = fs::metadata(path).ok()?;
    Some(Sight { modified: found.modified().ok()?, length: found.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    fn seen(length: u64) -> Option<Sight> {
        Some(Sight { modified: SystemTime::UNIX_EPOCH, length })
    }

    #[test]
    fn a_change_counts_once_and_only_when_the_file_has_settled() {
        let mut watch = FileWatch::new(Path::new("no/such/file"), Duration::from_millis(300));
        assert!(!watch.look(seen(1), STEP), "it is new");
        assert!(!watch.look(seen(2), STEP), "it is still being written");
        assert!(!watch.look(seen(2), STEP));
        assert!(!watch.look(seen(2), STEP));
        assert!(watch.look(seen(2), STEP), "it has settled");
        assert!(!watch.look(seen(2), STEP), "told once");
        assert!(!watch.look(None, STEP), "gone is no change");
        assert!((0..10).all(|_| !watch.look(None, STEP)));
    }
}
