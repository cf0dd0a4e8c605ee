//! State that one provider holds keeps a request there; sealed reasoning gives precedence.

use tidegate_core::{
    attempt::End,
    choice::PinUse,
    explain::Verdict,
    held_state::{HeldState, StateKind},
    plan::RequestSpec,
    route::{Ability, Needs},
    settings::Protocol,
};

use crate::bed::{Bed, ok, refused};

/// Two tiers at two providers, both of one protocol.
fn bed() -> Bed {
    Bed::of(&["a", "b"]).endpoint("x", "a").endpoint("y", "b").with(|settings| {
        for backend in &mut settings.backends {
            backend.abilities.protocol = Some(Protocol::OpenAi);
        }
    })
}

fn needs(kind: StateKind) -> Needs {
    Needs {
        protocol: Some(Protocol::OpenAi),
        state: Some(HeldState::new(kind, Some(Protocol::OpenAi))),
        ..Needs::default()
    }
}

fn continues(id: &str) -> RequestSpec<'_> {
    let needs = needs(StateKind::PreviousResponse);
    RequestSpec { caller: "c", needs, state_id: id, ..RequestSpec::default() }
}

/// A response of `target` under this id.
fn respond(bed: &mut Bed, target: &str, id: &str) {
    let mut plan = bed.begin(target, &RequestSpec { caller: "c", ..RequestSpec::default() });
    let permit = bed.next_permit(&mut plan);
    plan.keep_state(bed.now, &permit, ("c", id));
    plan.report(bed.now, permit, &ok(), &mut bed.notes);
}

#[test]
fn a_request_goes_to_the_provider_that_holds_its_state_and_to_no_other() {
    let mut bed = bed();
    respond(&mut bed, "b", "r1");
    assert_eq!(bed.request_as(&continues("r1"), |_| ok()).visited, ["b"]);
    let told = bed.request_as(&continues("r1"), |_| refused());
    assert_eq!((told.visited.join(" "), told.finish.end), ("b".to_owned(), End::NothingLeft));
    bed.wait(10 * 24 * 3_600_000);
    assert_eq!(bed.request_as(&continues("r1"), |_| ok()).visited, ["b"], "days later too");
}

#[test]
fn an_open_breaker_of_the_holder_sends_nothing_elsewhere() {
    let mut bed = bed();
    respond(&mut bed, "b", "r1");
    bed.trip("b");
    let told = bed.request_as(&continues("r1"), |_| ok());
    assert_eq!(told.visited, ["b"], "a last resort at the only one that can know");
    let route = bed.core.route("main").expect("the route");
    let explained = bed.core.explain(route, bed.now, &continues("r1"), 0);
    let lacks = |verdict: &Verdict| format!("{verdict:?}").contains("PreviousResponse");
    assert!(lacks(&explained.candidates[0].verdict), "{explained:?}");
    let state = explained.state.expect("it is kept");
    assert_eq!((state.provider.as_deref(), state.is_required), (Some("y"), true));
}

#[test]
fn an_unknown_id_is_looked_for_where_the_session_is_else_at_the_first_provider() {
    let mut bed = bed();
    assert_eq!(bed.request_as(&continues("r9"), |_| ok()).visited, ["a"]);
    let told = bed.request_as(&continues("r9"), |_| refused());
    assert_eq!(told.visited, ["a"], "not at the others");
    let spec = RequestSpec { caller: "other", ..continues("r1") };
    respond(&mut bed, "b", "r1");
    assert_eq!(bed.request_as(&spec, |_| ok()).visited, ["a"], "an id is its caller's");
    let session = RequestSpec { caller: "c", session: "s", ..RequestSpec::default() };
    bed.trip("a");
    assert_eq!(bed.request_as(&session, |_| ok()).visited, ["b"]);
    bed.wait(31_000);
    let spec = RequestSpec { session: "s", ..continues("r9") };
    assert_eq!(bed.request_as(&spec, |_| ok()).visited, ["b"], "where the session is");
}

#[test]
fn a_holder_that_a_reload_removed_is_gone() {
    let mut bed = bed();
    respond(&mut bed, "b", "r1");
    let mut settings = bed.settings.clone();
    settings.backends.truncate(1);
    settings.routes.truncate(2);
    settings.routes[0].tiers.truncate(1);
    bed.core = bed.core.reload(bed.now, &settings);
    let told = bed.request_as(&continues("r1"), |_| ok());
    assert_eq!(told.finish.end, End::NothingAble);
    let lacking: Vec<_> = told.plan.lacking(bed.now).map(|(id, it)| (&**id, it)).collect();
    assert_eq!(lacking, [("a", Ability::PreviousResponse)]);
}

#[test]
fn sealed_reasoning_goes_first_to_who_can_read_it_and_then_to_anybody() {
    let mut bed = bed().with(|settings| {
        settings.backends[0].abilities.protocol = Some(Protocol::Anthropic);
    });
    let needs = Needs { protocol: None, ..needs(StateKind::SealedReasoning) };
    let spec = RequestSpec { caller: "c", session: "s", needs, ..RequestSpec::default() };
    let told = bed.request_as(&spec, |_| ok());
    assert_eq!(told.visited, ["b"], "past the tier before it");
    let told = bed.request_as(&spec, |target| if target == "b" { refused() } else { ok() });
    assert_eq!(told.visited, ["b", "a"], "a hop is free to go anywhere");
    bed.trip("b");
    assert_eq!(bed.request_as(&spec, |_| ok()).visited, ["a"], "nobody waits for it");
    bed.wait(31_000);
    let told = bed.request_as(&spec, |_| ok());
    assert_eq!(told.visited, ["b"], "it is trusted with a trial again");
    let pins: Vec<PinUse> = told.plan.attempts().iter().map(|it| it.pin).collect();
    assert_eq!(pins, [PinUse::Declined], "the session moves for a recorded reason");
}

#[test]
fn what_the_path_says_of_the_protocol_stands_whatever_the_body_says() {
    let of_path = Needs { protocol: Some(Protocol::Anthropic), ..Needs::default() };
    let of_body = Needs { tools: true, ..Needs::default() };
    let both = of_path.and_of_body(of_body);
    assert_eq!((both.protocol, both.tools), (Some(Protocol::Anthropic), true));
}
