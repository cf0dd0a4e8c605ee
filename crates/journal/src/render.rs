//! Records as the API shows them.
//!
//! Verdicts are worked out here, when somebody asks: of a candidate that nothing stood against and
//! that was not chosen, it is known without having been written down that it was held.

use serde_json::Value;
use std::sync::Arc;

use tidegate_core::{
    attempt::Attempt,
    choice::PinUse,
    explain::{Obstacle, StateVerdict, bar_of},
    time::Now,
};
use tidegate_runtime::clock::Clock;

use crate::{
    api::{
        decision::{
            AnswerView, AttemptView, CandidateView, ChoiceView, ConversionView, DecisionFull,
            DecisionShort, ExactView, NeedsView, NoteView, ObstacleView, PlanView, ReleasedView,
            StateView, TokensView,
        },
        events::{ActionView, MovedView, ReloadView, SecurityView, TransitionView},
    },
    decision::{AttemptRecord, ConversionRecord, Decision, McpAttempt, PlanRecord},
    event::{
        ActionRecord, Event, EventBody, MoveRecord, ReloadRecord, SecurityRecord, TransitionRecord,
    },
};

/// What rendering needs to know besides a record.
#[derive(Clone, Debug)]
pub struct Renderer {
    /// Turns moments into wall-clock time.
    pub clock: Clock,
    /// The configs that have served, and since when each.
    pub shas: Arc<[(Now, Arc<str>)]>,
}

/// The word that serde gives to a variant without data.
fn word(value: impl serde::Serialize) -> Option<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Some(word),
        _ => None,
    }
}

impl Renderer {
    fn unix(&self, moment: Now) -> u64 {
        self.clock.unix_ms_of(moment)
    }

    /// A moment's wall-clock time; `None` for one that never comes.
    #[must_use]
    pub fn unix_unless_never(&self, moment: Now) -> Option<u64> {
        (moment != Now::NEVER).then(|| self.unix(moment))
    }

    /// A decision as a list tells of it.
    #[must_use]
    pub fn short(&self, n: u64, decision: &Decision) -> DecisionShort {
        let mcp = decision.mcp.as_deref();
        let attempts = match mcp {
            Some(mcp) => mcp.attempts.iter().map(|it| mcp_attempt(decision, it)).collect(),
            None => self.attempts(decision),
        };
        let answered_by = match mcp {
            Some(mcp) => mcp.attempts.last().filter(|_| mcp.error_code.is_none()),
            None => None,
        };
        let answered_by = answered_by.map(|it| it.backend.to_string()).or_else(|| {
            decision.answered_by().map(|number| decision.records[number].target.clone())
        });
        let first_content = decision.log.iter().zip(&decision.records).last();
        let first_content = first_content.and_then(|(attempt, record)| {
            Some(attempt.at.after(record.first_content?).since(decision.at).0)
        });
        let end = decision.end.and_then(word).unwrap_or_else(|| "refused".to_owned());
        DecisionShort {
            id: decision.id.to_string(),
            n,
            kind: if mcp.is_some() { "mcp" } else { "llm" }.to_owned(),
            at: decision.at.0,
            at_unix_ms: self.unix(decision.at),
            took_ms: decision.took.0,
            route: decision.route().to_owned(),
            model: decision.model.as_deref().map(str::to_owned),
            path: decision.path.to_owned(),
            method: mcp.map(|it| it.method.to_owned()),
            tool: mcp.and_then(|it| it.tool.as_deref()).map(str::to_owned),
            caller: decision.caller.to_string(),
            session: decision.session.map(|it| it.to_string()),
            stream: decision.is_stream,
            result: decision.verdict.result.word().to_owned(),
            status: decision.status,
            client_failure: decision.verdict.failure.map(|it| it.word().to_owned()),
            end,
            answered_by,
            hops: decision.hops() as u32,
            relaxed: decision.is_relaxed(),
            notable: decision.is_notable(),
            pin: decision.log.iter().next().and_then(|it| pin_word(it.pin)),
            first_content_ms: first_content,
            attempts,
            tokens: decision.tokens.map(|it| TokensView {
                input: it.input,
                output: it.output,
                cached: it.cached,
            }),
            error_code: mcp.and_then(|it| it.error_code).map(str::to_owned),
            cause: mcp.and_then(|it| it.cause.as_deref()).map(str::to_owned),
        }
    }

    fn attempts(&self, decision: &Decision) -> Vec<AttemptView> {
        let attempts = decision.log.iter().zip(&decision.records).enumerate();
        let view = |(number, (attempt, record)): (usize, (&Attempt, &AttemptRecord))| {
            let converted = decision.conversions.iter().find(|it| it.attempt == number);
            let outcome = attempt.outcome;
            AttemptView {
                backend: record.backend.to_string(),
                target: record.target.clone(),
                tier: decision.plan.as_ref().map(|it| it.route.tier(attempt.candidate)),
                key: Some(attempt.key + 1),
                outcome: Some(record.outcome.word().to_owned()),
                status: record.status,
                error_status: outcome.and_then(|it| it.error_status),
                retry_after_ms: outcome.and_then(|it| it.retry_after).map(|it| it.0),
                ms: record.took.0,
                detail: record.detail.to_owned(),
                by: word(attempt.by),
                rank: attempt.rank.0,
                trial: attempt.is_trial,
                last_resort: attempt.is_last_resort,
                started_ms: attempt.at.since(decision.at).0,
                first_content_ms: record.first_content.map(|it| it.0),
                committed: attempt.committed.map(|it| it.word().to_owned()),
                resent: attempt.is_resent,
                converted: converted.map(|it| it.pair.clone()),
            }
        };
        attempts.map(view).collect()
    }

    /// All of a decision.
    #[must_use]
    pub fn full(&self, n: u64, decision: &Decision) -> DecisionFull {
        let since = self.shas.iter().rev().find(|(since, _)| *since <= decision.at);
        let config_sha = since.or(self.shas.first()).map(|(_, sha)| sha.to_string());
        let choices = decision.plan.as_ref().map(|plan| self.choices(decision, plan));
        let own = decision.own_answer.as_deref();
        DecisionFull {
            short: self.short(n, decision),
            config_sha,
            plan: decision.plan.as_ref().map(plan_view),
            choices: choices.unwrap_or_default(),
            released: released(decision),
            conversion: decision.conversions.iter().map(conversion).collect(),
            answer: AnswerView {
                status: decision.status,
                code: own.map(|it| it.code.to_owned()),
                message: own.and_then(|it| it.message.as_deref()).map(str::to_owned),
                retry_after_ms: own.and_then(|it| it.retry_after).map(|it| it.0),
                should_retry: own.and_then(|it| it.should_retry),
            },
        }
    }

    fn choices(&self, decision: &Decision, plan: &PlanRecord) -> Vec<ChoiceView> {
        let last = decision.trace.reads.iter().map(|it| usize::from(it.choice) + 1).max();
        let is_vain = decision.verdict.failure.is_some() && decision.log.is_empty();
        let count = decision.log.len().max(last.unwrap_or(0)).max(usize::from(is_vain));
        (0..count).map(|number| self.choice(decision, plan, number)).collect()
    }

    fn choice(&self, decision: &Decision, plan: &PlanRecord, number: usize) -> ChoiceView {
        let attempt = decision.log.iter().nth(number);
        let route = &plan.route;
        let candidates = (0..route.members().count() as u16)
            .map(|candidate| self.candidate(decision, plan, number, candidate))
            .collect();
        ChoiceView {
            at: attempt.map(|it| it.at.0),
            draw: attempt.map(|it| format!("{:016x}", it.input.draw)),
            cursor: attempt.map(|it| it.cursor),
            rank: attempt.map(|it| it.rank.0),
            by: attempt.and_then(|it| word(it.by)),
            pin: attempt.and_then(|it| pin_word(it.pin)),
            chosen: attempt.map(|it| route.backend(it.candidate).id().to_string()),
            candidates,
            exact: decision
                .log
                .iter()
                .zip(&decision.records)
                .nth(number)
                .map(|it| exact(decision, it)),
        }
    }

    fn candidate(
        &self,
        decision: &Decision,
        plan: &PlanRecord,
        number: usize,
        candidate: u16,
    ) -> CandidateView {
        let is_it = |choice: u8, of: u16| usize::from(choice) == number && of == candidate;
        let trace = &decision.trace;
        let read = trace.reads.iter().find(|it| is_it(it.choice, it.candidate));
        let latency = trace.latencies.iter().find(|it| is_it(it.choice, it.candidate));
        let chosen = decision.log.iter().nth(number);
        let was_tried = decision.log.iter().take(number).any(|it| it.candidate == candidate);
        let found = trace.obstacles.iter().filter(|it| is_it(it.choice, it.candidate));
        let mut obstacles: Vec<ObstacleView> =
            found.map(|it| self.obstacle(&it.obstacle)).collect();
        let verdict = match read {
            _ if chosen.is_some_and(|it| it.candidate == candidate) => "chosen",
            Some(read) if read.is_full() => "taken",
            Some(read)
                if chosen.is_some_and(|it| it.rank == read.rank) && !read.is_over_limit() =>
            {
                "held"
            }
            Some(_) => "skipped",
            None if was_tried => "tried",
            None if is_beyond(decision, plan, number, candidate) => "held",
            None => {
                let bar = bar_of(&plan.route, candidate, &plan.needs);
                // What no config bars and no choice looked at was switched off by an operator.
                obstacles.push(bar.map_or_else(switched_off, |bar| self.obstacle(&bar)));
                "skipped"
            }
        };
        CandidateView {
            backend: plan.route.backend(candidate).id().to_string(),
            tier: plan.route.tier(candidate),
            verdict: verdict.to_owned(),
            rank: read.map(|it| it.rank.0),
            generation: read.map(|it| it.generation),
            endpoint_generation: read.map(|it| it.endpoint_generation),
            in_flight: read.map(|it| it.in_flight),
            state: read.map(|it| it.state.word().to_owned()),
            latency_ms: latency.map(|it| it.latency.expected_ms()),
            obstacles,
        }
    }

    /// What stands against a candidate.
    #[must_use]
    pub fn obstacle(&self, obstacle: &Obstacle) -> ObstacleView {
        let (kind, reason) = match obstacle {
            Obstacle::Inactive => ("inactive", None),
            Obstacle::Unconfigured => ("unconfigured", None),
            Obstacle::SwitchedOff(mark) => ("switched_off", Some(mark.reason.word().to_owned())),
            Obstacle::Lacks(ability) => ("lacks", word(ability)),
            Obstacle::Breaker { state, .. } => ("breaker", Some(state.word().to_owned())),
            Obstacle::Endpoint { state, .. } => ("endpoint", Some(state.word().to_owned())),
            Obstacle::Window(mark) => ("window", Some(mark.reason.word().to_owned())),
            Obstacle::Exclusion(mark) => ("exclusion", Some(mark.reason.word().to_owned())),
            Obstacle::LastResortLimit { .. } => ("last_resort_limit", None),
        };
        ObstacleView {
            kind: kind.to_owned(),
            reason,
            phrase: obstacle.phrase().to_owned(),
            until_unix_ms: obstacle.re_entry().and_then(|it| self.unix_unless_never(it)),
        }
    }

    /// The JSON of an event.
    #[must_use]
    pub fn event(&self, event: &Event) -> String {
        let seq = event.seq;
        let json = match &event.body {
            EventBody::Transition(it) => serde_json::to_string(&self.transition(seq, it)),
            EventBody::Decision(n, it) => serde_json::to_string(&self.short(*n, it)),
            EventBody::Action(it) => serde_json::to_string(&self.action(seq, it)),
            EventBody::Reload(it) => serde_json::to_string(&self.reload(seq, it)),
            EventBody::Security(it) => serde_json::to_string(&self.security(seq, it)),
            EventBody::Moved(it) => serde_json::to_string(&self.moved(seq, it)),
        };
        json.expect("these types have string keys only")
    }

    /// A change of state.
    #[must_use]
    pub fn transition(&self, seq: u64, it: &TransitionRecord) -> TransitionView {
        let until = it.until.filter(|until| *until != Now::NEVER);
        TransitionView {
            seq,
            at: it.at.0,
            at_unix_ms: self.unix(it.at),
            backend: it.backend.to_string(),
            scope: it.scope.to_owned(),
            from: it.from.to_owned(),
            to: it.to.to_owned(),
            reason: it.reason.to_owned(),
            detail: it.detail.clone(),
            until: until.map(|until| until.0),
            until_unix_ms: until.map(|until| self.unix(until)),
            weight: it.weight.to_owned(),
            generation: it.generation,
            evidence: it.evidence.map(|it| it.word().to_owned()),
            status: it.status,
            key: it.key.as_ref().map(|it| it.to_string()),
        }
    }

    /// What an operator did.
    #[must_use]
    pub fn action(&self, seq: u64, it: &ActionRecord) -> ActionView {
        ActionView {
            seq,
            at: it.at.0,
            at_unix_ms: self.unix(it.at),
            deed: it.deed.to_owned(),
            backend: it.backend.to_string(),
            reason: it.reason.clone(),
            ttl_ms: it.until.map(|until| until.since(it.at).0),
            until_unix_ms: it.until.and_then(|until| self.unix_unless_never(until)),
            result: it.result.map(str::to_owned),
            by: it.by.to_owned(),
        }
    }

    /// A reload.
    #[must_use]
    pub fn reload(&self, seq: u64, it: &ReloadRecord) -> ReloadView {
        ReloadView {
            seq,
            at: it.at.0,
            at_unix_ms: self.unix(it.at),
            by: it.by.to_owned(),
            ok: it.is_taken,
            sha: it.sha.to_string(),
            changed: it.changed.clone(),
            problems: it.problems.clone(),
        }
    }

    /// A refusal.
    #[must_use]
    pub fn security(&self, seq: u64, it: &SecurityRecord) -> SecurityView {
        SecurityView {
            seq,
            at: it.at.0,
            at_unix_ms: self.unix(it.at),
            event: it.event.to_owned(),
            caller: it.caller.clone(),
            path: it.path.to_owned(),
            route: it.route.clone(),
            request_id: it.request_id.clone(),
            repeated: it.repeated,
        }
    }

    /// A route whose requests go elsewhere.
    #[must_use]
    pub fn moved(&self, seq: u64, it: &MoveRecord) -> MovedView {
        MovedView {
            seq,
            at: it.at.0,
            at_unix_ms: self.unix(it.at),
            route: it.route.clone(),
            from: it.from.clone(),
            to: it.to.clone(),
        }
    }
}

/// Whether a candidate stands in a tier that a choice had no need to read, and could have been
/// asked under this config.
fn is_beyond(decision: &Decision, plan: &PlanRecord, number: usize, candidate: u16) -> bool {
    let of_choice = decision.trace.reads.iter().filter(|it| usize::from(it.choice) == number);
    let last = of_choice.map(|it| plan.route.tier(it.candidate)).max();
    last.is_some_and(|last| plan.route.tier(candidate) > last)
        && bar_of(&plan.route, candidate, &plan.needs).is_none()
}

fn switched_off() -> ObstacleView {
    ObstacleView {
        kind: "switched_off".to_owned(),
        reason: Some("manual".to_owned()),
        phrase: "is drained".to_owned(),
        until_unix_ms: None,
    }
}

/// The moments of an attempt. Only the last one's answer can have been released.
fn exact(decision: &Decision, (attempt, record): (&Attempt, &AttemptRecord)) -> ExactView {
    let moments = &record.moments;
    let released = moments.released.zip(decision.released_at);
    ExactView {
        n: moments.chosen,
        head_at: moments.head.map(|(at, _)| at.0),
        head_n: moments.head.map(|(_, n)| n),
        released_at: released.map(|(_, at)| at.0),
        released_n: released.map(|(n, _)| n),
        ended_at: attempt.ended_at.map(|at| at.0),
        ended_n: moments.ended,
        left: moments.is_left,
    }
}

fn pin_word(pin: PinUse) -> Option<String> {
    word(pin)
}

fn mcp_attempt(decision: &Decision, it: &McpAttempt) -> AttemptView {
    AttemptView {
        backend: it.backend.to_string(),
        target: it.backend.to_string(),
        tier: None,
        key: None,
        outcome: it.outcome.map(|it| it.word().to_owned()),
        status: None,
        error_status: None,
        retry_after_ms: None,
        ms: it.took.0,
        detail: it.cause.as_deref().unwrap_or_default().to_owned(),
        by: None,
        rank: 0,
        trial: false,
        last_resort: false,
        started_ms: it.began.since(decision.at).0,
        first_content_ms: None,
        committed: None,
        resent: it.times_sent > 1,
        converted: None,
    }
}

fn plan_view(plan: &PlanRecord) -> PlanView {
    let needs = &plan.needs;
    PlanView {
        route: plan.label().to_owned(),
        tactic: word(plan.route.tactic()).unwrap_or_default(),
        needs: NeedsView {
            tools: needs.tools,
            vision: needs.vision,
            documents: needs.documents,
            json_schema: needs.json_schema,
            reasoning: needs.reasoning,
            context: needs.context,
            protocol: needs.protocol.and_then(word),
            kind: needs.kind.and_then(word),
            converts_to: bits(needs.converts_to),
        },
        state: StateVerdict::of(&plan.route, needs).map(|state| StateView {
            kind: word(state.kind).unwrap_or_default(),
            provider: state.provider.map(|it| it.to_string()),
            required: state.is_required,
        }),
        deadline_ms: plan.deadline.0,
        patience_ms: plan.patience.map(|it| it.0),
        max_hops: plan.route.max_hops(),
    }
}

/// A set of formats, as it is written.
fn bits(formats: tidegate_core::wire_format::WireFormats) -> u8 {
    let value = serde_json::to_value(formats).unwrap_or_default();
    value.as_u64().unwrap_or(0) as u8
}

fn released(decision: &Decision) -> ReleasedView {
    let answered = decision.answered_by();
    let cause = decision.log.iter().last().and_then(|it| it.committed);
    let is_nobodys = decision.status == 499;
    let was_committed = decision.released_at.is_some() || answered.is_some();
    let what = match (was_committed, is_nobodys, &decision.own_answer) {
        (true, ..) => "attempt",
        (false, true, _) => "nothing",
        (false, false, Some(_)) => "own_error",
        (false, false, None) => "attempt",
    };
    let is_attempt = what == "attempt";
    let last = decision.records.len().checked_sub(1);
    ReleasedView {
        what: what.to_owned(),
        attempt: answered.or(last).filter(|_| is_attempt),
        status: decision.status,
        cause: cause.filter(|_| is_attempt).map(|it| it.word().to_owned()),
        at_ms: decision.released_at.map(|at| at.since(decision.at).0),
    }
}

fn conversion(it: &ConversionRecord) -> ConversionView {
    let note = |it: &crate::decision::ConversionNote| NoteView {
        change: it.change.to_owned(),
        field: it.field.clone(),
        why: it.why.to_owned(),
    };
    ConversionView {
        attempt: it.attempt,
        pair: it.pair.clone(),
        notes: it.notes.iter().map(note).collect(),
    }
}
