//! Keys that this version checks but does not act on.

use super::Check;
use crate::{codes::config as codes, path::KeyPath};

impl Check<'_> {
    pub(super) fn built(&mut self) {
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
