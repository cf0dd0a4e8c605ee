//! Clients with a dialect and needs: a target that cannot serve their requests is no candidate, as
//! the data plane would judge it.

use tidegate_config::source::Source;
use tidegate_sim::scenario::{Scenario, load};

/// Two backends, the second of which is fine; the first refuses from 30 s on.
fn timeline(traffic: &str, targets: &str, expect: &str) -> Scenario {
    let text = format!(
        "for: 2m\n\
         traffic: {{ rate: 5/s, {traffic} }}\n\
         config: {{ probe: {{ every: 0s }}, targets: {{ {targets} }} }}\n\
         backends:\n\
         \x20 a/m: [{{ at: 0s, do: ok }}, {{ at: 30s, do: refuse }}]\n\
         \x20 b/m: [{{ at: 0s, do: ok }}]\n\
         expect: {{ {expect} }}\n"
    );
    let (scenario, problems) = load(&Source::new("t.yaml", &text));
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    scenario.expect("a file without problems is a scenario")
}

fn failures(scenario: &Scenario) -> Vec<String> {
    scenario.run(0).failures().iter().map(|it| it.sentence.clone()).collect()
}

#[test]
fn a_target_of_another_dialect_takes_over() {
    let targets = "a/m: { api: anthropic }, b/m: { api: openai }";
    for dialect in ["chat", "responses", "messages", "gemini"] {
        let traffic = format!("dialect: {dialect}, needs: [tools]");
        let scenario = timeline(&traffic, targets, "client_failures: { max: 0 }");
        assert_eq!(failures(&scenario), Vec::<String>::new(), "{dialect}");
    }
}

#[test]
fn a_target_that_lacks_what_requests_need_is_no_fallback() {
    for need in ["tools", "vision", "documents", "json_schema", "reasoning"] {
        let targets = format!("b/m: {{ {need}: false }}");
        let needs = format!("dialect: messages, needs: [{need}]");
        let expect = "client_failures: { max: 0 }, shares: { b/m: { max: 0% } }";
        let told = failures(&timeline(&needs, &targets, expect));
        assert_eq!(told.len(), 1, "clients fail, and b is never asked: {told:?}");
        assert!(told[0].contains("client failures"), "{told:?}");
        let able = timeline("dialect: messages", &targets, "client_failures: { max: 0 }");
        assert_eq!(failures(&able), Vec::<String>::new(), "{need} is not asked for");
    }
}

#[test]
fn an_unknown_target_is_a_problem() {
    let text = "for: 1m\ntraffic: { rate: 1/s }\nconfig: { targets: { c/m: {} } }\n\
        backends: { a/m: [{ at: 0s, do: ok }] }\n";
    let (_, problems) = load(&Source::new("t.yaml", text));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.contains("`c/m`"), "{problems:?}");
}
