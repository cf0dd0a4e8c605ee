//! What the Hub tells of: metrics, lines of the log, and records of calls.

use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_gateway::{
    gateway::Gateway, log::Refused, metrics::ProbeResult, report::refused, worker::Worker,
};
use tidegate_journal::{mcp::McpCall, request_id::RequestId};
use tidegate_mcp::{
    health::backend_id,
    hub::{CallRecord, CallRecordEnd, LogLine, Metric},
};

/// Counts something.
pub(crate) fn count(gateway: &Gateway, metric: &Metric) {
    let metrics = &gateway.metrics;
    match metric {
        Metric::Sessions(count) => metrics.mcp_sessions(*count),
        Metric::Refused(what) => metrics.mcp_refused(what),
        Metric::CallEnded { server, outcome } => metrics.mcp_call(server, outcome),
        Metric::Reinitialised(server) => metrics.mcp_reinitialised(server),
        Metric::DefinitionsSkipped(server, count) => {
            metrics.mcp_definitions_skipped(server, *count);
        }
        Metric::DefinitionsChanged(server, count) => {
            metrics.mcp_definitions_changed(server, *count);
        }
        Metric::ToolsOffered(server, count) => gateway.tell_tools(server, *count),
        Metric::KeepaliveAttempt(server) => metrics.keepalive_attempt(server),
        Metric::KeepaliveSuccess(server, took) => metrics.keepalive_success(server, *took),
        Metric::KeepaliveFailure(server, reason) => {
            metrics.keepalive_failure(server, reason.word());
        }
        Metric::KeepaliveDisabled(server) => metrics.keepalive_disabled(server),
        Metric::Probed { server, passed } => {
            let result = if *passed { ProbeResult::Passed } else { ProbeResult::Failed };
            metrics.probed(&backend_id(server), result);
        }
    }
}

/// Writes a line.
pub(crate) fn log(gateway: &Gateway, line: &LogLine) {
    match line {
        LogLine::Unavailable { server, method, code, cause, caller } => {
            let kind = format!("mcp:{server}");
            let Some(suppressed) = gateway.line_limit.admit(gateway.now(), &kind) else { return };
            tracing::warn!(
                server,
                method,
                code,
                cause = cause.to_string(),
                caller = Some(&**caller).filter(|it| !it.is_empty()),
                suppressed = Some(suppressed).filter(|count| *count > 0),
                "an MCP server could not answer a client"
            );
        }
        LogLine::ForeignSession { caller } => {
            let event = "foreign_session";
            let (path, route, request_id) = (crate::PATH, "", "");
            refused(gateway, &Refused { event, caller, path, route, request_id });
        }
        LogLine::CrashLoop { server, pause: Millis(pause_ms), last_words } => {
            tracing::warn!(server = &**server, pause_ms, last_words, "a program keeps crashing");
        }
        LogLine::NoList { server, kind, cause } => {
            tracing::warn!(server = &**server, %kind, %cause, "no list");
        }
        LogLine::Shortfall { server, lacking } => {
            tracing::warn!(server = &**server, lacking, "a server's lists are not offered whole");
        }
        LogLine::DefinitionsChanged { server, names } => {
            let server = &**server;
            tracing::warn!(server, names, "definitions changed while they were offered");
        }
        LogLine::KeepaliveOff { server, reason } => {
            let reason = reason.word();
            tracing::warn!(server = &**server, reason, "keepalive is off for a while");
        }
        LogLine::Debug { server, what, detail } => {
            tracing::debug!(server = &**server, detail, "{what}");
        }
    }
}

/// Records a call that has ended.
pub(crate) fn record(worker: &Worker, record: &CallRecord) {
    let CallRecord { began, ended, caller, session, server, .. } = record;
    let method = (record.method, record.name.as_deref());
    let mut call = McpCall::new(*began, caller, session, server, method)
        .traced_by(record.trace_parent.as_deref());
    call.id = record.trace_id.map_or(call.id, RequestId::of_bits);
    let span = (*began, *ended);
    // The members of a group that were asked; a server that stands alone is its only attempt.
    for it in &record.attempts {
        let cause = it.cause.map(|cause| cause.to_string());
        call.attempt(&it.server, span, it.outcome, cause.as_deref(), it.times_sent);
    }
    let is_alone = record.attempts.is_empty();
    worker.record(match &record.end {
        CallRecordEnd::Answered(kind) => {
            if is_alone {
                call.attempt(server, span, Some(*kind), None, 1);
            }
            let is_fault = *kind == OutcomeKind::ClientFault;
            if is_fault { call.at_fault(*ended) } else { call.answered(*ended) }
        }
        CallRecordEnd::Unavailable { code, cause } => {
            let cause = cause.to_string();
            if is_alone {
                call.attempt(server, span, None, Some(&cause), 0);
            }
            call.unavailable(*ended, code, &cause)
        }
    });
}
