//! Reading JSON objects field by field, with a path for every complaint.
//!
//! A reader takes the fields it knows out of the object; what is left is what it does not know,
//! and goes to [`super::request::GenerationRequest::other`]. `null` counts as absent everywhere,
//! because every vendor's SDK may send it for a field that was not set.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::bounds::{MAX_ID, MAX_NAME, MAX_STOPS, MAX_WORD, problem};
use super::fault::{ReplyFault, RequestFault, RequestResult};
use super::json_in::Json;
use super::notes::Notes;

/// Fields of answers that clients send back with the history. They ask for nothing.
const QUIET: [&str; 8] =
    ["id", "status", "index", "annotations", "logprobs", "citations", "phase", "caller"];

/// An object of a request that is being read, and where it stands.
#[derive(Debug)]
pub struct Fields<'a> {
    path: String,
    /// In no order. Objects have few fields, and a look at all of them is quicker than a hash.
    fields: Vec<(Cow<'a, str>, Json<'a>)>,
}

impl<'a> Fields<'a> {
    /// Reads a whole body.
    ///
    /// # Errors
    /// It is no JSON object.
    pub fn of_body(body: &'a [u8]) -> RequestResult<Self> {
        Self::new(String::new(), parsed(body)?)
    }

    /// An object that stands at `path`.
    ///
    /// # Errors
    /// It is no object.
    pub fn new(path: String, value: Json<'a>) -> RequestResult<Self> {
        match value {
            Json::Object(fields) => Ok(Self { path, fields }),
            _ if path.is_empty() => Err(RequestFault::invalid("body", "must be an object")),
            _ => Err(RequestFault::invalid(path, "must be an object")),
        }
    }

    /// The path of a field.
    #[must_use]
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A complaint about a field.
    #[must_use]
    pub fn fault(&self, key: &str, problem: impl Into<String>) -> RequestFault {
        RequestFault::invalid(self.path(key), problem)
    }

    /// Takes a field that is not null, as a value that goes on as it is.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.take_json(key).map(Json::into_value)
    }

    /// Takes a field that is not null.
    pub fn take_json(&mut self, key: &str) -> Option<Json<'a>> {
        let at = self.fields.iter().position(|(name, _)| name == key)?;
        // The order of what is left is shown to nobody, so the quick removal serves.
        let (_, value) = self.fields.swap_remove(at);
        Some(value).filter(|value| !value.is_null())
    }

    /// Takes a string.
    ///
    /// # Errors
    /// It is something else.
    pub fn string(&mut self, key: &str) -> RequestResult<Option<String>> {
        match self.take_json(key) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.fault(key, "must be a string")),
        }
    }

    /// Takes a string that must be there.
    ///
    /// # Errors
    /// It is missing or something else.
    pub fn required_string(&mut self, key: &str) -> RequestResult<String> {
        self.string(key)?.ok_or_else(|| self.fault(key, "is missing"))
    }

    /// Takes a string of at most so many bytes.
    ///
    /// # Errors
    /// It is something else, or longer.
    pub fn short(&mut self, key: &str, most: usize) -> RequestResult<Option<String>> {
        let text = self.string(key)?;
        match text.as_ref().and_then(|text| problem(text.len(), most)) {
            Some(problem) => Err(self.fault(key, problem)),
            None => Ok(text),
        }
    }

    /// The same for one that must be there.
    ///
    /// # Errors
    /// As for [`Self::short`], or it is missing.
    pub fn required_short(&mut self, key: &str, most: usize) -> RequestResult<String> {
        self.short(key, most)?.ok_or_else(|| self.fault(key, "is missing"))
    }

    /// Takes the id of a call that must be there.
    ///
    /// # Errors
    /// It is missing, something else, or too long.
    pub fn required_id(&mut self, key: &str) -> RequestResult<String> {
        self.required_short(key, MAX_ID)
    }

    /// Takes the name of a tool that must be there.
    ///
    /// # Errors
    /// It is missing, something else, or too long.
    pub fn required_name(&mut self, key: &str) -> RequestResult<String> {
        self.required_short(key, MAX_NAME)
    }

    /// Takes stop sequences: a list of texts, or one text where the dialect has that too.
    ///
    /// # Errors
    /// It is something else, they are too many, or one is too long.
    pub fn stops(&mut self, key: &str, may_be_one: bool) -> RequestResult<Vec<String>> {
        let values = match self.take_json(key) {
            None => return Ok(Vec::new()),
            Some(Json::Array(values)) => values,
            Some(one @ Json::String(_)) if may_be_one => vec![one],
            Some(_) => return Err(self.fault(key, "must be a list of strings")),
        };
        if values.len() > MAX_STOPS {
            return Err(self.fault(key, format!("has more than {MAX_STOPS} elements")));
        }
        let mut stops = Vec::with_capacity(values.len());
        for (at, value) in values.into_iter().enumerate() {
            let Json::String(text) = value else {
                return Err(self.fault(key, "must be a list of strings"));
            };
            if let Some(problem) = problem(text.len(), MAX_WORD) {
                return Err(RequestFault::invalid(element_path(&self.path(key), at), problem));
            }
            stops.push(text);
        }
        Ok(stops)
    }

    /// Takes a bool.
    ///
    /// # Errors
    /// It is something else.
    pub fn boolean(&mut self, key: &str) -> RequestResult<Option<bool>> {
        match self.take_json(key) {
            None => Ok(None),
            Some(Json::Bool(truth)) => Ok(Some(truth)),
            Some(_) => Err(self.fault(key, "must be a boolean")),
        }
    }

    /// Takes a field that is not null; `Some(None)` if it is no number.
    fn take_number(&mut self, key: &str) -> Option<Option<Number>> {
        self.take_json(key).map(|value| match value {
            Json::Number(number) => Some(number),
            _ => None,
        })
    }

    /// Takes a number.
    ///
    /// # Errors
    /// It is something else.
    pub fn number(&mut self, key: &str) -> RequestResult<Option<f64>> {
        match self.take_number(key).map(|number| number.and_then(|it| it.as_f64())) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(self.fault(key, "must be a number")),
        }
    }

    /// Takes a count: a whole number that is not negative.
    ///
    /// # Errors
    /// It is something else.
    pub fn count(&mut self, key: &str) -> RequestResult<Option<u64>> {
        match self.take_number(key).map(|number| number.and_then(|it| it.as_u64())) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(self.fault(key, "must be a whole number that is not negative")),
        }
    }

    /// Takes a whole number.
    ///
    /// # Errors
    /// It is something else.
    pub fn integer(&mut self, key: &str) -> RequestResult<Option<i64>> {
        match self.take_number(key).map(|number| number.and_then(|it| it.as_i64())) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(self.fault(key, "must be a whole number")),
        }
    }

    /// Takes a list; an absent one is empty.
    ///
    /// # Errors
    /// It is something else.
    pub fn list(&mut self, key: &str) -> RequestResult<Vec<Json<'a>>> {
        match self.take_json(key) {
            None => Ok(Vec::new()),
            Some(Json::Array(values)) => Ok(values),
            Some(_) => Err(self.fault(key, "must be an array")),
        }
    }

    /// Takes a list of objects; an absent one is empty.
    ///
    /// # Errors
    /// It, or one of its elements, is something else.
    pub fn objects(&mut self, key: &str) -> RequestResult<Vec<Self>> {
        let values = self.list(key)?;
        self.numbered(key, values)
    }

    /// The same, of at most so many elements.
    ///
    /// # Errors
    /// As for [`Self::objects`], or it is longer.
    pub fn objects_up_to(&mut self, key: &str, most: usize) -> RequestResult<Vec<Self>> {
        let values = self.list_up_to(key, most)?;
        self.numbered(key, values)
    }

    fn numbered(&self, key: &str, values: Vec<Json<'a>>) -> RequestResult<Vec<Self>> {
        let base = self.path(key);
        let numbered = values.into_iter().enumerate();
        numbered.map(|(at, value)| Self::new(element_path(&base, at), value)).collect()
    }

    /// Takes an object.
    ///
    /// # Errors
    /// It is something else.
    pub fn object(&mut self, key: &str) -> RequestResult<Option<Self>> {
        match self.take_json(key) {
            None => Ok(None),
            Some(value) => Self::new(self.path(key), value).map(Some),
        }
    }

    /// Whether a field is there and not null.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.fields.iter().any(|(name, value)| name == key && !value.is_null())
    }

    /// Takes a list of at most so many elements.
    ///
    /// # Errors
    /// It is something else, or longer.
    pub fn list_up_to(&mut self, key: &str, most: usize) -> RequestResult<Vec<Json<'a>>> {
        let values = self.list(key)?;
        if values.len() > most {
            return Err(self.fault(key, format!("has more than {most} elements")));
        }
        Ok(values)
    }

    /// Notes what was not taken: it does not cross.
    pub fn note_rest(self, notes: &mut Notes) {
        for (key, value) in &self.fields {
            if !value.is_null() && !QUIET.contains(&key.as_ref()) {
                notes.dropped(self.path(key), "no other dialect has it");
            }
        }
    }

    /// What was not taken and is not null.
    #[must_use]
    pub fn rest(self) -> Map<String, Value> {
        let said = self.fields.into_iter().filter(|(_, value)| !value.is_null());
        said.map(|(key, value)| (key.into_owned(), value.into_value())).collect()
    }
}

/// The path of an element of a list: `messages[3]`. There is one for every message and part of a
/// request, most of which are never shown, so it is put together by hand.
#[must_use]
pub fn element_path(list: &str, at: usize) -> String {
    let mut digits = [b'0'; 20];
    let (mut first, mut rest) = (digits.len() - 1, at);
    while rest > 9 {
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        first -= 1;
    }
    digits[first] = b'0' + rest as u8;
    let mut path = String::with_capacity(list.len() + 22);
    path.push_str(list);
    path.push('[');
    path.extend(digits[first..].iter().map(|digit| char::from(*digit)));
    path.push(']');
    path
}

/// Parses a body.
///
/// # Errors
/// It is no JSON.
pub fn parsed(body: &[u8]) -> RequestResult<Json<'_>> {
    serde_json::from_slice(body)
        .map_err(|error| RequestFault::invalid("body", format!("is not JSON: {error}")))
}

/// Reads a whole answer's body as an object.
///
/// # Errors
/// It is no JSON, or no object.
pub fn reply_object(body: &[u8]) -> Result<Map<String, Value>, ReplyFault> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(ReplyFault::NotTheDialect { problem: "no object" }),
        Err(_) => Err(ReplyFault::NotJson),
    }
}

/// Takes a string out of an answer's object; what is missing or something else is empty.
#[must_use]
pub fn take_text(map: &mut Map<String, Value>, key: &str) -> String {
    match map.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Takes a list out of an answer's object; what is missing or something else is empty.
#[must_use]
pub fn take_list(map: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match map.get_mut(key).map(Value::take) {
        Some(Value::Array(values)) => values,
        _ => Vec::new(),
    }
}

/// Takes an object out of an answer's object, if there is one.
#[must_use]
pub fn take_map(map: &mut Map<String, Value>, key: &str) -> Option<Map<String, Value>> {
    match map.get_mut(key).map(Value::take) {
        Some(Value::Object(inner)) => Some(inner),
        _ => None,
    }
}

/// A count of an answer's object, zero if there is none.
#[must_use]
pub fn count_of(map: &Map<String, Value>, key: &str) -> u64 {
    map.get(key).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::element_path;

    #[test]
    fn an_element_is_named_by_its_place() {
        for at in [0, 9, 10, 105, 12_345, usize::MAX] {
            assert_eq!(element_path("messages", at), format!("messages[{at}]"));
        }
    }
}
