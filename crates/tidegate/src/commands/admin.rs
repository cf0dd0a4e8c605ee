//! Which running gateway is asked by the operator's commands, and what to say when none answers.
//!
//! The gateway is at `--admin URL`, else `TIDEGATE_ADMIN_URL`, else `admin.listen` of the config
//! that `serve` would find, else <http://127.0.0.1:8701>. The token is `TIDEGATE_ADMIN_TOKEN`, else
//! that of the same config: a token of a file is never sent to an address that the file does not
//! name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_config::Config;
use tidegate_config::secret::{ProcessEnvironment, Secret};
use tidegate_config::source::{Source, read_file};
use tidegate_config::suggest;
use tidegate_console::client::{AdminClient, AskError};
use tidegate_console::look::Look;
use tidegate_console::words::calm;
use tidegate_journal::api::snapshot::SnapshotView;

use crate::exit::Exit;
use crate::find;
use crate::printer::Printer;

/// Where the address of a gateway's admin listener may stand.
const URL: &str = "TIDEGATE_ADMIN_URL";
/// Where its token may stand: on a command line others could read it.
const TOKEN: &str = "TIDEGATE_ADMIN_TOKEN";
/// Where a gateway listens whose config does not say.
const DEFAULT: &str = "http://127.0.0.1:8701";

/// Which gateway.
#[derive(Debug, Args)]
pub(in crate::commands) struct AdminArgs {
    /// The admin listener; none: TIDEGATE_ADMIN_URL, else `admin.listen` of the config
    #[arg(long, value_name = "URL")]
    pub(in crate::commands) admin: Option<String>,
    /// The config file that says where it listens; none: as `serve` finds it
    #[arg(short, long, value_name = "FILE", conflicts_with = "admin")]
    pub(in crate::commands) config: Option<PathBuf>,
}

/// A gateway to ask, and the config that says where it is.
pub(in crate::commands) struct Gateway {
    pub(in crate::commands) client: AdminClient,
    pub(in crate::commands) config: Option<(Source, Config)>,
}

/// Finds the gateway, or says why not. Nothing is asked yet.
pub(in crate::commands) fn find(args: &AdminArgs, printer: &Printer) -> Result<Gateway, Exit> {
    let config = local_config(args, printer)?;
    let named = args.admin.clone().or_else(|| variable(URL).filter(|_| args.config.is_none()));
    let mut certificates = None;
    let mut token = variable(TOKEN);
    let url = match (named, &config) {
        (Some(url), _) => url,
        (None, None) => DEFAULT.to_owned(),
        (None, Some((source, config))) => {
            let admin = &config.file.admin;
            let secret = |it: &tidegate_config::secret::SecretRef| {
                it.resolve(&ProcessEnvironment, source.folder()).ok()
            };
            // What its own listener presents is the gateway that the config means.
            certificates = admin.tls.as_ref().and_then(|tls| secret(&tls.cert));
            let own = || admin.token.as_ref().and_then(secret);
            token = token.or_else(|| own().map(|it| it.expose().to_owned()));
            let scheme = if admin.tls.is_some() { "https" } else { "http" };
            format!("{scheme}://{}", reachable(admin.listen.0))
        }
    };
    let certificates = certificates.as_ref().map(Secret::expose);
    match AdminClient::new(&url, token.as_deref(), certificates) {
        Ok(client) => Ok(Gateway { client, config }),
        Err(error) => {
            printer.error(&error.to_string());
            printer.hint("an admin listener's address looks like `http://127.0.0.1:8701`");
            Err(Exit::Usage)
        }
    }
}

/// Whether the environment says where the gateway is.
pub(in crate::commands) fn is_in_environment() -> bool {
    variable(URL).is_some()
}

/// The config that `serve` would find. One that was named must be sound; another that is not is
/// left aside, since a gateway may serve an older one.
fn local_config(args: &AdminArgs, printer: &Printer) -> Result<Option<(Source, Config)>, Exit> {
    let Ok(path) = find::config_file(args.config.as_deref()) else { return Ok(None) };
    let loaded = load(&path);
    if loaded.is_none() {
        let path = path.display();
        if args.config.is_some() {
            printer.error(&format!("`{path}` does not say where the gateway listens"));
            printer
                .hint(&format!("`tidegate check {path}` says why; `--admin URL` does without it"));
            return Err(Exit::Unreadable);
        }
        printer.note(&format!("`{path}` is not sound, so it is left aside here"));
    }
    Ok(loaded)
}

fn load(path: &Path) -> Option<(Source, Config)> {
    let source = read_file(path).ok()?;
    let config = tidegate_config::load(&source, &ProcessEnvironment).config?;
    Some((source, config))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// An address to connect to, for one to listen on.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// How texts look on this printer.
pub(in crate::commands) fn look(printer: &Printer) -> Look {
    Look { width: printer.width(), is_ascii: printer.is_ascii(), has_colour: printer.has_colour() }
}

impl Gateway {
    /// Says why there is no answer, and what to do; the exit code.
    pub(in crate::commands) fn explain(&self, error: &AskError, printer: &Printer) -> Exit {
        let url = self.client.url();
        match error {
            AskError::NoGateway(why) => {
                printer.error(&format!("no gateway answers at `{url}`: {why}"));
                printer.hint("`tidegate serve` starts one; `--admin URL` asks another");
                Exit::Unreachable
            }
            AskError::NotTidegate(why) => {
                printer.error(why);
                printer.hint("`--admin URL` is the address of `admin.listen`, not of `listen`");
                Exit::Unreachable
            }
            AskError::TokenRejected(why) => {
                let sent = if self.client.has_token() {
                    "does not take this admin token"
                } else {
                    "wants an admin token for this"
                };
                printer.error(&format!("the gateway at `{url}` {sent}: {why}"));
                printer.hint(&format!(
                    "`export {TOKEN}=...` with the value that `admin.token` of its config refers to"
                ));
                Exit::No
            }
            AskError::NotFound(why) | AskError::Refused { message: why, .. } => {
                printer.error(why);
                printer.hint("`tidegate status` shows every backend");
                Exit::No
            }
            AskError::Unusable(why) => {
                printer.error(why);
                Exit::Usage
            }
        }
    }

    /// The state of everything, or the exit code after saying why not.
    pub(in crate::commands) fn snapshot(&self, printer: &Printer) -> Result<SnapshotView, Exit> {
        self.client.get("/api/snapshot").map_err(|error| self.explain(&error, printer))
    }

    /// The id of the backend that somebody means: its id, an MCP server's name, or the name of a
    /// provider or model that stands for one target only.
    pub(in crate::commands) fn backend(
        &self,
        written: &str,
        printer: &Printer,
    ) -> Result<String, Exit> {
        let snapshot = self.snapshot(printer)?;
        let ids: Vec<&str> = snapshot.backends.iter().map(|it| it.id.as_str()).collect();
        meant(written, &ids).map_err(|problem| {
            printer.error(&problem.0);
            printer.hint(&problem.1);
            Exit::No
        })
    }
}

/// Which of these ids is meant; else an error and a hint.
fn meant(written: &str, ids: &[&str]) -> Result<String, (String, String)> {
    let server = format!("mcp:{written}");
    if let Some(id) = ids.iter().find(|id| **id == written || **id == server) {
        return Ok((*id).to_owned());
    }
    let is_part = |id: &&&str| {
        id.split_once('/').is_some_and(|(provider, model)| provider == written || model == written)
    };
    let fitting: Vec<&str> = ids.iter().filter(is_part).copied().collect();
    let listed = |ids: &[&str]| {
        let shown: Vec<String> = ids.iter().take(12).map(|id| format!("`{}`", calm(id))).collect();
        let more = ids.len().saturating_sub(12);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    match fitting.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => {
            let names = ids.iter().map(|id| id.strip_prefix("mcp:").unwrap_or(id));
            let parts = ids.iter().filter_map(|id| id.split_once('/').map(|(it, _)| it));
            let hint =
                match suggest::nearest(written, ids.iter().copied().chain(names).chain(parts)) {
                    Some(near) => {
                        format!("did you mean `{}`? `tidegate status` shows all", calm(near))
                    }
                    None => format!("there are {}", listed(ids)),
                };
            Err((format!("there is no backend `{}`", calm(written)), hint))
        }
        several => {
            let error = format!("`{}` stands for {} targets", calm(written), several.len());
            Err((error, format!("name one of {}", listed(several))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{meant, reachable};

    const IDS: [&str; 4] = ["openai/gpt", "anthropic/opus", "anthropic/haiku", "mcp:github"];

    #[test]
    fn a_backend_may_be_named_in_short_where_that_names_one() {
        for (written, expected) in [
            ("openai/gpt", "openai/gpt"),
            ("openai", "openai/gpt"),
            ("opus", "anthropic/opus"),
            ("github", "mcp:github"),
            ("mcp:github", "mcp:github"),
        ] {
            assert_eq!(meant(written, &IDS).as_deref(), Ok(expected), "{written}");
        }
    }

    #[test]
    fn a_name_for_several_or_none_says_what_there_is() {
        let (error, hint) = meant("anthropic", &IDS).expect_err("two have it");
        assert_eq!(error, "`anthropic` stands for 2 targets");
        assert_eq!(hint, "name one of `anthropic/opus`, `anthropic/haiku`");
        let (error, hint) = meant("opnai", &IDS).expect_err("none has it");
        assert_eq!(error, "there is no backend `opnai`");
        assert!(hint.starts_with("did you mean `openai`?"), "{hint}");
        let (_, hint) = meant("zzzzzz", &IDS).expect_err("none has it");
        assert!(hint.contains("`openai/gpt`"), "{hint}");
    }

    #[test]
    fn a_gateway_that_listens_everywhere_is_asked_on_loopback() {
        let listen = "0.0.0.0:1".parse().expect("an address");
        assert_eq!(reachable(listen).to_string(), "127.0.0.1:1");
    }
}
