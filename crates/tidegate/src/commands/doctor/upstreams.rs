//! Whether every provider and MCP server, and the fleet's store, can be reached and used, as
//! `check --connect` asks them.

use std::sync::Arc;

use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::Source;
use tidegate_server::connect::connect;

use super::finding::Finding;
use crate::asking::Asking;
use crate::printer::Printer;

/// Asks all of them at once.
pub(super) fn look(source: &Source, printer: &Printer, findings: &mut Vec<Finding>) {
    let asking = Asking::begin(printer);
    let connected = connect(source, Arc::new(ProcessEnvironment), |it| asking.show(it));
    drop(asking);
    let connected = match connected {
        Ok(connected) => connected,
        Err(error) => return findings.push(Finding::bad("upstreams", error.to_string())),
    };
    for it in &connected.providers {
        let refusal = it.refusal();
        let trouble = refusal.as_ref().or(it.answer.as_ref().err());
        findings.push(match trouble {
            None => Finding::good("upstreams", format!("{} answers in {}ms", it.name, it.took.0)),
            Some(trouble) => Finding::bad("upstreams", format!("{}: {}", it.name, trouble.cause))
                .fix(trouble.hint.clone()),
        });
    }
    for it in &connected.servers {
        findings.push(match &it.answer {
            Ok(_) => Finding::good("mcp", format!("{} answers in {}ms", it.name, it.took.0)),
            Err(trouble) => Finding::bad("mcp", format!("{}: {}", it.name, trouble.cause))
                .fix(trouble.hint.clone()),
        });
    }
    if let Some(it) = &connected.store {
        let words = |what: &str| format!("the store {} {what}", it.name);
        findings.push(match &it.answer {
            Ok(()) => Finding::good("fleet", words(&format!("answers in {}ms", it.took.0))),
            Err(trouble) => {
                Finding::bad("fleet", words(&format!("cannot be used: {}", trouble.cause)))
                    .fix(trouble.hint.clone())
            }
        });
    }
}
