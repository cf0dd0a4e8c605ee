//! Choosing: candidates, ranks, tiers, last resorts, tactics, lost races, verdicts.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    attempt::{Answer, End},
    breaker::State,
    explain::{Condition, Obstacle, Verdict},
    outcome::OutcomeKind,
    plan::RequestSpec,
    rank::Rank,
    route::{Ability, Needs},
    settings::{Membership, Tactic},
    time::{Millis, Now},
};

use crate::bed::{Bed, come_back, of_kind, ok, refused, status};

/// The first choices of `count` requests that succeed.
fn picks(bed: &mut Bed, count: usize) -> Vec<String> {
    (0..count).map(|_| bed.request(|_| ok()).visited[0].clone()).collect()
}

fn shares(picks: &[String]) -> BTreeMap<&str, usize> {
    let mut shares = BTreeMap::new();
    for pick in picks {
        *shares.entry(pick.as_str()).or_insert(0) += 1;
    }
    shares
}

#[test]
fn the_lowest_tier_is_used_while_nothing_stands_against_it() {
    let mut bed = Bed::of(&["a b", "c"]);
    let chosen: BTreeSet<String> = picks(&mut bed, 50).into_iter().collect();
    assert_eq!(chosen, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
}

#[test]
fn a_tier_is_read_only_when_those_before_it_cannot_serve() {
    let mut bed = Bed::of(&["a b", "c", "d e"]).route(|route| route.budget.floor = 100);
    let read = |bed: &Bed| bed.notes.reads.iter().map(|it| it.candidate).collect::<Vec<_>>();
    picks(&mut bed, 1);
    assert_eq!(read(&bed), [0, 1]);
    bed.core.switch_off(bed.now, "a", Some(Now::NEVER), &mut bed.notes);
    for _ in 0..3 {
        bed.request(|id| if id == "b" { status(500) } else { ok() });
    }
    assert_eq!(picks(&mut bed, 1), ["c"], "b is open");
    assert_eq!(read(&bed), [1, 2]);
    bed.core.switch_off(bed.now, "c", Some(Now::NEVER), &mut bed.notes);
    picks(&mut bed, 1);
    assert_eq!(read(&bed), [1, 3, 4]);
}

#[test]
fn the_tier_of_a_pin_is_read_as_well() {
    let mut bed = Bed::of(&["a", "b", "c"]);
    bed.core.switch_off(bed.now, "a", Some(Now(10)), &mut bed.notes);
    bed.session("s", |_| ok());
    bed.wait(10);
    bed.session("s", |_| ok());
    let read: Vec<u16> = bed.notes.reads.iter().map(|it| it.candidate).collect();
    assert_eq!(read, [0, 1], "the pin's own tier is the last one");
}

#[test]
fn inactive_unconfigured_and_switched_off_targets_are_no_candidates() {
    let mut bed = Bed::of(&["a b c", "d"]).route(|route| {
        route.tiers[0][0].membership = Membership::Inactive;
        route.tiers[0][1].membership = Membership::Unconfigured;
    });
    bed.core.switch_off(bed.now, "c", Some(Now::NEVER), &mut bed.notes);
    assert_eq!(bed.request(|_| status(500)).visited, ["d"]);
    bed.core.switch_off(bed.now, "c", None, &mut bed.notes);
    assert_eq!(bed.request(|_| ok()).visited, ["c"]);
}

#[test]
fn a_switch_ends_at_its_time() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.core.switch_off(bed.now, "a", Some(Now(100)), &mut bed.notes);
    bed.wait(99);
    assert_eq!(picks(&mut bed, 1), ["b"]);
    bed.wait(1);
    assert_eq!(picks(&mut bed, 1), ["a"]);
}

#[test]
fn a_switch_without_an_end_is_shown_without_one() {
    let mut bed = Bed::of(&["a"]);
    bed.core.switch_off(bed.now, "a", Some(Now::NEVER), &mut bed.notes);
    let route = bed.core.route("main").expect("every bed has it");
    let told = bed.core.explain(route, bed.now, &RequestSpec::default(), 0);
    let Verdict::Skipped(obstacles) = &told.candidates[0].verdict else {
        panic!("{told:?}");
    };
    assert!(matches!(obstacles[..], [Obstacle::SwitchedOff(it)] if it.until == Now::NEVER));
}

#[test]
fn a_backends_condition_tells_all_that_stands_against_it() {
    let mut bed = Bed::of(&["a"]);
    let condition = |bed: &Bed| bed.core.condition(bed.now, "a").expect("it exists");
    let healthy = Condition { state: State::Closed, obstacles: Vec::new() };
    assert_eq!(condition(&bed), healthy);
    for _ in 0..3 {
        bed.request(|_| status(500));
    }
    bed.core.switch_off(bed.now, "a", Some(Now::NEVER), &mut bed.notes);
    let Condition { state, obstacles } = condition(&bed);
    assert_eq!(state, State::Open);
    assert!(matches!(obstacles[..], [Obstacle::SwitchedOff(_), Obstacle::Breaker { .. }]));
    assert_eq!(bed.core.condition(bed.now, "b"), None);
}

#[test]
fn without_candidates_the_answer_is_503_with_no_attempts() {
    let mut bed = Bed::of(&["a"]);
    bed.core.switch_off(bed.now, "a", Some(Now::NEVER), &mut bed.notes);
    let told = bed.request(|_| ok());
    assert_eq!((told.finish.end, told.finish.status), (End::NothingLeft, 503));
    assert_eq!((told.finish.answer, told.plan.attempts().len()), (Answer::NoHealthyBackend, 0));
}

#[test]
fn a_missing_ability_is_a_400() {
    let mut bed = Bed::of(&["a", "b"]).with(|settings| {
        settings.backends[0].abilities.vision = Some(false);
        settings.backends[1].abilities.context = Some(1_000);
    });
    let needs = Needs { vision: true, context: 1_001, ..Needs::default() };
    let told = bed.request_as(&RequestSpec { needs, ..RequestSpec::default() }, |_| ok());
    assert_eq!((told.finish.end, told.finish.status), (End::NothingAble, 400));
    assert_eq!(told.finish.answer, Answer::NothingAble);
    let fits = Needs { vision: true, context: 1_000, ..Needs::default() };
    assert_eq!(
        bed.request_as(&RequestSpec { needs: fits, ..RequestSpec::default() }, |_| ok()).visited,
        ["b"]
    );
}

#[test]
fn a_target_that_speaks_another_protocol_lacks_an_ability() {
    use tidegate_core::settings::{Abilities, Protocol};
    let speaks = |protocol| Abilities { protocol, ..Abilities::default() };
    let asks = |protocol| Needs { protocol, ..Needs::default() };
    let openai = asks(Some(Protocol::OpenAi));
    assert_eq!(openai.lacking(&speaks(Some(Protocol::Anthropic))), Some(Ability::Protocol));
    assert_eq!(openai.lacking(&speaks(Some(Protocol::OpenAi))), None);
    assert_eq!(openai.lacking(&speaks(None)), None);
    assert_eq!(asks(None).lacking(&speaks(Some(Protocol::Anthropic))), None);
}

#[test]
fn a_target_gets_a_request_as_it_came_or_in_the_first_format_that_it_serves() {
    use tidegate_core::settings::{Abilities, Kind, Protocol};
    use tidegate_core::wire_format::{SentAs, WireFormat, WireFormats};
    let speaks = |protocol: Protocol, kinds: Option<&[Kind]>| Abilities {
        protocol: Some(protocol),
        serves: kinds.map(|kinds| kinds.iter().copied().collect()),
        ..Abilities::default()
    };
    let message = |formats: &[WireFormat]| Needs {
        protocol: Some(Protocol::Anthropic),
        converts_to: WireFormats::from_iter(formats.iter().copied()),
        ..Needs::default()
    };
    let (chat, responses) = (WireFormat::Chat, WireFormat::Responses);
    let needs = message(&[responses, chat]);
    let sent = |served| needs.sent_as(&speaks(Protocol::OpenAi, served));
    assert_eq!(sent(None), Ok(SentAs::Converted(chat)), "chat goes first");
    assert_eq!(sent(Some(&[Kind::Responses])), Ok(SentAs::Converted(responses)));
    let preferring =
        |served| Abilities { prefers_responses: true, ..speaks(Protocol::OpenAi, served) };
    assert_eq!(needs.sent_as(&preferring(None)), Ok(SentAs::Converted(responses)));
    let only_chat = preferring(Some(&[Kind::Chat]));
    assert_eq!(needs.sent_as(&only_chat), Ok(SentAs::Converted(chat)), "it serves no other");
    assert_eq!(sent(Some(&[Kind::Embeddings])), Err(Ability::Protocol));
    let native = speaks(Protocol::Anthropic, None);
    assert_eq!(needs.sent_as(&native), Ok(SentAs::AsItCame));
    assert_eq!(needs.sent_as(&speaks(Protocol::Gemini, None)), Err(Ability::Protocol));
    assert_eq!(needs.sent_as(&Abilities::default()), Ok(SentAs::AsItCame), "a fake takes all");
    let plain = message(&[]);
    assert_eq!(plain.lacking(&speaks(Protocol::OpenAi, None)), Some(Ability::Protocol));
    let only_chat = speaks(Protocol::OpenAi, Some(&[Kind::Chat]));
    let asked = Needs {
        protocol: Some(Protocol::OpenAi),
        kind: Some(Kind::Responses),
        converts_to: WireFormats::default().with(chat),
        ..Needs::default()
    };
    assert_eq!(asked.sent_as(&only_chat), Ok(SentAs::Converted(chat)), "within one protocol too");
}

#[test]
fn a_request_that_cannot_be_converted_goes_to_a_target_that_takes_it_as_it_came() {
    use tidegate_core::plan::Step;
    use tidegate_core::settings::Protocol;
    use tidegate_core::wire_format::{SentAs, WireFormat, WireFormats};
    let mut bed = Bed::of(&["a", "b"]).with(|settings| {
        settings.backends[0].abilities.protocol = Some(Protocol::Anthropic);
        settings.backends[1].abilities.protocol = Some(Protocol::OpenAi);
    });
    let format = WireFormat::Messages;
    let needs = Needs {
        protocol: Some(Protocol::OpenAi),
        converts_to: WireFormats::default().with(format),
        ..Needs::default()
    };
    let spec = RequestSpec { needs, ..RequestSpec::default() };
    let mut plan = bed.begin("main", &spec);
    let Step::Attempt(permit) = bed.next(&mut plan) else { panic!("the first is able") };
    assert_eq!(plan.sent_as(&permit), SentAs::Converted(format));
    plan.decline(permit, format);
    assert!(plan.attempts().is_empty(), "nothing was sent");
    let Step::Attempt(permit) = bed.next(&mut plan) else { panic!("the second is able") };
    assert_eq!((bed.name(&permit).as_str(), plan.sent_as(&permit)), ("b", SentAs::AsItCame));
    let lacking: Vec<_> = plan.lacking(bed.now).map(|(id, it)| (&**id, it)).collect();
    assert_eq!(lacking, [("a", Ability::Protocol)]);
    assert_eq!(bed.snap("a").last_check, None, "nothing was learnt");
}

#[test]
fn a_target_that_does_not_serve_this_kind_of_request_lacks_an_ability() {
    use tidegate_core::settings::{Abilities, Kind};
    let serves = |kinds: &[Kind]| Abilities {
        serves: Some(kinds.iter().copied().collect()),
        ..Abilities::default()
    };
    let asks = |kind| Needs { kind, ..Needs::default() };
    let responses = asks(Some(Kind::Responses));
    assert_eq!(responses.lacking(&serves(&[Kind::Chat, Kind::Other])), Some(Ability::Kind));
    assert_eq!(responses.lacking(&serves(&[Kind::Chat, Kind::Responses])), None);
    assert_eq!(responses.lacking(&serves(&[])), Some(Ability::Kind));
    assert_eq!(responses.lacking(&Abilities::default()), None);
    assert_eq!(asks(None).lacking(&serves(&[])), None);
}

#[test]
fn a_plan_tells_what_each_member_lacks() {
    use tidegate_core::settings::{Kind, Kinds};
    let mut bed = Bed::of(&["a", "b", "c"]).with(|settings| {
        settings.backends[0].abilities.serves = Some(Kinds::from_iter([Kind::Chat]));
        settings.backends[1].abilities.vision = Some(false);
        settings.backends[2].abilities.tools = Some(false);
    });
    let needs =
        Needs { kind: Some(Kind::Embeddings), vision: true, tools: true, ..Needs::default() };
    let told = bed.request_as(&RequestSpec { needs, ..RequestSpec::default() }, |_| ok());
    assert_eq!(told.finish.end, End::NothingAble);
    let lacking: Vec<_> = told.plan.lacking(bed.now).map(|(id, it)| (&**id, it)).collect();
    let expected = [("a", Ability::Kind), ("b", Ability::Vision), ("c", Ability::Tools)];
    assert_eq!(lacking, expected);
}

#[test]
fn an_unknown_ability_means_able() {
    let needs = Needs { tools: true, vision: true, context: u64::MAX, ..Needs::default() };
    assert_eq!(needs.lacking(&tidegate_core::settings::Abilities::default()), None);
    let none = tidegate_core::settings::Abilities { tools: Some(false), ..Default::default() };
    assert_eq!(needs.lacking(&none), Some(Ability::Tools));
}

/// Puts what a rank says against a target.
fn burden(bed: &mut Bed, target: &str, rank: u8) {
    if rank & Rank::UNAVAILABLE != 0 {
        for _ in 0..3 {
            bed.hit(target, refused());
        }
    }
    if rank & Rank::WINDOW != 0 {
        bed.hit(target, come_back(429, 20_000));
    }
    if rank & Rank::EXCLUDED != 0 {
        bed.hit(target, of_kind(OutcomeKind::ModelGone, 404));
    }
    assert_eq!(bed.snap(target).rank, Rank(rank));
}

#[test]
fn the_lowest_sum_of_window_breaker_and_exclusion_wins_over_tiers() {
    for low in 0..8 {
        for high in low + 1..8 {
            let mut bed = Bed::of(&["a", "b"]);
            burden(&mut bed, "a", high);
            burden(&mut bed, "b", low);
            let told = bed.request(|_| ok());
            assert_eq!(told.visited, ["b"], "{low} before {high}");
            let attempt = *told.plan.attempts().iter().next().expect("one was made");
            assert_eq!(attempt.rank, Rank(low));
            assert_eq!(attempt.is_last_resort, low & Rank::UNAVAILABLE != 0);
        }
    }
}

#[test]
fn among_equal_ranks_the_lower_tier_is_used() {
    for rank in 0..8 {
        let mut bed = Bed::of(&["a", "b"]);
        burden(&mut bed, "a", rank);
        burden(&mut bed, "b", rank);
        assert_eq!(bed.request(|_| ok()).visited, ["a"], "{rank}");
    }
}

#[test]
fn with_everything_open_the_client_sees_the_real_upstream_error() {
    let mut bed = Bed::of(&["a b", "c"]);
    for target in ["a", "b", "c"] {
        bed.trip(target);
    }
    let told = bed.request(|target| status(if target == "c" { 502 } else { 500 }));
    assert_eq!(told.visited.len(), 3);
    assert_eq!(told.visited[2], "c");
    assert_eq!(told.finish.status, 502);
    assert!(told.plan.attempts().iter().all(|it| it.is_last_resort && !it.is_trial));
}

#[test]
fn a_taken_slot_makes_a_target_unavailable() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.trip("a");
    bed.wait(30_000);
    let _trial = bed.trial("a");
    assert_eq!((bed.state("a"), bed.snap("a").rank), (State::HalfOpen, Rank(Rank::UNAVAILABLE)));
    assert_eq!(picks(&mut bed, 1), ["b"]);
}

#[test]
fn random_gives_each_peer_its_share() {
    let mut bed = Bed::of(&["a b c"]);
    for (target, share) in shares(&picks(&mut bed, 3_000)) {
        assert!((850..1_150).contains(&share), "{target}: {share}");
    }
}

#[test]
fn weighted_follows_the_weights_and_zero_waits_until_no_other_is_left() {
    let mut bed = Bed::of(&["a b c"]).route(|route| {
        route.tactic = Tactic::Weighted;
        route.tiers[0][0].weight = 3;
        route.tiers[0][2].weight = 0;
    });
    let picks = picks(&mut bed, 2_000);
    let shares = shares(&picks);
    assert!((1_400..1_600).contains(&shares["a"]), "{shares:?}");
    assert_eq!(shares.get("c"), None);
    let told = bed.request(|_| status(500));
    assert_eq!(told.visited.last().map(String::as_str), Some("c"));
}

#[test]
fn round_robin_goes_in_file_order_and_skips_what_is_unavailable() {
    let mut bed = Bed::of(&["a b c"]).route(|route| route.tactic = Tactic::RoundRobin);
    assert_eq!(picks(&mut bed, 4), ["a", "b", "c", "a"]);
    bed.trip("b");
    assert_eq!(picks(&mut bed, 3), ["c", "a", "c"]);
}

#[test]
fn every_round_robin_pick_moves_the_cursor_but_no_pin_does() {
    let mut bed = Bed::of(&["a b c"]).route(|route| route.tactic = Tactic::RoundRobin);
    assert_eq!(bed.session("s", |_| ok()), ["a"]);
    assert_eq!(bed.session("s", |_| ok()), ["a"]);
    assert_eq!(picks(&mut bed, 1), ["b"]);
    let told = bed.request(|target| if target == "c" { status(500) } else { ok() });
    assert_eq!(told.visited, ["c", "a"], "a hop is a pick too");
    assert_eq!(picks(&mut bed, 1), ["b"]);
}

#[test]
fn each_tier_has_a_cursor_of_its_own() {
    let mut bed = Bed::of(&["a b", "c d"]).route(|route| route.tactic = Tactic::RoundRobin);
    assert_eq!(picks(&mut bed, 1), ["a"]);
    bed.trip("a");
    bed.trip("b");
    assert_eq!(picks(&mut bed, 3), ["c", "d", "c"]);
    bed.wait(30_000);
    assert_eq!(picks(&mut bed, 1), ["b"]);
}

#[test]
fn least_busy_takes_the_fewest_in_flight_then_file_order() {
    let mut bed = Bed::of(&["a b c"]).route(|route| route.tactic = Tactic::LeastBusy);
    let busy = (bed.take("a"), bed.take("c"));
    assert_eq!(picks(&mut bed, 2), ["b", "b"]);
    drop(busy);
    assert_eq!(picks(&mut bed, 2), ["a", "a"]);
}

/// An answer of one target whose first content took this long.
fn answer_in(bed: &mut Bed, target: &str, took: u64) {
    let mut held = bed.take(target);
    held.permit.content(bed.now, Millis(took), &mut bed.notes);
    bed.report(held, ok());
}

#[test]
fn least_latency_prefers_the_faster_of_two_and_whom_it_knows_nothing_of() {
    let mut bed = Bed::of(&["a b"]).route(|route| route.tactic = Tactic::LeastLatency);
    answer_in(&mut bed, "a", 900);
    assert_eq!(picks(&mut bed, 20), ["b"; 20], "no samples go first");
    answer_in(&mut bed, "b", 100);
    assert_eq!(picks(&mut bed, 20), ["b"; 20]);
    answer_in(&mut bed, "b", 2_000);
    assert_eq!(picks(&mut bed, 20), ["a"; 20], "a peak counts at once");
}

#[test]
fn answers_that_never_got_to_content_are_no_latency_samples() {
    let mut bed = Bed::of(&["a b"]).route(|route| route.tactic = Tactic::LeastLatency);
    answer_in(&mut bed, "a", 1);
    bed.hit("b", status(500));
    assert_eq!(picks(&mut bed, 10), ["b"; 10]);
}

#[test]
fn every_tactic_sees_breakers() {
    use Tactic::*;
    for tactic in [Random, RoundRobin, Weighted, LeastLatency, LeastBusy] {
        let mut bed = Bed::of(&["a b"]).route(|route| route.tactic = tactic);
        bed.trip("a");
        assert_eq!(picks(&mut bed, 10), ["b"; 10], "{tactic:?}");
    }
}

#[test]
fn explaining_touches_no_state() {
    use Tactic::*;
    for tactic in [Random, RoundRobin, Weighted, LeastLatency, LeastBusy] {
        let mut bed = Bed::of(&["a b", "c"]).route(|route| route.tactic = tactic);
        bed.trip("a");
        bed.wait(30_000);
        let before = (bed.core.snapshot(bed.now), bed.core.pin_count());
        let route = bed.core.route("main").expect("every bed has it");
        let ask = RequestSpec { session: "s", ..RequestSpec::default() };
        let first = bed.core.explain(route, bed.now, &ask, 3);
        for _ in 0..10 {
            assert_eq!(bed.core.explain(route, bed.now, &ask, 3), first, "{tactic:?}");
        }
        assert_eq!((bed.core.snapshot(bed.now), bed.core.pin_count()), before, "{tactic:?}");
        let chosen =
            first.candidates.iter().find(|it| matches!(it.verdict, Verdict::Chosen { .. }));
        let chosen = chosen.expect("something can be chosen").backend.clone();
        let mut plan = bed.begin("main", &ask);
        let step = plan.next(bed.now, 3, &mut bed.notes);
        let tidegate_core::plan::Step::Attempt(permit) = step else { panic!("{step:?}") };
        assert_eq!(*permit.backend().id(), chosen, "{tactic:?}: the request goes where it said");
    }
}

#[test]
fn a_verdict_names_everything_that_stands_against_a_target() {
    let mut bed = Bed::of(&["a", "b"]).endpoint("host", "a");
    burden(&mut bed, "a", 7);
    let route = bed.core.route("main").expect("every bed has it");
    let told = bed.core.explain(route, bed.now, &RequestSpec::default(), 0);
    let Verdict::Skipped(obstacles) = &told.candidates[0].verdict else { panic!("{told:?}") };
    assert!(obstacles.iter().any(|it| matches!(it, Obstacle::Breaker { .. })));
    assert!(obstacles.iter().any(|it| matches!(it, Obstacle::Endpoint { .. })));
    assert!(obstacles.iter().any(|it| matches!(it, Obstacle::Window(_))));
    assert!(obstacles.iter().any(|it| matches!(it, Obstacle::Exclusion(_))));
    assert_eq!(told.rank, Some(Rank(0)));
}
