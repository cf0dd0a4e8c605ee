//! A tool's arguments as they are typed: one JSON object, or `key=value` words.
//!
//! Rules kept here:
//! - A value that is JSON by itself counts as that (`3`, `true`, `[1, 2]`, `"3"`); any other is a
//!   text. So a text that looks like a number is written with its quotes: `id='"3"'`.
//! - A key that comes twice is a mistake, not a list.

use serde_json::{Map, Value};

/// The arguments as an object, or what is wrong with them.
pub(super) fn parse(words: &[String]) -> Result<Map<String, Value>, String> {
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        return serde_json::from_str(only)
            .map_err(|error| format!("the arguments are no JSON object: {error}"));
    }
    let mut object = Map::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(format!("`{word}` is neither `key=value` nor a JSON object"));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if object.insert(key.to_owned(), value).is_some() {
            return Err(format!("`{key}` is given twice; a list is written `{key}='[1, 2]'`"));
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    fn check(words: &[&str], expected: Value) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(parse(&words).map(Value::Object), Ok(expected), "{words:?}");
    }

    #[test]
    fn an_object_or_words_with_values_that_may_be_json() {
        check(&[], json!({}));
        check(&[r#" {"a": [1]}"#], json!({"a": [1]}));
        check(
            &["n=3", "s=three", "q=\"3\"", "t=true", "l=[1, 2]", "e=", "u=a=b"],
            json!({"n": 3, "s": "three", "q": "3", "t": true, "l": [1, 2], "e": "", "u": "a=b"}),
        );
    }

    #[test]
    fn what_is_neither_is_refused_in_words() {
        for (words, part) in [
            (&["{"][..], "no JSON object"),
            (&["[1]"], "neither `key=value`"),
            (&["=1"], "neither `key=value`"),
            (&["a=1", "a=2"], "given twice"),
            (&["a=1", "{}"], "neither `key=value`"),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let error = parse(&words).expect_err("it is refused");
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
