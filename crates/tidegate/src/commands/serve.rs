//! `tidegate serve`: the gateway, until it is told to stop.
//!
//! | signal or event | what happens |
//! |---|---|
//! | SIGHUP, or the file changed | the config is read again; a bad one is refused, with the reason |
//! | SIGTERM, SIGINT | no new connections; what is under way finishes; then the end |
//! | a second one of those | the end at once |
//!
//! Without a config file, and with `--demo`, it serves the built-in demo.

mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidegate_config::diagnostic::Diagnostic;
use tidegate_config::render::{Look, render_all};
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::{Source, read_file};
use tidegate_server::demo;
use tidegate_server::server::{Server, Start, StartError};

use self::watch::FileWatch;
use crate::exit::{self, Exit};
use crate::find;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate serve                     ./tidegate.yaml, else the built-in demo
  tidegate serve -c prod.yaml
  tidegate serve --demo              three providers inside the process, with an outage

Next: `tidegate check` first; `curl http://127.0.0.1:8700/v1/health` then";

/// Serve until told to stop
///
/// SIGHUP or a change of the file reads the config again; SIGTERM and Ctrl-C drain and end.
/// Exit code 5: it cannot start, and starting it again would not help.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The config file; none: tidegate.yaml here, else in the user's config folder, else the demo
    #[arg(short, long, value_name = "FILE", conflicts_with = "demo")]
    config: Option<PathBuf>,
    /// Serve the built-in demo: no keys, no network
    #[arg(long)]
    demo: bool,
    /// Threads of the data plane; none: one per core
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
}

/// How often signals and the file are looked at.
const STEP: Duration = Duration::from_millis(100);

/// Starts, serves, stops.
pub(crate) fn run(args: &ServeArgs, printer: &Printer) -> Exit {
    let found = if args.demo { Ok(the_demo()) } else { config(args.config.as_deref(), printer) };
    let (source, path) = match found {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let mut signals = match Signals::new([SIGHUP, SIGINT, SIGTERM]) {
        Ok(signals) => signals,
        Err(error) => {
            printer.error(&format!("cannot listen to signals: {error}"));
            return Exit::CannotStart;
        }
    };
    let start = Start {
        source: source.clone(),
        path: path.clone(),
        environment: Arc::new(ProcessEnvironment),
        threads: args.threads,
    };
    let server = match Server::start(start) {
        Ok(server) => server,
        Err(error) => return cannot_start(&source, &error, printer),
    };
    if server.log().is_err() {
        printer.detail("the log was set up already");
    }
    printer.note(server.banner(printer.is_ascii()).trim_end());
    follow(&server, &mut signals, path.as_deref(), printer, || true);
    printer.note("stopping: what is under way is finished first");
    exit::end_when_asked_again();
    server.stop();
    Exit::Done
}

/// Follows signals and the file until told to stop, or as long as `goes_on` says.
pub(super) fn follow(
    server: &Server,
    signals: &mut Signals,
    path: Option<&Path>,
    printer: &Printer,
    goes_on: impl Fn() -> bool,
) {
    let mut file = path.map(|path| FileWatch::new(path, server.debounce()));
    while goes_on() {
        for signal in signals.pending() {
            match signal {
                SIGHUP => reload(server, path, printer),
                _ => return,
            }
        }
        if file.as_mut().is_some_and(|file| file.has_changed(STEP)) {
            reload(server, path, printer);
        }
        pause();
    }
}

/// Waits until told to stop, or as long as `goes_on` says.
pub(super) fn until_told(signals: &mut Signals, goes_on: impl Fn() -> bool) {
    while goes_on() && signals.pending().all(|signal| signal == SIGHUP) {
        pause();
    }
}

fn pause() {
    #[expect(clippy::disallowed_methods, reason = "the main thread has nothing else to do")]
    std::thread::sleep(STEP);
}

fn reload(server: &Server, path: Option<&Path>, printer: &Printer) {
    let Some(path) = path else {
        return printer.note("the demo has no config file to read again");
    };
    let source = match read_file(path) {
        Ok(source) => source,
        Err(problem) => {
            let nothing = Source::new(path.display().to_string(), "");
            printer.talk(&render_all(&nothing, &[problem.diagnostic()], look(printer)));
            return printer.note("the config stays as it was");
        }
    };
    match server.reload(&source) {
        Ok(done) => printer.note(&format!("config read again (sha {})", done.fingerprint)),
        Err(error) => {
            explain(&source, &error, printer);
            printer.note("the config stays as it was");
        }
    }
}

/// A config, and the file it comes from.
type Found = (Source, Option<PathBuf>);

fn the_demo() -> Found {
    (Source::new("the built-in demo", demo::CONFIG), None)
}

/// The config to serve; the demo where there is none.
pub(super) fn config(named: Option<&Path>, printer: &Printer) -> Result<Found, Exit> {
    let Ok(path) = find::config_file(named) else { return Ok(the_demo()) };
    match read_file(&path) {
        Ok(source) => Ok((source, Some(path))),
        Err(problem) => {
            let nothing = Source::new("tidegate.yaml", "");
            printer.talk(&render_all(&nothing, &[problem.diagnostic()], look(printer)));
            Err(Exit::Unreadable)
        }
    }
}

/// Says why a gateway does not start.
pub(super) fn cannot_start(source: &Source, error: &StartError, printer: &Printer) -> Exit {
    explain(source, error, printer);
    match error {
        StartError::Config(problems) => {
            printer.hint("`tidegate check` shows every problem of the config");
            if problems.iter().any(Diagnostic::is_unreadable) {
                Exit::Unreadable
            } else {
                Exit::CannotStart
            }
        }
        StartError::Listen { .. } => {
            printer.hint("another process may listen there; `listen` in the config says where");
            Exit::CannotStart
        }
        _ => Exit::CannotStart,
    }
}

fn explain(source: &Source, error: &StartError, printer: &Printer) {
    if let StartError::Config(problems) = error {
        let errors: Vec<Diagnostic> = problems.iter().filter(|it| it.is_error()).cloned().collect();
        return printer.talk(&render_all(source, &errors, look(printer)));
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    printer.error(&format!("{error}{}", cause.unwrap_or_default()));
}

fn look(printer: &Printer) -> Look {
    Look { color: printer.has_colour(), ascii: printer.is_ascii() }
}
