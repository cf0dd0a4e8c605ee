//! One request on its way: the core's plan, the permit in hand, and what has been tried.
//!
//! It is the data plane's only door to the core. It ends by itself: dropped with a permit
//! in hand, which is what happens when a client goes away, it reports the attempt with what the
//! core makes of its silence.

mod waiting;

use std::rc::Rc;
use std::sync::Arc;

use http::Method;
use tidegate_core::{
    attempt::{End, Finish},
    commit::{AnswerForm, CommitCause},
    explain::{Obstacle, StateVerdict},
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    plan::{Plan, RequestSpec, Step},
    resend::{ConnectionAge, SendFailure, SendVerdict},
    route::Needs,
    time::{Millis, Now},
    wire_format::{SentAs, WireFormat},
};

use tidegate_gateway::{
    live::{Live, ResolvedRoute},
    log::{self, Access},
    provider::Target,
    worker::Worker,
};
use tidegate_journal::{
    choice_trace::ChoiceTrace,
    decision::{AttemptRecord, ConversionRecord, Decision, OwnAnswer, PlanRecord, TokenCounts},
    moments::AttemptMoments,
    request_id::{RequestId, SessionFingerprint},
    result::ClientVerdict,
    trace_context::TraceContext,
};
use tidegate_runtime::rng;
use tidegate_wire::usage::Usage;

/// No client sees this status: it is gone.
const CLIENT_GONE: u16 = 499;

/// What to do next.
pub(crate) enum Next {
    /// Ask this target with this key.
    Attempt { target: Arc<Target>, key: usize, sent_as: SentAs },
    /// It is over.
    Over(Finish),
}

/// One request on its way.
pub(crate) struct RequestContext {
    pub(crate) worker: Rc<Worker>,
    live: Arc<Live>,
    plan: Plan,
    permit: Option<Permit>,
    /// The name in metrics.
    route: String,
    /// The model asked for, where a target does not say.
    model: Option<String>,
    pub(crate) records: Vec<AttemptRecord>,
    meta: RequestMeta,
    is_reported: bool,
    /// Why the request cannot be converted for a target, if one was found that would need it.
    unconvertible: Option<String>,
    /// What the record needs besides.
    journal: JournalPart,
    /// The ids of state that the target holds once it has answered: what the request names, and
    /// the answer's own.
    state_ids: Vec<Box<str>>,
}

/// What is kept of a request for its record alone.
#[derive(Debug)]
struct JournalPart {
    session: Option<SessionFingerprint>,
    needs: Needs,
    patience: Option<Millis>,
    is_stream: bool,
    trace: ChoiceTrace,
    conversions: Vec<ConversionRecord>,
    tokens: Option<TokenCounts>,
    released_at: Option<Now>,
    own_answer: Option<Box<OwnAnswer>>,
    /// The moments of the attempt under way.
    moments: AttemptMoments,
    traced: Option<Box<TraceContext>>,
}

/// Whose request it is, for the access log and the record.
#[derive(Clone, Debug)]
pub(crate) struct RequestMeta {
    pub(crate) request_id: Rc<str>,
    pub(crate) path: Rc<str>,
    pub(crate) caller: Arc<str>,
    /// The model asked for, where it is not the route's own name.
    pub(crate) asked: Option<Box<str>>,
    /// Whether the client may continue the answer by its id.
    pub(crate) is_continued: bool,
    /// Its trace, where traces are exported.
    pub(crate) traced: Option<TraceContext>,
}

impl RequestContext {
    pub(crate) fn new(
        worker: &Rc<Worker>,
        live: &Arc<Live>,
        resolved: &ResolvedRoute<'_>,
        ask: &RequestSpec<'_>,
        meta: RequestMeta,
    ) -> Self {
        let now = worker.gateway.now();
        let traced = meta.traced.map(Box::new);
        let plan = live.core.begin(resolved.route, now, ask);
        Self {
            worker: Rc::clone(worker),
            live: Arc::clone(live),
            permit: None,
            route: resolved.label().to_owned(),
            model: resolved.model.map(str::to_owned),
            records: Vec::new(),
            meta,
            is_reported: false,
            unconvertible: None,
            state_ids: (!ask.state_id.is_empty())
                .then(|| ask.state_id.into())
                .into_iter()
                .collect(),
            journal: JournalPart {
                session: SessionFingerprint::of(ask.session),
                needs: *plan.needs(),
                patience: ask.patience,
                is_stream: ask.is_stream,
                trace: ChoiceTrace::default(),
                conversions: Vec::new(),
                tokens: None,
                released_at: None,
                own_answer: None,
                moments: AttemptMoments::default(),
                traced,
            },
            plan,
        }
    }

    pub(crate) fn next(&mut self) -> Next {
        let now = self.worker.gateway.now();
        let (plan, part) = (&mut self.plan, &mut self.journal);
        let number = plan.attempts().len();
        let step = self.worker.with_notes(|notes| {
            let step = plan.next(now, rng::draw(), notes);
            if !is_known_end(&step) {
                part.trace.note(number, &notes.reads, plan.route(), now, &part.needs);
            }
            step
        });
        let chosen = self.worker.gateway.journal.moment();
        self.journal.moments = AttemptMoments { chosen, ..AttemptMoments::default() };
        match step {
            Step::Finish(finish) => Next::Over(finish),
            Step::Attempt(permit) => {
                let target = self.live.target(permit.backend().id()).map(Arc::clone);
                let key = permit.key();
                let sent_as = self.plan.sent_as(&permit);
                self.tell_choice(permit.backend().id());
                self.permit = Some(permit);
                match target {
                    Some(target) => Next::Attempt { target, key, sent_as },
                    // The core and the targets are made from one config, so this does not happen;
                    // if it did, going on would be better than stopping.
                    None => {
                        self.report(&Outcome::unanswered(OutcomeKind::Transport), "unknown target");
                        self.next()
                    }
                }
            }
        }
    }

    /// The metrics of a choice.
    fn tell_choice(&self, id: &str) {
        let metrics = &self.worker.gateway.metrics;
        metrics.attempt_started(id);
        let Some(attempt) = self.plan.attempts().iter().last() else { return };
        if !attempt.rank.is_clear() {
            metrics.relaxed(&self.route, attempt.rank.0);
        }
        match self.records.last() {
            Some(before) => metrics.failover(&self.route, &before.backend, id, before.outcome),
            None => metrics.session_moved(attempt.pin),
        }
    }

    /// A response head arrived.
    pub(crate) fn head(&mut self) {
        let now = self.worker.gateway.now();
        if let Some(permit) = &mut self.permit {
            self.worker.with_notes(|notes| permit.head(now, notes));
            self.journal.moments.head = Some((now, self.worker.gateway.journal.moment()));
        }
    }

    /// The request is being sent.
    pub(crate) fn sent(&mut self) {
        let now = self.worker.gateway.now();
        if let Some(permit) = &mut self.permit {
            permit.sent(now);
        }
    }

    /// No response head came over the connection: whether the request is to be sent again.
    pub(crate) fn send_failed(&mut self, age: ConnectionAge, failure: SendFailure) -> SendVerdict {
        let Some(permit) = &mut self.permit else {
            return SendVerdict::Failed(Outcome::unanswered(OutcomeKind::Cancelled));
        };
        let verdict = permit.send_failed(age, failure);
        if verdict == SendVerdict::Resend {
            self.worker.gateway.metrics.resend(permit.backend().id());
        }
        verdict
    }

    /// The response head says in which form the answer arrives.
    pub(crate) fn answers_as(&mut self, form: AnswerForm) {
        if let Some(permit) = &mut self.permit {
            permit.answers_as(form);
        }
    }

    /// Bytes of the answer's body arrived, with or without content.
    pub(crate) fn body_bytes(&mut self, bytes: usize) {
        let now = self.worker.gateway.now();
        if let Some(permit) = &mut self.permit {
            permit.body_bytes(now, bytes as u64);
        }
    }

    /// An event with content arrived.
    pub(crate) fn content_event(&mut self) {
        let now = self.worker.gateway.now();
        if let Some(permit) = &mut self.permit {
            permit.content_event(now);
        }
    }

    /// Why the answer is to be committed now, if it is.
    pub(crate) fn commit_due(&self) -> Option<CommitCause> {
        self.permit.as_ref()?.commit_due(self.worker.gateway.now())
    }

    /// How long the answer is still held for its route's time, once that runs.
    pub(crate) fn held_for(&self) -> Option<Millis> {
        let ends_at = self.permit.as_ref()?.hold_ends_at()?;
        Some(ends_at.since(self.worker.gateway.now()))
    }

    /// From here on bytes go to the client: no other target is asked. Content that comes later is
    /// reported by the same call; content after the first is no news.
    pub(crate) fn commit(&mut self, cause: CommitCause) {
        let (plan, permit) = (&mut self.plan, self.permit.as_mut());
        let Some(permit) = permit.filter(|permit| !permit.has_content()) else { return };
        let now = self.worker.gateway.now();
        self.worker.with_notes(|notes| permit.commit(now, cause, notes));
        if self.journal.released_at.is_none() {
            self.journal.released_at = Some(now);
            self.journal.moments.released = Some(self.worker.gateway.journal.moment());
        }
        let Some(took) = permit.time_to_content() else { return };
        self.worker.with_notes(|notes| plan.answered(now, notes));
        self.worker.gateway.metrics.first_content(permit.backend().id(), took);
        self.settle();
    }

    /// The attempt ended. Without one under way, nothing happens.
    pub(crate) fn report(&mut self, outcome: &Outcome, detail: &'static str) {
        let Some(permit) = self.permit.take() else { return };
        let now = self.worker.gateway.now();
        let target = self.shown(permit.backend().id());
        let took = now.since(permit.began());
        let metrics = &self.worker.gateway.metrics;
        metrics.attempt(&self.route, permit.backend().id(), outcome.kind);
        self.records.push(AttemptRecord {
            backend: Arc::clone(permit.backend().id()),
            target,
            outcome: outcome.kind,
            status: outcome.status,
            took,
            detail,
            first_content: permit.time_to_content(),
            is_counted: true,
            moments: self.journal.moments,
        });
        tracing::trace!(
            request_id = &*self.meta.request_id,
            route = self.route,
            target = &*self.records.last().map(|it| it.target.clone()).unwrap_or_default(),
            outcome = outcome.kind.word(),
            status = outcome.status,
            ms = took.0,
            detail,
            "an attempt ended"
        );
        if outcome.kind == OutcomeKind::Success {
            for id in std::mem::take(&mut self.state_ids) {
                self.plan.keep_state(now, &permit, (&self.meta.caller, &id));
            }
        }
        let plan = &mut self.plan;
        self.worker.with_notes(|notes| plan.report(now, permit, outcome, notes));
        let ended = self.worker.gateway.journal.moment();
        if let Some(record) = self.records.last_mut() {
            record.moments.ended = ended;
        }
    }

    /// The request cannot be converted for the target that was chosen, which is not asked then.
    pub(crate) fn decline(&mut self, format: WireFormat, why: String) {
        let Some(permit) = self.permit.take() else { return };
        let metrics = &self.worker.gateway.metrics;
        metrics.attempt(&self.route, permit.backend().id(), OutcomeKind::Cancelled);
        self.unconvertible.get_or_insert(why);
        self.plan.decline(permit, format);
        self.journal.trace.forget(self.plan.attempts().len());
    }

    /// The request was converted for the target of the attempt under way.
    pub(crate) fn converted(&mut self, record: ConversionRecord) {
        self.journal.conversions.push(record);
    }

    /// The client gets an error of the gateway's own.
    pub(crate) fn answers_itself(&mut self, answer: OwnAnswer) {
        self.journal.own_answer = Some(Box::new(answer));
    }

    /// The client can continue the answer by this id.
    pub(crate) fn answered_under(&mut self, id: &str) {
        if self.meta.is_continued {
            self.state_ids.push(id.into());
        }
    }

    /// What the request refers to that only one provider has, if anything, in words.
    pub(crate) fn kept_at(&self) -> Option<String> {
        let state = StateVerdict::of(self.plan.route(), self.plan.needs())?;
        let provider = match state.provider {
            Some(provider) => format!("only `{provider}` has"),
            None => "no provider of this route has".to_owned(),
        };
        let phrase = state.kind.phrase();
        state.is_required.then(|| {
            format!(
                "it refers to {phrase}, which {provider}: send the whole conversation \
                 instead to have it answered elsewhere"
            )
        })
    }

    /// What the answer told of its usage.
    pub(crate) fn used(&mut self, usage: Usage) {
        if let Some(permit) = &self.permit {
            let id = permit.backend().id();
            let Usage { input, output, cached } = usage;
            self.journal.tokens = Some(TokenCounts { input, output, cached });
            self.worker.gateway.metrics.tokens(&self.route, id, input, output, cached);
        }
    }

    /// The client has its answer, as far as it goes.
    pub(crate) fn finished(&mut self, status: u16) {
        let is_whole = self.records.last().is_none_or(|it| it.outcome == OutcomeKind::Success);
        self.tell_end(status, if is_whole { None } else { Some(End::Broken) });
    }

    /// The request is over without an answer of a target's.
    pub(crate) fn ended(&mut self, finish: &Finish) {
        self.tell_end(finish.status, Some(finish.end));
        if finish.end == End::BudgetSpent {
            self.worker.gateway.metrics.budget_spent(&self.route);
        }
    }

    /// Metrics and access line of the request, once.
    fn tell_end(&mut self, status: u16, end: Option<End>) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        self.settle();
        let took = self.worker.gateway.now().since(self.plan.began());
        let failure = self.worker.gateway.metrics.request(&self.route, status, end, took);
        if let Some(reason) = failure {
            self.tell_failure(status, reason);
        }
        let access = Access {
            method: &Method::POST,
            path: &self.meta.path,
            route: &self.route,
            target: self.records.last().map(|it| &*it.backend),
            status,
            attempts: self.records.len(),
            took,
            request_id: &self.meta.request_id,
            caller: &self.meta.caller,
        };
        log::access(&self.live.file.log, &access);
        self.record(status, end.unwrap_or(End::Answered), took);
    }

    /// Hands the record of the request over. Not inlined: `cargo xtask bench journal` finds what it
    /// costs by its name.
    #[inline(never)]
    fn record(&mut self, status: u16, end: End, took: Millis) {
        let part = &mut self.journal;
        let is_answered = end == End::Answered;
        // After a whole answer nobody looks at the attempts any more.
        let records =
            if is_answered { std::mem::take(&mut self.records) } else { self.records.clone() };
        let plan = PlanRecord {
            route: Arc::clone(self.plan.route()),
            needs: part.needs,
            deadline: self.plan.deadline().since(self.plan.began()),
            patience: part.patience,
        };
        let decision = Decision {
            id: RequestId::parse(&self.meta.request_id).unwrap_or_default(),
            at: self.plan.began(),
            took,
            caller: Arc::clone(&self.meta.caller),
            session: part.session,
            path: log::path_class(&self.meta.path),
            model: self.meta.asked.take(),
            is_stream: part.is_stream,
            status,
            end: Some(end),
            verdict: ClientVerdict::of(status, Some(end)),
            plan: Some(plan),
            log: self.plan.attempts().clone(),
            records,
            trace: std::mem::take(&mut part.trace),
            conversions: std::mem::take(&mut part.conversions),
            tokens: part.tokens,
            released_at: part.released_at,
            own_answer: part.own_answer.take(),
            mcp: None,
            traced: part.traced.take(),
        };
        self.worker.record(decision);
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.meta.request_id
    }

    /// The line about a request whose client got no whole answer through no fault of its own.
    fn tell_failure(&self, status: u16, reason: &'static str) {
        let gateway = &self.worker.gateway;
        let Some(suppressed) = gateway.line_limit.admit(gateway.now(), &self.route) else { return };
        let attempt = |it: &AttemptRecord| {
            let status = it.status.map(|status| format!("{status} ")).unwrap_or_default();
            format!("{} {status}{} {}ms", it.target, it.outcome.word(), it.took.0)
        };
        let attempts: Vec<String> = self.records.iter().map(attempt).collect();
        tracing::warn!(
            request_id = &*self.meta.request_id,
            route = self.route,
            status,
            reason,
            attempts = attempts.join("; "),
            suppressed = Some(suppressed).filter(|count| *count > 0),
            "a client got no whole answer"
        );
    }

    /// The moment by which the whole request must be over.
    pub(crate) fn deadline(&self) -> Now {
        self.plan.deadline()
    }

    /// The attempts so far, the one under way included.
    pub(crate) fn attempts(&self) -> usize {
        self.records.len() + usize::from(self.permit.is_some())
    }

    /// `provider/model` of the attempt under way, or of the last one.
    pub(crate) fn resolved(&self) -> Option<String> {
        match &self.permit {
            Some(permit) => Some(self.shown(permit.backend().id())),
            None => self.records.last().map(|it| it.target.clone()),
        }
    }

    /// A backend's name as a client knows it: a model the config does not name is told by its name.
    fn shown(&self, id: &str) -> String {
        match (id.strip_suffix('*'), &self.model) {
            (Some(provider), Some(model)) => format!("{provider}{model}"),
            _ => id.to_owned(),
        }
    }

    /// What the targets lack that cannot do what the request needs, told of so many by name.
    pub(crate) fn lacking(&self, told: usize) -> String {
        let mut phrases: Vec<String> = Vec::new();
        let mut last = None;
        for (id, ability) in self.plan.lacking(self.worker.gateway.now()) {
            match phrases.last_mut().filter(|_| last == Some(id)) {
                Some(phrase) => phrase.push_str(&format!(" and {}", ability.lack())),
                None => phrases.push(format!("`{}` {}", self.shown(id), ability.lack())),
            }
            last = Some(id);
        }
        match &self.unconvertible {
            Some(why) => format!("{} ({why})", list(&phrases, told)),
            None => list(&phrases, told),
        }
    }

    /// Why none of the targets can be asked, told of so many by name.
    pub(crate) fn obstacles(&self, told: usize) -> String {
        let obstacles = self.plan.obstacles(self.worker.gateway.now());
        let phrases: Vec<String> = obstacles
            .map(|(id, obstacles)| {
                let mut reasons: Vec<&str> = obstacles.iter().map(Obstacle::phrase).collect();
                reasons.dedup();
                format!("`{}` {}", self.shown(id), reasons.join(" and "))
            })
            .collect();
        list(&phrases, told)
    }

    /// Whether the client's own retries could not do better than this request did.
    pub(crate) fn is_retry_futile(&self) -> bool {
        self.plan.is_retry_futile()
    }

    /// When some target can be asked again with a clear conscience, if that is known.
    pub(crate) fn re_entry(&self) -> Option<Millis> {
        let now = self.worker.gateway.now();
        self.plan.re_entry(now).map(|moment| moment.since(now))
    }
}

/// Whether a step tells of an end that was known before: no choice was made for it.
fn is_known_end(step: &Step) -> bool {
    let Step::Finish(finish) = step else { return false };
    !matches!(finish.end, End::NothingLeft | End::NothingAble | End::LastResortLimit)
}

/// The first so many phrases, and how many there are besides.
fn list(phrases: &[String], told: usize) -> String {
    match phrases.len().saturating_sub(told) {
        0 => phrases.join(", "),
        more => format!("{}, and {more} more", phrases[..told].join(", ")),
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        if self.permit.is_some() {
            let outcome = self.abandoned();
            self.report(&outcome, "the client left");
            self.tell_end(CLIENT_GONE, Some(End::Cancelled));
        }
    }
}
