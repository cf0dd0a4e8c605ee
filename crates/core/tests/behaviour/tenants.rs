//! Tenants: one caller's bad requests never change another caller's decisions (I16, I5).

use proptest::prelude::*;
use tidegate_core::{
    draw::mix,
    outcome::{Outcome, OutcomeKind},
    plan::{RequestSpec, Step},
    settings::Tactic,
};

use crate::{
    bed::Bed,
    properties::{Deed, act, bed, config, deeds},
};

/// How a bad request ends.
#[derive(Clone, Copy, Debug)]
enum Noise {
    ClientFault,
    Cancelled,
    Dropped,
}

fn noise() -> impl Strategy<Value = Vec<(Noise, String)>> {
    use Noise::*;
    let ending = prop::sample::select(vec![ClientFault, Cancelled, Dropped]);
    prop::collection::vec((ending, ".{0,12}"), 0..4)
}

/// A bad request of another caller, with draws of its own.
fn disturb(bed: &mut Bed, noise: Noise, session: &str, draw: u64) {
    let ask = RequestSpec { caller: "noisy", session, ..RequestSpec::default() };
    let mut plan = bed.begin("main", &ask);
    let Step::Attempt(permit) = plan.next(bed.now, draw, &mut bed.notes) else { return };
    let kind = match noise {
        Noise::ClientFault => OutcomeKind::ClientFault,
        Noise::Cancelled => OutcomeKind::Cancelled,
        Noise::Dropped => return,
    };
    let outcome = Outcome::error(kind, 400);
    plan.report(bed.now, permit, &outcome, &mut bed.notes);
}

/// Everything of a backend's health but when it was last heard of.
fn health(bed: &Bed) -> Vec<tidegate_core::snapshot::BackendSnapshot> {
    let mut backends = bed.core.snapshot(bed.now).backends;
    backends.iter_mut().for_each(|it| it.last_check = None);
    backends
}

/// Endpoints aside: a client fault is an answer, and so proves that the host can be reached.
fn quiet_bed(tactic: Tactic) -> Bed {
    bed(tactic).with(|settings| {
        settings.endpoints.clear();
        settings.backends.iter_mut().for_each(|it| it.endpoint = None);
        // Keys in turn are shared by design, like the cursor of `round_robin`.
        settings.backends.iter_mut().for_each(|it| it.keys.clear());
        // More requests allow more hops: not a matter of health.
        settings.routes[0].budget.ratio = 0.0;
    })
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn bad_requests_of_one_tenant_never_change_another_s_decisions(
        tactic in prop::sample::select(vec![Tactic::Random, Tactic::Weighted, Tactic::LeastBusy]),
        history in deeds(),
        noises in prop::collection::vec(noise(), 60),
    ) {
        let (mut alone, mut disturbed) = (quiet_bed(tactic), quiet_bed(tactic));
        let mut draw = 99;
        for (deed, noises) in history.iter().zip(&noises) {
            if let Deed::Probe { .. } = deed {
                continue;
            }
            for (noise, session) in noises {
                draw = mix(draw);
                disturb(&mut disturbed, *noise, session, draw);
            }
            prop_assert_eq!(act(&mut alone, deed), act(&mut disturbed, deed));
            prop_assert_eq!(health(&alone), health(&disturbed));
        }
    }
}
