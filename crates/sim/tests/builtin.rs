//! The built-in examples: each says what it shows, holds for many seeds, and can fail.

use tidegate_config::source::Source;
use tidegate_sim::{
    builtin,
    scenario::{Format, RenderOptions, Scenario, load},
};

fn sequences() -> impl Iterator<Item = (&'static builtin::Builtin, Scenario)> {
    let scenario =
        |it: &'static builtin::Builtin| (it, it.scenario().expect("an example is sound"));
    builtin::all().map(scenario).filter(|(_, it)| matches!(it, Scenario::Sequence(_)))
}

#[test]
fn every_sequence_passes_with_fifty_seeds() {
    for (_, scenario) in sequences() {
        for seed in 0..50 {
            let report = scenario.run(seed);
            assert_eq!(report.failures(), [], "{}", report.replay());
        }
    }
}

#[test]
fn every_example_says_what_it_shows_and_is_called_as_its_file() {
    assert!(sequences().count() >= 15);
    for (builtin, scenario) in sequences() {
        assert_eq!(scenario.name(), builtin.name);
        assert!(!scenario.about().is_empty(), "{}", builtin.name);
        let (_, problems) = load(&Source::new(builtin.name, builtin.text));
        assert_eq!(problems, [], "{}", builtin.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_every_format() {
    for (_, scenario) in sequences() {
        for format in [Format::Graph, Format::Table, Format::Json] {
            let options = RenderOptions { format, ..RenderOptions::default() };
            assert_eq!(scenario.run(7).render(&options), scenario.run(7).render(&options));
        }
    }
}

/// The failures of an example whose file has `from` replaced by `to`.
fn failures_of(name: &str, from: &str, to: &str) -> usize {
    let text = builtin::get(name).expect("an example").text;
    assert!(text.contains(from), "{name} has no `{from}`");
    let source = Source::new("changed.yaml", &text.replace(from, to));
    let (scenario, problems) = load(&source);
    let scenario = scenario.unwrap_or_else(|| panic!("{name}: {problems:?}"));
    scenario.run(0).failures().len()
}

/// Behaviour that is a little wrong is imitated by another policy, script or program.
#[test]
fn an_example_fails_when_the_behaviour_is_another() {
    let wrong = [
        ("single", "[200, 500, 200, 502]", "[500, 500, 500, 502]"),
        ("flat", "tactic: random", "tactic: tier"),
        ("cascade", "advance: 30s", "advance: 29s"),
        ("halfopen", "advance: 29s", "advance: 30s"),
        ("grid", "within_tier_tactic: round_robin", "policy: { failure_threshold: 9 }"),
        ("regression", "tier: 0", "tier: 2"),
        ("ratelimit", "retry_after: 2500ms", "retry_after: 2501ms"),
        ("authflip", "advance: 29s", "advance: 30s"),
        ("crossmodel", "services:", "policy: { max_hops: 1 }\nservices:"),
        ("degrade", "services:", "policy: { max_hops: 0 }\nservices:"),
        ("inactive", ", inactive: true", ""),
        ("withintier", "weight: 0", "weight: 3"),
        ("multiaffinity", "advance: 1ms", "advance: 0s"),
        ("promotionhold", "advance: 1ms", "advance: 0s"),
        ("flapping", "open_growth: 2", "open_growth: 1"),
    ];
    for (name, from, to) in wrong {
        assert!(failures_of(name, from, to) > 0, "{name} with `{to}`");
    }
    let tested: Vec<&str> = wrong.iter().map(|(name, ..)| *name).collect();
    let names: Vec<&str> = sequences().map(|(builtin, _)| builtin.name).collect();
    assert_eq!(tested, names);
}
