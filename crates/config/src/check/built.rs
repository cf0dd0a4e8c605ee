//! Sections that this version checks but does not act on.
//!
//! One table says which; a section leaves it when its behaviour is built.

use super::Check;
use crate::{codes::config as codes, path::KeyPath};

/// Top-level keys without a behaviour yet. The simulator uses `health`, `providers`, `routes` and
/// `default_route`; everything else needs the serving part of the program.
const NOT_BUILT: [&str; 10] = [
    "listen",
    "admin",
    "keys",
    "mcp",
    "history",
    "telemetry",
    "limits",
    "log",
    "reload",
    "shutdown",
];

impl Check<'_> {
    pub(super) fn built(&mut self) {
        for key in NOT_BUILT {
            let path = KeyPath::from(key);
            if self.is_written(&path) {
                let message = format!("`{key}` is checked, but does nothing in this version");
                self.report(
                    self.warning(&codes::NOT_BUILT, &path, message).at_key(self.document, &path),
                );
            }
        }
        let state = KeyPath::from("state");
        if self.is_written(&state) {
            let message = "`state` is reserved: gateways do not share state";
            self.report(
                self.warning(&codes::RESERVED, &state, message)
                    .at_key(self.document, &state)
                    .help("remove it; each gateway judges health for itself"),
            );
        }
    }
}
