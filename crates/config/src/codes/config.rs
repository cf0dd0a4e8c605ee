//! The codes of the config file's own rules.

use super::Code;

/// The codes of this module, in order.
pub(super) static ALL: &[&Code] = &[];
