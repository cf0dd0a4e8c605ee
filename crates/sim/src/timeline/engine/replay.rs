//! Recorded requests: the core is asked and told at the recorded moments, in the recorded order.
//!
//! Rules kept here:
//! - While a request goes where it went, everything about its attempt is as recorded: head,
//!   release, end and outcome, to the millisecond.
//! - Where it goes elsewhere, and the record shows what that backend did to this very request, the
//!   attempt takes as long and ends alike. Else it meets the backend's script, as in any timeline.
//! - A client's own retries are requests of the record; none are added.

use tidegate_core::{
    attempt::{End, Finish},
    breaker::State,
    commit::AnswerForm,
    plan::RequestSpec,
    probe::ProbeOutcome,
    snapshot::Reason,
    time::{Millis, Now},
};

use super::{Call, Engine, EngineEvent, NONE_RECORDED, Ongoing};
use crate::timeline::{
    decisions,
    recording::{Moment, RecordedAttempt, RecordedRequest, Recording},
};

impl Engine<'_> {
    /// Plays a recording.
    pub(super) fn replay(&mut self, recording: &Recording) {
        self.decisions = vec![String::new(); recording.arrivals.len()];
        self.begin_as_recorded(recording);
        for (number, request) in recording.arrivals.iter().enumerate() {
            let event = EngineEvent::Arrive { arrival: number as u32 };
            // A request is there before its first choice, whose number is all that is known.
            let n = request.attempts.first().filter(|it| it.chosen.at == request.at);
            self.schedule_at(Moment { at: request.at, n: n.map_or(0, |it| it.chosen.n) }, event);
        }
        for (number, probe) in recording.probes.iter().flatten().enumerate() {
            self.schedule_at(probe.at, EngineEvent::Probed { probe: number as u32 });
        }
        for (number, action) in recording.actions.iter().enumerate() {
            let event = EngineEvent::Act { action: number as u32 };
            self.schedule_at(Moment { at: action.at, n: 0 }, event);
        }
        self.play(None);
    }

    fn schedule_at(&mut self, moment: Moment, event: EngineEvent) {
        self.heap.push(std::cmp::Reverse((moment.at, moment.n, event)));
    }

    /// What stood against backends, and where sessions were pinned, when the recording began.
    fn begin_as_recorded(&mut self, recording: &Recording) {
        let now = Now::ZERO;
        for it in &recording.start {
            let until = it.until.unwrap_or(Now::NEVER);
            match it.state.as_str() {
                "open" | "half_open" => {
                    self.replicas[0].core.hold(now, &it.backend, until, &mut self.notes);
                }
                "off" => {
                    self.replicas[0].core.switch_off(
                        now,
                        &it.backend,
                        Some(until),
                        &mut self.notes,
                    );
                }
                _ => {}
            }
        }
        self.note_transitions(now, 0);
        let mut seen = vec![false; recording.sessions.len()];
        for request in &recording.arrivals {
            let Some(is_seen) = seen.get_mut(request.session as usize) else { continue };
            if std::mem::replace(is_seen, true) {
                continue;
            }
            let first = request.attempts.first().filter(|it| it.line.contains(" pin honoured"));
            let (caller, session) = &recording.sessions[request.session as usize];
            let place = self.routes.iter().position(|it| it.index == request.route);
            if let (Some(first), Some(place)) = (first, place) {
                let ttl = self.plot.world.settings.routes[request.route].affinity_ttl;
                let (until, replica) = (request.at.after(ttl), &self.replicas[0]);
                let whose = (caller.as_str(), session.as_str());
                replica.core.pin(&replica.routes[place], now, whose, &first.backend, until);
            }
        }
    }

    fn request_of(&self, slot: u32) -> Option<&RecordedRequest> {
        let recorded = self.calls[slot as usize].recorded;
        self.plot.recording.as_ref()?.arrivals.get(recorded as usize)
    }

    /// The caller of a call; simulated ones have none.
    pub(super) fn caller_of(&self, slot: u32) -> &str {
        let session = self.calls[slot as usize].session as usize;
        let recording = self.plot.recording.as_ref();
        recording.and_then(|it| it.sessions.get(session)).map_or("", |(caller, _)| caller)
    }

    pub(super) fn arrive_recorded(&mut self, now: Now, arrival: u32) {
        let Some(recording) = self.plot.recording.as_ref() else { return };
        let request = &recording.arrivals[arrival as usize];
        let place = self.routes.iter().position(|it| it.index == request.route).unwrap_or(0);
        self.tally.requests += 1;
        self.tally.sent += 1;
        self.tally.replicas[0].sent += 1;
        let slot = self.place(Call {
            plan: None,
            permit: None,
            audited: None,
            unsettled: Vec::new(),
            turn: 0,
            route: place as u16,
            recorded: arrival,
            session: request.session,
            replica: 0,
            is_stream: request.is_stream,
            retries: 0,
            began: now,
            attempt: Ongoing::NOTHING,
        });
        let deadline = self.plot.world.settings.routes[request.route].deadline;
        let session = recording.sessions.get(request.session as usize);
        let (caller, session) = session.map_or(("", ""), |(caller, it)| (caller, it));
        let spec = RequestSpec {
            caller,
            session,
            needs: request.needs,
            is_stream: request.is_stream,
            // A limit that the client asked for; the route's own is this config's.
            within: request.deadline.filter(|it| *it < deadline),
            patience: request.patience,
            stays_at: None,
            state_id: "",
        };
        let replica = &self.replicas[0];
        let plan = replica.core.begin(&replica.routes[place], now, &spec);
        self.calls[slot as usize].plan = Some(plan);
        self.choose_next(now, slot);
    }

    /// Asks the core for the next choice: of a recorded request, at the recorded moment.
    pub(super) fn choose_next(&mut self, now: Now, slot: u32) {
        let made = self.calls[slot as usize].plan.as_ref().map_or(0, |it| it.attempts().len());
        let is_over = self.calls[slot as usize].plan.as_ref().is_some_and(|it| it.is_over());
        let next = self.request_of(slot).and_then(|it| it.attempts.get(made));
        match next.map(|it| it.chosen).filter(|it| it.at >= now && !is_over) {
            Some(chosen) => {
                let call = &mut self.calls[slot as usize];
                call.turn = call.turn.wrapping_add(1);
                let turn = call.turn;
                self.schedule_at(chosen, EngineEvent::Choose { slot, turn });
            }
            None => self.go_on(now, slot),
        }
    }

    /// The draw for the next choice: the recorded one where there is one.
    pub(super) fn next_draw(&mut self, slot: u32) -> u64 {
        let made = self.calls[slot as usize].plan.as_ref().map_or(0, |it| it.attempts().len());
        let recorded = self.request_of(slot).and_then(|it| it.attempts.get(made)).map(|it| it.draw);
        recorded.unwrap_or_else(|| self.core_draws.draw())
    }

    /// Begins an attempt as the record has it; whether the record has one.
    pub(super) fn repeat(&mut self, now: Now, slot: u32) -> bool {
        let call = &self.calls[slot as usize];
        if call.recorded == NONE_RECORDED {
            return false;
        }
        let backend = call.attempt.backend;
        let id = &self.plot.world.settings.backends[backend].id;
        let made = call.plan.as_ref().map_or(0, |it| it.attempts().len()).saturating_sub(1);
        let Some(request) = self.request_of(slot) else { return false };
        let is_it = |it: &RecordedAttempt| it.backend == *id;
        let same = request.attempts.get(made).filter(|it| is_it(it) && it.chosen.at == now);
        let (number, recorded) = match same {
            Some(recorded) => (Some(made as u16), recorded),
            None => match request.attempts.iter().find(|it| is_it(it) && !it.is_left) {
                Some(recorded) => (None, recorded),
                None => return false,
            },
        };
        // What is repeated at another moment takes as long from there.
        let chosen = recorded.chosen.at;
        let moved = |it: Now| now.after(it.since(chosen));
        let head = recorded.head.map(|it| moved(it.at));
        let released = recorded.released.map(|it| moved(it.at));
        let sent = released.zip(recorded.first_content);
        let sent = sent.map_or(now, |(at, took)| Now(at.0.saturating_sub(took.0)).max(now));
        let (end, outcome) = (moved(recorded.ended.at), recorded.outcome);
        let is_head_alone = head.is_some_and(|it| it < end) && released.is_none();
        let call = &mut self.calls[slot as usize];
        let is_stream = call.is_stream;
        if let Some(permit) = call.permit.as_mut() {
            permit.answers_as(if is_stream { AnswerForm::Events } else { AnswerForm::Whole });
            permit.sent(sent);
        }
        call.attempt = Ongoing {
            backend,
            began: now,
            head: head.filter(|_| number.is_some() || is_head_alone),
            content: released.filter(|_| number.is_some() || is_stream),
            end,
            outcome: Some(outcome),
            exact: number,
            ..Ongoing::NOTHING
        };
        self.await_next(slot);
        true
    }

    /// Waits for the next recorded moment of an attempt.
    pub(super) fn await_recorded(&mut self, slot: u32) {
        let call = &self.calls[slot as usize];
        let (attempt, turn) = (&call.attempt, call.turn);
        let number = attempt.exact.unwrap_or_default();
        let Some(it) = self.request_of(slot).and_then(|it| it.attempts.get(usize::from(number)))
        else {
            return;
        };
        let moment = match (attempt.head, attempt.content) {
            (Some(_), _) => it.head,
            (None, Some(_)) => it.released,
            (None, None) => Some(it.ended),
        };
        let moment = moment.unwrap_or(it.ended);
        self.schedule_at(moment, EngineEvent::Call { slot, turn });
    }

    /// The next recorded thing of an attempt happens.
    pub(super) fn repeat_next(&mut self, now: Now, slot: u32) {
        let number = usize::from(self.calls[slot as usize].attempt.exact.unwrap_or_default());
        let recorded = self.request_of(slot).and_then(|it| it.attempts.get(number));
        let Some((cause, outcome, is_left)) =
            recorded.map(|it| (it.committed, it.outcome, it.is_left))
        else {
            return;
        };
        let attempt = &mut self.calls[slot as usize].attempt;
        if attempt.head.take().is_some() {
            attempt.has_head = true;
            self.head(now, slot);
            self.await_next(slot);
        } else if attempt.content.take().is_some() {
            let call = &mut self.calls[slot as usize];
            if let Some(permit) = call.permit.as_mut().filter(|_| call.is_stream) {
                permit.content_event(now);
            }
            self.commit(now, slot, cause.unwrap_or(tidegate_core::commit::CommitCause::Complete));
            self.await_next(slot);
        } else if is_left {
            self.leave(now, slot);
        } else {
            self.end(now, slot, &outcome);
        }
    }

    /// A recorded request is over: its decision is kept, and its client is hurt or not.
    pub(super) fn finish_recorded(&mut self, now: Now, slot: u32, finish: &Finish) {
        let number = self.calls[slot as usize].recorded as usize;
        let line = match (self.request_of(slot), &self.calls[slot as usize].plan) {
            (Some(request), Some(plan)) => {
                decisions::of_plan(&request.id, &request.route_name, plan, finish)
            }
            _ => String::new(),
        };
        let tokens = self.request_of(slot).and_then(|it| it.tokens);
        self.decisions[number] = line;
        match finish.end {
            End::Answered => {
                self.tally.answered += 1;
                self.tally.tokens += tokens.unwrap_or(0);
            }
            // The client's own fault or wish.
            End::ClientFault | End::Cancelled | End::NothingAble => {}
            _ => self.tally.failures.add(now),
        }
        self.calls[slot as usize].plan = None;
        self.free.push(slot);
    }

    pub(super) fn probed(&mut self, now: Now, probe: u32) {
        let recording = self.plot.recording.as_ref();
        let Some(probe) = recording.and_then(|it| it.probes.as_ref()?.get(probe as usize)) else {
            return;
        };
        self.tally.probes += 1;
        let endpoints = &self.plot.world.settings.endpoints;
        let Some(place) = endpoints.iter().position(|it| it.id == probe.provider) else { return };
        let outcome = probe.status.map_or(ProbeOutcome::Unanswered, ProbeOutcome::Answered);
        let heals = self.replicas[0].probes[place].settings().heals;
        self.replicas[0].core.endpoint_probed(
            now,
            &probe.provider,
            outcome,
            heals,
            &mut self.notes,
        );
        self.note_transitions(now, 0);
    }

    pub(super) fn act(&mut self, now: Now, action: u32) {
        let recording = self.plot.recording.as_ref();
        let Some(action) = recording.and_then(|it| it.actions.get(action as usize)) else { return };
        let (id, notes) = (action.backend.as_str(), &mut self.notes);
        let until = action.until.unwrap_or_else(|| now.after(Millis::minutes(10)));
        match action.deed.as_str() {
            "drain" => {
                self.replicas[0].core.switch_off(now, id, Some(until), notes);
            }
            "hold" => {
                self.replicas[0].core.hold(now, id, until, notes);
            }
            "reset" => {
                self.replicas[0].core.switch_off(now, id, None, notes);
                self.replicas[0].core.reset(now, id, notes);
            }
            "resume" => {
                let snapshot = self.replicas[0].core.snapshot(now);
                let known = snapshot.backends.iter().find(|it| it.id == id);
                let is_held = known.is_some_and(|it| it.reason == Some(Reason::Held));
                self.replicas[0].core.switch_off(now, id, None, notes);
                if is_held && known.is_some_and(|it| it.state != State::Closed) {
                    self.replicas[0].core.reset(now, id, notes);
                }
            }
            _ => {}
        }
        self.note_transitions(now, 0);
    }
}
