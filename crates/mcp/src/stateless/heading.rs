//! The headers of a request that repeat its body, so that whoever stands between can route it
//! unread: the method, and the name of what is asked for.
//!
//! A value that a header cannot hold is written `=?base64?…?=`.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{HEADER_MISMATCH, Refused};
use crate::message::Params;

/// The revision.
pub const VERSION: &str = "mcp-protocol-version";
/// The method.
pub const METHOD: &str = "mcp-method";
/// What is asked for: a tool, a prompt, a resource.
pub const NAME: &str = "mcp-name";
/// What the headers of arguments begin with ([`super::mirror`]).
pub const PARAM: &str = "mcp-param-";

/// What [`NAME`] repeats, if the method has it.
#[must_use]
pub fn name_of(method: &str, params: &Params<'_>) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.text(key)
}

/// The one value of a header; none if it is absent.
///
/// # Errors
/// It stands there twice: readers would disagree.
pub fn only<'a>(heads: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, Refused> {
    let mut values = heads.iter().filter(|(other, _)| other == name).map(|(_, value)| value);
    let first = values.next().map(String::as_str);
    match values.next() {
        None => Ok(first),
        Some(_) => {
            Err(Refused::new(HEADER_MISMATCH, format!("the header `{name}` stands there twice")))
        }
    }
}

/// A value as a header holds it.
#[must_use]
pub fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    if is_plain && value.trim_ascii() == value && wrapped(value).is_none() {
        return value.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(value))
}

/// The value that a header holds; none if it cannot be read.
#[must_use]
pub fn decode(written: &str) -> Option<String> {
    match wrapped(written) {
        None => Some(written.to_owned()),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
    }
}

fn wrapped(text: &str) -> Option<&str> {
    text.strip_prefix("=?base64?")?.strip_suffix("?=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_survives_a_header() {
        for text in ["add", "", " edge", "zwei\nZeilen", "日本", "=?base64?YWRk?=", "tab\t"] {
            let written = encode(text);
            assert!(written.bytes().all(|byte| (0x20..=0x7e).contains(&byte)), "{written}");
            assert_eq!(decode(&written).as_deref(), Some(text));
        }
        assert_eq!(encode("add"), "add");
        for broken in ["=?base64?YWR?=", "=?base64?YWRl=?=", "=?base64?_w==?=", "=?base64?/w==?="] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
