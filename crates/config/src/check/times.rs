//! Durations and bounds that could not work: timeouts of zero, probes without a pause.
//!
//! The timeouts of providers and the deadlines of routes are checked with those sections.

use super::Check;
use crate::{codes::config as codes, duration::Duration, file::ProbeFile, path::KeyPath};

/// More probes than this would be load rather than a sign of life.
const MIN_PROBE_INTERVAL_MS: u64 = 100;

impl<'a> Check<'a> {
    pub(super) fn times(&mut self) {
        self.probes();
        let file: &'a _ = self.file;
        let mcp = KeyPath::from("mcp");
        self.is_not_zero(&mcp.key("call_timeout"), &file.mcp.call_timeout);
        self.is_not_zero(&mcp.key("connect_timeout"), &file.mcp.connect_timeout);
        self.is_not_zero(&mcp.key("session").key("idle"), &file.mcp.session.idle);
        for (name, server) in &file.mcp.servers {
            let path = mcp.key("servers").key(name).key("keepalive").key("timeout");
            self.is_not_zero(&path, &server.keepalive.timeout);
        }
        let limits = KeyPath::from("limits");
        for (key, value) in [
            ("body", file.limits.body.0),
            ("headers", file.limits.headers.0),
            ("connections", u64::from(file.limits.connections)),
        ] {
            self.is_not_nothing(&limits.key(key), value);
        }
        self.is_not_nothing(&mcp.key("session").key("max"), u64::from(file.mcp.session.max));
    }

    fn probes(&mut self) {
        let file: &'a _ = self.file;
        let top = KeyPath::from("health").key("probe");
        let mut probes: Vec<(KeyPath, &'a Option<ProbeFile>)> = vec![(top, &file.health.probe)];
        for (name, provider) in &file.providers {
            let path = KeyPath::from("providers").key(name);
            probes.push((path.key("probe"), &provider.probe));
            probes.push((path.key("health").key("probe"), &provider.health.probe));
        }
        for (name, server) in &file.mcp.servers {
            let path = KeyPath::from("mcp").key("servers").key(name);
            probes.push((path.key("health").key("probe"), &server.health.probe));
        }
        for (path, probe) in probes {
            let Some(probe) = probe else { continue };
            if let Some(timeout) = &probe.timeout {
                self.is_not_zero(&path.key("timeout"), timeout);
            }
            let every = probe.every.as_ref().map_or(0, |every| every.millis().0);
            if (1..MIN_PROBE_INTERVAL_MS).contains(&every) {
                let path = path.key("every");
                let message = format!("`{path}` is shorter than {MIN_PROBE_INTERVAL_MS}ms");
                self.report(
                    self.error(&codes::BAD_SETTING, &path, message)
                        .label("a backend would be asked without a pause")
                        .help("30s is the default; write `0s` to switch the probe off"),
                );
            }
        }
    }

    pub(super) fn is_not_zero(&mut self, path: &KeyPath, value: &Duration) {
        if value.millis().0 == 0 {
            self.zero(path, "must be longer than zero");
        }
    }

    fn is_not_nothing(&mut self, path: &KeyPath, value: u64) {
        if value == 0 {
            self.zero(path, "must be more than zero");
        }
    }

    fn zero(&mut self, path: &KeyPath, label: &str) {
        let message = format!("`{path}` is zero, so nothing could ever succeed");
        self.report(
            self.error(&codes::BAD_SETTING, path, message)
                .label(label)
                .help("remove the key to use its default"),
        );
    }
}
