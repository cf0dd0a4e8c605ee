//! Whether a definition keeps the protocol's schema.
//!
//! The official clients check a whole list at once: one tool without an input schema, or with a
//! hint that is no boolean, makes them refuse the tools of every server. So a definition that
//! either of them would refuse is left out, and the rest of the list is kept.
//!
//! Rules kept here:
//! - What is checked are the types of the fields that the protocol names, and which of them must be
//!   there. Fields that it does not name are nobody's business.
//! - `null` in place of an optional field is taken out: one official client takes it for absence
//!   and the other refuses it.
//! - A uri has a scheme: one official client refuses a relative one.
//! - The session era wants objects of tools that describe their results; the stateless era takes
//!   any schema.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde_json::value::RawValue;

use super::Kind;
use crate::{
    era::Era,
    raw::{Fields, as_text},
};

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The field, with those it stands in.
    field: String,
    /// What it has to be.
    wanted: &'static str,
}

impl Defect {
    fn new(field: &str, wanted: &'static str) -> Self {
        Self { field: field.to_owned(), wanted }
    }

    fn inside(self, outer: &str) -> Self {
        Self { field: format!("{outer}.{}", self.field), ..self }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` must be {}", self.field, self.wanted)
    }
}

/// What a field has to be.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    /// A text with a scheme.
    Uri,
    Flag,
    Number,
    /// A number from 0 to 1.
    Share,
    Object,
    /// The schema of an object.
    Schema,
    /// The schema of a tool's results.
    Output,
    /// An array of texts.
    Texts,
    /// An array of `user` and `assistant`.
    Roles,
    /// `required`, `optional` or `forbidden`.
    TaskSupport,
    /// An object with these fields.
    Of(&'static [FieldRule]),
    /// An array of such objects.
    Each(&'static [FieldRule]),
}

/// A field, what it has to be, and whether it has to be there.
type FieldRule = (&'static str, Shape, Need);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

use Need::{Optional, Required};

const ICONS: FieldRule = (
    "icons",
    Shape::Each(&[
        ("src", Shape::Text, Required),
        ("mimeType", Shape::Text, Optional),
        ("sizes", Shape::Texts, Optional),
    ]),
    Optional,
);
const META: FieldRule = ("_meta", Shape::Object, Optional);
const TITLE: FieldRule = ("title", Shape::Text, Optional);
const DESCRIPTION: FieldRule = ("description", Shape::Text, Optional);
const MIME_TYPE: FieldRule = ("mimeType", Shape::Text, Optional);
const AUDIENCE: FieldRule = (
    "annotations",
    Shape::Of(&[
        ("audience", Shape::Roles, Optional),
        ("priority", Shape::Share, Optional),
        ("lastModified", Shape::Text, Optional),
    ]),
    Optional,
);

const TOOL: &[FieldRule] = &[
    ("name", Shape::Text, Required),
    TITLE,
    DESCRIPTION,
    ("inputSchema", Shape::Schema, Required),
    ("outputSchema", Shape::Output, Optional),
    (
        "annotations",
        Shape::Of(&[
            ("title", Shape::Text, Optional),
            ("readOnlyHint", Shape::Flag, Optional),
            ("destructiveHint", Shape::Flag, Optional),
            ("idempotentHint", Shape::Flag, Optional),
            ("openWorldHint", Shape::Flag, Optional),
        ]),
        Optional,
    ),
    ("execution", Shape::Of(&[("taskSupport", Shape::TaskSupport, Optional)]), Optional),
    ICONS,
    META,
];
const RESOURCE: &[FieldRule] = &[
    ("uri", Shape::Uri, Required),
    ("name", Shape::Text, Required),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    ("size", Shape::Number, Optional),
    AUDIENCE,
    ICONS,
    META,
];
const TEMPLATE: &[FieldRule] = &[
    ("uriTemplate", Shape::Text, Required),
    ("name", Shape::Text, Required),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    AUDIENCE,
    ICONS,
    META,
];
const PROMPT: &[FieldRule] = &[
    ("name", Shape::Text, Required),
    TITLE,
    DESCRIPTION,
    (
        "arguments",
        Shape::Each(&[
            ("name", Shape::Text, Required),
            TITLE,
            DESCRIPTION,
            ("required", Shape::Flag, Optional),
        ]),
        Optional,
    ),
    ICONS,
    META,
];

/// The definition as it can be shown to every client.
///
/// # Errors
/// A client would refuse it, and the whole list with it.
pub fn checked<'a>(kind: Kind, value: &'a RawValue, era: Era) -> Result<Cow<'a, RawValue>, Defect> {
    let rules = match kind {
        Kind::Tools => TOOL,
        Kind::Resources => RESOURCE,
        Kind::Templates => TEMPLATE,
        Kind::Prompts => PROMPT,
    };
    object(rules, value, era).map_err(|defect| match defect.field.is_empty() {
        true => Defect::new("definition", "a plain object"),
        false => defect,
    })
}

/// An object without `null` where a field may be absent. A defect without a field is its own.
fn object<'a>(
    rules: &[FieldRule],
    value: &'a RawValue,
    era: Era,
) -> Result<Cow<'a, RawValue>, Defect> {
    let mut fields = Fields::of(value, &[]).map_err(|_| Defect::new("", "an object"))?;
    let mut edits = Vec::new();
    for (name, shape, need) in rules {
        match (fields.get(name), need) {
            (None, Required) => return Err(Defect::new(name, "there")),
            (None, Optional) => {}
            (Some(held), Optional) if held.get() == "null" => edits.push((*name, None)),
            (Some(held), _) => {
                if let Cow::Owned(better) = shape.checked(name, held, era)? {
                    edits.push((*name, Some(better)));
                }
            }
        }
    }
    if edits.is_empty() {
        return Ok(Cow::Borrowed(value));
    }
    for (name, edit) in edits {
        match edit {
            Some(better) => fields.set(name, better),
            None => _ = fields.remove(name),
        }
    }
    let json = RawValue::from_string(fields.to_json());
    json.map(Cow::Owned).map_err(|_| Defect::new("", "an object"))
}

impl Shape {
    fn checked<'a>(
        self,
        name: &str,
        value: &'a RawValue,
        era: Era,
    ) -> Result<Cow<'a, RawValue>, Defect> {
        let wrong = |wanted| Err(Defect::new(name, wanted));
        let json = value.get();
        match self {
            Self::Text if !is_text(json) => return wrong("a text"),
            Self::Uri if !as_text(value).is_some_and(|uri| has_scheme(&uri)) => {
                return wrong("a uri with a scheme");
            }
            Self::Flag if !matches!(json, "true" | "false") => return wrong("`true` or `false`"),
            Self::Number if serde_json::from_str::<f64>(json).is_err() => return wrong("a number"),
            Self::Share => {
                let number = serde_json::from_str::<f64>(json);
                if !number.is_ok_and(|it| (0.0..=1.0).contains(&it)) {
                    return wrong("a number from 0 to 1");
                }
            }
            Self::Object if !is_object(json) => return wrong("an object"),
            Self::Output if era == Era::Stateless => {
                return Self::Object.checked(name, value, era);
            }
            Self::Schema | Self::Output => schema(value).map_err(|it| it.within(name))?,
            Self::Texts if !is_texts(value, |_| true) => return wrong("an array of texts"),
            Self::Roles if !is_texts(value, |it| matches!(it, "user" | "assistant")) => {
                return wrong("an array of `user` and `assistant`");
            }
            Self::TaskSupport
                if !matches!(json, r#""required""# | r#""optional""# | r#""forbidden""#) =>
            {
                return wrong("`required`, `optional` or `forbidden`");
            }
            Self::Of(rules) => return object(rules, value, era).map_err(|it| it.within(name)),
            Self::Each(rules) => return each(rules, name, value, era),
            _ => {}
        }
        Ok(Cow::Borrowed(value))
    }
}

impl Defect {
    /// The same, told of the field that it was found in.
    fn within(self, outer: &str) -> Self {
        match self.field.is_empty() {
            true => Self::new(outer, self.wanted),
            false => self.inside(outer),
        }
    }
}

fn each<'a>(
    rules: &[FieldRule],
    name: &str,
    value: &'a RawValue,
    era: Era,
) -> Result<Cow<'a, RawValue>, Defect> {
    let elements: Vec<&RawValue> =
        serde_json::from_str(value.get()).map_err(|_| Defect::new(name, "an array of objects"))?;
    let mut better = Vec::with_capacity(elements.len());
    let mut is_edited = false;
    for (at, element) in elements.into_iter().enumerate() {
        let element = object(rules, element, era);
        let element = element.map_err(|it| it.within(&format!("{name}[{at}]")))?;
        is_edited |= matches!(element, Cow::Owned(_));
        better.push(element);
    }
    if !is_edited {
        return Ok(Cow::Borrowed(value));
    }
    let texts: Vec<&str> = better.iter().map(|it| it.get()).collect();
    let json = RawValue::from_string(format!("[{}]", texts.join(",")));
    json.map(Cow::Owned).map_err(|_| Defect::new(name, "an array of objects"))
}

/// A schema of an object, as far as clients look at it. Properties may be many.
fn schema(value: &RawValue) -> Result<(), Defect> {
    let fields: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(value.get()).map_err(|_| Defect::new("", "an object"))?;
    if fields.get("type").map(|it| it.get()) != Some(r#""object""#) {
        return Err(Defect::new("type", "`object`"));
    }
    if let Some(properties) = fields.get("properties") {
        let each: Result<BTreeMap<Cow<'_, str>, &RawValue>, _> =
            serde_json::from_str(properties.get());
        if !each.is_ok_and(|each| each.values().all(|it| is_object(it.get()))) {
            return Err(Defect::new("properties", "an object of objects"));
        }
    }
    match fields.get("required") {
        Some(required) if !is_texts(required, |_| true) => {
            Err(Defect::new("required", "an array of texts"))
        }
        Some(_) | None => Ok(()),
    }
}

fn is_text(json: &str) -> bool {
    json.starts_with('"')
}

fn is_object(json: &str) -> bool {
    json.starts_with('{')
}

fn is_texts(value: &RawValue, fits: impl Fn(&str) -> bool) -> bool {
    let texts: Result<Vec<Cow<'_, str>>, _> = serde_json::from_str(value.get());
    texts.is_ok_and(|texts| texts.iter().all(|text| fits(text)))
}

fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, text: &str) -> Result<String, String> {
        let raw: &RawValue = serde_json::from_str(text).expect("JSON");
        let checked = checked(kind, raw, Era::Sessions);
        checked.map(|it| it.get().to_owned()).map_err(|it| it.to_string())
    }

    /// A tool with more fields than it needs.
    fn tool(more: &str) -> Result<String, String> {
        check(Kind::Tools, &format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{more}}}"#))
    }

    #[test]
    fn a_tool_that_a_client_would_refuse_is_told_by_the_field_that_is_wrong() {
        for (text, words) in [
            ("7", "`definition` must be a plain object"),
            (r#"{"name":"t"}"#, "`inputSchema` must be there"),
            (r#"{"name":7,"inputSchema":{"type":"object"}}"#, "`name` must be a text"),
            (r#"{"name":"t","inputSchema":null}"#, "`inputSchema` must be an object"),
            (r#"{"name":"t","inputSchema":[]}"#, "`inputSchema` must be an object"),
            (r#"{"name":"t","inputSchema":{}}"#, "`inputSchema.type` must be `object`"),
        ] {
            assert_eq!(check(Kind::Tools, text), Err(words.to_owned()), "{text}");
        }
        for (more, words) in [
            (r#","description":5"#, "`description` must be a text"),
            (r#","annotations":[]"#, "`annotations` must be an object"),
            (r#","annotations":{"readOnlyHint":"yes"}"#, "`annotations.readOnlyHint` must be"),
            (r#","annotations":{"title":1}"#, "`annotations.title` must be a text"),
            (r#","outputSchema":true"#, "`outputSchema` must be an object"),
            (r#","outputSchema":{"type":"array"}"#, "`outputSchema.type` must be `object`"),
            (r#","icons":[{"sizes":["1x1"]}]"#, "`icons[0].src` must be there"),
            (r#","_meta":"x""#, "`_meta` must be an object"),
            (r#","execution":{"taskSupport":"maybe"}"#, "`execution.taskSupport` must be"),
        ] {
            let said = tool(more).expect_err(more);
            assert!(said.starts_with(words), "{more}: {said}");
        }
        for schema in [r#""properties":{"a":true}"#, r#""properties":[]"#, r#""required":"a""#] {
            let text = format!(r#"{{"name":"t","inputSchema":{{"type":"object",{schema}}}}}"#);
            assert!(check(Kind::Tools, &text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sound_tool_is_kept_byte_for_byte_with_fields_that_nobody_knows() {
        let more = r#", "x":1.0,"annotations":{"readOnlyHint":false,"y":null},"icons":[],"z":null"#;
        let text = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{more}}}"#);
        assert_eq!(tool(more), Ok(text));
        let many: Vec<String> = (0..1500).map(|it| format!(r#""p{it}":{{}}"#)).collect();
        let many = format!(r#"{{"type":"object","properties":{{{}}}}}"#, many.join(","));
        assert!(check(Kind::Tools, &format!(r#"{{"name":"t","inputSchema":{many}}}"#)).is_ok());
    }

    #[test]
    fn a_null_in_place_of_an_optional_field_is_taken_out() {
        let more = r#","title":null,"annotations":{"title":null,"readOnlyHint":true}"#;
        let expected =
            r#"{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#;
        assert_eq!(tool(more).as_deref(), Ok(expected));
        let prompt = r#"{"name":"p","arguments":[{"name":"a","description":null}]}"#;
        let expected = r#"{"name":"p","arguments":[{"name":"a"}]}"#;
        assert_eq!(check(Kind::Prompts, prompt).as_deref(), Ok(expected));
    }

    #[test]
    fn resources_templates_and_prompts_have_rules_of_their_own() {
        for (kind, text) in [
            (Kind::Resources, r#"{"uri":"memo://a"}"#),
            (Kind::Resources, r#"{"uri":"a/b","name":"a"}"#),
            (Kind::Resources, r#"{"uri":"memo://a","name":"a","size":"big"}"#),
            (Kind::Resources, r#"{"uri":"memo://a","name":"a","annotations":{"audience":["me"]}}"#),
            (Kind::Resources, r#"{"uri":"memo://a","name":"a","annotations":{"priority":2}}"#),
            (Kind::Templates, r#"{"uriTemplate":"memo://{x}"}"#),
            (Kind::Prompts, r#"{"name":"p","arguments":{}}"#),
            (Kind::Prompts, r#"{"name":"p","arguments":[{"description":"no name"}]}"#),
            (Kind::Prompts, r#"{"name":"p","arguments":[{"name":"a","required":"yes"}]}"#),
        ] {
            assert!(check(kind, text).is_err(), "{text}");
        }
        for (kind, text) in [
            (
                Kind::Resources,
                r#"{"uri":"memo://a","name":"a","size":12,
                    "annotations":{"priority":0.5,"audience":["user"]}}"#,
            ),
            (Kind::Templates, r#"{"uriTemplate":"{+any}","name":"a"}"#),
            (Kind::Prompts, r#"{"name":"p","arguments":[{"name":"a","required":true}]}"#),
        ] {
            assert_eq!(check(kind, text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn a_server_without_sessions_may_describe_results_that_are_no_objects() {
        let text =
            r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}"#;
        let raw: &RawValue = serde_json::from_str(text).expect("JSON");
        assert!(checked(Kind::Tools, raw, Era::Stateless).is_ok());
        assert!(checked(Kind::Tools, raw, Era::Sessions).is_err());
    }
}
