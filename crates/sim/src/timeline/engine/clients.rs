//! Clients: when they ask, and what they do with an error.
//!
//! A client tries again like the official SDKs: after 408, 409, 429 and 5xx, with a pause of half
//! a second that doubles up to eight, up to a quarter of it cut off at random. It does not heed
//! `x-should-retry`: that is the worse case for a gateway.

use tidegate_core::{
    attempt::{End, Finish},
    draw::{below, fraction},
    plan::RequestSpec,
    time::{Millis, Now},
};

use super::{Call, Engine, EngineEvent, NONE_RECORDED, Ongoing, between};
use crate::{
    rng::Rng,
    timeline::plot::{Plot, Traffic},
};

/// The first pause of a client.
const PAUSE: Millis = Millis(500);
/// Its longest pause.
const PAUSE_MAX: Millis = Millis::seconds(8);
/// Up to this share of a pause is cut off.
const PAUSE_CUT: f64 = 0.25;

/// The stream of requests.
pub(super) struct Arrivals {
    draws: Rng,
    /// The mean distance in milliseconds.
    distance: f64,
    is_even: bool,
    end: f64,
    next: f64,
    sessions: u32,
}

impl Arrivals {
    pub(super) fn new(plot: &Plot, draws: Rng) -> Self {
        let traffic = &plot.traffic;
        let distance = 1.0 / traffic.rate;
        let mut arrivals = Self {
            draws,
            distance,
            is_even: traffic.is_even,
            end: plot.lasts.0 as f64,
            next: 0.0,
            sessions: traffic.sessions,
        };
        arrivals.advance();
        arrivals
    }

    /// When the next request comes, if one does before the end.
    pub(super) fn next(&self) -> Option<Now> {
        (self.next < self.end).then_some(Now(self.next as u64))
    }

    /// Takes it, and gives its session.
    pub(super) fn take(&mut self) -> u32 {
        let session = below(self.draws.draw(), u64::from(self.sessions)) as u32;
        self.advance();
        session
    }

    fn advance(&mut self) {
        let share = if self.is_even { 1.0 } else { -(1.0 - fraction(self.draws.draw())).ln() };
        self.next += self.distance * share;
    }
}

impl Engine<'_> {
    pub(super) fn arrive(&mut self, now: Now, session: u32) {
        self.tally.requests += 1;
        let lot = fraction(self.client_draws.draw());
        let call = Call {
            plan: None,
            permit: None,
            audited: None,
            unsettled: Vec::new(),
            turn: 0,
            route: 0,
            recorded: NONE_RECORDED,
            session,
            replica: 0,
            is_stream: lot < self.plot.traffic.stream,
            retries: 0,
            began: now,
            attempt: Ongoing::NOTHING,
        };
        let slot = self.place(call);
        self.ask(now, slot);
    }

    /// A slot for a call.
    pub(super) fn place(&mut self, call: Call) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                // The turn goes on: events of the slot's earlier calls stay stale.
                let turn = self.calls[slot as usize].turn;
                self.calls[slot as usize] = Call { turn, ..call };
                slot
            }
            None => {
                self.calls.push(call);
                (self.calls.len() - 1) as u32
            }
        }
    }

    /// The request reaches the gateway.
    pub(super) fn ask(&mut self, now: Now, slot: u32) {
        self.tally.sent += 1;
        let call = &mut self.calls[slot as usize];
        call.replica = self.bus.as_mut().map_or(0, |bus| bus.replica_for(call.session));
        let its = &mut self.replicas[call.replica as usize];
        self.tally.replicas[call.replica as usize].sent += 1;
        let session = self.sessions.get(call.session as usize).map_or("", String::as_str);
        let Traffic { patience, needs, .. } = self.plot.traffic;
        let is_stream = call.is_stream;
        let ask = RequestSpec { session, is_stream, patience, needs, ..RequestSpec::default() };
        call.plan = Some(its.core.begin(&its.routes[usize::from(call.route)], now, &ask));
        if let Some(auditor) = &mut its.auditor {
            auditor.on_request(now);
        }
        self.go_on(now, slot);
    }

    /// The gateway has answered for good.
    pub(super) fn finish(&mut self, now: Now, slot: u32, finish: &Finish) {
        self.note_finish(now, slot, finish);
        self.settle(now, slot);
        if self.calls[slot as usize].recorded != NONE_RECORDED {
            return self.finish_recorded(now, slot, finish);
        }
        let call = &mut self.calls[slot as usize];
        call.plan = None;
        let is_retried = matches!(finish.status, 408 | 409 | 429 | 500..)
            && finish.end != End::Broken
            && call.retries < self.plot.traffic.clients_retry;
        if is_retried {
            let pause = PAUSE.scaled(f64::from(1_u32 << call.retries.min(8))).min(PAUSE_MAX);
            call.retries += 1;
            let cut = 1.0 - PAUSE_CUT * fraction(self.client_draws.draw());
            self.schedule(now.after(pause.scaled(cut)), EngineEvent::Retry { slot });
            return;
        }
        if finish.end == End::Answered {
            self.tally.answered += 1;
        } else {
            self.tally.failures.add(now);
        }
        self.free.push(slot);
    }

    /// The client sees the first content.
    pub(super) fn client_sees_content(&mut self, now: Now, slot: u32) {
        let wait = between(self.calls[slot as usize].began, now);
        self.tally.waits.add(now, wait);
    }
}
