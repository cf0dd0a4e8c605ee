//! From a sound file to what it means: nothing is optional any more.

use indexmap::IndexMap;
use tidegate_core::{settings::Tactic, time::Millis};

use super::{
    SeedPin, Sequence, Service,
    file::{FaultFile, FaultStepFile, OnExhaust, RetryAfterFile, SequenceFile},
    tactic::{self, TierLayout},
    world::{Behaviour, CallScript, Ending},
};
use crate::form::Origin;

/// The meaning of a file in which `check` found no error.
pub(super) fn resolve(file: SequenceFile, origin: &Origin) -> Sequence {
    let services: Vec<Service> = file
        .services
        .unwrap_or_default()
        .into_iter()
        .map(|service| Service {
            id: service.id().into(),
            tier: service.tier,
            inactive: service.inactive,
            weight: service.weight,
        })
        .collect();
    let within = file.within_tier_tactic.as_deref().and_then(tactic::parse_within);
    Sequence {
        origin: origin.clone(),
        name: file.rule_uuid.or(file.name).unwrap_or_else(|| origin.stem()),
        about: file.about.unwrap_or_default(),
        layout: file.tactic.as_deref().and_then(TierLayout::parse).unwrap_or_default(),
        tactic: within.unwrap_or(Tactic::Random),
        affinity_secs: file.affinity_secs,
        scripts: scripts(&services, &file.faults),
        services,
        seed_pin: file.seed_pin.map(|pin| SeedPin {
            id: format!("{}/{}", pin.provider, pin.model),
            session: pin.session,
        }),
        policy: file.policy,
        program: file.program,
        expect: file.expect,
    }
}

fn scripts(services: &[Service], faults: &IndexMap<String, FaultFile>) -> Vec<CallScript> {
    let script = |fault: Option<&FaultFile>| match fault {
        None => CallScript::new(Vec::new(), OnExhaust::Clamp),
        Some(FaultFile::Short(statuses)) => {
            let steps = statuses.iter().map(|&status| (Behaviour::status(usable(status)), 1));
            CallScript::new(steps.collect(), OnExhaust::Clamp)
        }
        Some(FaultFile::Long(script)) => {
            CallScript::new(script.steps.iter().map(step).collect(), script.on_exhaust)
        }
    };
    services.iter().map(|service| script(faults.get(&*service.id))).collect()
}

fn step(step: &FaultStepFile) -> (Behaviour, u64) {
    let ending = match step.error {
        Some(error) => Ending::Error(error),
        None => Ending::Status {
            status: usable(step.status.unwrap_or(0)),
            retry_after: step.retry_after.as_ref().map(retry_after),
        },
    };
    let latency = step.latency.as_ref().map_or(Millis::ZERO, |latency| latency.millis());
    let calls = step.repeat.and_then(|repeat| u64::try_from(repeat).ok()).unwrap_or(1).max(1);
    (Behaviour { ending, latency }, calls)
}

/// A status of the file as the world gives it: 0 stands for 200.
fn usable(status: u32) -> u16 {
    u16::try_from(status).ok().filter(|status| *status > 0).unwrap_or(200)
}

fn retry_after(written: &RetryAfterFile) -> Millis {
    match written {
        // Rounding saturates at both ends, and the core believes an hour at most.
        RetryAfterFile::Seconds(seconds) => Millis((seconds * 1000.0).round() as u64),
        RetryAfterFile::Duration(duration) => duration.millis(),
    }
}
