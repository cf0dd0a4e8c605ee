//! `server/discover`: who somebody is, in one question and one answer.

use serde_json::value::RawValue;

use super::{SERVER_INFO, VERSION};
use crate::{
    listing::ServerInfo,
    raw::{Fields, quoted},
};

/// The method.
pub const METHOD: &str = "server/discover";

/// The gateway's own answer, still undressed ([`super::dress`]).
#[must_use]
pub fn answer(capabilities: &str, instructions: Option<&str>) -> String {
    let instructions = instructions.map(|it| format!(r#","instructions":{}"#, quoted(it)));
    let instructions = instructions.unwrap_or_default();
    format!(r#"{{"supportedVersions":["{VERSION}"],"capabilities":{capabilities}{instructions}}}"#)
}

/// What a server's answer says; none unless it speaks the stateless revision: some answer the
/// question and speak only what sessions speak.
#[must_use]
pub fn read(result: &RawValue) -> Option<ServerInfo> {
    let fields = Fields::of(result, &[]).ok()?;
    let versions: Vec<String> =
        serde_json::from_str(fields.get("supportedVersions")?.get()).ok()?;
    if !versions.iter().any(|version| version == VERSION) {
        return None;
    }
    let meta = fields.get("_meta").and_then(|meta| Fields::of(meta, &[]).ok());
    Some(ServerInfo {
        version: VERSION.to_owned(),
        capabilities: fields.get("capabilities").map(ToOwned::to_owned),
        server_info: meta.and_then(|meta| meta.get(SERVER_INFO).map(ToOwned::to_owned)),
        instructions: fields.text("instructions").filter(|text| !text.trim().is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_only_with_the_stateless_revision_in_it() {
        let info = |json: &str| read(&RawValue::from_string(json.to_owned()).expect("json"));
        let own = info(&answer(r#"{"tools":{}}"#, Some("be kind"))).expect("ours");
        assert!(own.can("tools") && own.instructions.as_deref() == Some("be kind"));
        assert!(info(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#).is_none());
        assert!(info(r#"{"capabilities":{}}"#).is_none() && info("[]").is_none());
    }
}
