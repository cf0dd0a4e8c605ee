//! The client's patience: how long an SDK says that it waits for the first byte.

use std::time::Duration;

use tidegate_fakes::fake::{Act, FakeServer, Script, Step};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::{Answer, Client},
    time::{eventually, now, pause},
};

use crate::bed::{Setup, always, good, hits};

const CHAT: &str = "/v1/chat/completions";

/// Sends a chat request of a client that waits so many seconds.
fn send(gate: &Gate, seconds: &str, is_stream: bool) -> Client {
    let mut client = gate.client();
    let headers = format!("x-stainless-read-timeout: {seconds}\r\n");
    client.send("POST", CHAT, &headers, chat("r", is_stream).as_bytes());
    client
}

fn ask(gate: &Gate, seconds: &str, is_stream: bool) -> Answer {
    send(gate, seconds, is_stream).answer().expect("an answer comes")
}

/// Events of a stream that opens at once and has its first token after the patience of a client.
fn late_content() -> Step {
    Step { first_token: Duration::from_millis(1500), ..Step::ok() }
}

#[test]
fn a_stream_that_outlasts_the_clients_timeout_is_whole() {
    let fake = always(Step::ok().with_tokens(12, Duration::from_millis(150)));
    let gate = Setup::of(&[&fake]).start();
    let began = now();
    let answer = ask(&gate, "1", true);
    assert!(began.elapsed() > Duration::from_secs(1), "it has to last longer than the timeout");
    assert!(answer.is_whole_stream(), "{}", answer.text());
    assert_eq!(answer.tokens(), 12);
}

#[test]
fn a_silent_first_choice_is_left_in_time_and_learnt() {
    let (bad, spare) = (always(Step::of(Act::Hang)), good());
    let gate = Setup::of(&[&bad, &spare]).start();
    // Each waits 2.4 s: enough to say something about the target once the other has answered.
    let clients: Vec<Client> = (0..3).map(|number| send(&gate, "4", number > 0)).collect();
    for mut client in clients {
        let answer = client.answer().expect("an answer comes");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"));
        assert_eq!(answer.header("x-tidegate-attempts"), Some("2"));
    }
    eventually("the upstream is let go", || bad.counts().under_way == 0);
    assert_eq!(gate.health("a/m")["state"], "open");
    assert!(gate.admin("/metrics").text().contains("outcome=\"timeout\""));
}

#[test]
fn a_head_without_a_body_is_silence_too() {
    let (bad, spare) = (always(Step::of(Act::Silence)), good());
    let gate = Setup::of(&[&bad, &spare]).start();
    for is_stream in [true, false] {
        let answer = ask(&gate, "1", is_stream);
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{}", answer.text());
    }
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0, "0.6 s say nothing");
}

#[test]
fn a_client_gets_a_504_of_ours_before_its_own_timeout() {
    let fake = always(Step::of(Act::Hang));
    let gate = Setup::of(&[&fake]).start();
    for is_stream in [true, false] {
        let began = now();
        let answer = ask(&gate, "1", is_stream);
        assert!(began.elapsed() >= Duration::from_millis(800));
        assert_eq!(answer.status, 504, "{}", answer.text());
        assert_eq!(answer.header("x-should-retry"), Some("true"));
        let error = answer.json()["error"].clone();
        assert_eq!(error["type"], "timeout");
        assert_eq!(error["attempts"][0]["target"], "a/m");
        assert_eq!(error["attempts"][0]["outcome"], "cancelled");
    }
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
}

#[test]
fn what_has_come_of_a_body_is_released_before_the_clients_timeout() {
    let gap = Duration::from_millis(50);
    for (act, is_stream, sign) in [
        (Act::CommentsOnly, true, "\n:"),
        (Act::PingsOnly, true, "data: "),
        (Act::CommentsOnly, false, "\r\n\r\n"),
    ] {
        let fake = always(Step { token_gap: gap, ..Step::of(act) });
        let gate = Setup::of(&[&fake, &fake]).start();
        let mut client = send(&gate, "1", is_stream);
        client.read_until("HTTP/1.1 200 OK").expect("its head comes");
        client.read_until(sign).expect("its bytes come");
        drop(client);
        eventually("the upstream is let go", || fake.counts().under_way == 0);
        assert_eq!(hits(&fake), 1, "{act:?}: no other target is asked");
        assert_eq!(gate.health("a/m")["consecutive_failures"], 0, "{act:?} is a sign of life");
    }
}

#[test]
fn a_stream_whose_content_is_late_is_whole_after_an_early_release() {
    let (fake, spare) = (always(late_content()), good());
    let gate = Setup::of(&[&fake, &spare]).start();
    let answer = ask(&gate, "1", true);
    assert!(answer.is_whole_stream(), "{}", answer.text());
    assert_eq!(answer.header("x-tidegate-resolved"), Some("a/m"));
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
}

#[test]
fn a_target_that_only_pings_is_a_timeout_after_an_early_release() {
    let fake = always(Step { token_gap: Duration::from_millis(50), ..Step::of(Act::PingsOnly) });
    let provider = "timeouts: {first_content: 2s}";
    let gate = Setup { provider, ..Setup::of(&[&fake]) }.start();
    let answer = ask(&gate, "1", true);
    assert_eq!(answer.status, 200);
    assert!(answer.has_error_event(), "{}", answer.text());
    let error = gate.health("a/m")["last_error"].clone();
    assert!(error.as_str().is_some_and(|it| it.starts_with("timeout")), "{error}");
    assert_eq!(gate.health("a/m")["consecutive_failures"], 1);
}

#[test]
fn a_client_that_leaves_a_hanging_target_after_a_long_wait_charges_it() {
    let script = Script::steps(vec![Step::ok(), Step::of(Act::Hang)]);
    let fake = FakeServer::start(script);
    let gate = Setup::of(&[&fake]).start();
    // With a usual time of next to nothing, two seconds of silence are long.
    assert!(gate.stream().is_whole_stream());
    let mut client = gate.client();
    client.send("POST", CHAT, "", chat("r", true).as_bytes());
    eventually("the call arrives", || hits(&fake) == 2);
    pause(Duration::from_millis(2100));
    drop(client);
    eventually("the target is charged", || gate.health("a/m")["consecutive_failures"] == 1);
}

#[test]
fn the_routes_deadline_is_a_504_too() {
    let fake = always(Step::of(Act::Hang));
    let gate = Setup { route: "deadline: 1s", ..Setup::of(&[&fake]) }.start();
    let answer = gate.stream();
    assert_eq!(answer.status, 504, "{}", answer.text());
    assert_eq!(answer.json()["error"]["type"], "timeout");
}

#[test]
fn timeouts_that_cannot_be_read_or_are_below_a_second_are_ignored() {
    // The second header counts where the first says nothing.
    let fake = always(Step::ok().with_latency(Duration::from_millis(1200)));
    let gate = Setup::of(&[&fake]).start();
    for text in ["0.5", "inf", "nan", "1e400", "-1", "0", "", "x"] {
        let headers = format!("x-stainless-read-timeout: {text}\r\nx-stainless-timeout: 600\r\n");
        let mut client = gate.client();
        client.send("POST", CHAT, &headers, chat("r", false).as_bytes());
        let answer = client.answer().expect("an answer comes");
        assert_eq!(answer.status, 200, "{text}: {}", answer.text());
    }
    let mut client = gate.client();
    let headers = "x-stainless-read-timeout: x\r\nx-stainless-timeout: 1\r\n";
    client.send("POST", CHAT, headers, chat("r", false).as_bytes());
    assert_eq!(client.answer().expect("an answer comes").status, 504);
}
