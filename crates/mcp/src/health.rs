//! The only door of MCP to the core: asking for a permit, and saying how it went.
//!
//! Every server is a backend `mcp:NAME` with a route of its own, so that a call walks the same
//! plan as a model request: one candidate, no hop. A group of equivalent servers is a route too,
//! with a tier for each member: the core chooses, and chooses again after a failure.
//!
//! Rules kept here:
//! - No last resort: a server whose breaker lets nothing pass is not asked, because another
//!   failure tells the client less than "circuit open" and a time to come back. A window or an
//!   exclusion alone does not stop a call of a session that has the server; it stops a session
//!   from opening with it ([`standing`]).
//! - A permit ends exactly once: reported, passed on, or dropped, which is the same as cancelled.
//! - A group is as well as the best of its members.
//! - What an answer means for health is one table ([`of_answer`]).
//!
//! Left to others: when to ask (`call.rs`), what a session makes of a standing (`session.rs`).

use tidegate_core::{
    attempt::End,
    breaker::State,
    core::Core,
    explain::{Condition, Obstacle},
    mark::{ActiveMark, MarkReason},
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    plan::{Plan, RequestSpec, Step},
    settings::{LastResortSettings, MemberSettings, Membership, RouteSettings},
    time::{Millis, Now},
    transition::Notes,
};

use crate::cause::{Cause, Delivery};

const PREFIX: &str = "mcp:";

/// The id of a server's backend in the core.
#[must_use]
pub fn backend_id(server: &str) -> String {
    [PREFIX, server].concat()
}

/// The name of the route of a server, or of a group, in the core. The line feed keeps it apart
/// from every route that a config file or a client can name.
#[must_use]
pub fn route_name(server: &str) -> String {
    ["mcp\n", server].concat()
}

/// The route of a server, or of a group, whose members have these indexes in the core's settings:
/// a tier for each, in the order in which they are preferred.
#[must_use]
pub fn route(server: &str, members: &[usize]) -> RouteSettings {
    let tier =
        |&backend| vec![MemberSettings { backend, weight: 1, membership: Membership::Active }];
    RouteSettings {
        name: route_name(server),
        tiers: members.iter().map(tier).collect(),
        affinity_ttl: Millis::ZERO,
        // A call never goes past an open breaker, so there is nothing to limit.
        last_resort: LastResortSettings::UNLIMITED,
        // Every call says itself how long it may take.
        deadline: Millis(u64::MAX),
        max_hops: members.len().saturating_sub(1).try_into().unwrap_or(u32::MAX),
        ..RouteSettings::default()
    }
}

/// How a request, a connect or a conversation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why, in a fixed phrase.
    pub cause: Cause,
    /// Whether it may have been carried out.
    pub delivery: Delivery,
    /// What the core is told.
    pub outcome: OutcomeKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// How long the server asks to be left alone.
    pub retry_after: Option<Millis>,
    /// The server has forgotten the session: a new `initialize` may help.
    pub is_session_loss: bool,
    /// It came as a JSON-RPC message: the server itself speaks, and not something before it.
    pub is_spoken: bool,
}

impl Failure {
    /// A failure that says nothing beyond its cause: of a request that was not delivered.
    #[must_use]
    pub const fn of(cause: Cause, outcome: OutcomeKind) -> Self {
        let (delivery, status, retry_after) = (Delivery::Not, None, None);
        let (is_session_loss, is_spoken) = (false, false);
        Self { cause, delivery, outcome, status, retry_after, is_session_loss, is_spoken }
    }

    /// The server does not know the session: refused unread.
    #[must_use]
    pub const fn session_lost() -> Self {
        let plain = Self::of(Cause::SessionLost, OutcomeKind::Transport);
        Self { is_session_loss: true, ..plain }
    }

    /// What the core is told.
    #[must_use]
    pub const fn told(&self) -> Outcome {
        Outcome { retry_after: self.retry_after, ..Outcome::broken(self.outcome, self.status) }
    }

    /// Whether the conversation itself is gone, so that only a new `initialize` can help: the
    /// server has forgotten the session, or there is no way to it any more.
    #[must_use]
    pub const fn ends_conversation(&self) -> bool {
        self.is_session_loss
            || matches!(
                self.cause,
                Cause::ConnectionRefused
                    | Cause::NameNotResolved
                    | Cause::TlsFailed
                    | Cause::ConnectionFailed
                    | Cause::ConnectionBroken
                    | Cause::ProcessExited
                    | Cause::SessionLost
            )
    }
}

/// Whether a server may be asked.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made and taken apart at once, once per call")]
pub enum Admission {
    /// It may, with this permit.
    Go(CallPermit),
    /// It may not.
    Refused {
        /// Why.
        cause: Cause,
        /// When asking again makes sense, if that is known.
        retry_after: Option<Millis>,
    },
}

/// The right to ask a server once. Dropping it is cancelling.
#[derive(Debug)]
pub struct CallPermit {
    plan: Plan,
    permit: Permit,
}

impl CallPermit {
    /// Says how it went.
    pub fn report(self, now: Now, outcome: &Outcome, notes: &mut Notes) -> CallPlan {
        let Self { mut plan, permit } = self;
        plan.report(now, permit, outcome, notes);
        CallPlan { plan }
    }

    /// Gives it back without a word about the server, though it came to nothing in this way: who
    /// shares a failure that another has reported, or met one that is not the server's.
    #[must_use]
    pub fn pass(self, now: Now, outcome: &Outcome) -> CallPlan {
        let Self { mut plan, permit } = self;
        plan.pass(now, permit, outcome);
        CallPlan { plan }
    }

    /// The server that may be asked, by its own name.
    #[must_use]
    pub fn server(&self) -> &str {
        let id = &**self.permit.backend().id();
        id.strip_prefix(PREFIX).unwrap_or(id)
    }

    /// Whether a half-open breaker admitted it.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        self.permit.is_trial()
    }

    /// The plan behind it, for whoever records decisions.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// The way of one call through the members of a group, between two attempts.
#[derive(Debug)]
pub struct CallPlan {
    plan: Plan,
}

impl CallPlan {
    /// Begins the way of a call that may take `within` in all; `stays_at` is the member that holds
    /// the state of its session. `None` if the core does not know the server or group.
    #[must_use]
    pub fn begin(
        core: &Core,
        server: &str,
        stays_at: Option<&str>,
        now: Now,
        within: Millis,
    ) -> Option<Self> {
        let route = core.route(&route_name(server))?;
        let stays_at = stays_at.map(backend_id);
        let ask = RequestSpec {
            within: Some(within),
            stays_at: stays_at.as_deref(),
            ..RequestSpec::default()
        };
        Some(Self { plan: core.begin(route, now, &ask) })
    }

    /// Asks the core which member may be asked now.
    pub fn next(mut self, now: Now, draw: u64, notes: &mut Notes) -> Admission {
        let within = self.plan.deadline().since(self.plan.began());
        match self.plan.next(now, draw, notes) {
            Step::Attempt(permit) if !permit.is_last_resort() => {
                Admission::Go(CallPermit { plan: self.plan, permit })
            }
            Step::Attempt(_) => {
                Admission::Refused { cause: Cause::CircuitOpen, retry_after: self.re_entry(now) }
            }
            Step::Finish(finish) => {
                let is_late = finish.end == End::Deadline;
                let cause = if is_late { Cause::TimedOut(within) } else { Cause::SwitchedOff };
                Admission::Refused { cause, retry_after: self.re_entry(now) }
            }
        }
    }

    /// How long until asking again makes sense, if something stands against every member now.
    #[must_use]
    pub fn re_entry(&self, now: Now) -> Option<Millis> {
        self.plan.re_entry(now).filter(|at| *at != Now::NEVER).map(|moment| moment.since(now))
    }

    /// The plan behind it, for whoever records decisions.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Asks the core whether `server` may be asked now, for at most `within`.
pub fn admit(
    core: &Core,
    server: &str,
    now: Now,
    draw: u64,
    within: Millis,
    notes: &mut Notes,
) -> Admission {
    match CallPlan::begin(core, server, None, now, within) {
        Some(plan) => plan.next(now, draw, notes),
        None => Admission::Refused { cause: Cause::Closing, retry_after: None },
    }
}

/// Charges a server with one failure that no permit stands for: a keepalive that gave up.
pub fn charge(core: &Core, server: &str, now: Now, outcome: &Outcome, notes: &mut Notes) {
    core.server_probed(now, &backend_id(server), outcome, Millis::ZERO, notes);
}

/// What a session that opens sees of a server's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing stands against it.
    Healthy,
    /// Half-open, with a slot to be had.
    HalfOpenFree,
    /// Half-open, and every slot is taken: its trial will tell.
    SlotTaken,
    /// A breaker is open, a window is active, an exclusion stands, or an operator switched it off.
    Unhealthy(Cause, Option<Millis>),
}

impl Standing {
    /// How far it is from healthy; of two that are out, the one that returns first is better.
    const fn badness(self) -> (u8, u64) {
        match self {
            Self::Healthy => (0, 0),
            Self::HalfOpenFree => (1, 0),
            Self::SlotTaken => (2, 0),
            Self::Unhealthy(_, Some(span)) => (3, span.0),
            Self::Unhealthy(_, None) => (4, 0),
        }
    }
}

/// The standing of a server, or of a group: that of its best member, the first of equals. One
/// that the core does not know is on its way out.
#[must_use]
pub fn standing(core: &Core, server: &str, now: Now) -> Standing {
    let closing = Standing::Unhealthy(Cause::Closing, None);
    let Some(route) = core.route(&route_name(server)) else { return closing };
    let members = route.members().map(|id| standing_of(core, id, now));
    members.min_by_key(|it| it.badness()).unwrap_or(closing)
}

fn standing_of(core: &Core, backend: &str, now: Now) -> Standing {
    let Some(Condition { state, obstacles }) = core.condition(now, backend) else {
        return Standing::Unhealthy(Cause::Closing, None);
    };
    let heaviest = Obstacle::heaviest(obstacles.iter().filter(|it| !is_slot_taken(it)));
    match heaviest {
        Some(obstacle) => {
            let until = obstacles.iter().filter_map(Obstacle::re_entry).max();
            let until = until.filter(|until| *until != Now::NEVER);
            Standing::Unhealthy(cause_of(obstacle), until.map(|until| until.since(now)))
        }
        None if !obstacles.is_empty() => Standing::SlotTaken,
        None if state == State::HalfOpen => Standing::HalfOpenFree,
        None => Standing::Healthy,
    }
}

fn is_slot_taken(obstacle: &Obstacle) -> bool {
    matches!(obstacle, Obstacle::Breaker { state: State::HalfOpen, .. })
}

const fn cause_of(obstacle: &Obstacle) -> Cause {
    match obstacle {
        Obstacle::Breaker { .. } | Obstacle::Endpoint { .. } | Obstacle::LastResortLimit { .. } => {
            Cause::CircuitOpen
        }
        Obstacle::Exclusion(ActiveMark { reason: MarkReason::AuthRejected, .. }) => {
            Cause::AuthRejected
        }
        Obstacle::Window(_) | Obstacle::Exclusion(_) => Cause::RateLimited,
        Obstacle::Inactive
        | Obstacle::Unconfigured
        | Obstacle::SwitchedOff(_)
        | Obstacle::Lacks(_) => Cause::SwitchedOff,
    }
}

/// What a JSON-RPC answer says about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is the answer, and this is its class.
    Ended(OutcomeKind),
    /// The server does not know the session any more. Not charged by itself.
    SessionLost,
}

const INTERNAL_ERROR: i64 = -32603;
const SESSION_UNKNOWN: i64 = -32001;
/// Codes that several servers use for a lost session, with a text that says so.
const SAID_IN_WORDS: [i64; 2] = [-32000, -32600];

/// Classifies an answer by its error, code and message; `None` is a result, also one with
/// `isError: true`, which is the tool's word and not the server's.
#[must_use]
pub fn of_answer(error: Option<(i64, &str)>) -> Reply {
    let Some((code, message)) = error else { return Reply::Ended(OutcomeKind::Success) };
    let says_session = || message.to_ascii_lowercase().contains("session");
    if code == SESSION_UNKNOWN || (SAID_IN_WORDS.contains(&code) && says_session()) {
        return Reply::SessionLost;
    }
    Reply::Ended(if code == INTERNAL_ERROR {
        OutcomeKind::ServerError
    } else {
        OutcomeKind::ClientFault
    })
}

#[cfg(test)]
pub(crate) mod tests;
