//! Probes of providers: the core says when, the scripts say how they end.
//!
//! A probe asks for something cheap, so it fails only when nobody answers at all: when every
//! target behind the endpoint refuses or hangs. It is answered as the best of them answers: with a
//! status other than 200 only where each one gives a status to all its requests.

use tidegate_core::{
    probe::{ProbeOutcome, Tick},
    time::{Millis, Now},
};

use super::{Engine, EngineEvent};
use crate::{
    audit::Probed,
    timeline::script::{Act, Phase},
};

/// A probe that is answered takes this long.
const ANSWERED_AFTER: Millis = Millis(100);
/// A refused connection this long.
const REFUSED_AFTER: Millis = Millis(5);

impl Engine<'_> {
    pub(super) fn schedule_probe(&mut self, replica: u32, endpoint: usize) {
        let its = &self.replicas[replica as usize];
        let contact = its.core.contact(&self.plot.world.settings.endpoints[endpoint].id);
        let due = its.probes[endpoint].next_due_given(contact);
        if let Some(due) = due.filter(|due| due.0 <= self.plot.lasts.0) {
            self.schedule(due, EngineEvent::ProbeTick { replica, endpoint: endpoint as u32 });
        }
    }

    /// Another replica found something broken: the core may want probes earlier than planned.
    pub(super) fn hasten_probes(&mut self, replica: u32) {
        for endpoint in 0..self.plot.world.probes.len() {
            let its = &self.replicas[replica as usize];
            let contact = its.core.contact(&self.plot.world.settings.endpoints[endpoint].id);
            let clock = &its.probes[endpoint];
            if clock.next_due_given(contact) < clock.next_due() {
                self.schedule_probe(replica, endpoint);
            }
        }
    }

    pub(super) fn probe_tick(&mut self, now: Now, replica: u32, endpoint: usize) {
        let its = &mut self.replicas[replica as usize];
        let contact = its.core.contact(&self.plot.world.settings.endpoints[endpoint].id);
        match its.probes[endpoint].tick(now, contact) {
            // One that was brought forward took its place.
            Tick::NotDue => return,
            Tick::Probe => {
                self.tally.probes += 1;
                let timeout = its.probes[endpoint].settings().timeout;
                let (outcome, after) = self.probe_course(replica, endpoint, timeout);
                let endpoint = endpoint as u32;
                let event = EngineEvent::ProbeEnd { replica, endpoint, outcome };
                self.schedule(now.after(after), event);
            }
            Tick::UnderWay | Tick::TrafficSpoke | Tick::NobodyUsesIt => {}
        }
        self.schedule_probe(replica, endpoint);
    }

    pub(super) fn probe_end(
        &mut self,
        now: Now,
        replica: u32,
        endpoint: usize,
        outcome: ProbeOutcome,
    ) {
        let its = &mut self.replicas[replica as usize];
        its.probes[endpoint].ended();
        let heals = its.probes[endpoint].settings().heals;
        let id = &self.plot.world.settings.endpoints[endpoint].id;
        its.core.endpoint_probed(now, id, outcome, heals, &mut self.notes);
        if let Some(auditor) = &mut its.auditor {
            let probed = Probed { outcome, heals };
            auditor.on_probe(endpoint, probed, &self.notes.transitions);
        }
        self.note_transitions(now, replica);
    }

    fn probe_course(
        &self,
        replica: u32,
        endpoint: usize,
        timeout: Millis,
    ) -> (ProbeOutcome, Millis) {
        let seen = &self.replicas[replica as usize].phases;
        let phases = self.plot.world.behind(endpoint).map(|backend| {
            let script = &self.plot.world.scripts[backend];
            &script.phases[seen[backend]]
        });
        let answers = phases.clone().filter_map(Phase::answer_to_probe);
        let is_alone = phases.clone().next().is_none();
        if let Some(status) = answers.min().or(is_alone.then_some(200)) {
            let outcome = if ANSWERED_AFTER <= timeout {
                ProbeOutcome::Answered(status)
            } else {
                ProbeOutcome::Unanswered
            };
            return (outcome, ANSWERED_AFTER.min(timeout));
        }
        let hangs = phases.clone().any(|phase| phase.act == Act::Hang);
        (ProbeOutcome::Unanswered, if hangs { timeout } else { REFUSED_AFTER.min(timeout) })
    }
}
