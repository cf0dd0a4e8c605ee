//! The log as its reader sees it.

use super::*;
use crate::test_bed::log_lines as lines;

const HOSTILE: &str = "evil\r\n14:00:00 fake line\u{1b}[31m";

fn access_line(path: &str) -> Access<'_> {
    Access {
        method: &Method::POST,
        path,
        route: "fast",
        target: Some(HOSTILE),
        status: 200,
        attempts: 2,
        took: Millis(412),
        request_id: "req-1",
        caller: "ci",
    }
}

fn write(path: &str, format: LogFormat) -> String {
    let file = LogFile { access: true, ..LogFile::default() };
    let mut lines = lines(format, LogLevel::Info, || access(&file, &access_line(path)));
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

#[test]
fn an_access_line_says_who_asked_what_and_how_it_went() {
    let line = write("/v1/chat/completions", LogFormat::Text);
    let expected = " request ended  method=POST path=/v1/chat/completions route=fast \
         target=\"evil\\r\\n14:00:00 fake line\\u001b[31m\" status=200 attempts=2 ms=412 \
         request_id=req-1 caller=ci\n";
    assert_eq!(line.get(8..), Some(expected));
}

#[test]
fn s60_no_field_adds_a_line_in_either_form() {
    for format in [LogFormat::Text, LogFormat::Json] {
        let line = write("/v1/messages", format);
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
    let line = write("/v1/messages", LogFormat::Json);
    let object: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(object["target"], HOSTILE);
    assert_eq!((&object["ms"], &object["level"]), (&412.into(), &"info".into()));
    let keys: Vec<&str> = object.as_object().expect("an object").keys().map(|it| &**it).collect();
    let expected = [
        "time",
        "level",
        "message",
        "method",
        "path",
        "route",
        "target",
        "status",
        "attempts",
        "ms",
        "request_id",
        "caller",
    ];
    assert_eq!(keys, expected);
    let time = object["time"].as_str().expect("a text");
    assert!(time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".", "{time}");
}

#[test]
fn a_path_is_told_by_its_class_and_never_its_query() {
    for (path, class) in [
        ("/v1/models/secret-model", "/v1/models/{id}"),
        ("/v1/rerank", "/v1/{other}"),
        ("/x?api_key=abc", "{other}"),
        ("/mcp", "/mcp"),
    ] {
        assert_eq!(path_class(path), class);
    }
}

#[test]
fn without_the_setting_requests_are_told_at_debug_only() {
    let file = LogFile::default();
    let told = |level| lines(LogFormat::Text, level, || access(&file, &access_line("/mcp"))).len();
    assert_eq!((told(LogLevel::Info), told(LogLevel::Debug)), (0, 1));
}

#[test]
fn a_refusal_is_told_with_its_kind_and_a_flood_of_them_is_counted() {
    let refusal = Refused {
        event: "unknown_key",
        caller: "",
        path: "/v1/models/x",
        route: "",
        request_id: "req_1",
    };
    let limit = LineLimit::default();
    let told = lines(LogFormat::Text, LogLevel::Info, || {
        let told = (0..100).filter(|at| refused(&limit, Now(*at), &refusal).is_some());
        assert_eq!(told.count(), 5);
        refused(&limit, Now(10_000), &refusal);
    });
    let first = " warning: a request was refused  event=unknown_key path=/v1/models/{id} \
                 request_id=req_1\n";
    assert_eq!(told[0].get(8..), Some(first));
    assert_eq!(told.len(), 6);
    assert!(told[5].ends_with(" suppressed=95\n"), "{told:?}");
}

#[test]
fn the_level_decides_and_other_libraries_are_never_heard() {
    let talk = || {
        tracing::info!("shown");
        tracing::debug!("hidden");
        tracing::error!(target: "h2::proto", header = "authorization: Bearer x", "not ours");
    };
    let info = lines(LogFormat::Text, LogLevel::Info, talk);
    assert_eq!(info.len(), 1);
    assert!(info[0].ends_with(" shown\n"), "{info:?}");
    assert_eq!(lines(LogFormat::Text, LogLevel::Trace, talk).len(), 2);
}

#[test]
fn every_kind_of_value_is_written_in_both_forms() {
    let talk = || {
        let words = "two \"words\" \\ \u{1b}";
        let (quoted, list) = (Some(words), [1, 2]);
        tracing::info!(quoted, big = u64::MAX, less = -3_i64, is = true, part = 0.5,
            none = f64::NAN, list = ?list, absent = None::<u64>, "a {} message\n", "made");
    };
    let text = lines(LogFormat::Text, LogLevel::Info, talk);
    let expected = " a made message\\n  quoted=\"two \\\"words\\\" \\ \\u001b\" \
                    big=18446744073709551615 less=-3 is=true part=0.5 none=null list=\"[1, 2]\"\n";
    assert_eq!(text[0].get(8..), Some(expected));
    let json = lines(LogFormat::Json, LogLevel::Info, talk);
    let object: serde_json::Value = serde_json::from_str(&json[0]).expect("JSON");
    assert_eq!(object["message"], "a made message\n");
    assert_eq!(object["quoted"], "two \"words\" \\ \u{1b}");
    let numbers = serde_json::json!([u64::MAX, -3, true, 0.5, null, "[1, 2]"]);
    let found = ["big", "less", "is", "part", "none", "list"].map(|name| object[name].clone());
    assert_eq!(serde_json::Value::from(found.to_vec()), numbers);
    assert!(object.get("absent").is_none());
}

#[test]
fn warnings_are_marked_in_text() {
    let said = lines(LogFormat::Text, LogLevel::Info, || tracing::warn!(count = 3, "look here"));
    assert_eq!(said[0].get(8..), Some(" warning: look here  count=3\n"));
}
