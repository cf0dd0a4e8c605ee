//! The reference of evidence: what a head, a first content and an outcome do, and what the client
//! sees in the end.

use tidegate_core::{
    attempt::End,
    outcome::{Outcome, OutcomeKind},
    settings::{OnAuthError, PinMode},
    time::{Millis, Now},
};

use crate::reference::{Attempt, Model, Request};

impl Model {
    pub(crate) fn head(&mut self, now: Now, request: &mut Request) {
        let attempt = request.attempts.last_mut().expect("it is under way");
        let endpoint = self.settings.backends[attempt.backend].endpoint;
        if let (Some(ticket), Some(endpoint)) = (attempt.endpoint.take(), endpoint) {
            self.endpoints[endpoint].success(now, &ticket);
        }
    }

    pub(crate) fn content(&mut self, now: Now, request: &mut Request) {
        self.head(now, request);
        let attempt = request.attempts.last_mut().expect("it is under way");
        attempt.has_content = true;
        if let Some(ticket) = attempt.own.as_mut() {
            self.backends[attempt.backend].own.content(now, ticket);
        }
    }

    /// The owner of the permit is gone.
    pub(crate) fn drop(&mut self, request: &mut Request) {
        let Some(attempt) = request.attempts.last_mut().filter(|it| it.outcome.is_none()) else {
            return;
        };
        let endpoint = self.settings.backends[attempt.backend].endpoint;
        let backend = &mut self.backends[attempt.backend];
        backend.in_flight -= 1;
        if let Some(ticket) = attempt.own.take() {
            backend.own.give_back(&ticket);
        }
        if let (Some(ticket), Some(endpoint)) = (attempt.endpoint.take(), endpoint) {
            self.endpoints[endpoint].give_back(&ticket);
        }
        request.end = Some(End::Cancelled);
    }

    pub(crate) fn report(&mut self, now: Now, request: &mut Request, outcome: Outcome) {
        use OutcomeKind::*;
        if outcome.status.is_some() || matches!(outcome.kind, Success | Truncated) {
            self.head(now, request);
        }
        let mut attempt = request.attempts.pop().expect("it is under way");
        attempt.outcome = Some(outcome);
        let (backend, key) = (attempt.backend, attempt.key);
        let endpoint = self.settings.backends[backend].endpoint;
        if let (Some(ticket), Some(endpoint)) = (attempt.endpoint.take(), endpoint) {
            match outcome.kind {
                Transport => self.endpoints[endpoint].failure(now, &ticket, false),
                _ => self.endpoints[endpoint].give_back(&ticket),
            }
        }
        self.mark(now, &attempt, outcome);
        let another_free = (0..self.key_count(backend))
            .any(|other| other != key && self.is_free(now, backend, other));
        let it = &mut self.backends[backend];
        it.in_flight -= 1;
        it.last_check = Some(now);
        match outcome.kind {
            Success => it.last_error_at = None,
            TooLong | ClientFault | Cancelled => {}
            _ => it.last_error_at = Some(now),
        }
        if let Some(ticket) = attempt.own.take() {
            let after_content = attempt.has_content || outcome.kind == Truncated;
            match outcome.kind {
                Success => it.own.success(now, &ticket),
                RateLimited if told(outcome).is_none() && !another_free => {
                    it.own.failure(now, &ticket, after_content);
                }
                Overloaded | ServerError | Timeout | Transport | Truncated => {
                    it.own.failure(now, &ticket, after_content);
                }
                _ => it.own.give_back(&ticket),
            }
        }
        let surfaces = self.settings.routes[request.route].on_auth_error == OnAuthError::Surface;
        request.end = match outcome.kind {
            Success => Some(End::Answered),
            Truncated => Some(End::Broken),
            ClientFault => Some(End::ClientFault),
            Cancelled if now >= request.deadline && !attempt.has_content => Some(End::Deadline),
            Cancelled => Some(End::Cancelled),
            _ if attempt.has_content => Some(End::Broken),
            AuthRejected if surfaces => Some(End::AuthSurfaced),
            _ => None,
        };
        request.attempts.push(attempt);
        if outcome.kind == Success {
            self.follow(now, request, (backend, key));
        }
    }

    fn mark(&mut self, now: Now, attempt: &Attempt, outcome: Outcome) {
        use OutcomeKind::*;
        let (backend, key) = (attempt.backend, attempt.key);
        let health = self.settings.backends[backend].health.clone();
        let exclusion = self.key_of(backend, key);
        let is_5xx = outcome.status.is_some_and(|status| (500..600).contains(&status));
        let window = match outcome.kind {
            RateLimited => Some(told(outcome).unwrap_or(health.rate_limit_window)),
            Overloaded | ServerError if is_5xx => told(outcome),
            _ => None,
        };
        let it = &mut self.backends[backend];
        if let Some(window) = window {
            it.windows[key] = it.windows[key].max(now.after(window));
        }
        let excluded = &mut self.keys[exclusion];
        match outcome.kind {
            Success => {
                *excluded = Now::ZERO;
                it.refusals[key] = Now::ZERO;
                it.model_gone_until = Now::ZERO;
            }
            Exhausted => *excluded = (*excluded).max(now.after(health.exhausted_window)),
            AuthRejected if outcome.status == Some(403) => {
                it.refusals[key] = it.refusals[key].max(now.after(health.auth_window));
            }
            AuthRejected => *excluded = (*excluded).max(now.after(health.auth_window)),
            ModelGone => {
                let until = now.after(health.model_gone_window);
                it.model_gone_until = it.model_gone_until.max(until);
            }
            _ => {}
        }
    }

    /// `pin: answered`.
    fn follow(&mut self, now: Now, request: &Request, (backend, key): (usize, usize)) {
        let route = &self.settings.routes[request.route];
        let Some(session) = request.session else { return };
        let pin = self.pins.get_mut(&(request.route, session));
        if let Some(pin) = pin
            && route.pin == PinMode::Answered
            && !request.pin_was_kept
            && pin.0 != backend
        {
            *pin = (backend, now.after(route.affinity_ttl), key);
        }
    }
}

fn told(outcome: Outcome) -> Option<Millis> {
    let span = outcome.retry_after.filter(|span| span.0 > 0);
    span.map(|span| span.min(Millis::minutes(60)))
}

/// What the client sees of a request that ends like this.
pub(crate) fn status_of(request: &Request, end: End) -> u16 {
    let answers: Vec<Outcome> = request.attempts.iter().filter_map(|it| it.outcome).collect();
    let last = answers.last().and_then(|it| it.status);
    let shown = |outcome: Option<&Outcome>| outcome.and_then(|it| it.error_status).unwrap_or(503);
    let is_too_long = |it: &&Outcome| it.kind == OutcomeKind::TooLong;
    let too_long = answers.iter().filter(is_too_long).find(|it| it.error_status.is_some());
    let was_too_long = answers.iter().any(|it| is_too_long(&it));
    match end {
        End::Answered | End::Broken => last.unwrap_or(200),
        End::Cancelled => 499,
        End::NothingAble => 400,
        End::AuthSurfaced => shown(answers.last()),
        End::ClientFault if !was_too_long => shown(answers.last()),
        End::OutOfPatience => 504,
        End::Deadline if answers.iter().all(|it| it.error_status.is_none()) => 504,
        End::ClientFault
        | End::HopLimit
        | End::BudgetSpent
        | End::Deadline
        | End::LastResortLimit
        | End::NothingLeft => {
            let answered = || answers.iter().rev().filter(|it| it.error_status.is_some());
            let is_ours = |it: &&Outcome| {
                matches!(it.kind, OutcomeKind::AuthRejected | OutcomeKind::Exhausted)
            };
            let of_others = || answered().find(|it| !is_ours(it));
            shown(too_long.or_else(of_others).or_else(|| answered().next()))
        }
    }
}
