//! JSON of a request as a tree that is quick to make and to take apart.
//!
//! `serde_json` keeps the fields of an object in a hashed map. A reader takes a handful of known
//! fields out of every object and looks at each once, so hashing them costs more than it saves:
//! here an object is a list of its fields, and their names are those of the body. What goes on as
//! JSON, such as a schema, becomes a [`Value`] again ([`Json::into_value`]).
//!
//! Of a field that is written twice the last one counts, as in `serde_json`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Objects of more fields than this are looked through with a set.
const FEW: usize = 24;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// A truth.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Json<'a>>),
    /// An object, in the order of the text.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl Json<'_> {
    /// The same as a value of `serde_json`.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(truth),
            Self::Number(number) => Value::Number(number),
            Self::String(text) => Value::String(text),
            Self::Array(values) => Value::Array(values.into_iter().map(Self::into_value).collect()),
            Self::Object(fields) => {
                let mut map = Map::with_capacity(fields.len());
                let owned =
                    fields.into_iter().map(|(key, value)| (key.into_owned(), value.into_value()));
                map.extend(owned);
                Value::Object(map)
            }
        }
    }

    /// Its text, if it is one.
    #[must_use]
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is `null`.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl From<Value> for Json<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(truth),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(text),
            Value::Array(values) => Self::Array(values.into_iter().map(Self::from).collect()),
            Value::Object(map) => {
                let fields = map.into_iter().map(|(key, value)| (Cow::Owned(key), value.into()));
                Self::Object(fields.collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

/// A key, which is borrowed unless something in it is escaped.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(key)))
    }

    fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(key.to_owned())))
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json<'de>, E> {
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Json<'de>, E> {
        Ok(Json::String(text))
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut fields: Vec<(Cow<'de, str>, Json<'de>)> = Vec::new();
        while let Some((Key(key), value)) = map.next_entry()? {
            fields.push((key, value));
        }
        Ok(Json::Object(last_of_each(fields)))
    }
}

/// The fields without those that a later one of the same name replaces.
pub(super) fn last_of_each<'a>(
    mut fields: Vec<(Cow<'a, str>, Json<'a>)>,
) -> Vec<(Cow<'a, str>, Json<'a>)> {
    let has_twice = if fields.len() <= FEW {
        let mut rest = fields.as_slice();
        std::iter::from_fn(|| {
            let (first, more) = rest.split_first()?;
            rest = more;
            Some(more.iter().any(|field| field.0 == first.0))
        })
        .any(|is_there| is_there)
    } else {
        let mut keys = BTreeSet::new();
        !fields.iter().all(|field| keys.insert(&field.0))
    };
    if has_twice {
        let mut keys = BTreeSet::new();
        fields.reverse();
        fields.retain(|field| keys.insert(field.0.clone()));
        fields.reverse();
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_serde_json_says() {
        let texts = [
            r#"{"a":[1,-2,0.5,1e400,true,null,"x\n\u00e9"],"b":{"c":{}}}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            "[]",
            "18446744073709551615",
        ];
        for text in texts {
            let value: Option<Value> = serde_json::from_str(text).ok();
            let json: Option<Json<'_>> = serde_json::from_str(text).ok();
            assert_eq!(json.clone().map(Json::into_value), value, "{text}");
            assert_eq!(value.map(Json::from).map(Json::into_value), json.map(Json::into_value));
        }
    }

    #[test]
    fn the_last_of_a_field_counts_in_objects_of_any_size() {
        for count in [3, 100] {
            let mut text: String = (0..count).map(|at| format!("\"k{at}\":{at},")).collect();
            text.push_str("\"k1\":\"last\"");
            let text = format!("{{{text}}}");
            let json: Json<'_> = serde_json::from_str(&text).expect("JSON");
            let Json::Object(fields) = json else { panic!("an object") };
            assert_eq!(fields.len(), count);
            let found = fields.iter().find(|field| field.0 == "k1").map(|field| &field.1);
            assert_eq!(found, Some(&Json::String("last".into())));
        }
    }
}
