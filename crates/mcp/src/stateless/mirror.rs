//! Arguments that a tool wants to see in headers: properties of its input schema with
//! `x-mcp-header: Name` are repeated as `Mcp-Param-Name`.
//!
//! Rules kept here:
//! - An annotation counts on a text, an integer or a boolean that is reached from the root by
//!   `properties` alone; its name is a token of HTTP, and no two are the same. A tool with any
//!   other annotation is not offered over HTTP, and nothing is checked for it.
//! - Header and argument stand there together and say the same, or neither does; `null` is absent.
//! - References are not followed, and values (`default`, `enum`, …) are no schemas.

use serde_json::{Map, Value, value::RawValue};

use super::{HEADER_MISMATCH, Refused, heading};
use crate::raw::{Fields, shown};

/// The annotation.
pub const KEY: &str = "x-mcp-header";

/// One annotated property.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirrored {
    path: Vec<String>,
    token: String,
    is_integer: bool,
}

/// Whether every annotation in a tool's definition is one that counts; the reason if not.
///
/// # Errors
/// What is wrong with the first that does not.
pub fn check_tool(tool: &str) -> Result<(), String> {
    annotations(tool).map(drop)
}

/// The headers that repeat the arguments of a call, with their values as headers hold them.
#[must_use]
pub fn headers(tool: &str, arguments: Option<&RawValue>) -> Vec<(String, String)> {
    let annotated = annotations(tool).unwrap_or_default();
    if annotated.is_empty() {
        return Vec::new();
    }
    let arguments = read(arguments);
    let header = |it: &Mirrored| {
        let value = written(at(&arguments, &it.path)?)?;
        Some((format!("{}{}", heading::PARAM, it.token), heading::encode(&value)))
    };
    annotated.iter().filter_map(header).collect()
}

/// Whether the headers of a call say what its arguments say.
///
/// # Errors
/// Where they differ.
pub fn check_call(
    tool: &str,
    arguments: Option<&RawValue>,
    heads: &[(String, String)],
) -> Result<(), Refused> {
    let Ok(annotated) = annotations(tool) else { return Ok(()) };
    if annotated.is_empty() {
        return Ok(());
    }
    let arguments = read(arguments);
    for it in annotated {
        let name = format!("{}{}", heading::PARAM, it.token.to_ascii_lowercase());
        let header = heading::only(heads, &name)?;
        let value = at(&arguments, &it.path).and_then(written);
        let is_same = match (header, &value) {
            (None, None) => true,
            (Some(header), Some(value)) => heading::decode(header)
                .is_some_and(|said| said == *value || (it.is_integer && is_equal(&said, value))),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !is_same {
            let argument = shown(&it.path.join("."));
            let message = format!("the header `{name}` and the argument `{argument}` differ");
            return Err(Refused::new(HEADER_MISMATCH, message));
        }
    }
    Ok(())
}

/// Whether two decimal numbers are the same integer.
fn is_equal(one: &str, other: &str) -> bool {
    let whole = |text: &str| {
        let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_plain = fraction.bytes().all(|byte| byte == b'0');
        digits.parse::<i128>().ok().filter(|_| is_plain)
    };
    whole(one).is_some() && whole(one) == whole(other)
}

fn read(arguments: Option<&RawValue>) -> Value {
    arguments.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default()
}

fn at<'a>(arguments: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(arguments, |value, key| value.as_object()?.get(key))
}

/// A value as the text in its header; none if it has no such form.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn annotations(tool: &str) -> Result<Vec<Mirrored>, String> {
    // Most tools have none, and schemas can be long.
    if !tool.contains(KEY) {
        return Ok(Vec::new());
    }
    let fields = Fields::parse(tool, &[]).map_err(|flaw| flaw.to_string())?;
    let schema = fields.get("inputSchema").map(RawValue::get).unwrap_or("null");
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let mut found: Vec<Mirrored> = Vec::new();
    let mut left = vec![(Some(Vec::new()), &schema)];
    while let Some((path, schema)) = left.pop() {
        let Some(schema) = schema.as_object() else { continue };
        if let Some(annotation) = schema.get(KEY) {
            let it = mirrored(path.as_deref(), schema, annotation)?;
            let is_twice = |other: &Mirrored| other.token.eq_ignore_ascii_case(&it.token);
            if found.iter().any(is_twice) {
                return Err(format!("{KEY} `{}` stands there twice", shown(&it.token)));
            }
            found.push(it);
        }
        descend(path.as_deref(), schema, &mut left);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn mirrored(
    path: Option<&[String]>,
    schema: &Map<String, Value>,
    annotation: &Value,
) -> Result<Mirrored, String> {
    let path = path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| format!("{KEY} where no argument can be found for it"))?;
    let is_token = |text: &&str| !text.is_empty() && text.bytes().all(is_token_byte);
    let token = annotation.as_str().filter(is_token);
    let token = token.ok_or_else(|| format!("{KEY} that is no header's name"))?;
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(kind, "string" | "integer" | "boolean") {
        return Err(format!("{KEY} `{}` on a value of type `{}`", shown(token), shown(kind)));
    }
    Ok(Mirrored { path: path.to_vec(), token: token.to_owned(), is_integer: kind == "integer" })
}

const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

type Left<'a> = Vec<(Option<Vec<String>>, &'a Value)>;

/// Adds every schema inside this one; only `properties` leads on to arguments.
fn descend<'a>(path: Option<&[String]>, schema: &'a Map<String, Value>, left: &mut Left<'a>) {
    for (key, value) in schema {
        match key.as_str() {
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    let inside = path.map(|path| [path, std::slice::from_ref(name)].concat());
                    left.push((inside, inner));
                }
            }
            "items"
            | "contains"
            | "unevaluatedItems"
            | "additionalProperties"
            | "propertyNames"
            | "unevaluatedProperties"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contentSchema" => left.push((None, value)),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                left.extend(value.as_array().into_iter().flatten().map(|inner| (None, inner)));
            }
            "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
                let inner = value.as_object().into_iter().flatten();
                left.extend(inner.map(|(_, inner)| (None, inner)));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: &str) -> String {
        format!(r#"{{"name":"t","inputSchema":{schema}}}"#)
    }

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("json")
    }

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "limits":{"type":"object","properties":{"max":{"type":"integer","x-mcp-header":"Max"}}},
        "dry":{"type":"boolean","x-mcp-header":"Dry"}}}"#;

    #[test]
    fn annotated_arguments_are_repeated_in_headers() {
        let args = raw(r#"{"region":"süd","limits":{"max":7},"dry":null,"other":1}"#);
        let made = headers(&tool(SCHEMA), Some(&args));
        let expected = [("mcp-param-Max", "7"), ("mcp-param-Region", "=?base64?c8O8ZA==?=")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(made, expected);
        assert!(headers(&tool("{}"), Some(&args)).is_empty() && headers("{", None).is_empty());
    }

    #[test]
    fn headers_and_arguments_stand_together_and_say_the_same() {
        let args = raw(r#"{"region":"eu","limits":{"max":42}}"#);
        let check = |heads: &[(&str, &str)]| {
            let heads: Vec<_> =
                heads.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            check_call(&tool(SCHEMA), Some(&args), &heads).is_ok()
        };
        let (region, max) = (("mcp-param-region", "eu"), ("mcp-param-max", "42"));
        assert!(check(&[region, max]) && check(&[region, ("mcp-param-max", "42.0")]));
        assert!(check(&[region, max, ("mcp-param-unknown", "x")]));
        assert!(!check(&[region]) && !check(&[("mcp-param-region", "us"), max]));
        assert!(!check(&[region, max, max]) && !check(&[region, max, ("mcp-param-dry", "true")]));
        assert!(!check(&[("mcp-param-region", "=?base64?!?="), max]));
    }

    #[test]
    fn an_annotation_that_does_not_count_is_told() {
        for schema in [
            r#"{"x-mcp-header":"Root"}"#,
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A b"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},
                "b":{"type":"string","x-mcp-header":"a"}}}"#,
        ] {
            assert!(check_tool(&tool(schema)).is_err(), "{schema}");
        }
        assert_eq!(check_tool(&tool(SCHEMA)), Ok(()));
        let data = r#"{"properties":{"a":{"default":{"x-mcp-header":"no annotation"}}}}"#;
        assert_eq!(check_tool(&tool(data)), Ok(()));
    }
}
