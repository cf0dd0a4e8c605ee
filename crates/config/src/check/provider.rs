//! Providers: names, urls, keys, timeouts.

use super::{
    Check,
    url::{Query, url_problem},
};
use crate::{
    codes::config as codes,
    diagnostic::quoted,
    file::{Api, ProviderFile, Serves, TimeoutsFile},
    path::KeyPath,
    secret::SecretRef,
};

/// Names longer than this do not fit where names are shown.
const MAX_NAME_CHARS: usize = 64;

impl<'a> Check<'a> {
    pub(super) fn providers(&mut self) {
        let file: &'a _ = self.file;
        for (name, provider) in &file.providers {
            let path = KeyPath::from("providers").key(name);
            self.name_is_usable(&path, name, "provider");
            self.provider(&path, provider);
        }
    }

    fn provider(&mut self, path: &KeyPath, provider: &'a ProviderFile) {
        if let Some(url) = &provider.url {
            self.url(&path.key("url"), url, Query::Refused);
        }
        if provider.key.is_some() && provider.keys.is_some() {
            self.report(
                self.error(
                    &codes::KEY_AND_KEYS,
                    &path.key("keys"),
                    format!("`{path}` has both `key` and `keys`"),
                )
                .help("move `key` into the list of `keys`"),
            );
        }
        if provider.keys.as_ref().is_some_and(Vec::is_empty) {
            let message = format!("`{path}.keys` is an empty pool");
            self.report(
                self.error(&codes::NO_EFFECT, &path.key("keys"), message)
                    .help("remove it, or add a key"),
            );
        }
        self.ca_is_file(path, provider.ca.as_ref());
        if provider.serves.as_ref().is_some_and(Vec::is_empty) {
            let message = format!("`{path}.serves` is empty: nothing could be asked of it");
            self.report(
                self.error(&codes::NO_EFFECT, &path.key("serves"), message)
                    .help("remove it, or write what it serves: `[chat, embeddings]`"),
            );
        }
        let restricts = |words: &Vec<Serves>| *words != [Serves::Other];
        if provider.serves.as_ref().is_some_and(restricts) && provider.api != Api::Openai {
            let message =
                format!("`{path}.serves`: only `other` has an effect without `api: openai`");
            self.report(self.warning(&codes::NO_EFFECT, &path.key("serves"), message));
        }
        self.timeouts(&path.key("timeouts"), &provider.timeouts);
        for (model, target) in &provider.targets {
            let target_path = path.key("targets").key(model);
            self.timeouts(&target_path.key("timeouts"), &target.timeouts);
            if model.is_empty() {
                let message = format!("`{target_path}` has an empty model name");
                self.report(self.error(&codes::BAD_NAME, &target_path, message));
            }
        }
    }

    /// Certificates are long: they stand in a file of their own.
    pub(super) fn ca_is_file(&mut self, path: &KeyPath, ca: Option<&SecretRef>) {
        if let Some(SecretRef::Env(_) | SecretRef::Literal(_)) = ca {
            let message = format!("`{path}.ca` is not a file");
            self.report(
                self.error(&crate::codes::BAD_VALUE, &path.key("ca"), message)
                    .help("write `file:corp.pem`"),
            );
        }
    }

    fn timeouts(&mut self, path: &KeyPath, timeouts: &TimeoutsFile) {
        for (key, value) in timeouts.written() {
            if value.millis().0 == 0 {
                let message = format!("`{path}.{key}` is zero, so every attempt would time out");
                self.report(
                    self.error(&codes::BAD_SETTING, &path.key(key), message)
                        .label("must be longer than zero")
                        .help("remove the key to use its default"),
                );
            }
        }
    }

    pub(super) fn url(&mut self, path: &KeyPath, url: &str, query: Query) {
        if let Some(problem) = url_problem(url, query) {
            let message = format!("`{path}`: {problem}");
            self.report(
                self.error(&codes::BAD_URL, path, message)
                    .label("expected a url such as `https://api.example.com/v1`"),
            );
        }
    }

    /// Providers and servers are named in other places, so their names are plain words.
    pub(super) fn name_is_usable(&mut self, path: &KeyPath, name: &str, what: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fits = !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS;
        if fits && name.chars().all(plain) {
            return;
        }
        let message = format!("{} is not a usable name for a {what}", quoted(name));
        let diagnostic = self
            .error(&codes::BAD_NAME, path, message)
            .at_key(self.document, path)
            .help("use letters, digits, `-`, `_` and `.`, at most 64 of them");
        self.report(diagnostic);
    }
}
