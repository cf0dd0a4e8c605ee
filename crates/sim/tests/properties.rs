//! Random programs over random services with random faults: whatever the file says, nothing
//! panics, and every request's trace obeys the rules that hold for all.

mod support;

use std::{collections::BTreeSet, fmt::Write};

use proptest::prelude::*;
use support::run;
use tidegate_core::outcome::OutcomeKind;
use tidegate_sim::sequence::trace::RequestTrace;

#[derive(Clone, Debug)]
struct World {
    services: Vec<(u8, bool, u8, String)>,
    tactic: &'static str,
    within: &'static str,
    affinity: u16,
    policy: String,
    max_hops: usize,
    program: Vec<String>,
}

impl World {
    fn text(&self) -> String {
        let mut text = format!(
            "tactic: {}\nwithin_tier_tactic: {}\naffinity_secs: {}\npolicy: {}\nservices:\n",
            self.tactic, self.within, self.affinity, self.policy
        );
        for (index, (tier, inactive, weight, _)) in self.services.iter().enumerate() {
            writeln!(
                text,
                "  - {{provider: p{index}, model: m, tier: {tier}, inactive: {inactive}, \
                 weight: {weight}}}"
            )
            .expect("memory takes all");
        }
        text.push_str("faults:\n");
        for (index, (.., fault)) in self.services.iter().enumerate() {
            writeln!(text, "  p{index}/m: {fault}").expect("memory takes all");
        }
        text.push_str("program:\n");
        for step in &self.program {
            writeln!(text, "  - {step}").expect("memory takes all");
        }
        text
    }
}

fn fault() -> impl Strategy<Value = String> {
    let status = prop_oneof![
        3 => Just(200_u16),
        2 => prop::sample::select(vec![301, 400, 401, 402, 403, 404, 408, 429, 500, 503, 529]),
        1 => 200_u16..=599,
    ];
    let answer =
        (status, -1_i64..3, prop::option::of(0_u32..100)).prop_map(|(status, repeat, after)| {
            let after = after.map(|after| format!(", retry_after: {after}")).unwrap_or_default();
            format!("{{status: {status}, repeat: {repeat}{after}}}")
        });
    let error = prop::sample::select(vec!["connect", "reset", "timeout", "truncate"])
        .prop_map(|word| format!("{{error: {word}, latency: 30ms}}"));
    let steps = prop::collection::vec(prop_oneof![3 => answer, 1 => error], 1..6);
    (steps, prop::sample::select(vec!["clamp", "loop", "fail"]))
        .prop_map(|(steps, word)| format!("{{steps: [{}], on_exhaust: {word}}}", steps.join(", ")))
}

fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["''", "s1", "s2"])
            .prop_map(|it| format!("{{request: {it}}}")),
        1 => prop::sample::select(vec!["0s", "1ms", "10s", "29999ms", "30s", "61s", "3650d"])
            .prop_map(|it| format!("{{advance: {it}}}")),
    ]
}

/// Health settings at their edges.
const TIMES: [&str; 5] = [
    "open_jitter: 0.5",
    "open_for: 0s, promotion_hold: 0s, recovery_threshold: 1",
    "rate_limit_window: 0s, auth_window: 0s, exhausted_window: 0s, strike_memory: 0s",
    "open_growth: 3, open_for: 1s, open_max: 1s, trial_permits: 2, window: 0s, min_samples: 1",
    "failure_ratio: 0.1, min_samples: 2, recovery_threshold: 2",
];

prop_compose! {
    fn world()(
        services in prop::collection::vec(
            (0_u8..3, prop::bool::weighted(0.2), 0_u8..3, fault()),
            1..6
        ),
        tactic in prop::sample::select(vec!["tier", "random"]),
        within in prop::sample::select(
            vec!["random", "round_robin", "weighted", "least_latency", "least_busy", "retired"]
        ),
        affinity in prop::sample::select(vec![0_u16, 20, 1800]),
        max_hops in 0_usize..5,
        threshold in 1_u8..4,
        pin in prop::sample::select(vec!["selected", "answered"]),
        auth in prop::sample::select(vec!["fail_over", "surface"]),
        floor in prop::sample::select(vec![0_u8, 3, 100]),
        times in prop::sample::select(TIMES.to_vec()),
        program in prop::collection::vec(step(), 1..40),
    ) -> World {
        let policy = format!(
            "{{max_hops: {max_hops}, failure_threshold: {threshold}, pin: {pin}, \
             on_auth_error: {auth}, retry_budget: {{floor: {floor}}}, {times}}}"
        );
        World { services, tactic, within, affinity, policy, max_hops, program }
    }
}

/// What holds for every request.
fn obeys(world: &World, request: &RequestTrace) -> Result<(), TestCaseError> {
    let count = request.attempts.len();
    prop_assert_eq!(count, request.statuses.len());
    prop_assert_eq!(count, request.outcomes.len());
    prop_assert!(count <= world.max_hops + 1);
    prop_assert_eq!(request.attempts.iter().collect::<BTreeSet<_>>().len(), count);
    let ids: Vec<String> = (0..world.services.len()).map(|index| format!("p{index}/m")).collect();
    for attempt in &request.attempts {
        let index = ids.iter().position(|id| **id == **attempt);
        let is_inactive = index.map(|index| world.services[index].1);
        prop_assert_eq!(is_inactive, Some(false), "{} is off", attempt);
    }
    prop_assert!(request.breaker_after.keys().map(|id| &**id).eq(ids.iter().map(|id| &**id)));
    prop_assert!(request.health_after.keys().map(|id| &**id).eq(ids.iter().map(|id| &**id)));
    let has_affinity = world.affinity > 0 && !request.session.is_empty();
    prop_assert!(request.pin_after.is_empty() || has_affinity);
    prop_assert!(!(count > 0 && has_affinity && request.pin_after.is_empty()));
    ends_consistently(request)
}

/// The client's status is that of the attempt that ended the request, or of an earlier error.
fn ends_consistently(request: &RequestTrace) -> Result<(), TestCaseError> {
    let goes_on = |kind: OutcomeKind| {
        !matches!(kind, OutcomeKind::Success | OutcomeKind::Truncated | OutcomeKind::ClientFault)
    };
    let earlier = request.outcomes.len().saturating_sub(1);
    prop_assert!(request.outcomes.iter().take(earlier).all(|outcome| goes_on(outcome.0)));
    let seen = request.final_status;
    match (request.outcomes.last(), request.statuses.last()) {
        (Some(outcome), Some(status)) if !goes_on(outcome.0) => prop_assert_eq!(seen, *status),
        _ if request.statuses.iter().all(|status| *status == 0) => prop_assert_eq!(seen, 503),
        _ => {
            let relayed = |status: &u16| if (300..400).contains(status) { 502 } else { *status };
            prop_assert!(request.statuses.iter().map(relayed).any(|status| status == seen));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_request_of_every_program_obeys_the_rules(world in world(), seed in 0_u64..1000) {
        let text = world.text();
        let report = run(&text, seed);
        // Nothing is expected here, so only a broken invariant can fail.
        prop_assert_eq!(report.failures(), []);
        for request in report.trace().requests() {
            obeys(&world, request)?;
        }
        prop_assert_eq!(report.to_json().to_string(), run(&text, seed).to_json().to_string());
    }

    #[test]
    fn any_text_is_answered_without_a_panic(text in "\\PC{0,200}") {
        let source = tidegate_config::source::Source::new("t.yaml", &text);
        drop(tidegate_sim::scenario::load(&source));
        let source = tidegate_config::source::Source::new("t.yaml", &format!("services: {text}"));
        drop(tidegate_sim::scenario::load(&source));
    }
}
