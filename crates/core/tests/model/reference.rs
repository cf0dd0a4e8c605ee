//! The reference of choosing: ranks, keys, pins, tactics, budget, hops. (What an attempt's ending
//! does is in `evidence.rs`.)
//!
//! Written from the rules, not from the core; the two share the types of settings and outcomes
//! and nothing else. Where chance decides, it says which candidates chance may pick.

use std::collections::BTreeMap;

use tidegate_core::{
    attempt::End,
    breaker::State,
    outcome::{Outcome, OutcomeKind},
    settings::{Membership, Settings, Tactic},
    time::{Millis, Now},
};

use crate::{
    breaker::{Breaker, Ticket},
    evidence::status_of,
};

#[derive(Clone, Debug)]
pub(crate) struct Backend {
    pub(crate) own: Breaker,
    pub(crate) model_gone_until: Now,
    pub(crate) windows: Vec<Now>,
    /// Exclusions of this target with one of its keys.
    pub(crate) refusals: Vec<Now>,
    pub(crate) in_flight: u32,
    pub(crate) last_error_at: Option<Now>,
    pub(crate) last_check: Option<Now>,
    pub(crate) is_off: bool,
    next_key: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) backend: usize,
    pub(crate) key: usize,
    pub(crate) is_last_resort: bool,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) own: Option<Ticket>,
    pub(crate) endpoint: Option<Ticket>,
    pub(crate) has_content: bool,
}

impl Attempt {
    pub(crate) fn is_trial(&self) -> bool {
        let is_trial = |ticket: &Option<Ticket>| ticket.as_ref().is_some_and(Ticket::is_trial);
        is_trial(&self.own) || is_trial(&self.endpoint)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) route: usize,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) session: Option<u8>,
    is_stream: bool,
    pub(crate) deadline: Now,
    asked_at: Option<Now>,
    pub(crate) pin_was_kept: bool,
    pub(crate) end: Option<End>,
}

/// Tier, backend and weight.
type Member = (usize, usize, u32);

/// What may come next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Allowed {
    End(End, u16),
    /// One of these backends.
    Any(Vec<usize>),
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) settings: Settings,
    pub(crate) backends: Vec<Backend>,
    pub(crate) endpoints: Vec<Breaker>,
    /// Exclusions of keys: those of the settings, then the nameless one of each backend.
    pub(crate) keys: Vec<Now>,
    /// Backend, the last moment, and the key's place in its pool.
    pub(crate) pins: BTreeMap<(usize, u8), (usize, Now, usize)>,
    /// For each (route, backend): thousandths of a token, and when that was right.
    tokens: BTreeMap<(usize, usize), (u64, Now)>,
    cursors: BTreeMap<(usize, usize), usize>,
    requests: Vec<Vec<Now>>,
    hops: Vec<Vec<Now>>,
    /// What the latest `allowed` found out about the pin, until `chosen` needs it.
    choosing: Choosing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Choosing {
    is_last_resort: bool,
    is_limited: bool,
    moves_cursor: bool,
    pin_is_replaced: bool,
    pin_is_kept: bool,
    pin_is_followed: bool,
}

impl Model {
    pub(crate) fn new(settings: &Settings) -> Self {
        let backends = settings.backends.iter().map(|it| Backend {
            own: Breaker::new(it.health.clone()),
            model_gone_until: Now::ZERO,
            windows: vec![Now::ZERO; it.keys.len().max(1)],
            refusals: vec![Now::ZERO; it.keys.len().max(1)],
            in_flight: 0,
            last_error_at: None,
            last_check: None,
            is_off: false,
            next_key: 0,
        });
        let endpoints = settings.endpoints.iter().map(|it| {
            let mut health = it.health.clone();
            health.failure_ratio = 0.0;
            Breaker::new(health)
        });
        Self {
            backends: backends.collect(),
            endpoints: endpoints.collect(),
            keys: vec![Now::ZERO; settings.keys.len() + settings.backends.len()],
            pins: BTreeMap::new(),
            tokens: BTreeMap::new(),
            cursors: BTreeMap::new(),
            requests: vec![Vec::new(); settings.routes.len()],
            hops: vec![Vec::new(); settings.routes.len()],
            choosing: Choosing::default(),
            settings: settings.clone(),
        }
    }

    /// Other health settings; nothing else ever changes here.
    pub(crate) fn reload(&mut self, settings: &Settings) {
        self.settings = settings.clone();
        for (backend, it) in self.backends.iter_mut().zip(&settings.backends) {
            backend.own.health = it.health.clone();
            backend.model_gone_until = Now::ZERO;
        }
    }

    pub(crate) fn begin(
        &self,
        now: Now,
        route: usize,
        session: Option<u8>,
        (is_stream, within): (bool, Option<Millis>),
    ) -> Request {
        let it = &self.settings.routes[route];
        let within = within.map_or(it.deadline, |within| within.min(it.deadline));
        Request {
            route,
            attempts: Vec::new(),
            session: session.filter(|_| it.affinity_ttl > Millis::ZERO),
            is_stream,
            deadline: now.after(within),
            asked_at: None,
            pin_was_kept: false,
            end: None,
        }
    }

    /// The place of a backend's key among all exclusions.
    pub(crate) fn key_of(&self, backend: usize, key: usize) -> usize {
        let keys = &self.settings.backends[backend].keys;
        if keys.is_empty() { self.settings.keys.len() + backend } else { keys[key] }
    }

    pub(crate) fn key_count(&self, backend: usize) -> usize {
        self.backends[backend].windows.len()
    }

    /// When nothing excludes the key, everywhere or at this target.
    fn key_back_at(&self, backend: usize, key: usize) -> Now {
        self.keys[self.key_of(backend, key)].max(self.backends[backend].refusals[key])
    }

    fn is_key_excluded(&self, now: Now, backend: usize, key: usize) -> bool {
        now < self.key_back_at(backend, key)
    }

    fn has_window(&self, now: Now, backend: usize, key: usize) -> bool {
        now < self.backends[backend].windows[key]
    }

    pub(crate) fn is_free(&self, now: Now, backend: usize, key: usize) -> bool {
        !self.is_key_excluded(now, backend, key) && !self.has_window(now, backend, key)
    }

    pub(crate) fn is_excluded(&self, now: Now, backend: usize) -> bool {
        now < self.backends[backend].model_gone_until
            || (0..self.key_count(backend)).all(|key| self.is_key_excluded(now, backend, key))
    }

    pub(crate) fn is_in_window(&self, now: Now, backend: usize) -> bool {
        self.windows_that_count(now, backend).iter().all(|until| now < *until)
    }

    /// Those of the keys that are not excluded; of all if all are.
    pub(crate) fn windows_that_count(&self, now: Now, backend: usize) -> Vec<Now> {
        let all = 0..self.key_count(backend);
        let usable: Vec<usize> =
            all.clone().filter(|key| !self.is_key_excluded(now, backend, *key)).collect();
        let keys = if usable.is_empty() { all.collect() } else { usable };
        keys.into_iter().map(|key| self.backends[backend].windows[key]).collect()
    }

    pub(crate) fn key_exclusions(&self, backend: usize) -> Vec<Now> {
        (0..self.key_count(backend)).map(|key| self.key_back_at(backend, key)).collect()
    }

    pub(crate) fn endpoint(&self, backend: usize) -> Option<&Breaker> {
        self.settings.backends[backend].endpoint.map(|endpoint| &self.endpoints[endpoint])
    }

    fn is_available(&self, now: Now, backend: usize) -> bool {
        self.backends[backend].own.is_available(now)
            && self.endpoint(backend).is_none_or(|endpoint| endpoint.is_available(now))
    }

    pub(crate) fn rank(&self, now: Now, backend: usize) -> u8 {
        u8::from(self.is_in_window(now, backend))
            + 2 * u8::from(!self.is_available(now, backend))
            + 4 * u8::from(self.is_excluded(now, backend))
    }

    fn is_full(&self, now: Now, backend: usize) -> bool {
        let is_open = |breaker: &Breaker| breaker.state(now) == State::Open;
        let any_open =
            is_open(&self.backends[backend].own) || self.endpoint(backend).is_some_and(is_open);
        self.rank(now, backend) == 2 && !any_open
    }

    fn is_tried(&self, request: &Request, backend: usize, key: usize) -> bool {
        request.attempts.iter().any(|it| it.backend == backend && it.key == key)
    }

    fn is_done(&self, now: Now, request: &Request, backend: usize) -> bool {
        let tries: Vec<&Attempt> =
            request.attempts.iter().filter(|it| it.backend == backend).collect();
        let was_key = |it: &&Attempt| it.outcome.is_some_and(|it| is_about_the_key(it.kind));
        let may_try_key =
            |key: usize| self.is_free(now, backend, key) && !self.is_tried(request, backend, key);
        if tries.is_empty() {
            return false;
        }
        !(tries.iter().all(was_key) && (0..self.key_count(backend)).any(may_try_key))
    }

    /// Whether it is known to take no more than one for which the request was too long.
    fn is_too_small(&self, request: &Request, backend: usize) -> bool {
        let context = |backend: usize| self.settings.backends[backend].abilities.context;
        let failed = request.attempts.iter().filter(|it| is_too_long(it));
        failed.into_iter().any(|it| match (context(backend), context(it.backend)) {
            (Some(mine), Some(failed)) => mine <= failed,
            _ => false,
        })
    }

    /// What may come next for a request; counts it, and the hop.
    pub(crate) fn allowed(&mut self, now: Now, request: &mut Request) -> Allowed {
        let end = |request: &Request, end: End| Allowed::End(end, status_of(request, end));
        if let Some(over) = request.end {
            return end(request, over);
        }
        let route = self.settings.routes[request.route].clone();
        let hop = request.attempts.len();
        if hop == 0 {
            request.asked_at = Some(now);
            self.requests[request.route].push(now);
        }
        // (tier, backend, weight) of everything that can still be asked, in file order.
        let mut candidates = Vec::new();
        for (tier, members) in route.tiers.iter().enumerate() {
            for member in members {
                let is_barred = self.backends[member.backend].is_off
                    || member.membership != Membership::Active
                    || self.is_done(now, request, member.backend)
                    || self.is_too_small(request, member.backend);
                if !is_barred {
                    candidates.push((tier, member.backend, member.weight));
                }
            }
        }
        let all = candidates.clone();
        candidates.retain(|(_, it, _)| !self.is_over_limit(now, request.route, *it));
        let lowest = candidates.iter().map(|(_, it, _)| self.rank(now, *it)).min();
        let over = if now >= request.deadline {
            Some(End::Deadline)
        } else if hop > route.max_hops as usize {
            Some(End::HopLimit)
        } else if lowest.is_none() && !all.is_empty() {
            Some(End::LastResortLimit)
        } else if lowest.is_none() {
            let was_too_long = request.attempts.iter().any(is_too_long);
            Some(if was_too_long { End::ClientFault } else { End::NothingLeft })
        } else if hop > 1 || (hop == 1 && lowest != Some(0)) {
            (!self.may_hop(now, request)).then_some(End::BudgetSpent)
        } else {
            None
        };
        if let Some(over) = over {
            request.end = Some(over);
            return end(request, over);
        }
        let lowest = lowest.expect("there are candidates");
        candidates.retain(|(_, it, _)| self.rank(now, *it) == lowest);
        self.choose(now, request, lowest, (&candidates, &all))
    }

    fn may_hop(&mut self, now: Now, request: &Request) -> bool {
        let budget = self.settings.routes[request.route].budget;
        let recent =
            |moments: &[Now]| moments.iter().filter(|at| now.since(**at) < budget.window).count();
        let asked_at = request.asked_at.expect("its first attempt was chosen");
        let is_old = usize::from(now.since(asked_at) >= budget.window);
        let requests = recent(&self.requests[request.route]) + is_old;
        let hops = recent(&self.hops[request.route]) + 1;
        let above = hops.saturating_sub(budget.floor as usize);
        let is_allowed = above == 0 || above as f64 / requests as f64 <= budget.ratio;
        if is_allowed {
            self.hops[request.route].push(now);
        }
        is_allowed
    }

    fn choose(
        &mut self,
        now: Now,
        request: &Request,
        rank: u8,
        (kept, all): (&[Member], &[Member]),
    ) -> Allowed {
        let (is_last_resort, is_limited) = (rank & 2 != 0, rank >= 2);
        self.choosing = Choosing { is_last_resort, is_limited, ..Choosing::default() };
        let is_first = request.attempts.is_empty();
        if let Some(last) = request.attempts.last()
            && last.outcome.is_some_and(|it| is_about_the_key(it.kind))
            && rank == 0
            && kept.iter().any(|(_, it, _)| *it == last.backend)
        {
            return Allowed::Any(vec![last.backend]);
        }
        let pin = request.session.filter(|_| is_first).map(|session| {
            self.pins.get(&(request.route, session)).filter(|it| now <= it.1).copied()
        });
        if let Some(pin) = pin {
            self.choosing.pin_is_replaced = true;
            if let Some((pinned, ..)) = pin {
                let place = kept.iter().find(|(_, it, _)| *it == pinned);
                let is_drawn_up = |tier: usize, among: &[Member]| {
                    among
                        .iter()
                        .any(|(other, it, _)| *other < tier && !self.backends[*it].own.is_held(now))
                };
                if place.is_some_and(|place| !is_drawn_up(place.0, kept)) {
                    self.choosing.pin_is_replaced = false;
                    self.choosing.pin_is_followed = true;
                    return Allowed::Any(vec![pinned]);
                }
                // Only the limit of last resorts stands between the session and its pin.
                if self.is_over_limit(now, request.route, pinned) {
                    let lowest = all.iter().map(|(_, it, _)| self.rank(now, *it)).min();
                    let peers = all.iter().filter(|it| Some(self.rank(now, it.1)) == lowest);
                    let peers: Vec<_> = peers.copied().collect();
                    let place = peers.iter().find(|(_, it, _)| *it == pinned);
                    if place.is_some_and(|place| !is_drawn_up(place.0, &peers)) {
                        self.choosing.pin_is_replaced = false;
                        self.choosing.pin_is_kept = true;
                    }
                }
                let is_candidate = !self.backends[pinned].is_off;
                if is_candidate && self.is_full(now, pinned) {
                    self.choosing.pin_is_replaced = false;
                    self.choosing.pin_is_kept = true;
                }
            }
        }
        let tier = kept.iter().map(|(tier, ..)| *tier).min().expect("some are kept");
        let peers: Vec<_> = kept.iter().filter(|(it, ..)| *it == tier).copied().collect();
        self.choosing.moves_cursor = true;
        Allowed::Any(self.by_tactic(request.route, tier, &peers))
    }

    fn by_tactic(&self, route: usize, tier: usize, peers: &[(usize, usize, u32)]) -> Vec<usize> {
        let all: Vec<usize> = peers.iter().map(|(_, it, _)| *it).collect();
        match self.settings.routes[route].tactic {
            Tactic::Random | Tactic::LeastLatency => all,
            Tactic::Weighted => {
                let heavy: Vec<usize> =
                    peers.iter().filter(|(_, _, weight)| *weight > 0).map(|it| it.1).collect();
                if heavy.is_empty() { all } else { heavy }
            }
            Tactic::LeastBusy => {
                let busy = |it: &usize| self.backends[*it].in_flight;
                let fewest = all.iter().map(busy).min();
                all.into_iter().filter(|it| Some(busy(it)) == fewest).take(1).collect()
            }
            Tactic::RoundRobin => {
                let members = &self.settings.routes[route].tiers[tier];
                let start = self.cursors.get(&(route, tier)).copied().unwrap_or(0);
                let order = (0..members.len()).map(|step| (start + step) % members.len());
                let mut in_turn = order.map(|place| members[place].backend);
                in_turn.find(|it| all.contains(it)).into_iter().collect()
            }
        }
    }

    /// The core chose this one; the key it must use.
    pub(crate) fn chosen(&mut self, now: Now, request: &mut Request, backend: usize) -> usize {
        let choosing = self.choosing;
        let route = self.settings.routes[request.route].clone();
        let place = route.tiers.iter().enumerate().find_map(|(tier, members)| {
            members.iter().position(|it| it.backend == backend).map(|place| (tier, place))
        });
        let (tier, place) = place.expect("it is of the route");
        if choosing.moves_cursor && route.tactic == Tactic::RoundRobin {
            let next = (place + 1) % route.tiers[tier].len();
            self.cursors.insert((request.route, tier), next);
        }
        if choosing.is_limited {
            self.take_token(now, request.route, backend);
        }
        request.pin_was_kept |= choosing.pin_is_kept;
        let key = self.take_key(now, request, backend);
        self.pin(now, request, backend, key);
        let it = &self.settings.backends[backend];
        let longest = if request.is_stream { it.first_content_within } else { it.answer_within };
        let lease_end =
            now.after(longest.min(request.deadline.since(now))).after(Millis::seconds(1));
        let endpoint = it.endpoint.filter(|_| !choosing.is_last_resort);
        let endpoint = endpoint.map(|endpoint| self.endpoints[endpoint].give(now, lease_end));
        let own = &mut self.backends[backend];
        own.in_flight += 1;
        let own = (!choosing.is_last_resort).then(|| own.own.give(now, lease_end));
        request.attempts.push(Attempt {
            backend,
            key,
            is_last_resort: choosing.is_last_resort,
            outcome: None,
            own,
            endpoint,
            has_content: false,
        });
        key
    }

    /// A replaced pin names this target and key; another one's key moves if it is not free and
    /// this one is.
    fn pin(&mut self, now: Now, request: &Request, backend: usize, key: usize) {
        let Some(session) = request.session else { return };
        let place = (request.route, session);
        if self.choosing.pin_is_replaced {
            let until = now.after(self.settings.routes[request.route].affinity_ttl);
            self.pins.insert(place, (backend, until, key));
        } else if let Some(&(pinned, until, old)) = self.pins.get(&place)
            && pinned == backend
            && now <= until
            && !self.is_free(now, backend, old)
            && self.is_free(now, backend, key)
        {
            self.pins.insert(place, (backend, until, key));
        }
    }

    /// A naive token bucket, in thousandths of a token.
    fn tokens(&self, now: Now, route: usize, backend: usize) -> u64 {
        let limit = self.settings.routes[route].last_resort;
        let rate = limit.per_second as u64;
        let least = u64::from(rate > 0);
        let full = u64::from(limit.burst).max(least) * 1000;
        match self.tokens.get(&(route, backend)) {
            None => full,
            Some((left, at)) => (left + now.since(*at).0.saturating_mul(rate)).min(full),
        }
    }

    fn take_token(&mut self, now: Now, route: usize, backend: usize) {
        let left = self.tokens(now, route, backend) - 1000;
        self.tokens.insert((route, backend), (left, now));
    }

    fn is_over_limit(&self, now: Now, route: usize, backend: usize) -> bool {
        self.rank(now, backend) >= 2 && self.tokens(now, route, backend) < 1000
    }

    fn take_key(&mut self, now: Now, request: &Request, backend: usize) -> usize {
        let pinned = request.session.and_then(|it| self.pins.get(&(request.route, it)));
        if let Some(&(_, _, key)) = pinned.filter(|_| self.choosing.pin_is_followed)
            && self.is_free(now, backend, key)
        {
            return key;
        }
        let count = self.key_count(backend);
        let start = self.backends[backend].next_key;
        let in_turn = (0..count).map(|step| (start + step) % count);
        let untried: Vec<usize> =
            in_turn.filter(|key| !self.is_tried(request, backend, *key)).collect();
        if let Some(free) = untried.iter().find(|key| self.is_free(now, backend, **key)) {
            self.backends[backend].next_key = (free + 1) % count;
            return *free;
        }
        let back_at = |key: &usize| {
            let window = self.backends[backend].windows[*key];
            (window.max(self.key_back_at(backend, *key)).max(now), *key)
        };
        untried.into_iter().min_by_key(back_at).expect("one of its keys is untried")
    }
}

fn is_too_long(attempt: &Attempt) -> bool {
    attempt.outcome.is_some_and(|it| it.kind == OutcomeKind::TooLong)
}

fn is_about_the_key(kind: OutcomeKind) -> bool {
    use OutcomeKind::*;
    matches!(kind, RateLimited | AuthRejected | Exhausted)
}
