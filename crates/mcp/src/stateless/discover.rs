//! `server/discover`: who somebody is, in one question and one answer.

use super::VERSION;
use crate::raw::quoted;

/// The method.
pub const METHOD: &str = "server/discover";

/// The gateway's own answer, still undressed ([`super::dress`]).
#[must_use]
pub fn answer(capabilities: &str, instructions: Option<&str>) -> String {
    let instructions = instructions.map(|it| format!(r#","instructions":{}"#, quoted(it)));
    let instructions = instructions.unwrap_or_default();
    format!(r#"{{"supportedVersions":["{VERSION}"],"capabilities":{capabilities}{instructions}}}"#)
}
