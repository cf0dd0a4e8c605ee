//! What a config file says about MCP, as the Hub wants to hear it.
//!
//! The gateway and the simulator read the same words and have to mean the same by them. The config
//! crate does not know the Hub and the Hub does not know a file format, so the words of the one
//! become the settings of the other here, once.
//!
//! Left to others: which servers there are, how they are reached and who may use them
//! (`mcp-shell/settings.rs`), and what a scenario leaves open (`sim/mcp/stage/config.rs`).

use tidegate_config::file::{
    KeepaliveFile, KeepaliveMethod, LimitsFile, Naming as NamingWord, Visibility as VisibilityWord,
};
use tidegate_mcp::{
    keepalive::{KeepaliveSettings, Method},
    names::Naming,
    raw::quoted,
    session::Visibility,
};

/// How an idle connection is kept alive.
#[must_use]
pub fn keepalive(file: &KeepaliveFile) -> KeepaliveSettings {
    KeepaliveSettings {
        method: match file.method {
            None => Method::Suitable,
            Some(KeepaliveMethod::Ping) => Method::Ping,
            Some(KeepaliveMethod::Tool) => Method::Tool,
            Some(KeepaliveMethod::None) => Method::None,
        },
        every: file.every.millis(),
        jitter: file.jitter.fraction(),
        timeout: file.timeout.millis(),
        // Zero would disable it before anything has failed.
        failures: file.failures.max(1),
        quiet: file.quiet.millis(),
    }
}

/// The params of the `tools/call` that keeps a connection alive, if it is one that does.
#[must_use]
pub fn keepalive_call(file: &KeepaliveFile) -> Option<String> {
    let tool = file.tool.as_ref().filter(|_| file.method == Some(KeepaliveMethod::Tool))?;
    let name = tool.name.as_deref().unwrap_or_default();
    let args = serde_json::to_string(&tool.args).unwrap_or_default();
    Some(format!(r#"{{"name":{},"arguments":{args}}}"#, quoted(name)))
}

/// How tools of several servers get their names.
#[must_use]
pub const fn naming(word: NamingWord) -> Naming {
    match word {
        NamingWord::Prefix => Naming::Prefix,
        NamingWord::Priority => Naming::Priority,
        NamingWord::Manual => Naming::Manual,
    }
}

/// Whether a session's tools follow health while it lasts.
#[must_use]
pub const fn visibility(word: VisibilityWord) -> Visibility {
    match word {
        VisibilityWord::Session => Visibility::Session,
        VisibilityWord::Live => Visibility::Live,
    }
}

/// The largest message that is taken from a server.
#[must_use]
pub fn answer_max(limits: &LimitsFile) -> usize {
    usize::try_from(limits.mcp_answer.0).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
