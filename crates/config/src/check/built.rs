//! Keys that this version checks but does not act on.
//!
//! One table says which; a key leaves it when its behaviour is built.

use super::Check;
use crate::{codes::config as codes, path::KeyPath};

/// Top-level keys without a behaviour yet.
const NOT_BUILT: [&str; 2] = ["history", "telemetry"];

impl Check<'_> {
    pub(super) fn built(&mut self) {
        for key in NOT_BUILT {
            self.not_built(&KeyPath::from(key));
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

    fn not_built(&mut self, path: &KeyPath) {
        if self.is_written(path) {
            let message = format!("`{path}` is checked, but does nothing in this version");
            self.report(self.warning(&codes::NOT_BUILT, path, message).at_key(self.document, path));
        }
    }
}
