//! Timelines of answers that are held back and of connections that are kept: the core decides when
//! an answer is committed and whether a request is sent again.

use serde_json::Value;
use tidegate_config::source::Source;
use tidegate_sim::scenario::load;

/// The report of a scenario as JSON.
fn report(text: &str) -> Value {
    let (scenario, problems) = load(&Source::new("t.yaml", text));
    let scenario = scenario.unwrap_or_else(|| panic!("{text}\n{problems:?}"));
    scenario.run(0).to_json()
}

/// Streams of the first backend break after three events.
fn breaking(hold: &str) -> String {
    format!(
        "scenario: held\nconfig: {{ affinity: 0s, hold: {hold} }}\nfor: 1m\n\
         traffic: {{ rate: 5/s, arrivals: even, sessions: 10, stream: 100%, clients_retry: 0 }}\n\
         backends:\n  a/x: [{{ at: 0s, do: truncate, tokens: 3 }}]\n  \
         b/y: [{{ at: 0s, do: ok, token_gap: 20ms }}]\n"
    )
}

#[test]
fn a_stream_that_breaks_while_it_is_held_is_asked_for_elsewhere() {
    for hold in ["{ tokens: 5 }", "{ time: 1s }"] {
        let held = report(&breaking(hold));
        assert_eq!(held["client_failures"], 0, "{hold}");
        assert!(held["hops"].as_u64() > Some(0), "{hold}");
    }
    for hold in ["{ tokens: 2 }", "{ time: 20ms }", "{}"] {
        let released = report(&breaking(hold));
        assert!(released["client_failures"].as_u64() > Some(0), "{hold}");
    }
}

#[test]
fn clients_wait_for_their_content_as_long_as_it_is_held() {
    let wait = |hold: &str| {
        let text = breaking(hold).replace("do: truncate, tokens: 3", "do: ok, tokens: 40");
        report(&text)["wait_ms"]["max"].as_u64().expect("a number")
    };
    assert_eq!(wait("{}"), 300);
    assert_eq!(wait("{ tokens: 4 }"), 300 + 3 * 20);
    assert_eq!(wait("{ time: 50ms }"), 300 + 50);
    assert_eq!(wait("{ tokens: 4, time: 50ms }"), 300 + 50, "the first limit that is reached");
    assert_eq!(wait("{ tokens: 400 }"), 300 + 39 * 20, "the end of the stream ends the hold");
}

/// One backend that restarts between two requests, which come every five seconds.
const RESTART: &str = "scenario: restart
config: { affinity: 0s }
for: 1m
traffic: { rate: 12/m, arrivals: even, sessions: 10, stream: 0%, clients_retry: 0 }
backends:
  a/x: [{ at: 0s, do: ok }, { at: 32s, do: restart, down: 1ms }]
";

#[test]
fn a_request_whose_kept_connection_breaks_is_sent_again_and_charges_nothing() {
    let restarted = report(RESTART);
    assert_eq!(restarted["client_failures"], 0);
    assert_eq!(restarted["hops"], 0);
    assert_eq!(restarted["backends"][0]["failed"], 0);
    assert_eq!(restarted["resends"], 1, "the only connection had been kept");
}

#[test]
fn a_request_that_is_sent_again_to_a_backend_that_is_down_fails() {
    let down = report(&RESTART.replace("at: 32s", "at: 35500ms"));
    assert_eq!((&down["client_failures"], &down["resends"]), (&1.into(), &1.into()));
    let untouched = report(&RESTART.replace("do: restart, down: 1ms", "do: ok"));
    assert_eq!(untouched.get("resends"), None);
}
