//! Input that is none: every reader comes to an end, and says no in its own words.

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tidegate_mcp::{
    catalogue::Catalogue,
    greeting,
    listing::{Gather, Item, Kind, ServerInfo, has_hidden_text},
    message::{ErrorObject, Message, Params, is_batch, parse_batch},
    names::Naming,
    raw::Fields,
    stateless::{Envelope, belongs, dress, input::Needed, listen::Filter, mirror},
};
use tidegate_text::glob::Glob;

use crate::support::{cases, json_value, raw, settings};

/// Text that is nearly a message.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"jsonrpc\"",
        "\"2.0\"",
        "\"id\"",
        "\"method\"",
        "\"params\"",
        "\"result\"",
        "\"error\"",
        "\"ID\"",
        "null",
        "1",
        "1.0",
        "\"\\ud800\"",
        "\"a\"",
        " ",
        "\n",
        "\"",
        "\\",
        "{}",
        "[]",
        "é",
        "\"_meta\"",
        "\"name\"",
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1",
    ];
    let text = prop::collection::vec(prop::sample::select(words.to_vec()), 0..24);
    prop_oneof![
        text.prop_map(|words| words.concat().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..64),
        json_value().prop_map(String::into_bytes),
    ]
}

/// Everything that reads a part of a message of the stateless era, or writes one.
fn read_stateless(value: &RawValue) {
    let heads = [("mcp-method".to_owned(), "tools/list".to_owned())];
    _ = belongs("tools/list", Some(value), None);
    _ = Envelope::read("tools/call", Some(value), &heads);
    _ = Filter::read(Some(value));
    _ = (greeting::of_discover(Ok(value)), greeting::of_discover(Err(value)));
    _ = greeting::of_initialize(Ok(value));
    _ = mirror::check_tool(value.get());
    _ = (mirror::headers(value.get(), Some(value)), mirror::check_call(value.get(), None, &heads));
    if let Ok(needed) = Needed::read(value) {
        let mut params = Params::default();
        let answers = needed.questions.iter().map(|_| value.to_owned()).collect();
        needed.answer(&mut params, answers);
        assert!(Fields::parse(&params.to_json(), &[]).is_ok());
    }
    let dressed = dress::for_stateless("tools/list", value.get(), value);
    for text in [dress::for_session("tools/list", &dressed), dress::error_for_stateless(&dressed)] {
        assert!(serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{text}");
    }
}

/// Everything that reads a part of a message.
fn read_parts(value: &RawValue) {
    _ = ErrorObject::read(value);
    read_stateless(value);
    if let Ok(mut params) = Params::parse(Some(value)) {
        // Only panics matter here: a flawed `_meta` or `ref` is an error.
        _ = params.set_progress_token(Some(1));
        _ = params.strip_reserved();
        _ = params.set_reference("name", "x");
        assert!(Fields::parse(&params.to_json(), &[]).is_ok());
    }
    for kind in Kind::ALL {
        if let Some(item) = Item::read(kind, value) {
            assert_eq!(item.raw.as_ref(), value.get());
        }
    }
    if let Ok(info) = ServerInfo::read(value) {
        _ = info.can_subscribe();
        let mut gather = Gather::new(info);
        while gather.ask().is_some() {
            if gather.page(value).is_err() {
                gather.refused();
            }
        }
        let listing = gather.finish().0;
        assert!(listing.diff(&listing).is_empty());
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn no_bytes_upset_a_reader(bytes in nearly()) {
        match Message::parse(&bytes) {
            Ok(
                Message::Request { params: part, .. } | Message::Notification { params: part, .. },
            ) => {
                prop_assert!(serde_json::from_slice::<IgnoredAny>(&bytes).is_ok());
                part.into_iter().for_each(read_parts);
            }
            Ok(Message::Answer { outcome: Ok(part) | Err(part), .. }) => read_parts(part),
            Err(fault) => {
                prop_assert!(!fault.message.is_empty());
                let answer = fault.to_answer();
                let is_answer = matches!(
                    Message::parse(answer.as_bytes()), Ok(Message::Answer { outcome: Err(_), .. })
                );
                prop_assert!(is_answer, "{}", answer);
            }
        }
        if let Ok(messages) = parse_batch(&bytes) {
            prop_assert!(is_batch(&bytes) && !messages.is_empty());
        }
    }

    #[test]
    fn no_value_upsets_a_reader_of_parts(value in json_value()) {
        read_parts(&raw(&value));
        let page = format!(r#"{{"tools":[{value},{{"name":{value}}}],"nextCursor":{value}}}"#);
        read_parts(&raw(&page));
        read_parts(&raw(&format!(r#"{{"name":"a","_meta":{value},"ref":{value}}}"#)));
        read_parts(&raw(&format!(r#"{{"capabilities":{value},"annotations":{value}}}"#)));
    }

    #[test]
    fn no_text_upsets_a_pattern_or_a_cursor(pattern in "[a*?é]{0,12}", text in "\\PC{0,40}") {
        prop_assert!(Glob::new("*").matches(&text));
        let longer = format!("{pattern}*");
        prop_assert!(Glob::new(&longer).matches(&pattern));
        let servers = ["a", "b"].map(str::to_owned);
        let catalogue = Catalogue::new(&settings(Naming::Prefix, &servers), &[None, None]);
        for cursor in [text.clone(), format!("t{text}")] {
            for kind in Kind::ALL {
                if let Ok(page) = catalogue.page(kind, |_| true, Some(&cursor), 1) {
                    prop_assert_eq!(page.next_cursor, None);
                }
            }
        }
        prop_assert_eq!(catalogue.nearest_tool(&text, |_| true), None);
        prop_assert_eq!(catalogue.server_of(&text), None);
        prop_assert!(!has_hidden_text(&text) || !text.is_ascii());
    }
}
