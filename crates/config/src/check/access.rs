//! Who may reach the gateway: listeners, callers, limits.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Unknown};
use crate::{
    codes::config as codes, diagnostic::quoted, file::CallerFile, path::KeyPath, secret::SecretRef,
};

/// Shorter keys can be guessed by trying, where the network can reach a listener.
const MIN_KEY_CHARS: usize = 16;

impl Check<'_> {
    pub(super) fn access(&mut self) {
        self.listeners();
        self.callers();
        self.limits();
        self.callers_keys();
        if let Some(token) = &self.file.admin.token
            && !self.file.admin.listen.is_loopback()
        {
            self.is_long_enough(&KeyPath::from("admin").key("token"), token);
        }
    }

    /// A bound of nothing would refuse everything.
    fn limits(&mut self) {
        let limits = &self.file.limits;
        for (key, size) in [("mcp_body", limits.mcp_body), ("mcp_answer", limits.mcp_answer)] {
            if size.0 == 0 {
                let path = KeyPath::from("limits").key(key);
                let message = format!("`{path}` is zero, so every message would be refused");
                self.report(
                    self.error(&codes::BAD_SETTING, &path, message)
                        .label("must be larger than zero"),
                );
            }
        }
    }

    fn listeners(&mut self) {
        let listen = KeyPath::from("listen");
        let admin = KeyPath::from("admin").key("listen");
        let (data_address, admin_address) = (self.file.listen, self.file.admin.listen);
        if !data_address.is_loopback() && !self.is_written(&KeyPath::from("keys")) {
            let message = format!("the data plane on `{data_address}` is open to the network");
            self.report(
                self.error(&codes::EXPOSED, &listen, message)
                    .label("not loopback, and there are no `keys`")
                    .help("add `keys`, or listen on 127.0.0.1"),
            );
        }
        if !admin_address.is_loopback() && !self.is_written(&KeyPath::from("admin").key("token")) {
            let message = format!("the admin listener on `{admin_address}` is open to the network");
            self.report(
                self.error(&codes::EXPOSED, &admin, message)
                    .label("not loopback, and there is no `admin.token`")
                    .help("add `token: env:TIDEGATE_ADMIN_TOKEN`, or listen on 127.0.0.1"),
            );
        }
        let port_is_fixed = data_address.0.port() != 0;
        if data_address == admin_address && port_is_fixed {
            let place = if self.is_written(&admin) { &admin } else { &listen };
            let message = format!("`listen` and `admin.listen` are both `{data_address}`");
            self.report(self.error(&codes::SAME_ADDRESS, place, message).help("change one port"));
        }
    }

    fn callers(&mut self) {
        let keys = KeyPath::from("keys");
        let Some(callers) = &self.file.keys else { return };
        if callers.is_empty() {
            let message = "`keys` is empty, so nobody could call";
            self.report(
                self.error(&codes::NO_EFFECT, &keys, message).help("remove it, or add a caller"),
            );
        }
        let mut names = BTreeSet::new();
        for (index, caller) in callers.iter().enumerate() {
            let path = keys.index(index);
            if !names.insert(caller.name.as_str()) {
                let message = format!("two callers are named {}", quoted(&caller.name));
                self.report(self.error(&codes::TWICE_NAMED, &path.key("name"), message));
            }
            if caller.share.is_some_and(|share| share.fraction() <= 0.0) {
                let path = path.key("share");
                let message = format!("{} could not open a single session", quoted(&caller.name));
                self.report(
                    self.error(&codes::BAD_SETTING, &path, message).label("must be above 0%"),
                );
            }
            for (at, route) in caller.routes.iter().flatten().enumerate() {
                self.route_exists(&path.key("routes").index(at), route);
            }
            for (at, server) in caller.servers.iter().flatten().enumerate() {
                self.server_exists(&path.key("servers").index(at), server);
            }
        }
    }

    /// Callers are told apart by their keys, so two with one key are one.
    fn callers_keys(&mut self) {
        let callers: &[CallerFile] = self.file.keys.as_deref().unwrap_or_default();
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for (index, caller) in callers.iter().enumerate() {
            let path = KeyPath::from("keys").index(index).key("key");
            if !self.file.listen.is_loopback() {
                self.is_long_enough(&path, &caller.key);
            }
            let Ok(key) = caller.key.resolve(self.environment, self.source.folder()) else {
                continue;
            };
            let first = *known.entry(key.expose().to_owned()).or_insert(&caller.name);
            if first != caller.name {
                let (first, name) = (quoted(first), quoted(&caller.name));
                let message = format!("the callers {first} and {name} have the same key");
                self.report(
                    self.warning(&codes::SHARED_KEY, &path, message)
                        .label(format!("every request with this key counts as {first}"))
                        .help("give each caller a key of its own"),
                );
            }
        }
    }

    fn is_long_enough(&mut self, path: &KeyPath, key: &SecretRef) {
        let Ok(key) = key.resolve(self.environment, self.source.folder()) else { return };
        if key.expose().chars().count() < MIN_KEY_CHARS {
            let message = format!("`{path}` is shorter than {MIN_KEY_CHARS} characters");
            self.report(
                self.warning(&codes::SHORT_KEY, path, message)
                    .label("the network can reach this listener, and a short key can be guessed")
                    .help("use a long random key, such as one of `openssl rand -hex 32`"),
            );
        }
    }

    /// A caller may use a server or a group of servers.
    fn server_exists(&mut self, path: &KeyPath, server: &str) {
        let mcp = KeyPath::from("mcp");
        let known = self.has(&mcp.key("servers"), server) || self.has(&mcp.key("replicas"), server);
        if !known {
            self.unknown(Unknown {
                code: &codes::UNKNOWN_SERVER,
                path,
                name: server,
                section: mcp.key("servers"),
                message: format!("`{path}` names a server that does not exist: {}", quoted(server)),
                label: "no server has this name",
            });
        }
        if let Some(group) = self.file.mcp.group_of(server) {
            let message = format!("{} is seen only as a member of its group", quoted(server));
            let help = format!("name the group: {}", quoted(group));
            self.report(self.warning(&codes::NO_EFFECT, path, message).help(help));
        }
    }

    /// The route that a key names exists.
    pub(super) fn route_exists(&mut self, path: &KeyPath, route: &str) {
        let routes = KeyPath::from("routes");
        if !self.has(&routes, route) {
            self.unknown(Unknown {
                code: &codes::UNKNOWN_ROUTE,
                path,
                name: route,
                section: routes,
                message: format!("`{path}` names a route that does not exist: {}", quoted(route)),
                label: "no route has this name",
            });
        }
    }
}
