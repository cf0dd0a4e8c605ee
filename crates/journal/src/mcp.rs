//! How an MCP call becomes a decision: what the MCP side says while a call is under way.
//!
//! ```text
//!   McpCall::new ─▶ attempt … ─▶ answered | unavailable ─▶ Decision ─▶ Worker::record
//! ```
//! One per client call (`tools/call`, `resources/read`, `prompts/get`, `completion/complete`);
//! probes, keepalives and listings are none.

use std::sync::Arc;

use tidegate_core::{attempt::End, outcome::OutcomeKind, time::Now};

use crate::{
    decision::{Decision, McpAttempt, McpRecord, cut_name},
    request_id::{RequestId, SessionFingerprint},
    result::ClientVerdict,
    trace_context::TraceContext,
};

/// What the id of an MCP server's backend begins with.
const SERVER_PREFIX: &str = "mcp:";

/// The status that stands for an answer.
const ANSWERED: u16 = 200;
/// The status that stands for a call that no server answered.
const UNAVAILABLE: u16 = 503;

/// The class of paths that MCP clients use.
const PATH: &str = "/mcp";

/// An MCP call under way.
#[derive(Clone, Debug)]
pub struct McpCall {
    /// The request that carried it.
    pub id: RequestId,
    began: Now,
    caller: Arc<str>,
    session: Option<SessionFingerprint>,
    traced: Option<TraceContext>,
    record: McpRecord,
}

impl McpCall {
    /// A call of the server or group `name`.
    #[must_use]
    pub fn new(
        began: Now,
        caller: &Arc<str>,
        session: &str,
        name: &str,
        (method, tool): (&'static str, Option<&str>),
    ) -> Self {
        Self {
            id: RequestId::new(),
            began,
            caller: Arc::clone(caller),
            session: SessionFingerprint::of(session),
            traced: None,
            record: McpRecord {
                route: format!("{SERVER_PREFIX}{name}").into(),
                method,
                tool: tool.map(cut_name),
                error_code: None,
                cause: None,
                attempts: Vec::new(),
            },
        }
    }

    /// The trace that the client named; one that is not valid is none.
    #[must_use]
    pub fn traced_by(mut self, trace_parent: Option<&str>) -> Self {
        self.traced = trace_parent.and_then(|it| TraceContext::parse(it.as_bytes()));
        self
    }

    /// A server was asked: how that ended. `cause` is a fixed phrase.
    pub fn attempt(
        &mut self,
        server: &str,
        (began, ended): (Now, Now),
        outcome: Option<OutcomeKind>,
        cause: Option<&str>,
        times_sent: u32,
    ) {
        self.record.attempts.push(McpAttempt {
            backend: [SERVER_PREFIX, server].concat().into(),
            outcome,
            cause: cause.map(Into::into),
            began,
            took: ended.since(began),
            times_sent,
        });
    }

    /// A server answered. An error of JSON-RPC that is the caller's fault is an answer too.
    #[must_use]
    pub fn answered(self, now: Now) -> Decision {
        self.decision(now, ANSWERED, End::Answered)
    }

    /// The request was at fault.
    #[must_use]
    pub fn at_fault(self, now: Now) -> Decision {
        self.decision(now, 400, End::ClientFault)
    }

    /// The client went away, or called it off.
    #[must_use]
    pub fn cancelled(self, now: Now) -> Decision {
        self.decision(now, 499, End::Cancelled)
    }

    /// No server answered: the code of the error and its cause, a fixed phrase.
    #[must_use]
    pub fn unavailable(mut self, now: Now, code: &'static str, cause: &str) -> Decision {
        self.record.error_code = Some(code);
        self.record.cause = Some(cause.into());
        self.decision(now, UNAVAILABLE, End::NothingLeft)
    }

    fn decision(self, now: Now, status: u16, end: End) -> Decision {
        let took = now.since(self.began);
        Decision {
            caller: self.caller,
            session: self.session,
            path: PATH,
            end: Some(end),
            verdict: ClientVerdict::of(status, Some(end)),
            own_answer: None,
            traced: self.traced.map(Box::new),
            mcp: Some(Box::new(self.record)),
            ..Decision::refused(self.id, self.began, took, status, "")
        }
    }
}
