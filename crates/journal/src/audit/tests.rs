//! What the audit log writes, and what it does when it cannot.

use std::fs;

use serde_json::Value;
use tidegate_core::{outcome::OutcomeKind, time::Now};
use tidegate_runtime::{clock::Clock, rng};

use super::*;
use crate::{event::Event, event::SecurityRecord, mcp::McpCall};

/// Longer than anything that is meant to come, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-audit-{:016x}", rng::draw()));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn audit(path: &Path) -> Audit {
    let clock = Clock::start();
    let renderer = move || Renderer { clock, shas: Arc::new([]) };
    Audit::start(AuditTarget::File(path.to_owned()), renderer).expect("a thread")
}

fn call(tool: &str) -> Record {
    let mut call = McpCall::new(Now(1), &"ci".into(), "s", "github", ("tools/call", Some(tool)));
    call.attempt("github", (Now(1), Now(2)), Some(OutcomeKind::Success), None, 1);
    Record::Decision(1, Arc::new(call.answered(Now(2))))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("it is there");
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"));
    text.lines().map(line).collect()
}

#[test]
fn s60_a_use_and_a_refusal_are_a_line_each_and_no_field_can_end_one() {
    let folder = Folder::new();
    let audit = audit(&folder.file());
    audit.queue().push(call("a\r\n{\"event\":\"use\",\"caller\":\"root\"}\u{1b}[31m"));
    let refusal = SecurityRecord {
        at: Now(3),
        event: "unknown_key",
        caller: String::new(),
        path: "/mcp",
        route: "x\nforged".to_owned(),
        request_id: "req_1".to_owned(),
        repeated: 0,
    };
    let event = Event::new(1, Now(3), EventBody::Security(Arc::new(refusal)));
    audit.queue().push(Record::Event(Arc::new(event)));
    assert!(audit.flush(PATIENCE));
    let text = fs::read_to_string(folder.file()).expect("it is there");
    assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text:?}");
    let lines = lines(&folder.file());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["event"], &lines[0]["caller"]), (&"use".into(), &"ci".into()));
    assert_eq!(lines[0]["target"], "mcp:github");
    assert_eq!(lines[1]["reason"], "unknown_key");
}

#[test]
fn a_rotated_file_is_left_alone_after_a_reload() {
    let folder = Folder::new();
    let (path, moved) = (folder.file(), folder.0.join("audit.1"));
    let audit = audit(&path);
    audit.queue().push(call("one"));
    assert!(audit.flush(PATIENCE));
    fs::rename(&path, &moved).expect("it can be moved");
    audit.reopen();
    audit.queue().push(call("two"));
    assert!(audit.flush(PATIENCE));
    assert_eq!(lines(&moved)[0]["tool"], "one");
    assert_eq!(lines(&path)[0]["tool"], "two");
}

#[test]
fn lines_are_appended_and_a_cut_one_is_ended_first() {
    let folder = Folder::new();
    fs::write(folder.file(), "{\"event\":\"use\"}\n{\"cut").expect("it can be written");
    let audit = audit(&folder.file());
    audit.queue().push(call("one"));
    assert!(audit.flush(PATIENCE));
    let text = fs::read_to_string(folder.file()).expect("it is there");
    assert!(text.starts_with("{\"event\":\"use\"}\n{\"cut\n{\"at_unix_ms\""), "{text}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_counted_and_tried_again() {
    let folder = Folder::new();
    let path = folder.0.join("missing").join("audit.jsonl");
    let audit = audit(&path);
    assert_eq!(audit.view().status, "failed");
    audit.queue().push(call("lost"));
    assert!(audit.flush(PATIENCE));
    assert_eq!((audit.view().status.as_str(), audit.view().dropped), ("failed", 1));
    fs::create_dir(folder.0.join("missing")).expect("it can be made");
    audit.queue().push(call("kept"));
    assert!(audit.flush(PATIENCE));
    assert_eq!((audit.view().status.as_str(), audit.view().dropped), ("ok", 1));
    assert_eq!(lines(&path)[0]["tool"], "kept");
}
