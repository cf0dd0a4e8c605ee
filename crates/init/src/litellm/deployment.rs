//! One entry of `model_list`: a provider, a target, and its share of the traffic.

use serde_json::{Map, Value, json};

use super::{Reading, settings::seconds};
use crate::{
    item::Item,
    secrets::{is_sensitive, looks_secret},
    vendor::{VENDORS, Vendor},
};

/// A model behind a name.
#[derive(Debug)]
pub(super) struct Deployment {
    /// The name that clients ask for.
    pub(super) group: String,
    /// `provider/model`.
    pub(super) target: String,
    pub(super) weight: Option<u64>,
    /// Lower ones are tried first.
    pub(super) order: u64,
    /// Its line and key path.
    pub(super) origin: (usize, String),
}

/// Words for servers with OpenAI's api that have no public address.
const COMPATIBLE: &[&str] = &[
    "hosted_vllm",
    "vllm",
    "lm_studio",
    "openai_like",
    "custom_openai",
    "litellm_proxy",
    "llamafile",
    "xinference",
    "docker_model_runner",
];

/// Keys that say that there is none.
const NO_KEY: &[&str] =
    &["none", "empty", "dummy", "fake", "fake-key", "not-needed", "na", "no-key"];

/// A url as the file has it, and where.
type Base<'a> = Option<(&'a str, Item<'a>)>;

impl Reading<'_> {
    /// A deployment with its provider; none, with a note, if it cannot be carried over.
    pub(super) fn deployment(&mut self, item: &Item<'_>) -> Option<Deployment> {
        let named = item.get("model_name").and_then(|it| it.text().map(str::to_owned));
        let params = item.get("litellm_params");
        let model = params.as_ref().and_then(|it| it.get("model")).and_then(|it| it.text());
        let (Some(group), Some(params), Some(model)) = (named, params, model) else {
            self.notes.drop(item, "it has no `model_name` or no `litellm_params.model`");
            return None;
        };
        let origin = (item.line(), item.path.to_string());
        let (word, model) = vendor_and_model(&params, model);
        let Some(word) = word else {
            self.notes.drop(item, "the model has no vendor in front: write `vendor/model`");
            return None;
        };
        let (wanted, mut settings) = self.address(&word, &params, item)?;
        let timeouts = self.parameters(&params, &wanted, &mut settings);
        let default = Vendor::of_litellm(&word).and_then(|it| it.variables.first());
        let needs_key =
            !settings.contains_key("key") && settings.get("auth") != Some(&json!("none"));
        if let Some(variable) = default.filter(|_| needs_key) {
            settings.insert("key".to_owned(), json!(format!("env:{variable}")));
        }
        let provider = self.draft.provider(&wanted, Value::Object(settings), item);
        if group.contains('*') || model.contains('*') {
            let reason = format!("a pattern is no route: clients ask for `{provider}/MODEL`");
            self.notes.change(item, reason);
            return None;
        }
        self.about_model(item, &provider, &model, timeouts);
        let number = |key: &str| params.get(key).and_then(|it| it.number()).map(|it| it as u64);
        let target = format!("{provider}/{model}");
        let (weight, order) = (number("weight"), number("order").unwrap_or(0));
        Some(Deployment { group, target, weight, order, origin })
    }

    /// The provider's name, api and url.
    fn address(
        &mut self,
        word: &str,
        params: &Item<'_>,
        item: &Item<'_>,
    ) -> Option<(String, Map<String, Value>)> {
        let base = params.get("api_base").or_else(|| params.get("base_url"));
        let base: Base<'_> = base.and_then(|it| it.text().map(|text| (text, it.clone())));
        if let Some((text, at)) = &base {
            let reason = match () {
                () if text.starts_with("os.environ/") => {
                    "a url cannot be a reference: write it out"
                }
                () if looks_secret(text) || text.contains('?') => "a url must not hold secrets",
                () => "",
            };
            if !reason.is_empty() {
                self.notes.drop(at, reason);
                self.notes.drop(item, "its url could not be carried over");
                return None;
            }
        }
        let base = base.map(|(text, _)| text.trim_end_matches('/').to_owned());
        let openai = VENDORS.iter().find(|vendor| vendor.name == "openai")?;
        let (name, vendor, url) = match (word, base) {
            ("azure" | "azure_ai", Some(base)) => {
                let host = base.trim_start_matches("https://").split('/').next();
                ("azure", openai, host.map(|host| format!("https://{host}/openai/v1")))
            }
            ("ollama" | "ollama_chat", base) => {
                let base = base.unwrap_or_else(|| crate::OLLAMA_URL.to_owned());
                ("ollama", openai, Some(format!("{}/v1", base.trim_end_matches("/v1"))))
            }
            (word, Some(base)) if COMPATIBLE.contains(&word) => (word, openai, Some(base)),
            (word, base) => match Vendor::of_litellm(word) {
                Some(vendor) => (vendor.name, vendor, base),
                None => {
                    let word = word.chars().take(40).collect::<String>();
                    let reason = format!(
                        "`{word}` has an api that is not supported: `api` is `openai`, \
                         `anthropic` or `gemini`"
                    );
                    self.notes.drop(item, reason);
                    return None;
                }
            },
        };
        let mut settings = vendor.settings(url.as_deref());
        if name == "azure" {
            settings.insert("auth".to_owned(), json!("api-key"));
        }
        if name == "ollama" {
            settings.insert("auth".to_owned(), json!("none"));
        }
        Some((name.replace('_', "-"), settings))
    }

    /// The rest of `litellm_params`; the timeouts, which belong to the target, are given back.
    fn parameters(
        &mut self,
        params: &Item<'_>,
        wanted: &str,
        settings: &mut Map<String, Value>,
    ) -> Map<String, Value> {
        let mut timeouts = Map::new();
        for (key, part) in params.entries() {
            match key {
                "model" | "custom_llm_provider" | "api_base" | "base_url" | "weight" | "order" => {}
                "api_key" => self.key(&part, wanted, settings),
                "timeout" | "request_timeout" => drop_in(&mut timeouts, "total", &part),
                "stream_timeout" => drop_in(&mut timeouts, "first_content", &part),
                "organization" => self.header(&part, "openai-organization", wanted, settings),
                "extra_headers" | "headers" => {
                    for (name, value) in part.entries() {
                        self.header(&value, name, wanted, settings);
                    }
                }
                "api_version" if wanted == "azure" => {
                    self.notes.change(&part, "Azure's v1 api is used, which needs no version");
                }
                _ => self.notes.drop(&part, parameter_reason(key)),
            }
        }
        timeouts
    }

    fn key(&mut self, part: &Item<'_>, wanted: &str, settings: &mut Map<String, Value>) {
        let Some(text) = part.text().filter(|text| !text.is_empty()) else {
            return self.notes.drop(part, "it is not text");
        };
        if NO_KEY.iter().any(|word| text.eq_ignore_ascii_case(word)) {
            settings.insert("auth".to_owned(), json!("none"));
            return;
        }
        if wanted == "ollama" {
            settings.shift_remove("auth");
        }
        let key = self.reference(part, text, &format!("{wanted}_api_key"));
        settings.insert("key".to_owned(), json!(key));
    }

    fn header(
        &mut self,
        part: &Item<'_>,
        name: &str,
        wanted: &str,
        settings: &mut Map<String, Value>,
    ) {
        let Some(text) = part.text().filter(|text| !text.is_empty()) else {
            return self.notes.drop(part, "it is not text");
        };
        let is_literal = !text.starts_with("os.environ/");
        let is_plain = is_literal && !is_sensitive(name) && !looks_secret(text);
        let value = match is_plain && !text.starts_with("env:") && !text.starts_with("file:") {
            true => text.to_owned(),
            false => self.reference(part, text, &format!("{wanted}_{name}")),
        };
        let headers = settings.entry("headers").or_insert_with(|| json!({}));
        headers[name] = json!(value);
    }

    /// A reference for a secret: the file's own, or a new one in place of a literal.
    pub(super) fn reference(&mut self, part: &Item<'_>, text: &str, wanted: &str) -> String {
        if let Some(name) = text.strip_prefix("os.environ/") {
            return format!("env:{name}");
        }
        let variable = self.variables.stand_in(text, wanted);
        let reason = format!(
            "a literal secret is not copied: set {variable} to the value in this line, and remove \
             it from that file"
        );
        self.notes.change(part, reason);
        format!("env:{variable}")
    }

    /// What is known of a model: its timeouts, and `model_info`.
    fn about_model(
        &mut self,
        item: &Item<'_>,
        provider: &str,
        model: &str,
        timeouts: Map<String, Value>,
    ) {
        let mut settings = Map::new();
        if !timeouts.is_empty() {
            settings.insert("timeouts".to_owned(), Value::Object(timeouts));
        }
        let info = item.get("model_info").map(|info| info.entries()).unwrap_or_default();
        for (key, part) in info {
            match (key, part.number(), part.flag()) {
                ("max_input_tokens", Some(tokens), _) => {
                    settings.insert("context".to_owned(), json!(tokens as u64));
                }
                ("supports_vision", _, Some(flag)) => {
                    settings.insert("vision".to_owned(), json!(flag));
                }
                ("supports_function_calling", _, Some(flag)) => {
                    settings.insert("tools".to_owned(), json!(flag));
                }
                ("id" | "mode" | "base_model", ..) => {}
                _ => self.notes.drop(&part, "there is no such property of a target"),
            }
        }
        self.draft.target(provider, model, settings);
    }
}

/// The vendor's word and the model's own name. Without a word, well-known names tell the vendor.
fn vendor_and_model(params: &Item<'_>, model: &str) -> (Option<String>, String) {
    let custom = params.get("custom_llm_provider").and_then(|it| it.text().map(str::to_owned));
    match (custom, model.split_once('/')) {
        (Some(custom), Some((word, rest))) if custom == word => (Some(custom), rest.to_owned()),
        (Some(custom), _) => (Some(custom), model.to_owned()),
        (None, Some((word, rest))) => (Some(word.to_owned()), rest.to_owned()),
        (None, None) => {
            let openai = ["gpt-", "o1", "o3", "o4", "chatgpt-", "text-embedding-", "dall-e-"];
            let word = match model {
                name if name.starts_with("claude-") => Some("anthropic"),
                name if openai.iter().any(|start| name.starts_with(start)) => Some("openai"),
                _ => None,
            };
            (word.map(str::to_owned), model.to_owned())
        }
    }
}

fn drop_in(timeouts: &mut Map<String, Value>, key: &str, part: &Item<'_>) {
    if let Some(duration) = seconds(part) {
        timeouts.insert(key.to_owned(), json!(duration));
    }
}

/// Why a parameter of a deployment is left out.
fn parameter_reason(key: &str) -> &'static str {
    match key {
        "rpm" | "tpm" | "max_parallel_requests" => {
            "limits per target are not supported; a provider's own rate limits are followed"
        }
        "temperature" | "max_tokens" | "top_p" => "such values are the client's to send",
        "drop_params" | "additional_drop_params" => super::settings::CONVERSION,
        "input_cost_per_token" | "output_cost_per_token" => "costs are not counted",
        "num_retries" | "max_retries" => "a failed attempt goes to another target instead",
        key if is_sensitive(key) || key.starts_with("aws_") || key.starts_with("vertex_") => {
            "this way to authenticate is not supported"
        }
        _ => "there is no such setting of a provider",
    }
}
