//! What may help, for each reason that something cannot be reached.
//!
//! A hint names a key of the config or a thing to look at; it never repeats an address or a secret.

use tidegate_config::file::ProviderFile;
use tidegate_mcp::cause::Cause;

use super::Trouble;

/// A server that cannot be reached.
pub(super) fn of_server(cause: Cause, is_child: bool) -> Trouble {
    let hint = if is_child { of_child(cause) } else { None };
    Trouble { cause: cause.to_string(), hint: hint.unwrap_or_else(|| of_url(cause)).to_owned() }
}

/// A provider that cannot be reached.
pub(super) fn of_provider(cause: Cause) -> Trouble {
    Trouble { cause: cause.to_string(), hint: of_url(cause).to_owned() }
}

/// A provider that answers, but not as one that can be used.
pub(super) fn of_status(status: u16, has_key: bool) -> Option<Trouble> {
    let (cause, hint) = match status {
        401 | 403 if has_key => (
            "its key was refused",
            "look at the value of its `key`, and at `auth`, which says how the key is sent",
        ),
        401 | 403 => ("it wants a key", "write `key: env:NAME`"),
        404 => (
            "nothing is at this path",
            "look at the path in `url` (with `/v1` for `api: openai`, without for `anthropic`); \
             `probe: {path: /…}` asks for another one",
        ),
        _ => return None,
    };
    Some(Trouble { cause: format!("answers; status {status}: {cause}"), hint: hint.to_owned() })
}

/// A provider that has keys, none of which is there.
pub(super) fn missing_key(file: &ProviderFile) -> Option<Trouble> {
    let keys: Vec<String> =
        file.key.iter().chain(file.keys.iter().flatten()).map(|key| format!("`{key}`")).collect();
    if keys.is_empty() {
        return None;
    }
    let hint = "set it where `tidegate serve` runs; until then its targets are skipped";
    Some(Trouble {
        cause: format!("no usable key: {} is not there", keys.join(", ")),
        hint: hint.to_owned(),
    })
}

const fn of_child(cause: Cause) -> Option<&'static str> {
    Some(match cause {
        Cause::CannotStart => "write the full path of its program, or add its folder to PATH",
        Cause::ProcessExited | Cause::ConnectionBroken | Cause::CrashLoop => {
            "start its program by hand and see what it says; `env` hands on variables it needs"
        }
        Cause::TimedOut(_) => {
            "start its program by hand: it may still be fetched, or wait for something"
        }
        Cause::Malformed => "its program must print nothing but messages on stdout",
        Cause::TooManyChildren => "`mcp.max_children` is lower than the number of programs",
        _ => return None,
    })
}

const fn of_url(cause: Cause) -> &'static str {
    match cause {
        Cause::ConnectionRefused => "nobody listens there: is it started, and is its port right?",
        Cause::NameNotResolved => "look at the host in `url`, and at this machine's name service",
        Cause::PrivateAddress => "`allow_private: true` lets a host's name lead to such an address",
        Cause::TlsFailed => "is it https? `ca: file:corp.pem` adds a certificate to trust",
        Cause::AuthRejected => "the credentials in its `headers` are not those it wants",
        Cause::RateLimited => "it asks for patience: try again later",
        Cause::Status(404 | 405) => "look at the path in `url`: most MCP servers answer at `/mcp`",
        Cause::Status(_) => "something answers there, but not as it should: look at its log",
        Cause::Malformed => "what answers there does not speak MCP: look at `url`",
        Cause::TimedOut(_) => "is it up, and can it be reached from here?",
        Cause::Shortage => "this machine has no descriptors or ports left",
        _ => "look at the way there: a firewall, a proxy, the port in `url`",
    }
}
