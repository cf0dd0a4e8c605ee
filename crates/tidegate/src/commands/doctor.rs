//! `tidegate doctor`: is everything in order for a gateway here?
//!
//! It looks at the config, its secrets, the addresses to listen on, the providers, MCP servers and
//! the fleet's store (as `check --connect` asks them), a gateway that runs here, its fleet and the
//! machine, and says how to mend what is wrong. With `--report` the findings and the config,
//! without secrets, are written into a file to pass on.
//!
//! | what was found | exit code |
//! |---|---|
//! | nothing to mend, warnings aside | 0 |
//! | something to mend, or the report cannot be written | 1 |

mod finding;
mod gateway;
mod listeners;
mod machine;
mod report;
mod upstreams;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tidegate_config::Config;
use tidegate_config::diagnostic::Diagnostic;
use tidegate_config::secret::{ProcessEnvironment, SecretRef};
use tidegate_config::source::{Source, read_file};

use self::finding::{Finding, Level};
use crate::exit::Exit;
use crate::find;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate doctor                    everything, with a connection to each provider and server
  tidegate doctor --offline          without connections to others
  tidegate doctor --admin URL        a gateway elsewhere, too
  tidegate doctor --report           writes tidegate-report.json, without secrets";

/// Is everything in order here? (config, secrets, ports, providers, machine)
///
/// Exit code 0: nothing is to be mended; 1: something is.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// The config file; none: as `serve` finds it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A running gateway to ask; none: TIDEGATE_ADMIN_URL, else `admin.listen` of the config
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// Connect to nothing outside of this machine
    #[arg(long)]
    offline: bool,
    /// Also write the findings and the config, without secrets, into a new file
    #[arg(long, value_name = "FILE", num_args = 0..=1,
          default_missing_value = "tidegate-report.json")]
    report: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Looks at everything and prints what was found.
pub(crate) fn run(args: &DoctorArgs, printer: &Printer) -> Exit {
    let mut findings = Vec::new();
    let loaded = config(args, &mut findings);
    if let Some((source, config)) = &loaded {
        credentials(source, config, &mut findings);
        listeners::look(config, &mut findings);
        if !args.offline {
            upstreams::look(source, printer, &mut findings);
        }
    }
    if !args.offline {
        gateway::look(args, loaded.as_ref(), printer, &mut findings);
    }
    machine::look(loaded.as_ref().map(|(_, config)| config), &mut findings);
    let is_well = !findings.iter().any(|finding| finding.level == Level::Bad);
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "well": is_well,
        "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    });
    if args.json {
        printer.result(&format!("{document:#}"));
    } else {
        printer.result(&printer.fitted(finding::text(&findings, printer.is_ascii())));
    }
    if let Some(path) = &args.report {
        let config = loaded.as_ref().map(|(_, config)| config);
        if let Err(error) = report::write(path, document, config) {
            printer.error(&format!("`{}` cannot be written: {error}", path.display()));
            printer.hint("`--report FILE` writes another file");
            return Exit::No;
        }
        printer.note(&format!("wrote {}; read it before you pass it on", path.display()));
    }
    if is_well { Exit::Done } else { Exit::No }
}

/// The config, if there is one that can be used.
fn config(args: &DoctorArgs, findings: &mut Vec<Finding>) -> Option<(Source, Config)> {
    let Ok(path) = find::config_file(args.config.as_deref()) else {
        let words = "there is no config file: `tidegate serve` would serve the demo";
        findings.push(Finding::warning("config", words).fix("run `tidegate init`"));
        return None;
    };
    let source = match read_file(&path) {
        Ok(source) => source,
        Err(problem) => {
            let fix = problem.diagnostic().help.first().cloned().unwrap_or_default();
            findings.push(Finding::bad("config", problem.to_string()).fix(fix));
            return None;
        }
    };
    let loaded = tidegate_config::load(&source, &ProcessEnvironment);
    let name = source.name().to_owned();
    let errors = loaded.diagnostics.iter().filter(|it| it.is_error()).count();
    let fix = format!("run `tidegate check {name}`");
    match (&loaded.config, loaded.diagnostics.len()) {
        (None, _) => {
            findings.push(Finding::bad("config", format!("`{name}`: {errors} errors")).fix(fix));
        }
        (Some(_), 0) => findings.push(Finding::good("config", format!("`{name}` is sound"))),
        (Some(_), _) => {
            let first = loaded.diagnostics.first().map(|it: &Diagnostic| it.message.as_str());
            let words = format!("`{name}` is sound, with a warning: {}", first.unwrap_or_default());
            findings.push(Finding::warning("config", words).fix(fix));
        }
    }
    loaded.config.map(|config| (source, config))
}

/// A file is read again by itself; the environment of a process stays as it was at its start.
const MISSING_SECRET: &str = "set the variable and restart the gateway, or write the file; until \
                              then whatever needs it is skipped";

/// Whether every secret that the config refers to can be resolved.
fn credentials(source: &Source, config: &Config, findings: &mut Vec<Finding>) {
    let mut look = |whose: String, secret: &SecretRef| {
        let finding = match secret.resolve(&ProcessEnvironment, source.folder()) {
            Err(problem) => {
                Finding::bad("credentials", format!("{whose}: {problem}")).fix(MISSING_SECRET)
            }
            Ok(_) if secret.is_literal() => {
                Finding::warning("credentials", format!("{whose} stands in the config file itself"))
                    .fix("write `env:NAME` or `file:path` instead")
            }
            Ok(_) => Finding::good("credentials", format!("{whose}: {secret} is set")),
        };
        findings.push(finding);
    };
    for (name, provider) in &config.file.providers {
        for key in provider.key.iter().chain(provider.keys.iter().flatten()) {
            look(format!("key of provider {name}"), key);
        }
    }
    for caller in config.file.keys.iter().flatten() {
        look(format!("key of caller {}", caller.name), &caller.key);
    }
    if let Some(token) = &config.file.admin.token {
        look("admin token".to_owned(), token);
    }
}
