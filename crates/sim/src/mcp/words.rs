//! The words of a step: what it is, and what it is about, as it was written.

use tidegate_core::time::Millis;

use super::{Action, Deed};

/// The word of a step, and what it is about.
pub(super) fn words(action: &Action) -> (&'static str, String) {
    match action {
        Action::Open { session } => ("open", session.clone()),
        Action::Stateless { client } => ("stateless", client.clone()),
        Action::Call { session, tool, at_once: 1 } => ("call", format!("{session} {tool}")),
        Action::Call { session, tool, at_once } => {
            ("call", format!("{session} {tool} x {at_once}"))
        }
        Action::Answer { session } => ("answer", session.clone()),
        Action::Retry { client } => ("retry", client.clone()),
        Action::List { session } => ("list", session.clone()),
        Action::Find { session, query } => ("find", format!("{session} \"{query}\"")),
        Action::Close { session } => ("close", session.clone()),
        Action::Probe { server } => ("probe", server.to_string()),
        Action::Advance(span) => ("advance", span.as_written().to_owned()),
        Action::Reload(None) => ("reload", String::new()),
        Action::Reload(Some(servers)) => {
            let names: Vec<&str> = servers.iter().map(|it| &*it.name).collect();
            ("reload", names.join(", "))
        }
        Action::Deed { server, deed, after } => {
            let (word, detail) = match deed {
                Deed::Crash => ("crash", String::new()),
                Deed::Hang => ("hang", String::new()),
                Deed::LoseSession => ("lose_session", String::new()),
                Deed::Slow(by) => ("slow", format!(" by {}", written(*by))),
                Deed::Tools(list) => ("tools", format!(" [{}]", list.join(", "))),
                Deed::Era(era) => ("era", format!(" {}", era.word())),
                Deed::Heal => ("heal", String::new()),
            };
            let after = after.as_ref().map(|it| format!(" after {}", it.as_written()));
            (word, format!("{server}{detail}{}", after.unwrap_or_default()))
        }
    }
}

fn written(span: Millis) -> String {
    tidegate_config::duration::written(span)
}
