//! `state`: the fleet's store, its secret, and how other replicas reach this one.
//!
//! A replica that cannot be one of its fleet does not start: it would serve, and nobody would see
//! that it stands alone. A store that is only away is another matter, and nothing that a file can
//! be wrong about.

use super::{Check, secrets::Purpose, url::Query};
use crate::{
    codes::config as codes,
    file::{SecretList, StateFile},
    path::KeyPath,
    secret::Secret,
    store_url::StoreUrl,
};

/// The shortest secret: as long as the keys that are made of it.
const SECRET_BYTES_MIN: usize = 32;
/// More secrets than any replacement needs.
const SECRETS_MAX: usize = 8;
/// No client should wait longer for a store.
const TIMEOUT_MAX_MS: u64 = 10_000;

impl<'a> Check<'a> {
    pub(super) fn state(&mut self) {
        let file: &'a _ = self.file;
        let Some(state) = &file.state else { return };
        let path = KeyPath::from("state");
        self.name_is_usable(&path.key("fleet"), &state.fleet, "fleet");
        if !state.replica.is_empty() {
            self.name_is_usable(&path.key("replica"), &state.replica, "replica");
        }
        self.store_url(&path.key("redis"), &state.redis);
        self.fleet_secrets(&path.key("secret"), &state.secret);
        self.peers(&path, state);
        let timeout = path.key("timeout");
        self.is_not_zero(&timeout, &state.timeout);
        if state.timeout.millis().0 > TIMEOUT_MAX_MS {
            let message = format!("`{timeout}` is longer than 10s");
            self.report(
                self.error(&codes::BAD_SETTING, &timeout, message)
                    .label("a client would wait this long for a store that is away"),
            );
        }
    }

    fn store_url(&mut self, path: &KeyPath, urls: &'a SecretList) {
        let Some(values) = self.fleet_values(path, urls, &codes::STORE_URL) else { return };
        if let Err(problem) = StoreUrl::parse(values.iter().map(Secret::expose)) {
            let message = format!("the value of `{path}` is not a usable url: {problem}");
            self.report(
                self.error(&codes::STORE_URL, path, message)
                    .help("write it as `redis://host:6379`; `tidegate explain TG063` has the rest"),
            );
        }
    }

    fn fleet_secrets(&mut self, path: &KeyPath, secrets: &'a SecretList) {
        let Some(values) = self.fleet_values(path, secrets, &codes::FLEET_SECRET) else { return };
        if values.len() > SECRETS_MAX {
            let message = format!("`{path}` has more than {SECRETS_MAX} secrets");
            self.report(self.error(&codes::FLEET_SECRET, path, message));
        }
        for (at, value) in values.iter().enumerate() {
            let found = value.expose().len();
            if found < SECRET_BYTES_MIN {
                let place = if values.len() > 1 { path.index(at) } else { path.clone() };
                let message = format!(
                    "the value of `{place}` has {found} bytes; it needs {SECRET_BYTES_MIN}"
                );
                self.report(
                    self.error(&codes::FLEET_SECRET, &place, message)
                        .help("make one with `openssl rand -hex 32`, the same for every replica"),
                );
            }
        }
    }

    /// The values of secrets without which there is no fleet; `None` if they are not there, which
    /// is then reported, or are made up.
    fn fleet_values(
        &mut self,
        path: &KeyPath,
        list: &'a SecretList,
        code: &'static crate::codes::Code,
    ) -> Option<Vec<Secret>> {
        if list.0.is_empty() {
            let message = format!("`{path}` is an empty list");
            self.report(self.error(code, path, message));
            return None;
        }
        let mut values = Vec::new();
        for (at, reference) in list.0.iter().enumerate() {
            let place = if list.0.len() > 1 { path.index(at) } else { path.clone() };
            match reference.resolve(self.environment, self.source.folder()) {
                Ok(value) => {
                    // A url without a login is no secret.
                    let is_plain = value.expose().contains("://") && !value.expose().contains('@');
                    let purpose = if is_plain { Purpose::Header } else { Purpose::Key };
                    self.secret(&place, reference, purpose);
                    values.push(value);
                }
                Err(problem) => {
                    let message = format!("`{place}` cannot be resolved: {problem}");
                    self.report(
                        self.error(code, &place, message)
                            .label("without it this gateway is no replica of its fleet")
                            .help("set it, or remove `state` to let the gateway stand alone"),
                    );
                }
            }
        }
        let is_complete = values.len() == list.0.len() && !self.environment.is_assumed();
        is_complete.then_some(values)
    }

    fn peers(&mut self, path: &KeyPath, state: &'a StateFile) {
        let (listen, url) = (path.key("peer_listen"), path.key("peer_url"));
        if let Some(address) = state.peer_listen {
            let others = [("listen", self.file.listen), ("admin.listen", self.file.admin.listen)];
            let taken = others.iter().find(|(_, other)| *other == address);
            if let Some((key, _)) = taken.filter(|_| address.0.port() != 0) {
                let message = format!("`{key}` and `{listen}` are both `{address}`");
                let diagnostic = self.error(&codes::SAME_ADDRESS, &listen, message);
                self.report(diagnostic.help("change one port"));
            }
        }
        let Some(written) = &state.peer_url else { return };
        if state.peer_listen.is_none() {
            let message = format!("`{url}` has an effect only with `peer_listen`");
            let diagnostic = self.warning(&codes::NO_EFFECT, &url, message);
            self.report(diagnostic.at_key(self.document, &url));
        }
        let problem = super::url::url_problem(written, Query::Refused).or_else(|| {
            let rest = written.strip_prefix("http://")?;
            let rest = rest.strip_suffix('/').unwrap_or(rest);
            let has_port =
                rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            match rest.contains('/') {
                true => Some("it has a path".to_owned()),
                false => (!has_port).then(|| "it has no port".to_owned()),
            }
        });
        let problem = match written.starts_with("https://") {
            true => Some("peers speak over an encrypted channel of their own: `http`".to_owned()),
            false => problem,
        };
        if let Some(problem) = problem {
            let message = format!("the value of `{url}` cannot be used: {problem}");
            self.report(
                self.error(&codes::PEER_URL, &url, message)
                    .help("write it as `http://10.0.0.7:8702`"),
            );
        }
    }
}
