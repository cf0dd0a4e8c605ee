//! Tests of what a file means to the core.

use tidegate_core::settings::{HealthSettings, Kinds, OnAuthError, PinMode, Protocol, Tactic};

use super::*;
use crate::{load::load, secret::FixedEnvironment};

const FILE: &str = "
health: { failure_threshold: 5 }
providers:
  ollama: { api: openai, url: http://127.0.0.1:11434/v1 }
  groq: { api: openai, key: env:ABSENT }
  anthropic:
    api: anthropic
    keys: [env:KEY_A, env:ABSENT, env:KEY_B]
    health: { open_for: 10s }
    timeouts: { connect: 1s }
    targets:
      claude:
        health: { open_for: 60s }
        timeouts: { first_content: 9s }
        context: 200000
        vision: false
      extra: {}
routes:
  fast:
    tiers: [[ollama/qwen], [groq/llama, anthropic/claude]]
    pick: weighted
    weights: { groq/llama: 3 }
    affinity: { ttl: 1m, pin: answered }
    deadline: 2m
    max_hops: 2
    retry_budget: { floor: 7 }
    on_auth_error: surface
  plain: { tiers: [[ollama/qwen, anthropic/claude]] }
mcp:
  servers:
    files: { command: [npx, server], health: { failure_threshold: 1 } }
";

fn config() -> Config {
    let variables = [("KEY_A", "a"), ("KEY_B", "b")];
    let environment = FixedEnvironment {
        variables: variables.map(|(name, value)| (name.into(), value.into())).to_vec(),
        files: Vec::new(),
    };
    let loaded = load(&Source::new("t.yaml", FILE), &environment);
    loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

#[test]
fn endpoints_keys_and_backends_have_ids_and_identities() {
    let settings = config().settings;
    let endpoints: Vec<_> =
        settings.endpoints.iter().map(|e| (e.id.as_str(), e.identity.as_str())).collect();
    assert_eq!(
        endpoints,
        [
            ("ollama", "http://127.0.0.1:11434/v1"),
            ("groq", "https://api.openai.com/v1"),
            ("anthropic", "https://api.anthropic.com")
        ]
    );
    let keys: Vec<_> = settings.keys.iter().map(|k| (k.id.as_str(), k.identity.as_str())).collect();
    assert_eq!(
        keys,
        [
            ("ollama#1", "ollama none"),
            ("groq#1", "groq env:ABSENT"),
            ("anthropic#1", "anthropic env:KEY_A"),
            ("anthropic#2", "anthropic env:ABSENT"),
            ("anthropic#3", "anthropic env:KEY_B")
        ]
    );
    let backends: Vec<_> =
        settings.backends.iter().map(|b| (b.id.as_str(), b.endpoint, b.keys.clone())).collect();
    assert_eq!(
        backends,
        [
            ("ollama/qwen", Some(0), vec![0]),
            ("groq/llama", Some(1), vec![1]),
            ("anthropic/claude", Some(2), vec![2, 4]),
            ("anthropic/extra", Some(2), vec![2, 4]),
            ("mcp:files", None, vec![])
        ]
    );
    assert_eq!(settings.backends[2].identity, "https://api.anthropic.com claude");
    assert_eq!(settings.backends[4].identity, "npx server");
}

#[test]
fn secrets_stand_beside_their_keys() {
    let config = config();
    let exposed: Vec<_> =
        config.secrets.iter().map(|secret| secret.as_ref().map(Secret::expose)).collect();
    assert_eq!(exposed, [None, None, Some("a"), None, Some("b")]);
}

#[test]
fn health_and_timeouts_come_from_the_innermost_block() {
    let settings = config().settings;
    let claude = &settings.backends[2];
    assert_eq!(claude.health.open_for, Millis::seconds(60));
    assert_eq!(claude.health.failure_threshold, 5);
    assert_eq!(claude.first_content_within, Millis::seconds(10));
    assert_eq!(claude.answer_within, Millis::minutes(10));
    let abilities = Abilities {
        tools: None,
        vision: Some(false),
        documents: None,
        json_schema: None,
        reasoning: None,
        context: Some(200_000),
        protocol: Some(Protocol::Anthropic),
        serves: Some(Kinds::KNOWN),
        prefers_responses: false,
    };
    assert_eq!(claude.abilities, abilities);
    assert_eq!(settings.backends[3].health.open_for, Millis::seconds(10));
    assert_eq!(settings.backends[4].health.failure_threshold, 1);
    assert_eq!(settings.endpoints[2].health.open_for, Millis::seconds(10));
    assert_eq!(settings.backends[0].health.window, HealthSettings::default().window);
}

#[test]
fn a_route_keeps_its_tiers_and_every_setting() {
    let settings = config().settings;
    let fast = &settings.routes[0];
    let member = |backend, weight, membership| MemberSettings { backend, weight, membership };
    assert_eq!(
        fast.tiers,
        [
            vec![member(0, 1, Membership::Active)],
            vec![member(1, 3, Membership::Unconfigured), member(2, 1, Membership::Active)]
        ]
    );
    assert_eq!(fast.tactic, Tactic::Weighted);
    assert_eq!((fast.affinity_ttl, fast.pin), (Millis::minutes(1), PinMode::Answered));
    assert_eq!((fast.deadline, fast.max_hops), (Millis::minutes(2), 2));
    assert_eq!((fast.budget.floor, fast.budget.window), (7, Millis::seconds(10)));
    assert_eq!(fast.on_auth_error, OnAuthError::Surface);
    let plain = &settings.routes[1];
    let expected = RouteSettings {
        name: "plain".into(),
        tiers: vec![vec![member(0, 1, Membership::Active), member(2, 1, Membership::Active)]],
        ..RouteSettings::default()
    };
    assert_eq!(*plain, expected, "an unwritten key is the core's default");
}
