//! The fake's own endpoints, so that a test in any language can set the scene and read the result.
//!
//! | request | does |
//! |---|---|
//! | `POST /__script` | sets the script (JSON of [`Script`]); 204, or 400 and what is wrong |
//! | `GET /__calls` | gives `seen`, `under_way`, `abandoned`, `connections` and the kept `calls` |
//! | `DELETE /__calls` | forgets the kept calls; 204 |
//!
//! Only a fake that listens on a socket of its own has them. They count as no call.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::json;

use super::Fake;
use super::calls::Call;
use super::render::whole;
use super::script::Script;
use super::step::Step;
use super::tape::Tape;

/// The answer, if the request is one of these.
pub(super) fn answer(fake: &Fake, method: &Method, path: &str, body: &[u8]) -> Option<Tape> {
    let (status, text) = match (method, path) {
        (&Method::POST, "/__script") => match Script::from_json(body) {
            Ok(script) => {
                fake.set_script(script);
                (StatusCode::NO_CONTENT, String::new())
            }
            Err(complaint) => (StatusCode::BAD_REQUEST, json!({"error": complaint}).to_string()),
        },
        (&Method::GET, "/__calls") => (StatusCode::OK, calls(fake)),
        (&Method::DELETE, "/__calls") => {
            fake.forget_calls();
            (StatusCode::NO_CONTENT, String::new())
        }
        _ => return None,
    };
    let mut tape = whole(&Step::ok(), Bytes::from(text));
    tape.status = status;
    if status == StatusCode::NO_CONTENT {
        tape.headers.clear();
    }
    Some(tape)
}

fn calls(fake: &Fake) -> String {
    let counts = fake.counts();
    let calls: Vec<_> = fake.calls().iter().map(Call::to_json).collect();
    json!({
        "seen": counts.seen, "under_way": counts.under_way, "abandoned": counts.abandoned,
        "connections": counts.connections, "calls": calls,
    })
    .to_string()
}
