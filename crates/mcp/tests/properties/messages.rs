//! Messages: what is not edited stays byte for byte, and what is written can be read.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidegate_mcp::{
    message::{self, ErrorObject, Id, Message, Params},
    raw::{Fields, as_text, splice},
};

use crate::support::{cases, json_string, json_value, raw};

/// Members with keys that differ from each other and from `name`.
fn members() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((json_string(), json_value()), 0..6).prop_map(|members| {
        let mut seen = BTreeSet::from([Some("name".to_owned())]);
        members.into_iter().filter(|(key, _)| seen.insert(as_text(&raw(key)))).collect()
    })
}

fn object(members: &[(String, String)], around: &str) -> String {
    let member = |(key, value): &(String, String)| format!("{around}{key}{around}:{value}{around}");
    let members: Vec<String> = members.iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![json_string(), "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,3})?"]
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn an_edit_changes_one_field_and_nothing_else(
        before in members(), old in json_value(), new in json_value(), space in "[ \n\t]{0,2}",
        at in any::<prop::sample::Index>(),
    ) {
        let mut all = before;
        let at = at.index(all.len() + 1);
        all.insert(at, ("\"n\\u0061me\"".to_owned(), old));
        let text = object(&all, &space);
        let mut fields = Fields::parse(&text, &[]).expect("an object");
        fields.set("name", raw(&new));
        all[at].1 = new.clone();
        prop_assert_eq!(fields.to_json(), object(&all, ""));
        prop_assert_eq!(splice(&text, "name", &new), Ok(object(&all, &space)));
        all.remove(at);
        prop_assert!(fields.remove("name"));
        prop_assert_eq!(fields.to_json(), object(&all, ""));
    }

    #[test]
    fn the_token_is_set_and_the_rest_of_params_stays(members in members(), token in any::<u64>()) {
        let value = raw(&object(&members, " "));
        // Keys that resemble known ones are refused, and another `_meta` is in the way.
        let Ok(mut params) = Params::parse(Some(&value)) else { return Ok(()) };
        prop_assume!(params.get("_meta").is_none());
        params.set_progress_token(Some(token)).expect("no other `_meta`");
        let with_token = raw(&params.to_json());
        let mut read = Params::parse(Some(&with_token)).expect("what was written");
        let set = read.progress_token().map(|token| token.get().to_owned());
        prop_assert_eq!(set, Some(token.to_string()));
        read.set_progress_token(None).expect("an object");
        prop_assert_eq!(read.to_json(), object(&members, ""));
    }

    #[test]
    fn a_written_call_is_read_as_it_was(id in id(), method in "\\PC{0,20}", members in members()) {
        let given = Id::read(&raw(&id)).expect("an id");
        let params = object(&members, "\n");
        let text = message::request(&given, &method, Some(&params));
        prop_assert!(!text.contains('\n'));
        match Message::parse(text.as_bytes()) {
            Ok(Message::Request { id: read, method: said, params: Some(with) }) => {
                prop_assert_eq!(read.as_json(), id);
                prop_assert_eq!(said, method.clone());
                prop_assert_eq!(with.get(), one_line(&params));
            }
            other => prop_assert!(false, "{:?}", other),
        }
        let text = message::notification(&method, None);
        let read = Message::parse(text.as_bytes());
        let is_same = matches!(
            &read, Ok(Message::Notification { method: said, params: None }) if *said == method
        );
        prop_assert!(is_same, "{:?}", read);
    }

    #[test]
    fn a_written_answer_is_read_as_it_was(
        id in id(), value in json_value(), code in any::<i64>(), sentence in "\\PC{0,20}",
    ) {
        let given = Id::read(&raw(&id)).expect("an id");
        let part = raw(&value);
        for outcome in [Ok(&*part), Err(&*part)] {
            let text = message::answer(&given, outcome);
            match Message::parse(text.as_bytes()) {
                Ok(Message::Answer { id: Some(read), outcome: said }) => {
                    prop_assert_eq!(read.as_json(), &id);
                    prop_assert_eq!(said.is_ok(), outcome.is_ok());
                    let (Ok(said) | Err(said)) = said;
                    prop_assert_eq!(said.get(), one_line(&value));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        let text = message::error(Some(&given), code, &sentence, Some(&value));
        match Message::parse(text.as_bytes()) {
            Ok(Message::Answer { id: Some(_), outcome: Err(error) }) => {
                let error = ErrorObject::read(error);
                let data = error.data.map(|data| data.get().to_owned());
                prop_assert_eq!((error.code, error.message), (code, sentence));
                prop_assert_eq!(data, Some(one_line(&value)));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
