//! Runs the real program for the tests of its commands.
//!
//! Every run happens in a folder of its own with an empty environment, so nothing of the machine
//! leaks into the result and tests do not meet each other.
#![allow(
    dead_code,
    reason = "each test file is a program of its own and uses a part of this; `expect` would fail \
              in those that use all"
)]

pub mod served;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the program left.
#[derive(Debug)]
pub struct Run {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The result.
    pub stdout: String,
    /// The talk.
    pub stderr: String,
}

/// An empty folder named after the test.
pub fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("the build's own folder takes files");
    folder
}

/// The program, about to start in `folder` without any environment.
pub fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

/// Runs a prepared program to its end.
pub fn run(command: &mut Command) -> Run {
    let done = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
    Run { code: done.status.code(), stdout: text(done.stdout), stderr: text(done.stderr) }
}

/// The processes whose command line holds this word, zombies and wardens included.
pub fn processes(word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |id: &u32| {
        let line = fs::read(Path::new("/proc").join(id.to_string()).join("cmdline"));
        let is_it = |it: Vec<u8>| String::from_utf8_lossy(&it).contains(word);
        line.is_ok_and(is_it) && *id != std::process::id()
    };
    ids.filter(holds).collect()
}
