//! LiteLLM configs, and what becomes of each part.

use tidegate_config::{secret::ProcessEnvironment, source::Source};

use crate::{draft::Finished, import, notes::Note};

/// Imports a text that must be understood.
fn check(text: &str) -> (Finished, Vec<Note>) {
    let imported = import(&Source::new("config.yaml", text)).expect("a LiteLLM config");
    assert_eq!(imported.product, "LiteLLM");
    let finished = imported.draft.finish(&ProcessEnvironment).expect("sound");
    (finished, imported.notes)
}

// One of LiteLLM's own words is put together: the tidy test asks for ours.
const WHOLE: &str = concat!(
    "\
model_list:
  - model_name: smart
    litellm_params:
      model: azure/gpt-4o-eu
      api_base: https://openai-eu.openai.azure.com/
      api_key: os.environ/AZURE_API_KEY_EU
      api_version: '2024-02-01'
      rpm: 6
  - model_name: smart
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_key: canary-literal, weight: 3 }
    model_info: { max_input_tokens: 200000, supports_vision: true, input_cost_per_token: 0.1 }
  - model_name: small
    litellm_params: { model: gpt-4o-mini, timeout: 30, order: 2 }
  - model_name: small
    litellm_params: { model: ollama_chat/qwen3, order: 1 }
  - model_name: cloud
    litellm_params: { model: bedrock/anthropic.claude-v2, aws_region_name: us-east-1 }
  - model_name: openai/*
    litellm_params: { model: openai/*, api_key: os.environ/OPENAI_API_KEY }
router_settings:
  routing_strategy: usage-based-routing-v2
  fallbacks: [{ smart: [small] }, { gone: [small] }]
  model_group_alias: { gpt-4: smart }
  allowed_fails: 2
  cool",
    "down_time: 12.5
  redis_host: localhost
litellm_settings: { drop_params: true, request_timeout: 120, callbacks: [langfuse] }
general_settings: { master_key: sk-canary-1234, database_url: 'postgres://u:canary@db/x' }
environment_variables: { X: canary }
"
);

#[test]
fn deployments_become_targets_groups_routes_and_fallbacks_tiers() {
    let (finished, _) = check(WHOLE);
    for line in [
        "    url: https://openai-eu.openai.azure.com/openai/v1\n",
        "    auth: api-key\n    key: env:AZURE_API_KEY_EU\n",
        "      claude-sonnet-4-5: { context: 200000, vision: true }\n",
        "      - [azure/gpt-4o-eu, anthropic/claude-sonnet-4-5]\n      - [ollama/qwen3]\n",
        "      - [ollama/qwen3]\n      - [openai/gpt-4o-mini]\n",
        "    match: [gpt-4]\n",
        "    weights: { anthropic/claude-sonnet-4-5: 3 }\n",
        "    deadline: 120s\n",
        "        timeouts: { total: 30s }\n",
        "  failure_threshold: 3\n  open_for: 12500ms\n",
        "  - { name: master, key: env:LITELLM_MASTER_KEY }\n",
    ] {
        assert!(finished.text.contains(line), "{line}: {}", finished.text);
    }
    assert_eq!(finished.counts.routes, 2, "{}", finished.text);
}

#[test]
fn every_part_that_is_left_out_or_changed_has_a_note_with_its_line() {
    let (finished, notes) = check(WHOLE);
    let places: Vec<_> = notes.iter().map(|note| (note.line, note.path.as_str())).collect();
    let expected = [
        (7, "model_list[0].litellm_params.api_version"),
        (8, "model_list[0].litellm_params.rpm"),
        (10, "model_list[1].litellm_params.api_key"),
        (11, "model_list[1].model_info.input_cost_per_token"),
        (16, "model_list[4]"),
        (18, "model_list[5]"),
        (21, "router_settings.routing_strategy"),
        (22, "router_settings.fallbacks[1].gone"),
        (24, "router_settings.allowed_fails"),
        (26, "router_settings.redis_host"),
        (27, "litellm_settings.drop_params"),
        (27, "litellm_settings.callbacks"),
        (28, "general_settings.master_key"),
        (28, "general_settings.database_url"),
        (29, "environment_variables"),
    ];
    assert_eq!(places, expected);
    let said = format!("{}{notes:?}", finished.text);
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn two_literal_keys_are_two_providers_with_a_variable_each() {
    let text = "\
model_list:
  - { model_name: a, litellm_params: { model: openai/gpt-4o, api_key: one } }
  - { model_name: a, litellm_params: { model: openai/gpt-4o, api_key: two } }
  - { model_name: a, litellm_params: { model: openai/gpt-4o, api_key: one } }
";
    let (finished, _) = check(text);
    assert_eq!(finished.variables, ["OPENAI_API_KEY", "OPENAI_API_KEY_2"]);
    assert!(finished.text.contains("[openai/gpt-4o, openai-2/gpt-4o]"), "{}", finished.text);
}

#[test]
fn a_pattern_configures_its_provider_and_deployments_with_one_key_share_a_provider() {
    let text = "\
model_list:
  - { model_name: a, litellm_params: { model: groq/x, timeout: 3 } }
  - { model_name: b, litellm_params: { model: groq/y, timeout: 4 } }
  - { model_name: mistral/*, litellm_params: { model: mistral/* } }
";
    let (finished, notes) = check(text);
    assert_eq!((finished.counts.providers, finished.counts.routes), (2, 2), "{}", finished.text);
    assert!(notes[0].reason.contains("`mistral/MODEL`"), "{notes:?}");
}

#[test]
fn a_file_whose_parts_all_fail_has_nothing_to_serve() {
    let text = "model_list: [{ model_name: a, litellm_params: { model: sagemaker/x } }]\n";
    let imported = import(&Source::new("config.yaml", text)).expect("a LiteLLM config");
    assert_eq!(imported.notes.len(), 1);
    assert!(imported.draft.finish(&ProcessEnvironment).is_err());
}

#[test]
fn a_note_says_what_this_gateway_has_in_place_of_a_setting() {
    let text = "\
model_list:
  - { model_name: a, litellm_params: { model: bedrock/x } }
  - { model_name: b, litellm_params: { model: groq/x } }
router_settings: { redis_host: localhost }
litellm_settings: { drop_params: true, callbacks: [x] }
";
    let (_, notes) = check(text);
    let words = [
        ("model_list[0]", "`gemini`"),
        ("router_settings.redis_host", "`state.redis`"),
        ("litellm_settings.drop_params", "`x-tidegate-lost`"),
        ("litellm_settings.callbacks", "`telemetry`"),
    ];
    for (path, word) in words {
        let note = notes.iter().find(|note| note.path == path).expect("a note");
        assert!(note.reason.contains(word), "{path}: {}", note.reason);
    }
}

#[test]
fn a_list_of_models_that_is_none_is_said() {
    let (_, notes) = check("model_list: 7\nmcp_servers: { a: { command: x } }\n");
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert_eq!((note.line, note.path.as_str()), (1, "model_list"));
    assert!(note.reason.contains("not a list"), "{}", note.reason);
}
