//! Providers and targets as the data plane uses them: everything an upstream request needs, worked
//! out once when the config is read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use tidegate_config::{
    Config,
    file::{Api, Auth, MODEL_PLACE, ProbeFile, ProviderFile, Timeouts},
    provider_url,
    secret::{Environment, SecretRef},
};

use tidegate_core::probe::ProbeSettings;
use tidegate_net::{
    query,
    upstream::{Origin, tls},
};
use tidegate_wire::{convert::target::TargetProfile, mask::Mask, splice::EncodedName};

/// A provider, ready to be asked.
#[derive(Debug)]
pub struct Provider {
    pub name: Arc<str>,
    /// Names the connections that may be used for it: a provider that moved has another.
    pub connections: Arc<str>,
    pub api: Api,
    /// Where it is; `None` = inside the process.
    pub origin: Option<Origin>,
    /// The `host` header.
    pub authority: HeaderValue,
    /// The path of its url, without a slash at the end.
    base_path: String,
    /// Headers that every request gets.
    pub headers: HeaderMap,
    /// Those of the headers that are secret.
    secret_headers: Vec<HeaderName>,
    /// Covers them, for an attempt without a key.
    mask: Arc<Mask>,
    /// The parameters that every request's query gets: name, and how it is written.
    query: Vec<(String, String)>,
    pub probe: ProbeSettings,
    probe_path: Option<String>,
}

/// A target, ready to be asked.
#[derive(Debug)]
pub struct Target {
    pub provider: Arc<Provider>,
    /// The model's name there, as it stands in a body; `None` = whatever the request names.
    pub model: Option<EncodedName>,
    pub timeouts: Timeouts,
    /// The credential header of each key of the pool, in the core's order.
    pub credentials: Vec<Option<(HeaderName, HeaderValue)>>,
    /// For each key of the pool: covers it, and the secret headers of the provider.
    masks: Vec<Arc<Mask>>,
}

impl Target {
    /// What a conversion must know of it: `asked` is the model's name where the config has none.
    pub fn profile<'a>(&'a self, asked: Option<&'a str>) -> TargetProfile<'a> {
        let named = self.model.as_ref().and_then(|name| std::str::from_utf8(name.plain()).ok());
        let host = self.provider.origin.as_ref().map_or("", |origin| origin.host.as_str());
        TargetProfile { model: named.or(asked).unwrap_or_default(), host }
    }

    /// Covers every secret that an attempt with this key sends.
    pub fn mask(&self, key: usize) -> Arc<Mask> {
        Arc::clone(self.masks.get(key).unwrap_or(&self.provider.mask))
    }
}

/// Why a provider of the config cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("provider `{provider}`: {reason}")]
pub struct ProviderError {
    provider: String,
    reason: String,
}

/// All targets by the id of their backend.
pub type Targets = BTreeMap<String, Arc<Target>>;

/// The backend that stands for every model of a provider that the config does not name.
pub fn any_model(provider: &str) -> String {
    format!("{provider}/*")
}

/// Works out every provider and target of a config.
pub fn targets(
    config: &Config,
    folder: &Path,
    environment: &dyn Environment,
) -> Result<Targets, ProviderError> {
    let mut targets = Targets::new();
    for (name, file) in &config.file.providers {
        let provider = Arc::new(provider(config, name, file, folder, environment)?);
        let prefix = format!("{name}/");
        // One for each key, shared by all targets that use it.
        let mut masks: BTreeMap<usize, Arc<Mask>> = BTreeMap::new();
        for backend in &config.settings.backends {
            let Some(model) = backend.id.strip_prefix(&prefix) else { continue };
            let credential =
                |&key: &usize| credential(file, config.secrets[key].as_ref()?.expose());
            let mut mask = |&key: &usize| {
                let make = || {
                    let key = config.secrets[key].as_ref().map(|it| it.expose());
                    Arc::new(provider.mask_with(key))
                };
                Arc::clone(masks.entry(key).or_insert_with(make))
            };
            targets.insert(
                backend.id.clone(),
                Arc::new(Target {
                    provider: Arc::clone(&provider),
                    model: (model != "*").then(|| EncodedName::new(model)),
                    timeouts: file.timeouts_of(model),
                    credentials: backend.keys.iter().map(credential).collect(),
                    masks: backend.keys.iter().map(&mut mask).collect(),
                }),
            );
        }
    }
    Ok(targets)
}

fn provider(
    config: &Config,
    name: &str,
    file: &ProviderFile,
    folder: &Path,
    environment: &dyn Environment,
) -> Result<Provider, ProviderError> {
    let fail = |reason: String| ProviderError { provider: name.to_owned(), reason };
    let url = provider_url(name, file);
    let probes = file.probe_layers(&config.file.health);
    let mut headers = HeaderMap::new();
    let mut secret_headers = Vec::new();
    for (key, value) in &file.headers {
        let key = HeaderName::try_from(key).map_err(|_| fail(format!("`{key}` is no header")))?;
        if is_secret(&key, value) {
            secret_headers.push(key.clone());
        }
        let secret = value.resolve(environment, folder).map_err(fail)?;
        let mut value = HeaderValue::try_from(secret.expose())
            .map_err(|_| fail(format!("the value of header `{key}` cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    let (origin, authority, base_path) = if file.api == Api::Fake {
        (None, "fake".to_owned(), String::new())
    } else {
        let uri: Uri = url
            .replace(MODEL_PLACE, PLACEHOLDER)
            .parse()
            .map_err(|_| fail(format!("`{url}` is no url")))?;
        let host = uri.host().ok_or_else(|| fail(format!("`{url}` has no host")))?.to_owned();
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let authority =
            uri.port_u16().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let tls =
            is_tls.then(|| tls(file.ca.as_ref(), folder, environment)).transpose().map_err(fail)?;
        let origin = Origin { host, port, allow_private: file.allow_private, tls };
        let base_path = uri.path().trim_end_matches('/').replace(PLACEHOLDER, MODEL_PLACE);
        (Some(origin), authority, base_path)
    };
    let pair = |(key, value): (&String, &String)| {
        (key.clone(), format!("{}={}", escaped(key), escaped(value)))
    };
    let parameters = file.query.iter().map(pair).collect();
    let ca = file.ca.as_ref().map(ToString::to_string).unwrap_or_default();
    let provider = Provider {
        name: name.into(),
        connections: format!("{name} {url} {ca} {}", file.allow_private).into(),
        api: file.api,
        origin,
        authority: HeaderValue::try_from(authority)
            .map_err(|_| fail("its host cannot be sent".into()))?,
        base_path,
        headers,
        secret_headers,
        mask: Arc::new(Mask::new([])),
        query: parameters,
        probe: ProbeFile::resolve(&probes),
        probe_path: ProbeFile::path_of(&probes).map(str::to_owned),
    };
    let mask = Arc::new(provider.mask_with(None));
    Ok(Provider { mask, ..provider })
}

/// Whether a header of the config is a secret: one that is kept elsewhere, or one that stands in
/// the file under the name of a credential. Any other value may well be a word of an answer.
fn is_secret(name: &HeaderName, value: &SecretRef) -> bool {
    const WORDS: [&str; 5] = ["auth", "key", "token", "secret", "cookie"];
    let is_named_so = WORDS.iter().any(|word| name.as_str().contains(word));
    is_named_so || !matches!(value, SecretRef::Literal(_))
}

/// What stands for the model's name where a url is read as one: braces are none of its letters.
const PLACEHOLDER: &str = "tidegate-model-name";

/// What the hosts of Azure's OpenAI end with.
const AZURE: [&str; 3] =
    [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];

fn is_azure(file: &ProviderFile) -> bool {
    let host = file.url.as_ref().and_then(|url| url.split('/').nth(2)).unwrap_or_default();
    AZURE.iter().any(|it| host.ends_with(it))
}

/// How this provider wants its key.
fn credential(file: &ProviderFile, key: &str) -> Option<(HeaderName, HeaderValue)> {
    let by_api = match file.api {
        Api::Openai if is_azure(file) => Auth::ApiKey,
        Api::Openai | Api::Fake => Auth::Bearer,
        Api::Anthropic => Auth::XApiKey,
        Api::Gemini => Auth::XGoogApiKey,
    };
    let (name, value) = match file.auth.unwrap_or(by_api) {
        Auth::Bearer => (header::AUTHORIZATION, format!("Bearer {key}")),
        Auth::XApiKey => (HeaderName::from_static("x-api-key"), key.to_owned()),
        Auth::ApiKey => (HeaderName::from_static("api-key"), key.to_owned()),
        Auth::XGoogApiKey => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        Auth::None => return None,
    };
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

impl Provider {
    /// Covers a key and the secret headers.
    fn mask_with(&self, key: Option<&str>) -> Mask {
        let values = self.secret_headers.iter().filter_map(|name| self.headers.get(name));
        let values = values.map(|value| {
            let value = value.as_bytes();
            value.strip_prefix(b"Bearer ").or(value.strip_prefix(b"Basic ")).unwrap_or(value)
        });
        Mask::new(values.chain(key.map(str::as_bytes)))
    }

    /// The path and query of an upstream request, for a path of ours such as `/v1/messages`. Where
    /// the config sets a parameter, the client's own of that name is left out. `model` takes its
    /// place in the url, if there is one.
    pub fn path(&self, path: &str, client_query: Option<&str>, model: &str) -> String {
        let below = match self.api {
            // What the vendor's SDK takes as base url has the version in it for these.
            Api::Openai | Api::Fake => {
                path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path)
            }
            Api::Anthropic | Api::Gemini => path,
        };
        let mut full = String::with_capacity(self.base_path.len() + below.len());
        // Hardly any url has a place for the model; a byte is found sooner than a word.
        let has_place = self.base_path.contains('{');
        let parts = if has_place { self.base_path.split_once(MODEL_PLACE) } else { None };
        match parts {
            Some((before, after)) => {
                full.push_str(before);
                full.push_str(&escaped(model));
                full.push_str(after);
            }
            None => full.push_str(&self.base_path),
        }
        full.push_str(below);
        if client_query.is_none() && self.query.is_empty() {
            return full;
        }
        let is_configured =
            |name: &str| self.query.iter().any(|(known, _)| query::is_same_name(known, name));
        let own = query::without(client_query.unwrap_or_default(), is_configured);
        let configured = self.query.iter().map(|(_, pair)| pair.as_str());
        for (index, pair) in own.chain(configured).enumerate() {
            full.push(if index == 0 { '?' } else { '&' });
            full.push_str(pair);
        }
        full
    }

    /// Where the models are listed beside the deployments of a url with `{model}` in it.
    fn models_path(&self) -> String {
        let before = self.base_path.split(MODEL_PLACE).next().unwrap_or_default();
        let before = before.trim_end_matches('/');
        let above = before.strip_suffix("/deployments").unwrap_or(before);
        let query: Vec<&str> = self.query.iter().map(|(_, pair)| pair.as_str()).collect();
        format!("{above}/models?{}", query.join("&"))
    }

    /// The path a probe asks for.
    pub fn probe_path(&self) -> String {
        match &self.probe_path {
            // Relative to the origin when it starts with a slash, to the url otherwise.
            Some(path) if path.starts_with('/') => path.clone(),
            Some(path) => format!("{}/{path}", self.base_path),
            None if self.base_path.contains(MODEL_PLACE) => self.models_path(),
            None if self.api == Api::Gemini => self.path("/v1beta/models", None, ""),
            None => self.path("/v1/models", None, ""),
        }
    }
}

/// Percent-encodes what a query cannot hold as it is.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
