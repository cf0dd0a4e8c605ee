//! Results as either era writes them: the stateless one says of each what kind it is, who made it
//! and how long it keeps; sessions know none of that.

use serde_json::value::RawValue;

use super::SERVER_INFO;
use crate::{
    message::{ErrorObject, INVALID_PARAMS, RESOURCE_NOT_FOUND, error_object},
    raw::{Fields, text_value},
};

/// Whether a result is one that clients may keep, so that it must say for how long.
#[must_use]
pub fn is_kept(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

/// A result for a client of the stateless era, whoever made it. `info` is the gateway's own.
///
/// What is offered follows health at every request, so lists do not keep: a server that says for
/// how long its resource does is believed.
#[must_use]
pub fn for_stateless(method: &str, result: &str, info: &RawValue) -> String {
    let Ok(mut fields) = Fields::parse(result, &[]) else { return result.to_owned() };
    if fields.get("resultType").is_none() {
        fields.set_text("resultType", "complete");
    }
    let is_complete = fields.text("resultType").as_deref() == Some("complete");
    if is_kept(method) && is_complete {
        if fields.get("ttlMs").is_none() {
            fields.set("ttlMs", crate::raw::number_value(0));
        }
        if fields.get("cacheScope").is_none() {
            fields.set("cacheScope", text_value("private"));
        }
    }
    // A flawed `_meta` is the server's own, and stays.
    drop(fields.edit("_meta", &[], |meta| meta.set(SERVER_INFO, info.to_owned())));
    fields.to_json()
}

/// A result for a client with a session.
#[must_use]
pub fn for_session(method: &str, result: &str) -> String {
    let is_plain = !result.contains("resultType") && !result.contains(SERVER_INFO);
    if is_plain {
        return result.to_owned();
    }
    let Ok(mut fields) = Fields::parse(result, &[]) else { return result.to_owned() };
    fields.remove("resultType");
    if is_kept(method) {
        fields.retain(|name| !matches!(name, "ttlMs" | "cacheScope"));
    }
    drop(fields.edit("_meta", &[], |meta| _ = meta.remove(SERVER_INFO)));
    fields.to_json()
}

/// An error for a client of the stateless era: a resource that is not there is told by another
/// code.
#[must_use]
pub fn error_for_stateless(error: &str) -> String {
    let Ok(value) = serde_json::from_str::<&RawValue>(error) else { return error.to_owned() };
    let read = ErrorObject::read(value);
    match read.code {
        RESOURCE_NOT_FOUND => {
            error_object(INVALID_PARAMS, &read.message, read.data.map(RawValue::get))
        }
        _ => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_dressed_for_one_era_and_undressed_for_the_other() {
        let info = RawValue::from_string(r#"{"name":"g"}"#.to_owned()).expect("json");
        let dressed = for_stateless("tools/list", r#"{"tools":[],"x":1.0}"#, &info);
        let expected = concat!(
            r#"{"tools":[],"x":1.0,"resultType":"complete","ttlMs":0,"cacheScope":"private","#,
            r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"g"}}}"#
        );
        assert_eq!(dressed, expected);
        assert_eq!(for_session("tools/list", &dressed), r#"{"tools":[],"x":1.0}"#);
        let own = r#"{"contents":[],"ttlMs":5000,"cacheScope":"public"}"#;
        let kept = for_stateless("resources/read", own, &info);
        assert!(kept.contains(r#""ttlMs":5000,"cacheScope":"public""#), "{kept}");
        let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
        let asked = for_stateless("resources/read", asks, &info);
        assert!(!asked.contains("ttlMs") && asked.contains("input_required"), "{asked}");
    }

    #[test]
    fn a_resource_that_is_not_there_has_another_code() {
        let old = r#"{"code":-32002,"message":"gone","data":{"uri":"a:b"}}"#;
        let new = r#"{"code":-32602,"message":"gone","data":{"uri":"a:b"}}"#;
        assert_eq!(error_for_stateless(old), new);
        assert_eq!(error_for_stateless(new), new);
    }
}
