//! Exit codes: the whole list, and the two that come from outside a command's own answer.
//!
//! Scripts branch on these numbers, so they are a public API: a number keeps its meaning for
//! ever. `tidegate help exit-codes` prints the table below from [`Exit::ALL`].
//!
//! - [`catch_bug`] turns a panic into [`Exit::Bug`], with a text that asks for a report;
//! - [`end_when_interrupted`] makes Ctrl-C end the process with [`Exit::Interrupted`].

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;

/// How a run of the binary ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it was asked.
    Done,
    /// The answer is "no": the config has problems, an expectation or a tool failed.
    No,
    /// The command line is not one we understand.
    Usage,
    /// A file cannot be read as what it should be.
    Unreadable,
    /// No running tidegate answers.
    Unreachable,
    /// The gateway cannot start; starting it again would not help.
    CannotStart,
    /// We broke a rule of our own.
    Bug,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

impl Exit {
    /// Every code, in the order of the numbers.
    pub(crate) const ALL: [Self; 8] = [
        Self::Done,
        Self::No,
        Self::Usage,
        Self::Unreadable,
        Self::Unreachable,
        Self::CannotStart,
        Self::Bug,
        Self::Interrupted,
    ];

    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Unreadable => 3,
            Self::Unreachable => 4,
            Self::CannotStart => 5,
            Self::Bug => 70,
            Self::Interrupted => 130,
        }
    }

    /// What the number means, as `tidegate help exit-codes` says it.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::No => {
                "the answer is \"no\": `check` found an error in a file that is YAML, \
                 `check --connect` something that cannot be reached, \
                 a `sim` expectation or a tool failed, `doctor` found something to mend, \
                 `status --fail-on` found it as bad as that, the gateway refused an action"
            }
            Self::Usage => "the command line is wrong",
            Self::Unreadable => {
                "a file cannot be read: missing, a directory, not UTF-8, not YAML; \
                 for `sim` also a scenario with problems"
            }
            Self::Unreachable => "no running tidegate answers",
            Self::CannotStart => "the gateway cannot bind or start: do not restart it",
            Self::Bug => "a bug in tidegate: please report it",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Runs `work`; a panic inside it becomes [`Exit::Bug`] and `report` gets the text to show.
pub(crate) fn catch_bug(work: impl FnOnce() -> Exit, report: impl Fn(&str)) -> Exit {
    // The standard hook prints where it happened, which a report needs, and the advice to set
    // RUST_BACKTRACE, which a user does not: so the place is kept and printed by `report`.
    let place = Arc::new(std::sync::Mutex::new(String::new()));
    let keep = Arc::clone(&place);
    panic::set_hook(Box::new(move |info| {
        if let (Some(location), Ok(mut kept)) = (info.location(), keep.lock()) {
            *kept = location.to_string();
        }
    }));
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    drop(panic::take_hook());
    match done {
        Ok(exit) => exit,
        Err(payload) => {
            let place = place.lock().map_or_else(|_| String::new(), |kept| kept.clone());
            report(&bug_text(payload.as_ref(), &place));
            Exit::Bug
        }
    }
}

fn bug_text(payload: &(dyn Any + Send), place: &str) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "bug: {text}\n  at {place}, tidegate {version}\n\n\
         This is a mistake in tidegate, not in your files. Please report these lines together\n\
         with the command you typed and the file that `tidegate doctor --report` writes. That\n\
         file has no secrets."
    )
}

/// Makes the first Ctrl-C end the process with code 130. Where signals cannot be caught the
/// system's own way of ending a process stays in force, so a failure here is no error.
pub(crate) fn end_when_interrupted() {
    end_at(&[SIGINT]);
}

/// Makes the next Ctrl-C or SIGTERM end the process at once: somebody does not want to wait for
/// what is under way.
pub(crate) fn end_when_asked_again() {
    end_at(&[SIGINT, SIGTERM]);
}

fn end_at(signals: &[i32]) {
    let at_once = Arc::new(AtomicBool::new(true));
    let code = i32::from(Exit::Interrupted.code());
    for signal in signals {
        drop(register_conditional_shutdown(*signal, code, Arc::clone(&at_once)));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::process::Command;

    use super::{Exit, catch_bug, end_when_interrupted};

    /// Set for the copy of this test binary that gets interrupted.
    const CHILD: &str = "TIDEGATE_TEST_INTERRUPTED_CHILD";

    #[test]
    fn done_is_0() {
        assert_eq!(Exit::Done.code(), 0);
    }

    #[test]
    fn the_answer_no_is_1() {
        assert_eq!(Exit::No.code(), 1);
    }

    #[test]
    fn a_usage_error_is_2() {
        assert_eq!(Exit::Usage.code(), 2);
    }

    #[test]
    fn an_unreadable_file_is_3() {
        assert_eq!(Exit::Unreadable.code(), 3);
    }

    #[test]
    fn an_unreachable_gateway_is_4() {
        assert_eq!(Exit::Unreachable.code(), 4);
    }

    #[test]
    fn a_gateway_that_cannot_start_is_5() {
        assert_eq!(Exit::CannotStart.code(), 5);
    }

    #[test]
    fn a_panic_is_70_and_asks_for_a_report_with_its_place() {
        let shown = RefCell::new(String::new());
        let keep = |text: &str| drop(shown.replace(text.to_owned()));
        let exit = catch_bug(|| panic!("rule {} broke", 7), keep);
        assert_eq!(exit.code(), 70);
        let shown = shown.into_inner();
        assert!(shown.starts_with("bug: rule 7 broke\n  at "), "{shown}");
        assert!(shown.contains("exit.rs:"), "{shown}");
        assert!(shown.contains("Please report"), "{shown}");
    }

    #[test]
    fn an_interrupt_is_130() {
        if std::env::var_os(CHILD).is_some() {
            end_when_interrupted();
            signal_hook::low_level::raise(signal_hook::consts::SIGINT).expect("own signal");
            unreachable!("the handler ends the process");
        }
        let this_test = ["--exact", "exit::tests::an_interrupt_is_130"];
        let program = std::env::current_exe().expect("a test binary has a path");
        let child = Command::new(program).args(this_test).env(CHILD, "1").output();
        assert_eq!(child.expect("a child starts").status.code(), Some(130));
    }

    #[test]
    fn every_code_is_listed_once_in_ascending_order() {
        assert!(Exit::ALL.is_sorted_by(|one, next| one.code() < next.code()));
        assert_eq!(Exit::ALL.last(), Some(&Exit::Interrupted));
    }
}
