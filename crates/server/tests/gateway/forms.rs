//! Files uploaded as forms, and answers that are no text.

use std::time::Duration;

use tidegate_fakes::fake::Step;
use tidegate_testkit::{
    gate::Gate,
    http::{Answer, End},
};

use crate::bed::{Setup, always, good, hits};

const FORM: &str = "content-type: multipart/form-data; boundary=tide\r\n";

/// A form with a file of any bytes, and perhaps a model.
fn form(model: Option<&str>) -> Vec<u8> {
    let file = b"--tide\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\
                 Content-Type: audio/wav\r\n\r\nRIFF\0\xff\r\n--tid\r\n\xfe\r\n";
    let model = model.map_or_else(String::new, |name| {
        format!("--tide\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{name}\r\n")
    });
    [&file[..], model.as_bytes(), b"--tide--\r\n"].concat()
}

fn send(gate: &Gate, path: &str, headers: &str, body: &[u8]) -> Answer {
    let mut client = gate.client();
    client.send("POST", path, headers, body);
    client.answer().expect("an answer")
}

#[test]
fn a_form_fails_over_and_each_target_gets_its_own_model_in_it() {
    let (bad, spare) = (always(Step::status(500)), good());
    let yaml = Setup { tiers: "[[a/whisper-1], [b/large-v3]]", ..Setup::of(&[&bad, &spare]) };
    let gate = yaml.start();
    for path in ["/v1/audio/transcriptions", "/v1/images/edits"] {
        let answer = send(&gate, path, FORM, &form(Some("r")));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/large-v3"), "{path}");
        let call = spare.calls().pop().expect("a call");
        assert_eq!((call.path.as_str(), &call.body[..]), (path, &form(Some("large-v3"))[..]));
        let kind = call.header("content-type");
        assert_eq!(kind, Some("multipart/form-data; boundary=tide"), "{path}");
        assert_eq!(bad.calls().pop().expect("a call").body, form(Some("whisper-1")));
    }
}

#[test]
fn a_form_without_a_model_goes_to_the_default_route() {
    let fake = good();
    let gate = Setup { top: "default_route: r", ..Setup::of(&[&fake]) }.start();
    let answer = send(&gate, "/v1/audio/transcriptions", FORM, &form(None));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent = fake.calls().pop().expect("a call").text();
    assert!(sent.starts_with("--tide\r\n") && sent.contains("name=\"model\"\r\n\r\nm\r\n--tide"));
    let gate = Setup::of(&[&fake]).start();
    assert_eq!(send(&gate, "/v1/audio/transcriptions", FORM, &form(None)).status, 404);
}

#[test]
fn a_form_that_two_readers_could_read_differently_reaches_no_provider() {
    let fake = good();
    let gate = Setup { top: "limits: {body: 64KiB}", ..Setup::of(&[&fake]) }.start();
    let whole = form(Some("r"));
    let twice = [&whole[..whole.len() - 10], &form(Some("a/other"))].concat();
    let cut = &whole[..whole.len() - 6];
    for (name, body) in [("two models", &twice[..]), ("cut", cut), ("nothing", b""), ("x", b"x")] {
        let answer = send(&gate, "/v1/audio/transcriptions", FORM, body);
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
    }
    let other = "content-type: multipart/form-data; boundary=ebb\r\n";
    assert_eq!(send(&gate, "/v1/audio/transcriptions", other, &whole).status, 400);
    let none = "content-type: multipart/form-data\r\n";
    assert_eq!(send(&gate, "/v1/audio/transcriptions", none, &whole).status, 415);
    for path in ["/v1/chat/completions", "/v1/moderations", "/v1/files", "/v1/embeddings"] {
        assert_eq!(send(&gate, path, FORM, &whole).status, 415, "{path}");
    }
    let large = [&whole[..whole.len() - 10], &[b'x'; 70_000], b"\r\n--tide--"].concat();
    assert_eq!(send(&gate, "/v1/audio/transcriptions", FORM, &large).status, 413);
    assert_eq!(hits(&fake), 0);
}

#[test]
fn audio_arrives_byte_for_byte() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let body = "{\"model\":\"r\",\"input\":\"good morning\",\"voice\":\"x\"}";
    let answer = gate.post("/v1/audio/speech", body);
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    assert_eq!(answer.header("content-type"), Some("audio/mpeg"));
    let words = ["fake ", "as ", "m ", "heard: ", "good ", "morning"];
    let expected: Vec<u8> =
        words.iter().flat_map(|word| [&[0xff, 0xfb], word.as_bytes()].concat()).collect();
    assert_eq!(answer.body, expected);
}

#[test]
fn audio_is_streamed_as_it_comes() {
    // Longer between two frames than a client would wait for all of them.
    let slow = Step::ok().with_tokens(3, Duration::from_secs(3));
    let fake = always(slow);
    let gate = Setup::of(&[&fake]).start();
    let mut client = gate.client();
    let body = b"{\"model\":\"r\",\"input\":\"good morning\"}";
    let began = tidegate_testkit::time::now();
    client.send("POST", "/v1/audio/speech", "", body);
    client.read_until("fake ").expect("the first frame");
    let waited = began.elapsed();
    assert!(waited < Duration::from_millis(2500), "the first frame came after {waited:?}");
}
