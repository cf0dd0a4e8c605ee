//! Who is let in, and what somebody who is not let in gets to know.

use serde_json::Value;
use tidegate_fakes::fake::FakeServer;
use tidegate_testkit::{
    gate::{Gate, chat},
    http::Answer,
};

use crate::bed::{Setup, good, hits};

const VARIABLES: &[(&str, &str)] = &[("ALL", "caller-key-of-all"), ("FEW", "caller-key-of-few")];

/// A gateway with a caller for everything and one for the route `direct`.
fn gate(fake: &FakeServer) -> Gate {
    let top = "  direct: {match: ['gpt-*'], tiers: [[a/m]]}\n\
               keys: [{name: all, key: 'env:ALL'},\n\
               {name: few, key: 'env:FEW', routes: [direct]}]\n";
    Setup { top, variables: VARIABLES, ..Setup::of(&[fake]) }.start()
}

const FEW: &str = "x-api-key: caller-key-of-few\r\n";

fn ask(gate: &Gate, headers: &str, model: &str) -> Answer {
    gate.post_with("/v1/chat/completions", headers, &chat(model, false))
}

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_401_tells_a_missing_key_from_an_unknown_one_and_how_to_send_it() {
    let fake = good();
    let gate = gate(&fake);
    let cases = [
        ("", "no key was sent", "Bearer"),
        ("authorization: Basic eDp5\r\n", "no key was sent", "Bearer"),
        ("x-api-key: \r\n", "no key was sent", "Bearer"),
        ("x-api-key: wrong\r\n", "is not known", "Bearer error=\"invalid_token\""),
        ("authorization: Bearer wrong\r\n", "is not known", "Bearer error=\"invalid_token\""),
    ];
    for (headers, words, challenge) in cases {
        for path in ["/v1/chat/completions", "/v1/messages", "/mcp"] {
            let accept = "accept: application/json, text/event-stream\r\n";
            let headers = format!("{headers}{accept}");
            let answer = gate.post_with(path, &headers, &chat("direct", false));
            assert_eq!(answer.status, 401, "{path} {headers}");
            assert!(message(&answer).contains(words), "{path} {headers}: {}", answer.text());
            assert_eq!(answer.header("www-authenticate"), Some(challenge), "{path} {headers}");
            assert!(!answer.text().contains("wrong"), "{path} {headers}");
        }
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s5_a_hostile_key_opens_nothing_and_is_repeated_nowhere() {
    let fake = good();
    let gate = gate(&fake);
    let long = "k".repeat(1 << 20);
    for key in ["' OR 1=1--", "caller-key-of-all\0", "\0", "caller-key-of-all\t, x", "%00", &long] {
        let headers = format!("x-api-key: {key}\r\n");
        let answer = ask(&gate, &headers, "r");
        let shown = &key[..key.len().min(20)];
        assert!(matches!(answer.status, 400 | 401 | 431), "{shown}: {}", answer.status);
        assert!(!answer.text().contains(key), "{shown}");
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn one_right_key_is_enough_whatever_other_credential_an_sdk_adds() {
    let fake = good();
    let gate = gate(&fake);
    for headers in [
        "x-api-key: sk-ant-of-the-vendor\r\nauthorization: Bearer caller-key-of-all\r\n",
        "x-api-key: caller-key-of-all\r\nauthorization: Bearer sk-of-the-vendor\r\n",
        "x-goog-api-key: caller-key-of-all\r\n",
        "api-key: caller-key-of-all\r\nauthorization: Basic eDp5\r\n",
    ] {
        assert_eq!(ask(&gate, headers, "r").status, 200, "{headers}");
    }
    let both = "authorization: Bearer caller-key-of-all\r\nx-api-key: caller-key-of-few\r\n";
    assert_eq!(ask(&gate, both, "r").status, 403, "of two known keys the one in x-api-key counts");
}

#[test]
fn a_route_named_direct_is_a_route_like_any_other() {
    let fake = good();
    let gate = gate(&fake);
    assert_eq!(ask(&gate, FEW, "direct").status, 200);
    assert_eq!(ask(&gate, FEW, "gpt-4o").status, 200, "by its pattern");
    assert_eq!(ask(&gate, FEW, "r").status, 403);
    assert_eq!(ask(&gate, FEW, "a/m").status, 403);
}

#[test]
fn a_restricted_key_is_told_of_what_it_may_use_only() {
    let fake = good();
    let gate = gate(&fake);
    let answer = ask(&gate, FEW, "nobody/knows");
    assert_eq!(answer.status, 404);
    assert_eq!(message(&answer), "model `nobody/knows` does not exist: routes are `direct`");
    let all = ask(&gate, "x-api-key: caller-key-of-all\r\n", "nobody/knows");
    let expected = "model `nobody/knows` does not exist: routes are `r`, `direct`; \
                    `provider/model` works for `a`";
    assert_eq!(message(&all), expected);
    let get = |path: &str| -> Value {
        let mut client = gate.client();
        client.send("GET", path, FEW, b"");
        client.answer().expect("an answer").json()
    };
    let names = |list: &Value, key: &str| -> Vec<String> {
        let rows = list.as_array().expect("a list").iter();
        rows.filter_map(|row| row[key].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names(&get("/v1/models")["data"], "id"), ["direct"]);
    assert_eq!(names(&get("/v1/routes")["routes"], "name"), ["direct"]);
    let health = get("/v1/health");
    let backends: Vec<&String> = health["backends"].as_object().expect("a map").keys().collect();
    assert_eq!(backends, ["a/m"]);
}

#[test]
fn a_parameter_that_the_config_sets_cannot_be_changed_by_a_client() {
    let fake = good();
    let provider = "query: {api-version: '2024'}";
    let gate = Setup { provider, ..Setup::of(&[&fake]) }.start();
    for (sent, arrives) in [
        ("?api-version=evil", "?api-version=2024"),
        ("?api-version=evil&beta=true", "?beta=true&api-version=2024"),
        ("?Api-Version=evil&%61pi-version=evil", "?api-version=2024"),
        ("?x=1;api-version=evil", "?api-version=2024"),
        ("", "?api-version=2024"),
    ] {
        let path = format!("/v1/chat/completions{sent}");
        assert_eq!(gate.post(&path, &chat("r", false)).status, 200, "{sent}");
        let call = fake.calls().pop().expect("a call");
        assert_eq!(call.path, format!("/v1/chat/completions{arrives}"), "{sent}");
    }
}

#[test]
fn s58_every_loop_mark_is_read_and_handed_on() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let marks = "x-tidegate-passed: 00000000000000aa\r\nx-tidegate-passed: 00000000000000bb\r\n";
    assert_eq!(ask(&gate, marks, "r").status, 200);
    let call = fake.calls().pop().expect("a call");
    let handed_on = call.header("x-tidegate-passed").expect("the marks").to_owned();
    assert!(handed_on.starts_with("00000000000000aa, 00000000000000bb, "), "{handed_on}");
    let own = handed_on.rsplit(", ").next().expect("the gateway's own");
    let behind = format!("x-tidegate-passed: 00000000000000aa\r\nx-tidegate-passed: {own}\r\n");
    assert_eq!(ask(&gate, &behind, "r").status, 508);
    assert_eq!(hits(&fake), 1);
}
