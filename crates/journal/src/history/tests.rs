//! What the history file keeps, and what it does when it cannot.

use std::fs;

use tidegate_core::{attempt::End, outcome::OutcomeKind};
use tidegate_runtime::{clock::Clock, rng};

use super::*;
use crate::{
    decision::Decision,
    event::{Event, EventBody, ReloadRecord},
    mcp::McpCall,
    question::{OlderQuestion, Question},
    request_id::RequestId,
    result::ClientVerdict,
};

/// Longer than anything that is meant to come, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);
const WEEK: Millis = Millis::minutes(7 * 24 * 60);

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-history-{:016x}", rng::draw()));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tidegate.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn start(path: &Path, keep: Millis, instance: &str) -> Result<History, HistoryProblem> {
    start_with(Clock::start(), path, keep, instance)
}

fn start_with(
    clock: Clock,
    path: &Path,
    keep: Millis,
    instance: &str,
) -> Result<History, HistoryProblem> {
    let renderer = move || Renderer { clock, shas: Arc::new([]) };
    History::start(path, keep, instance, renderer)
}

fn decision(caller: &str) -> Decision {
    let end = Some(End::Answered);
    Decision {
        end,
        verdict: ClientVerdict::of(200, end),
        caller: caller.into(),
        ..Decision::refused(RequestId::new(), Now(1), Millis(1), 200, "")
    }
}

fn call() -> Decision {
    let mut call = McpCall::new(Now(1), &"ops".into(), "s", "github", ("tools/call", Some("x")));
    call.attempt("github", (Now(1), Now(2)), Some(OutcomeKind::Transport), Some("refused"), 1);
    call.unavailable(Now(2), "backend_unavailable", "connection refused")
}

fn push(history: &History, n: u64, decision: Decision) {
    history.queue().push(Record::Decision(n, Arc::new(decision)));
}

fn asked(question: Question) -> OlderQuestion {
    OlderQuestion {
        question,
        since_unix_ms: None,
        until_unix_ms: None,
        in_memory: None,
        below_row: None,
    }
}

fn all() -> Question {
    Question { limit: 1000, ..Question::default() }
}

fn count(path: &Path, question: Question) -> usize {
    read_page(path, &asked(question)).expect("it can be read").decisions.len()
}

#[test]
fn rows_are_found_by_what_they_say_and_page_by_page() {
    let folder = Folder::new();
    let history = start(&folder.file(), WEEK, "one").expect("a file");
    let first = decision("ci");
    let id = first.id.to_string();
    push(&history, 1, first);
    push(&history, 2, decision("batch"));
    push(&history, 3, call());
    assert!(history.flush(PATIENCE));
    let text = |it: &str| Some(it.to_owned());
    let path = folder.file();
    assert_eq!(count(&path, all()), 3);
    assert_eq!(count(&path, Question { caller: text("ci"), ..all() }), 1);
    assert_eq!(count(&path, Question { kind: text("mcp"), ..all() }), 1);
    assert_eq!(count(&path, Question { result: text("failed"), ..all() }), 1);
    assert_eq!(count(&path, Question { is_notable: true, ..all() }), 1);
    assert_eq!(count(&path, Question { backend: text("mcp:github"), ..all() }), 1);
    assert_eq!(count(&path, Question { backend: text("mcp:git"), ..all() }), 0);
    assert_eq!(count(&path, Question { outcome: text("transport"), ..all() }), 1);
    assert_eq!(count(&path, Question { outcome: text("timeout"), ..all() }), 0);
    let found = find(&path, &id).expect("it can be read").expect("it is there");
    assert_eq!((found.short.id, found.short.caller.as_str()), (id, "ci"));
    assert!(find(&path, "req_x' OR 1=1 --").expect("it can be read").is_none());
    let mut below_row = None;
    let mut seen = Vec::new();
    loop {
        let page = OlderQuestion { below_row, ..asked(Question { limit: 2, ..all() }) };
        let page = read_page(&path, &page).expect("it can be read");
        seen.extend(page.decisions.iter().map(|it| it.n));
        below_row = page.next_row;
        if below_row.is_none() {
            break;
        }
    }
    assert_eq!(seen, [3, 2, 1], "newest first, each once");
    let memory = OlderQuestion { in_memory: Some(("one".to_owned(), 1)), ..asked(all()) };
    let older = read_page(&path, &memory).expect("it can be read").decisions;
    assert_eq!(older.iter().map(|it| it.n).collect::<Vec<_>>(), [1], "the rest is in memory");
}

#[test]
fn what_was_written_is_there_after_the_process_is_gone() {
    let folder = Folder::new();
    let history = start(&folder.file(), WEEK, "one").expect("a file");
    push(&history, 1, decision("ci"));
    assert!(history.flush(PATIENCE));
    // As after kill -9: what lies on the disk now is all there is, the write-ahead log included.
    let copy = Folder::new();
    for name in ["tidegate.db", "tidegate.db-wal", "tidegate.db-shm"] {
        let from = folder.0.join(name);
        if from.exists() {
            fs::copy(from, copy.0.join(name)).expect("it can be copied");
        }
    }
    let again = start(&copy.file(), WEEK, "two").expect("it is sound");
    push(&again, 1, decision("later"));
    assert!(again.flush(PATIENCE));
    assert_eq!(count(&copy.file(), all()), 2);
    assert_eq!(count(&copy.file(), Question { caller: Some("ci".to_owned()), ..all() }), 1);
}

#[cfg(unix)]
#[test]
fn nobody_but_the_owner_can_read_the_file_or_its_log() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let history = start(&folder.file(), WEEK, "a").expect("a new file");
    push(&history, 1, decision("alice"));
    assert!(history.flush(PATIENCE));
    let files = fs::read_dir(&folder.0).expect("the folder").flatten();
    let modes = files.map(|it| {
        let mode = it.metadata().expect("a file").permissions().mode() & 0o777;
        (it.file_name().to_string_lossy().into_owned(), mode)
    });
    let modes: Vec<(String, u32)> = modes.collect();
    assert!(modes.iter().any(|(name, _)| name.ends_with("-wal")), "{modes:?}");
    assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
}

#[test]
fn a_foreign_a_damaged_and_a_newer_file_are_refused_and_left_alone() {
    let folder = Folder::new();
    let path = folder.file();
    let refused = |contains: &str| {
        let before = fs::read(&path).expect("it is there");
        let problem = start(&path, WEEK, "one").err().map(|it| it.to_string());
        assert!(problem.as_ref().is_some_and(|it| it.contains(contains)), "{problem:?}");
        assert_eq!(fs::read(&path).expect("it is there"), before, "{contains}");
    };
    fs::write(&path, "listen: 127.0.0.1:8700\n").expect("it can be written");
    refused("not a history of tidegate");
    fs::remove_file(&path).expect("it is there");
    let other = Connection::open(&path).expect("a database");
    other.execute_batch("CREATE TABLE theirs (x)").expect("it can be made");
    drop(other.close());
    refused("not a history of tidegate");
    fs::remove_file(&path).expect("it is there");
    drop(start(&path, WEEK, "one").expect("a file"));
    let newer = Connection::open(&path).expect("ours");
    newer.pragma_update(None, "user_version", 99).expect("it can be written");
    drop(newer.close());
    refused("version 99");
    let mut damaged = b"SQLite format 3\0".to_vec();
    damaged.resize(8192, 0xa5);
    fs::write(&path, damaged).expect("it can be written");
    assert!(start(&path, WEEK, "one").is_err());
    assert!(start(&folder.0, WEEK, "one").is_err(), "a folder is no file");
}

#[test]
fn rows_older_than_what_is_kept_go() {
    let folder = Folder::new();
    let history = start(&folder.file(), WEEK, "one").expect("a file");
    push(&history, 1, decision("old"));
    assert!(history.flush(PATIENCE));
    assert_eq!(count(&folder.file(), all()), 1);
    // With nothing to be kept, whatever is written next takes everything before it along.
    history.keep(Millis::ZERO);
    let event = ReloadRecord {
        at: Now(1),
        by: "api",
        is_taken: true,
        sha: "f2".into(),
        changed: Vec::new(),
        problems: Vec::new(),
    };
    let event = Event::new(1, Now(1), EventBody::Reload(Arc::new(event)));
    history.queue().push(Record::Event(Arc::new(event)));
    assert!(history.flush(PATIENCE));
    assert_eq!(count(&folder.file(), all()), 0);
}

#[test]
fn a_clock_that_was_set_back_loses_nothing_and_one_set_forward_keeps_what_is_new() {
    let folder = Folder::new();
    let path = folder.file();
    let write = |unix_ms: u64, instance: &str, caller: &str| {
        let clock = Clock::start_at(unix_ms);
        let history = start_with(clock, &path, WEEK, instance).expect("it is sound");
        push(&history, 1, decision(caller));
        assert!(history.flush(PATIENCE));
        assert_eq!(history.view().status, "ok");
    };
    let (year, now) = (365 * 24 * 3600 * 1000, Clock::start().unix_ms());
    write(now + 10 * year, "one", "future");
    // Set back by ten years: what the file has is from the future, and stays.
    write(now, "two", "present");
    let newest = read_page(&path, &asked(all())).expect("it can be read").decisions;
    let callers: Vec<&str> = newest.iter().map(|it| it.caller.as_str()).collect();
    assert_eq!(callers, ["present", "future"], "in the order in which they were written");
    // To the beginning of time, where there is nothing to subtract from.
    write(0, "three", "past");
    assert_eq!(count(&path, all()), 3);
    // Forward: what is older than a week goes, what is written now does not.
    write(now + 20 * year, "four", "later");
    assert_eq!(count(&path, Question { caller: Some("later".to_owned()), ..all() }), 1);
    assert_eq!(count(&path, all()), 1);
}

#[test]
fn a_disk_that_fails_loses_records_and_nothing_else() {
    let folder = Folder::new();
    let history = start(&folder.file(), WEEK, "one").expect("a file");
    push(&history, 1, decision("kept"));
    assert!(history.flush(PATIENCE));
    // Somebody else holds the file for longer than the writer waits: as slow as a disk can be.
    let other = Connection::open(folder.file()).expect("ours");
    other.execute_batch("BEGIN IMMEDIATE").expect("it can be held");
    push(&history, 2, decision("lost"));
    // Whoever serves never waits: all of this returns at once.
    (3..40_000).for_each(|n| push(&history, n, decision("many")));
    assert!(history.queue().dropped() > 0, "the queue is bounded");
    while history.view().status == "ok" {
        history.flush(Duration::from_millis(50));
    }
    assert!(history.view().why.is_some());
    other.execute_batch("ROLLBACK").expect("it can be let go");
    let written = || count(&folder.file(), Question { caller: Some("after".to_owned()), ..all() });
    push(&history, 50_000, decision("after"));
    assert!(history.flush(PATIENCE));
    push(&history, 50_001, decision("after"));
    assert!(history.flush(PATIENCE));
    assert!(written() >= 1, "it goes on");
    assert_eq!(history.view().status, "ok");
}
