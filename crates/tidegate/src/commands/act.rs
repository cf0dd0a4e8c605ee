//! `tidegate drain | hold | reset | probe | resume | reload`: what an operator may change.
//!
//! Each is logged with its reason, and a drain or a hold ends by itself. All of them need the admin
//! token.
//!
//! | what happened | exit code |
//! |---|---|
//! | it was done; a probe passed | 0 |
//! | a probe failed, a config was refused, no such backend, the token was refused | 1 |
//! | no gateway answers | 4 |

use clap::Args;
use serde_json::json;
use tidegate_config::duration::Duration;
use tidegate_console::words::{calm, moment, span};
use tidegate_journal::api::actions::{ActionReply, ReloadReply};
use tidegate_runtime::clock::Clock;

use super::admin::{self, AdminArgs, Gateway};
use crate::exit::Exit;
use crate::printer::Printer;

/// A lease: what ends by itself.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidegate drain anthropic/claude-opus --reason 'key rotation' --ttl 30m
  tidegate hold mcp:github --reason 'testing failover'
  tidegate resume anthropic/claude-opus

A backend may be named in short where that names one: `openai`, `github`.
The admin token is TIDEGATE_ADMIN_TOKEN.")]
pub(crate) struct LeaseArgs {
    #[command(flatten)]
    act: ActArgs,
    /// How long it lasts; at most 24h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = Duration::parse)]
    ttl: Duration,
}

/// What is done once.
#[derive(Debug, Args)]
#[command(after_help = "\
A backend may be named in short where that names one: `openai`, `github`.
The admin token is TIDEGATE_ADMIN_TOKEN.")]
pub(crate) struct ActArgs {
    /// The backend: `provider/model`, or `mcp:NAME` for an MCP server
    backend: String,
    /// Why, for those who read the log and the timeline
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    #[command(flatten)]
    gateway: AdminArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Reads the config again.
#[derive(Debug, Args)]
#[command(after_help = "\
A config that is not sound changes nothing; the answer says what is wrong and where.
The admin token is TIDEGATE_ADMIN_TOKEN. `kill -HUP` does the same without a token.")]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    gateway: AdminArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What is done to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It is asked for nothing, for a while.
    Drain,
    /// Its breaker is open, for a while; it is still a last resort.
    Hold,
    /// Its breaker closes and whatever stands against it is forgotten.
    Reset,
    /// It is probed now.
    Probe,
    /// A drain or a hold ends.
    Resume,
}

impl Deed {
    const fn word(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Hold => "hold",
            Self::Reset => "reset",
            Self::Probe => "probe",
            Self::Resume => "resume",
        }
    }
}

/// `drain` and `hold`.
pub(crate) fn lease(deed: Deed, args: &LeaseArgs, printer: &Printer) -> Exit {
    act(deed, &args.act, Some(&args.ttl), printer)
}

/// `reset`, `probe` and `resume`.
pub(crate) fn once(deed: Deed, args: &ActArgs, printer: &Printer) -> Exit {
    act(deed, args, None, printer)
}

fn act(deed: Deed, args: &ActArgs, ttl: Option<&Duration>, printer: &Printer) -> Exit {
    let done = || -> Result<Exit, Exit> {
        let gateway = admin::find(&args.gateway, printer)?;
        let id = gateway.backend(&args.backend, printer)?;
        let mut order = json!({ "reason": args.reason });
        if let Some(ttl) = ttl {
            order["ttl"] = ttl.as_written().into();
        }
        let path = format!("/api/backends/{}/{}", encoded(&id), deed.word());
        let reply: ActionReply =
            gateway.client.post(&path, &order).map_err(|error| gateway.explain(&error, printer))?;
        if args.json {
            let reply = serde_json::to_value(&reply).unwrap_or_default();
            printer.result(&format!("{reply:#}"));
        } else {
            printer.result(&told(deed, &reply, &gateway));
            if is_longer(&reply, ttl) {
                let id = calm(&reply.backend);
                printer.hint(&format!(
                    "an earlier action lasts longer than this one: `tidegate resume {id}` ends both"
                ));
            }
        }
        let has_failed = reply.result.as_deref() == Some("failed");
        Ok(if has_failed { Exit::No } else { Exit::Done })
    };
    done().unwrap_or_else(|exit| exit)
}

/// Whether it lasts longer than was asked for, because it did before. A second more may be the way
/// of the answer and clocks that differ.
fn is_longer(reply: &ActionReply, ttl: Option<&Duration>) -> bool {
    let Some((until, ttl)) = reply.until_unix_ms.zip(ttl) else { return false };
    until.saturating_sub(Clock::start().unix_ms()) > ttl.millis().0.saturating_add(1_000)
}

/// What was done, until when, and how to undo it.
fn told(deed: Deed, reply: &ActionReply, gateway: &Gateway) -> String {
    let id = calm(&reply.backend);
    let now = Clock::start().unix_ms();
    let until = reply.until_unix_ms.map(|at| {
        let lasts = span(at.saturating_sub(now).div_ceil(1000) * 1000);
        format!("until {}, for {lasts}", moment(now, at))
    });
    let until = until.unwrap_or_default();
    let undo = format!("undo: tidegate resume {id}");
    let passed = reply.result.as_deref() == Some("passed");
    match deed {
        Deed::Drain => format!("{id} is drained {until}: it is asked for nothing\n{undo}"),
        Deed::Hold => {
            format!("{id} is held open {until}: it is asked only as a last resort\n{undo}")
        }
        Deed::Reset => format!("{id} is reset: its breaker is closed, and it is asked again"),
        Deed::Resume => format!("{id} is resumed: what an operator did to it has ended"),
        Deed::Probe if passed => format!("{id} answered the probe"),
        Deed::Probe => {
            let url = gateway.client.url();
            format!("{id} did not answer the probe of {url}\nnext: tidegate explain {id}")
        }
    }
}

/// A name in a path: everything but letters, digits and a few signs as `%XX`.
fn encoded(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// `reload`.
pub(crate) fn reload(args: &ReloadArgs, printer: &Printer) -> Exit {
    let gateway = match admin::find(&args.gateway, printer) {
        Ok(gateway) => gateway,
        Err(exit) => return exit,
    };
    let reply: ReloadReply = match gateway.client.post("/api/reload", &json!({})) {
        Ok(reply) => reply,
        Err(error) => return gateway.explain(&error, printer),
    };
    if args.json {
        let reply = serde_json::to_value(&reply).unwrap_or_default();
        printer.result(&format!("{reply:#}"));
    } else if reply.reloaded {
        printer.result(&reloaded(&reply));
        reply.warnings.iter().for_each(|text| printer.note(text));
    } else {
        printer.error(&format!("the config was refused; sha {} serves on", calm(&reply.sha)));
        reply.problems.iter().for_each(|text| printer.talk(text));
        printer.hint("`tidegate check` shows the same; mend the file, then `tidegate reload`");
    }
    if reply.reloaded { Exit::Done } else { Exit::No }
}

fn reloaded(reply: &ReloadReply) -> String {
    let listed = |keys: &[String]| keys.iter().map(|key| calm(key)).collect::<Vec<_>>().join(", ");
    let sha = calm(&reply.sha);
    let mut text = match reply.changed.as_slice() {
        [] => format!("sha {sha} serves; nothing differs from before"),
        changed => format!("sha {sha} serves; changed: {}", listed(changed)),
    };
    if !reply.needs_restart.is_empty() {
        text.push_str(&format!("\nneeds a restart: {}", listed(&reply.needs_restart)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn names_of_backends_are_one_part_of_a_path() {
        assert_eq!(encoded("a/b:7b"), "a%2Fb%3A7b");
        assert_eq!(encoded("é"), "%C3%A9");
    }
}
