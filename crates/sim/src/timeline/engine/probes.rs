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
    pub(super) fn schedule_probe(&mut self, endpoint: usize) {
        let due = self.probes[endpoint].next_due();
        if let Some(due) = due.filter(|due| due.0 <= self.plot.lasts.0) {
            self.schedule(due, EngineEvent::ProbeTick { endpoint: endpoint as u32 });
        }
    }

    pub(super) fn probe_tick(&mut self, now: Now, endpoint: usize) {
        let contact = self.core.contact(&self.plot.world.settings.endpoints[endpoint].id);
        if self.probes[endpoint].tick(now, contact) == Tick::Probe {
            self.tally.probes += 1;
            let timeout = self.probes[endpoint].settings().timeout;
            let (outcome, after) = self.probe_course(endpoint, timeout);
            let event = EngineEvent::ProbeEnd { endpoint: endpoint as u32, outcome };
            self.schedule(now.after(after), event);
        }
        self.schedule_probe(endpoint);
    }

    pub(super) fn probe_end(&mut self, now: Now, endpoint: usize, outcome: ProbeOutcome) {
        self.probes[endpoint].ended();
        let heals = self.probes[endpoint].settings().heals;
        let id = &self.plot.world.settings.endpoints[endpoint].id;
        self.core.endpoint_probed(now, id, outcome, heals, &mut self.notes);
        if let Some(auditor) = &mut self.auditor {
            let probed = Probed { outcome, heals };
            auditor.on_probe(endpoint, probed, &self.notes.transitions);
        }
        self.note_transitions();
    }

    fn probe_course(&self, endpoint: usize, timeout: Millis) -> (ProbeOutcome, Millis) {
        let phases = self.plot.world.behind(endpoint).map(|backend| {
            let script = &self.plot.world.scripts[backend];
            &script.phases[self.phases[backend]]
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
