//! Which gateway is asked, and what to say when none answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_config::file::{ConfigFile, Naming};
use tidegate_config::secret::{ProcessEnvironment, Secret};
use tidegate_config::source::read_file;
use tidegate_mcp_shell::guest::{Cause, Gate, GuestError};

use crate::exit::Exit;
use crate::find;
use crate::printer::Printer;

/// Where a gateway's url may stand.
const URL: &str = "TIDEGATE_URL";
/// Where its key may stand: on a command line others could read it.
const KEY: &str = "TIDEGATE_KEY";
/// The path of MCP, for urls that have none.
const PATH: &str = "/mcp";

/// Which gateway.
#[derive(Debug, Args)]
pub(in crate::commands) struct GateArgs {
    /// The gateway; none: TIDEGATE_URL, else `listen` of the config
    #[arg(long, value_name = "URL")]
    pub(in crate::commands) url: Option<String>,
    /// The config file that says where it listens; none: as `serve` finds it
    #[arg(short, long, value_name = "FILE", conflicts_with = "url")]
    pub(in crate::commands) config: Option<PathBuf>,
}

/// A gateway that was found.
#[derive(Debug)]
pub(in crate::commands) struct Found {
    /// Its endpoint.
    pub(in crate::commands) url: String,
    /// Somebody named it, rather than a config.
    pub(in crate::commands) is_named: bool,
    pub(in crate::commands) gate: Gate,
    /// The servers whose names tools begin with, if the config says so.
    pub(in crate::commands) servers: Vec<String>,
    /// The config that said where it is.
    pub(in crate::commands) config: Option<PathBuf>,
}

/// Finds the gateway, or says why not.
pub(in crate::commands) fn find(args: &GateArgs, printer: &Printer) -> Result<Found, Exit> {
    let named = args.url.clone().or_else(|| variable(URL).filter(|_| args.config.is_none()));
    let is_named = named.is_some();
    let mut certificates = None;
    let (url, servers, config) = match named {
        Some(url) => (with_path(&url), Vec::new(), None),
        None => {
            let (file, path) = config(args, printer)?;
            let folder = path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
            // What its own listener presents is the gateway that the config means.
            let cert = file.tls.as_ref().map(|tls| tls.cert.resolve(&ProcessEnvironment, folder));
            certificates = cert.and_then(Result::ok);
            let scheme = if file.tls.is_some() { "https" } else { "http" };
            (format!("{scheme}://{}{PATH}", reachable(file.listen.0)), prefixes(&file), path)
        }
    };
    let certificates = certificates.as_ref().map(Secret::expose);
    match Gate::trusting(&url, key().as_deref(), certificates) {
        Ok(gate) => Ok(Found { url, is_named, gate, servers, config }),
        Err(error) => {
            printer.error(&format!("`{url}` cannot be asked: {error}"));
            printer.hint("a gateway's url looks like `http://127.0.0.1:8700`");
            Err(Exit::Usage)
        }
    }
}

/// The key to send, if there is one.
pub(in crate::commands) fn key() -> Option<String> {
    variable(KEY)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The config that says where the gateway listens; the default where there is none.
fn config(args: &GateArgs, printer: &Printer) -> Result<(ConfigFile, Option<PathBuf>), Exit> {
    let Ok(path) = find::config_file(args.config.as_deref()) else {
        return Ok((ConfigFile::default(), None));
    };
    let loaded = read_file(&path).map(|it| tidegate_config::load(&it, &ProcessEnvironment));
    let config = loaded.ok().and_then(|loaded| loaded.config);
    config.map(|config| (config.file, Some(path.clone()))).ok_or_else(|| {
        let path = path.display();
        printer.error(&format!("`{path}` does not say where the gateway listens"));
        printer.hint(&format!("`tidegate check {path}` says why; `--url URL` does without it"));
        Exit::Unreadable
    })
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

/// A gateway's origin has its MCP at a path of its own; any other url is taken as it is.
fn with_path(written: &str) -> String {
    let has_scheme = written.contains("://");
    let url = if has_scheme { written.to_owned() } else { format!("http://{written}") };
    let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
    let path = after_scheme.split_once('/').map_or("", |(_, path)| path);
    if path.is_empty() { format!("{}{PATH}", url.trim_end_matches('/')) } else { url }
}

/// The names that tools begin with: those of the servers, where there are several.
fn prefixes(file: &ConfigFile) -> Vec<String> {
    let seen = file.mcp.seen();
    let has_prefixes = file.mcp.naming == Naming::Prefix && seen.len() > 1;
    seen.iter().filter(|_| has_prefixes).map(|it| it.name.to_owned()).collect()
}

/// Says what went wrong between us and the gateway.
pub(in crate::commands) fn explain(url: &str, error: &GuestError, printer: &Printer) -> Exit {
    match error {
        GuestError::NoGateway(cause @ (Cause::Status(500..) | Cause::RateLimited)) => {
            printer.error(&format!("what answers at `{url}` is busy or closing: {cause}"));
            printer.hint("`tidegate tools list` again in a moment");
            Exit::Unreachable
        }
        GuestError::NoGateway(cause @ (Cause::Status(_) | Cause::Malformed)) => {
            printer.error(&format!("what answers at `{url}` is no MCP gateway: {cause}"));
            printer.hint("`tidegate check --connect` shows the MCP servers of a config");
            Exit::Unreachable
        }
        GuestError::NoGateway(cause) => {
            printer.error(&format!("no gateway answers at `{url}`: {cause}"));
            printer.hint("`tidegate serve` starts one; `--url URL` asks another");
            Exit::Unreachable
        }
        GuestError::KeyRejected(_) => {
            printer.error(&format!("the gateway at `{url}` wants another key"));
            printer.hint(&format!("`export {KEY}=...` with one of the config's `keys`"));
            Exit::No
        }
        GuestError::TimedOut(cause) => {
            printer.error(&format!("no answer: {cause}"));
            printer.hint("`--timeout 30m` waits longer; `mcp.call_timeout` is the gateway's own");
            Exit::No
        }
        GuestError::Refused { message, .. } => {
            printer.error(&super::calm(message));
            printer.hint("`tidegate tools list` shows every tool");
            Exit::No
        }
        GuestError::Unusable(reason) | GuestError::NoRuntime(reason) => {
            printer.error(reason);
            Exit::Usage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{reachable, with_path};

    #[test]
    fn an_origin_gets_the_path_of_mcp_and_other_urls_stay() {
        for (written, expected) in [
            ("http://h:1", "http://h:1/mcp"),
            ("127.0.0.1:8700", "http://127.0.0.1:8700/mcp"),
            ("http://h:1/", "http://h:1/mcp"),
            ("http://h:1/mcp", "http://h:1/mcp"),
            ("https://h/gate/mcp", "https://h/gate/mcp"),
        ] {
            assert_eq!(with_path(written), expected);
        }
    }

    #[test]
    fn a_gateway_that_listens_everywhere_is_asked_on_loopback() {
        for (listen, expected) in
            [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("10.0.0.1:1", "10.0.0.1:1")]
        {
            let listen = listen.parse().expect("an address");
            assert_eq!(reachable(listen).to_string(), expected);
        }
    }
}
