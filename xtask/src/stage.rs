//! One stage of a chore: a named command that is timed, and repeatable by hand.
//!
//! A stage that fails ends the chore with its name and the line that repeats it, so nobody has to
//! read this code to try again. Output is passed on as it comes; stdout is also read along, to
//! count tests.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::counts::Counts;
use crate::say;

/// The verbs of cargo that resolve dependencies.
const RESOLVING: &[&str] = &["bench", "build", "check", "clippy", "doc", "run", "test"];

/// A command with a name. Built like `Stage::cargo("format", &["fmt", "--check"])`.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    name: String,
    program: OsString,
    /// What a person types for it.
    called: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Stage {
    /// A stage that runs the cargo which runs us. Whatever resolves dependencies takes them from
    /// the lock file.
    pub(crate) fn cargo(name: &str, args: &[&str]) -> Self {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        if args.first().is_some_and(|verb| RESOLVING.contains(&verb.as_str())) {
            args.insert(1, "--locked".to_owned());
        }
        let called = "cargo".to_owned();
        Self { name: name.to_owned(), program, called, args, env: Vec::new() }
    }

    /// A stage that runs a program which is built already.
    pub(crate) fn program(name: &str, program: &Path, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let called = quoted(&program.to_string_lossy());
        Self { name: name.to_owned(), program: program.into(), called, args, env: Vec::new() }
    }

    /// The same stage with a variable set.
    pub(crate) fn with_env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// The line that repeats this stage in a shell.
    pub(crate) fn repeat_line(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let args = self.args.iter().map(|arg| quoted(arg));
        env.chain([self.called.clone()]).chain(args).collect::<Vec<_>>().join(" ")
    }

    /// Runs the command to its end; an error names the stage and how to repeat it.
    pub(crate) fn run(&self) -> anyhow::Result<Counts> {
        timed(&self.name, &self.repeat_line(), || self.run_command())
    }

    fn run_command(&self) -> anyhow::Result<Counts> {
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (*name, value)))
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.called))?;
        let mut counts = Counts::default();
        let stdout = child.stdout.take().context("the stage has no stdout")?;
        for line in BufReader::new(stdout).split(b'\n') {
            let bytes = line.context("cannot read the stage's output")?;
            let line = String::from_utf8_lossy(&bytes);
            counts.read(&line);
            say::line(&line);
        }
        let status = child.wait().context("cannot wait for the stage")?;
        if !status.success() {
            bail!("{status}");
        }
        Ok(counts)
    }
}

/// Runs `work` as the stage `name`, prints how many minutes it took, and gives a failure the
/// stage's name and the line that repeats it.
#[expect(clippy::disallowed_methods, reason = "a chore tells how long its stages take")]
pub(crate) fn timed<T>(
    name: &str,
    repeat_line: &str,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    say::line(&format!("\n── {name}: {repeat_line}"));
    let start = Instant::now();
    let done = work();
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    match done {
        Ok(value) => {
            say::line(&format!("── {name}: ok in {minutes:.1} min"));
            Ok(value)
        }
        Err(error) => {
            say::line(&format!("── {name}: failed after {minutes:.1} min"));
            Err(error.context(format!("stage `{name}` failed; repeat it with: {repeat_line}")))
        }
    }
}

/// `text` as one shell word.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=,:".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Stage, timed};

    #[test]
    fn the_repeat_line_can_be_pasted_into_a_shell() {
        let stage = Stage::cargo("loom", &["test", "-p", "a b"]).with_env("RUSTFLAGS", "--cfg x");
        assert_eq!(stage.repeat_line(), "RUSTFLAGS='--cfg x' cargo test --locked -p 'a b'");
    }

    #[test]
    fn a_failing_stage_is_an_error_with_its_name_and_repeat_line() {
        let failed = Stage::cargo("nonsense", &["no-such-command-of-cargo"]).run();
        let text = format!("{:#}", failed.expect_err("cargo has no such command"));
        assert!(text.contains("stage `nonsense` failed"), "{text}");
        assert!(text.contains("cargo no-such-command-of-cargo"), "{text}");
    }

    #[test]
    fn a_stage_that_succeeds_hands_back_its_value() {
        assert_eq!(timed("sum", "-", || Ok(1 + 1)).expect("nothing can fail"), 2);
    }
}
