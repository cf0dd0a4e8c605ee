//! `tidegate serve`: the gateway, until it is told to stop.
//!
//! | signal or event | what happens |
//! |---|---|
//! | SIGHUP, or the config or a file with a secret changed | the config is read again; a bad one is refused, and the log says why |
//! | SIGTERM, SIGINT | no new connections; what is under way finishes; then the end |
//! | a second one of those | the end at once |
//!
//! With `--demo`, and where no config file is found and nothing says that one was meant, it serves
//! the built-in demo.

mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidegate_config::Overrides;
use tidegate_config::address::Address;
use tidegate_config::diagnostic::Diagnostic;
use tidegate_config::render::{Look, render_all};
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::{Source, read_file};
use tidegate_fakes::demo;
use tidegate_gateway::prepare::StartError;
use tidegate_operator::reload::ReloadCause;
use tidegate_server::server::{Server, Start};

pub(super) use self::watch::FileWatches;
use crate::exit::{self, Exit};
use crate::find::{self, NotFound};
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate serve                     ./tidegate.yaml, else the built-in demo
  tidegate serve -c prod.yaml
  tidegate serve --demo              three providers inside the process, with an outage
  tidegate serve --listen :9000      on another port

Next: `tidegate check` first; `curl http://127.0.0.1:8700/v1/health` then";

/// Serve until told to stop
///
/// SIGHUP or a change of the config file, or of a file with a secret, reads the config again;
/// SIGTERM and Ctrl-C drain and end.
/// Exit code 5: it cannot start, and starting it again would not help.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The config file; none: TIDEGATE_CONFIG, else tidegate.yaml here, else in the user's config
    /// folder, else the demo
    #[arg(short, long, value_name = "FILE", conflicts_with = "demo")]
    config: Option<PathBuf>,
    /// Serve the built-in demo: no keys, no network
    #[arg(long)]
    demo: bool,
    /// Where to listen, in place of the config's `listen`
    #[arg(long, value_name = "ADDRESS", value_parser = Address::parse)]
    listen: Option<Address>,
    /// Where the admin listener listens, in place of the config's `admin.listen`
    #[arg(long, value_name = "ADDRESS", value_parser = Address::parse)]
    admin_listen: Option<Address>,
    /// Threads of the data plane; none: one per core
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
}

/// How often signals and the file are looked at.
const STEP: Duration = Duration::from_millis(100);

/// Starts, serves, stops.
pub(crate) fn run(args: &ServeArgs, printer: &Printer) -> Exit {
    let found = if args.demo { Ok(the_demo()) } else { config(args.config.as_deref(), printer) };
    let FoundConfig { source, path } = match found {
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
    let overrides = Overrides { listen: args.listen, admin_listen: args.admin_listen };
    let server = match Server::start_at(start, overrides) {
        Ok(server) => server,
        Err(error) => return cannot_start(&source, &error, printer),
    };
    if server.log().is_err() {
        printer.detail("the log was set up already");
    }
    // Before anybody is told that it serves: a change from then on is noticed.
    let files = FileWatches::new(&server);
    greet(&server, &source, printer);
    follow(&server, &mut signals, files, || true);
    server.tell_end();
    exit::end_when_asked_again();
    server.stop();
    Exit::Done
}

/// Says what is served, where, and what `tidegate check` would say about the config.
fn greet(server: &Server, source: &Source, printer: &Printer) {
    if server.logs_json() {
        return server.announce(source);
    }
    if !server.warnings().is_empty() {
        printer.note(&render_all(source, server.warnings(), look(printer)));
    }
    printer.note(server.banner(printer.is_ascii()).trim_end());
    server.announce_stores();
}

/// Follows signals and files until told to stop, or as long as `goes_on` says.
pub(super) fn follow(
    server: &Server,
    signals: &mut Signals,
    mut files: FileWatches,
    goes_on: impl Fn() -> bool,
) {
    while goes_on() {
        for signal in signals.pending() {
            match signal {
                SIGHUP => server.read_again(ReloadCause::Signal),
                _ => return,
            }
            files.follow(server);
        }
        if files.have_changed(STEP) {
            server.read_again(ReloadCause::File);
            files.follow(server);
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

/// A config to serve.
pub(super) struct FoundConfig {
    pub(super) source: Source,
    /// The file it comes from; none for the demo.
    pub(super) path: Option<PathBuf>,
}

fn the_demo() -> FoundConfig {
    FoundConfig { source: Source::new("the built-in demo", demo::CONFIG), path: None }
}

/// The config to serve; the demo where there is none and none seems to be meant.
pub(super) fn config(named: Option<&Path>, printer: &Printer) -> Result<FoundConfig, Exit> {
    let path = match find::config_file(named) {
        Ok(path) => path,
        Err(missing) => return instead_of(&missing, printer),
    };
    match read_file(&path) {
        Ok(source) => Ok(FoundConfig { source, path: Some(path) }),
        Err(problem) => {
            let nothing = Source::new("tidegate.yaml", "");
            printer.talk(&render_all(&nothing, &[problem.diagnostic()], look(printer)));
            Err(Exit::Unreadable)
        }
    }
}

/// Without a config file the demo is served, and that is said; but not where a file of nearly the
/// right name shows that a config was meant.
fn instead_of(missing: &NotFound, printer: &Printer) -> Result<FoundConfig, Exit> {
    let Some(path) = &missing.look_alike else {
        printer.note(&format!("warning: {}", missing.message()));
        printer.note("warning: serving the built-in demo, whose answers are made up\n");
        return Ok(the_demo());
    };
    printer.error(&missing.message());
    let path = path.display();
    printer.hint(&format!("`tidegate serve -c {path}` serves it; `--demo` serves the demo"));
    Err(Exit::Unreadable)
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
            printer.hint(
                "another process may listen there; `--listen` and `--admin-listen`, or `listen` in \
                 the config, say where",
            );
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
