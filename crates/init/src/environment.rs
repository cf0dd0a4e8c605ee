//! A first config from the keys that are set, and the models that a local Ollama has.

use serde_json::{Value, json};

use crate::{
    draft::Draft,
    vendor::{VENDORS, Vendor},
};

/// Where Ollama listens unless told otherwise.
pub const OLLAMA_URL: &str = "http://127.0.0.1:11434";

/// The name of the route.
const ROUTE: &str = "main";

/// A key that was found, by the names of the vendor and the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The provider's name in the config.
    pub provider: &'static str,
    /// The variable that holds its key.
    pub variable: &'static str,
}

/// A local Ollama that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaModels {
    /// Where, without a path: `http://127.0.0.1:11434`.
    pub url: String,
    /// The models it has.
    pub models: Vec<String>,
}

/// Every variable that is looked for, in order.
pub fn known_variables() -> impl Iterator<Item = &'static str> {
    VENDORS.iter().flat_map(|vendor| vendor.variables.iter().copied())
}

/// A config for the vendors whose variable `is_set`, and for Ollama; none if there is neither.
#[must_use]
pub fn from_environment(
    is_set: impl Fn(&str) -> bool,
    ollama: Option<&OllamaModels>,
) -> Option<(Draft, Vec<Found>)> {
    let usable = |vendor: &'static Vendor| {
        let variable = vendor.variables.iter().find(|name| is_set(name))?;
        Some((vendor, *variable))
    };
    let found: Vec<_> = VENDORS.iter().filter_map(usable).collect();
    let mut providers = serde_json::Map::new();
    let mut tiers: Vec<Value> = Vec::new();
    for (vendor, variable) in &found {
        let mut settings = vendor.settings(None);
        settings.insert("key".to_owned(), json!(format!("env:{variable}")));
        providers.insert(vendor.name.to_owned(), Value::Object(settings));
        tiers.push(json!([format!("{}/{}", vendor.name, vendor.model)]));
    }
    if let Some((ollama, model)) = ollama.and_then(|it| Some((it, chat_model(&it.models)?))) {
        let url = format!("{}/v1", ollama.url);
        let settings = json!({ "api": "openai", "url": url, "probe": { "path": "/api/tags" } });
        providers.insert("ollama".to_owned(), settings);
        tiers.push(json!([format!("ollama/{model}")]));
    }
    if tiers.is_empty() {
        return None;
    }
    let keys = found.iter().map(|(vendor, variable)| Found { provider: vendor.name, variable });
    let keys = keys.collect();
    Some((draft(providers, tiers), keys))
}

fn draft(providers: serde_json::Map<String, Value>, tiers: Vec<Value>) -> Draft {
    let mut draft = Draft::default();
    draft.heading(&[
        "The config of a Tidegate gateway, written by `tidegate init` for the keys that were set.",
        "`tidegate check` checks it, `tidegate serve` serves it; see `tidegate help config`.",
    ]);
    draft.set("listen", json!("127.0.0.1:8700"));
    draft.comment(
        "listen",
        &[
            "Clients use http://127.0.0.1:8700/v1 as base url (Anthropic SDKs: without /v1).",
            "An address that is not loopback also requires `keys`.",
        ],
    );
    draft.set("providers", Value::Object(providers));
    draft.comment(
        "providers",
        &["A key is a reference to an environment variable (env:NAME) or a file (file:path)."],
    );
    draft.set("routes", json!({ ROUTE: { "about": "the default route", "tiers": tiers } }));
    draft.comment("routes", &[
        "Clients ask for the model `main`. The first tier is tried first, the next one when it has",
        "nothing healthy; targets in one tier share the traffic: [openai/gpt-5-mini, groq/...].",
        "Choose your models: `tidegate check --connect` says whether a provider has them.",
    ]);
    draft.set("default_route", json!(ROUTE));
    draft.comment("default_route", &["For requests without a model, or with an unknown one."]);
    draft
}

/// The first model that is no embedding model: those cannot chat.
fn chat_model(models: &[String]) -> Option<&String> {
    models.iter().find(|model| !model.contains("embed") && !model.is_empty())
}

#[cfg(test)]
mod tests {
    use tidegate_config::secret::ProcessEnvironment;

    use super::{OllamaModels, from_environment, known_variables};

    #[test]
    fn a_config_for_every_known_key_is_sound_and_refers_to_each_variable_once() {
        for wanted in known_variables() {
            let (draft, found) = from_environment(|name| name == wanted, None).expect("one key");
            assert_eq!(found.len(), 1, "{wanted}");
            let finished = draft.finish(&ProcessEnvironment).expect("sound");
            assert!(finished.notes.is_empty(), "{wanted}: {:?}", finished.notes);
            assert_eq!(finished.variables, [wanted]);
        }
        let (draft, _) = from_environment(|_| true, None).expect("all keys");
        let finished = draft.finish(&ProcessEnvironment).expect("sound");
        assert!(finished.notes.is_empty(), "{:?}", finished.notes);
    }

    #[test]
    fn ollama_is_the_last_tier_and_an_embedding_model_is_not_asked_to_chat() {
        let models = ["nomic-embed-text:latest".to_owned(), "qwen2.5:7b".to_owned()];
        let url = "http://127.0.0.1:11434".to_owned();
        let ollama = OllamaModels { url, models: models.to_vec() };
        let is_groq = |name: &str| name == "GROQ_API_KEY";
        let (draft, _) = from_environment(is_groq, Some(&ollama)).expect("both");
        let text = draft.finish(&ProcessEnvironment).expect("sound").text;
        let tiers = "      - [groq/openai/gpt-oss-20b]\n      - [ollama/qwen2.5:7b]\n";
        assert!(text.contains(tiers), "{text}");
        let embeddings = OllamaModels { models: models[..1].to_vec(), ..ollama };
        assert!(from_environment(|_| false, Some(&embeddings)).is_none());
    }
}
