//! Forms as SDKs, browsers and attackers write them.

use bytes::Bytes;

use super::*;
use crate::splice::{EncodedName, Spliced};

const AUDIO: &str = "--b0undary\r\n\
    Content-Disposition: form-data; name=\"file\"; filename=\"a;b=\\\"c.wav\"\r\n\
    Content-Type: audio/wav\r\n\r\n\
    RIFF\r\n-- \r\n\0\u{7f}\r\n--b0undar\r\n\
    --b0undary\r\n\
    content-disposition: form-data; name=model\r\n\r\n\
    fast\r\n\
    --b0undary\r\n\
    Content-Disposition: form-data; name=\"stream\"\r\n\r\n\
    True\r\n\
    --b0undary--\r\n";

fn read(body: &str) -> Result<RequestHead<'_>, FormFault> {
    RequestHead::read_form(body.as_bytes(), b"b0undary")
}

/// A form of one part with this head and value.
fn form(head: &str, value: &str) -> String {
    format!("--b0undary\r\n{head}\r\n\r\n{value}\r\n--b0undary--\r\n")
}

fn field(name: &str, value: &str) -> String {
    form(&format!("Content-Disposition: form-data; name=\"{name}\""), value)
}

#[test]
fn the_model_is_found_among_files_that_look_like_anything() {
    let head = read(AUDIO).expect("a form");
    let model = head.model.expect("a model");
    assert_eq!((&*model.name, &AUDIO[model.span]), ("fast", "fast"));
    assert!(head.is_stream);
    assert_eq!(head.needs, Needs::default());
    let two = field("user", "me").replace("--b0undary--\r\n", "") + &field("n", "1");
    assert_eq!(read(&two).expect("a form").session.as_deref(), Some("me"));
}

#[test]
fn only_the_name_changes_and_a_missing_one_becomes_the_first_part() {
    let check = |body: &str, expected: &str| {
        let bytes = Bytes::copy_from_slice(body.as_bytes());
        let head = read(body).expect("a form");
        let spliced = Spliced::new(&bytes, &head, &EncodedName::new("whisper \"1\""));
        assert_eq!(String::from_utf8_lossy(&spliced.pieces.concat()), expected);
    };
    check(AUDIO, &AUDIO.replace("fast", "whisper \"1\""));
    check(&field("model", ""), &field("model", "whisper \"1\""));
    let model = "--b0undary\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n\
                 whisper \"1\"\r\n";
    check(&field("n", "1"), &format!("{model}{}", field("n", "1")));
    check("--b0undary--", &format!("{model}--b0undary--"));
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let model = field("model", "fast");
    let twice = [&model[..model.len() - 14], &model].concat();
    let disposition = "Content-Disposition: form-data; name=\"model\"";
    let cases = [
        (twice, FormFault::GivenTwice("model")),
        (format!("x\r\n{model}"), FormFault::NoFirstPart),
        (format!("{model}x"), FormFault::Trailing),
        (model.replace("--\r\n", ""), FormFault::EndsEarly),
        (model.replace("fast", "fast\r\n--b0undaryx\r\n"), FormFault::UnclearBoundary),
        (field("model\\", "fast"), FormFault::BadPart),
        (field("mod%65l", "fast"), FormFault::BadPart),
        (field("", "fast"), FormFault::BadPart),
        (form("Content-Type: text/plain", "fast"), FormFault::BadPart),
        (form("Content-Disposition: attachment; name=\"model\"", "x"), FormFault::BadPart),
        (form(&format!("{disposition}; name=\"user\""), "x"), FormFault::BadPart),
        (form(&format!("{disposition}; name*=utf-8''x"), "x"), FormFault::BadPart),
        (form(&format!("{disposition}\r\n{disposition}"), "x"), FormFault::BadPart),
        (form("Content-Disposition: form-data;\r\n name=\"model\"", "x"), FormFault::BadPart),
        (form(&format!("{disposition}; filename=\"x\""), "x"), FormFault::BadModel),
        (form(&format!("{disposition}\r\nContent-Transfer-Encoding: base64"), "x"), {
            FormFault::BadModel
        }),
        (field("model", "fa\nst"), FormFault::BadModel),
        ("--b0undary\r\n".to_owned(), FormFault::EndsEarly),
        ("--b0undary".to_owned(), FormFault::EndsEarly),
        (String::new(), FormFault::NoFirstPart),
    ];
    for (body, fault) in cases {
        assert_eq!(read(&body).map(drop), Err(fault), "{body}");
    }
}

#[test]
fn a_form_cut_anywhere_is_refused_and_never_panics() {
    for end in 0..AUDIO.len() - 2 {
        let cut = RequestHead::read_form(&AUDIO.as_bytes()[..end], b"b0undary");
        assert!(cut.is_err(), "{end}");
    }
}

#[test]
fn the_boundary_is_read_from_the_content_type() {
    let read = |text: &'static str| boundary(text.as_bytes());
    assert_eq!(read("application/json"), None);
    assert_eq!(read("multipart/mixed; boundary=x"), None);
    for text in [
        "multipart/form-data; boundary=x-1",
        "Multipart/Form-Data;charset=utf-8;BOUNDARY=\"x-1\"",
        "multipart/form-data; boundary=x-1; charset=utf-8",
    ] {
        assert_eq!(read(text), Some(Ok(&b"x-1"[..])), "{text}");
    }
    for text in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"x \"",
        "multipart/form-data; boundary=\"x\\\"y\"",
        "multipart/form-data; boundary=\"x",
        "multipart/form-data; boundary=x; boundary=y",
    ] {
        assert_eq!(read(text), Some(Err(FormFault::NoBoundary)), "{text}");
    }
    let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
    assert_eq!(boundary(long.as_bytes()), Some(Err(FormFault::NoBoundary)));
}
