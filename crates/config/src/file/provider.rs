//! `providers`: LLM APIs, their keys and their targets.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_core::settings::{Kind, Kinds, Protocol};

use super::{
    health::{HealthFile, ProbeFile},
    timeouts::{Timeouts, TimeoutsFile},
};
use crate::secret::SecretRef;

/// What stands in a url for the name of the target's model.
pub const MODEL_PLACE: &str = "{model}";

/// An LLM API: wire format, url, keys.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderFile {
    /// The wire format it speaks.
    #[schemars(example = &"openai")]
    pub api: Api,
    /// The base url, as the vendor's SDK takes it (with `/v1` for openai). Absent: the public one.
    /// `{model}` in it stands for the target's model, as in Azure's
    /// `https://NAME.openai.azure.com/openai/deployments/{model}`.
    #[schemars(example = &"http://127.0.0.1:11434/v1")]
    pub url: Option<String>,
    /// Its key. Absent, and no `keys`: requests carry none.
    #[schemars(example = &"env:GROQ_API_KEY")]
    pub key: Option<SecretRef>,
    /// A pool of keys, used in turn, each with a health of its own; instead of `key`.
    #[schemars(example = json!(["env:ANTHROPIC_KEY_A", "env:ANTHROPIC_KEY_B"]))]
    pub keys: Option<Vec<SecretRef>>,
    /// How the key is sent. Absent: as the api wants it.
    #[schemars(example = &"x-api-key")]
    pub auth: Option<Auth>,
    /// Headers added to every request; `env:NAME` and `file:path` work here too.
    #[serde(default)]
    #[schemars(example = json!({"anthropic-beta": "tools-2024"}))]
    pub headers: IndexMap<String, SecretRef>,
    /// Query parameters added to every request.
    #[serde(default)]
    #[schemars(example = json!({"api-version": "2024-10-21"}))]
    pub query: IndexMap<String, String>,
    /// How long each part of an attempt may take.
    #[serde(default)]
    pub timeouts: TimeoutsFile,
    /// Extra root certificates, as `file:path`. Absent: the system's only.
    #[schemars(example = &"file:corp.pem")]
    pub ca: Option<SecretRef>,
    /// The provider's probe; merged over `health.probe`.
    pub probe: Option<ProbeFile>,
    /// What it serves: its targets are skipped for any other request. Absent: every known path of
    /// inference, and no other. With another api than openai only `other` has an effect.
    #[schemars(example = json!(["chat"]))]
    pub serves: Option<Vec<Serves>>,
    /// Whether a host name may resolve to a private address.
    #[serde(default)]
    #[schemars(example = true)]
    pub allow_private: bool,
    /// Whether other replicas hear what this one learns of it (with `state`). `false` is for one
    /// that every machine has for itself, such as an Ollama beside each gateway.
    #[serde(default = "shared")]
    #[schemars(example = false)]
    pub fleet: bool,
    /// How the health of its targets is judged, where it differs from the top level.
    #[serde(default)]
    pub health: HealthFile,
    /// What differs for single models, by model name.
    #[serde(default)]
    #[schemars(example = json!({"claude-sonnet-4": {"context": 200_000}}))]
    pub targets: IndexMap<String, TargetFile>,
}

const fn shared() -> bool {
    true
}

impl ProviderFile {
    /// The kinds of request it serves. Paths that are not known to be inference are among them only
    /// if the file says so: its key may open anything there.
    #[must_use]
    pub fn kinds(&self) -> Kinds {
        let words = self.serves.as_deref().unwrap_or_default();
        if self.restricts_kinds() {
            words.iter().flat_map(|word| word.kinds()).copied().collect()
        } else if words.contains(&Serves::Other) {
            self.known_kinds().with(Kind::Other)
        } else {
            self.known_kinds()
        }
    }

    /// What it is taken to serve if the file does not say it: an address of deployments, which has
    /// the model in its path, has no responses below it.
    fn known_kinds(&self) -> Kinds {
        let is_deployments = self.url.as_ref().is_some_and(|url| url.contains(MODEL_PLACE));
        if is_deployments { Kinds::KNOWN.without(Kind::Responses) } else { Kinds::KNOWN }
    }

    /// Whether it serves only what its `serves` lists.
    #[must_use]
    pub fn restricts_kinds(&self) -> bool {
        self.serves.is_some() && self.api == Api::Openai
    }

    /// The timeouts of one of its models: what the model says comes before what the provider says.
    #[must_use]
    pub fn timeouts_of(&self, model: &str) -> Timeouts {
        let target = self.targets.get(model).map(|target| &target.timeouts);
        let layers: Vec<&TimeoutsFile> =
            [Some(&self.timeouts), target].into_iter().flatten().collect();
        TimeoutsFile::resolve(&layers)
    }

    /// Everything that is said about its probes, the most general first: `top` is the config's own
    /// `health`.
    #[must_use]
    pub fn probe_layers<'a>(&'a self, top: &'a HealthFile) -> Vec<&'a ProbeFile> {
        [&top.probe, &self.health.probe, &self.probe].into_iter().flatten().collect()
    }
}

/// What differs for one model of a provider.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TargetFile {
    /// How its health is judged, where it differs from the provider.
    pub health: HealthFile,
    /// Its timeouts, where they differ from the provider.
    pub timeouts: TimeoutsFile,
    /// Its context window in tokens. Absent: by the model's family where that is known, else taken
    /// to be large enough. A longer request is not sent there.
    #[schemars(example = 200_000)]
    pub context: Option<u64>,
    /// Whether it takes images. Absent: by the model's family where that is known, else yes.
    #[schemars(example = true)]
    pub vision: Option<bool>,
    /// Whether it takes tool definitions. Absent: by the model's family where that is known, else
    /// yes.
    #[schemars(example = true)]
    pub tools: Option<bool>,
    /// Whether it takes documents, such as PDF files. Absent: by host and model's family where that
    /// is known, else yes.
    #[schemars(example = true)]
    pub documents: Option<bool>,
    /// Whether its answers can be held to a JSON schema. Absent: by host and model's family where
    /// that is known, else yes.
    #[schemars(example = true)]
    pub json_schema: Option<bool>,
    /// Whether requests that ask for reasoning are sent there. Absent: by the model's family where
    /// that is known, else yes. `true` for a model that does not reason lets such requests through
    /// without the reasoning.
    #[schemars(example = true)]
    pub reasoning: Option<bool>,
}

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// OpenAI: chat completions, responses, embeddings.
    Openai,
    /// Anthropic messages.
    Anthropic,
    /// Google Gemini: `generateContent`, `streamGenerateContent`, `countTokens`, embeddings.
    Gemini,
    /// Answers inside the process, for trying things out.
    Fake,
}

impl Api {
    /// What the core needs to know of it; a fake speaks all of them.
    #[must_use]
    pub const fn protocol(self) -> Option<Protocol> {
        match self {
            Self::Openai => Some(Protocol::OpenAi),
            Self::Anthropic => Some(Protocol::Anthropic),
            Self::Gemini => Some(Protocol::Gemini),
            Self::Fake => None,
        }
    }

    /// The vendor's public url; none for a provider inside the process.
    #[must_use]
    pub const fn public_url(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::Fake => None,
        }
    }
}

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
    /// `api-key: KEY`, as Azure has it.
    ApiKey,
    /// `x-goog-api-key: KEY`, as Google has it.
    XGoogApiKey,
    /// Not at all.
    None,
}

/// A kind of request that a provider serves. `/v1/messages` and `/v1/messages/count_tokens` need no
/// word: an anthropic provider serves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Serves {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/responses`.
    Responses,
    /// `/v1/embeddings`.
    Embeddings,
    /// `/v1/completions`.
    Completions,
    /// The known paths `/v1/moderations`, `/v1/images/*`, `/v1/audio/*`, `/v1/rerank`, `/v1/score`,
    /// `/v1/classify` and `/v1/ocr`, and with them every other path below `/v1/` that takes JSON
    /// with a `model`.
    Other,
}

impl Serves {
    /// The word in the file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Embeddings => "embeddings",
            Self::Completions => "completions",
            Self::Other => "other",
        }
    }
}

impl Serves {
    const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Chat => &[Kind::Chat],
            Self::Responses => &[Kind::Responses],
            Self::Embeddings => &[Kind::Embeddings],
            Self::Completions => &[Kind::Completions],
            Self::Other => &[Kind::Relayed, Kind::Other],
        }
    }
}
