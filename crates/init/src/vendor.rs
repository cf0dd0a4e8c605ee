//! The vendors whose keys and names are known, and how each is reached.
//!
//! A vendor is a value: where its key usually stands, which api it has, at which url. The model is
//! one that the vendor offers to everybody; the text of the config asks the reader to choose.

use serde_json::{Map, Value, json};

/// A vendor of an LLM API.
#[derive(Debug)]
pub(crate) struct Vendor {
    /// The provider's name in the config.
    pub(crate) name: &'static str,
    /// What it is called in front of a model by LiteLLM.
    pub(crate) litellm: &'static [&'static str],
    /// Variables that may hold its key, the usual one first.
    pub(crate) variables: &'static [&'static str],
    /// Its `api` in the config.
    pub(crate) api: &'static str,
    /// Its base url; none: the default of the api.
    pub(crate) url: Option<&'static str>,
    /// What it serves, where that is less than its api has.
    pub(crate) serves: &'static [&'static str],
    /// A model to begin with.
    pub(crate) model: &'static str,
}

/// Every known vendor, in the order in which a first config tries them.
pub(crate) const VENDORS: &[Vendor] = &[
    Vendor {
        name: "anthropic",
        litellm: &["anthropic"],
        variables: &["ANTHROPIC_API_KEY"],
        api: "anthropic",
        url: None,
        serves: &[],
        model: "claude-sonnet-4-5",
    },
    Vendor {
        name: "openai",
        litellm: &["openai", "text-completion-openai"],
        variables: &["OPENAI_API_KEY"],
        api: "openai",
        url: None,
        serves: &[],
        model: "gpt-5-mini",
    },
    // Google's endpoint for OpenAI clients: embeddings of such clients work there, and are not
    // converted for `api: gemini`.
    Vendor {
        name: "gemini",
        litellm: &["gemini"],
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        api: "openai",
        url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        serves: &["chat", "embeddings"],
        model: "gemini-2.5-flash",
    },
    Vendor {
        name: "mistral",
        litellm: &["mistral"],
        variables: &["MISTRAL_API_KEY"],
        api: "openai",
        url: Some("https://api.mistral.ai/v1"),
        serves: &["chat", "embeddings"],
        model: "mistral-small-latest",
    },
    Vendor {
        name: "groq",
        litellm: &["groq"],
        variables: &["GROQ_API_KEY"],
        api: "openai",
        url: Some("https://api.groq.com/openai/v1"),
        serves: &["chat", "responses"],
        model: "openai/gpt-oss-20b",
    },
    Vendor {
        name: "deepseek",
        litellm: &["deepseek"],
        variables: &["DEEPSEEK_API_KEY"],
        api: "openai",
        url: Some("https://api.deepseek.com/v1"),
        serves: &["chat"],
        model: "deepseek-chat",
    },
    Vendor {
        name: "xai",
        litellm: &["xai"],
        variables: &["XAI_API_KEY"],
        api: "openai",
        url: Some("https://api.x.ai/v1"),
        serves: &["chat", "responses"],
        model: "grok-4",
    },
    Vendor {
        name: "cerebras",
        litellm: &["cerebras"],
        variables: &["CEREBRAS_API_KEY"],
        api: "openai",
        url: Some("https://api.cerebras.ai/v1"),
        serves: &["chat"],
        model: "llama-3.3-70b",
    },
    Vendor {
        name: "together",
        litellm: &["together_ai"],
        variables: &["TOGETHER_API_KEY", "TOGETHERAI_API_KEY"],
        api: "openai",
        url: Some("https://api.together.xyz/v1"),
        serves: &["chat", "embeddings"],
        model: "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    },
    Vendor {
        name: "fireworks",
        litellm: &["fireworks_ai"],
        variables: &["FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"],
        api: "openai",
        url: Some("https://api.fireworks.ai/inference/v1"),
        serves: &["chat", "embeddings"],
        model: "accounts/fireworks/models/llama-v3p3-70b-instruct",
    },
    Vendor {
        name: "perplexity",
        litellm: &["perplexity"],
        variables: &["PERPLEXITY_API_KEY", "PERPLEXITYAI_API_KEY"],
        api: "openai",
        url: Some("https://api.perplexity.ai"),
        serves: &["chat"],
        model: "sonar",
    },
    Vendor {
        name: "openrouter",
        litellm: &["openrouter"],
        variables: &["OPENROUTER_API_KEY"],
        api: "openai",
        url: Some("https://openrouter.ai/api/v1"),
        serves: &["chat"],
        model: "openrouter/auto",
    },
];

impl Vendor {
    /// The vendor that LiteLLM calls by this word.
    pub(crate) fn of_litellm(word: &str) -> Option<&'static Self> {
        VENDORS.iter().find(|vendor| vendor.litellm.contains(&word))
    }

    /// The provider's settings, but for its key.
    pub(crate) fn settings(&self, url: Option<&str>) -> Map<String, Value> {
        let mut settings = Map::new();
        settings.insert("api".to_owned(), json!(self.api));
        if let Some(url) = url.or(self.url) {
            settings.insert("url".to_owned(), json!(url));
        }
        // Another server than the vendor's may serve more or less; nothing is known of it.
        if !self.serves.is_empty() && url.is_none() {
            settings.insert("serves".to_owned(), json!(self.serves));
        }
        settings
    }
}
