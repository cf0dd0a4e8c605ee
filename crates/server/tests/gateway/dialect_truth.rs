//! What the gateway says of a route and what it does with a request are the same: no route is
//! called able when the request would be refused, and none unable when it would be answered.
//!
//! Random routes over providers of every api, with random abilities, are asked by clients of every
//! dialect with random needs. Beside each request `/api/explain`, `/v1/routes`, `/v1/health` and
//! the prospects that `tidegate check` prints are asked too. What `tidegate check` and
//! `tidegate sim` themselves print is compared by `crates/tidegate/tests/truth.rs`.

use serde_json::{Value, json};
use tidegate_config::{load, secret::AssumedEnvironment, source::Source};
use tidegate_fakes::fake::{FakeServer, Step};
use tidegate_testkit::{
    dialects::{Draws, config, request},
    exchange::{Ask, Exchange},
    gate::Gate,
};
use tidegate_wire::{
    convert::target::TargetProfile,
    prospect::{CLIENT_DIALECTS, ClientDialect, Prospect, prospect},
};

use crate::bed::{always, good};

/// The target that `explain` says would be asked.
fn explained(gate: &Gate, path: &str, body: &Value) -> Option<String> {
    let question = json!({"model": "r", "path": path, "request": body}).to_string();
    let ask = Ask {
        verb: "POST",
        path: "/api/explain",
        headers: "content-type: application/json\r\n".to_owned(),
        body: question.as_bytes(),
    };
    let mut answer = Exchange::begin(gate.server.admin_address(), &ask).expect("an answer");
    answer.must_be(200, "explaining");
    let shown: Value = serde_json::from_str(&answer.text()).expect("JSON");
    let candidates = shown["explanation"]["candidates"].as_array().cloned().unwrap_or_default();
    let chosen = candidates.iter().find(|it| it["verdict"]["chosen"].is_object());
    chosen.and_then(|it| it["backend"].as_str()).map(str::to_owned)
}

/// Whether the prospects that `tidegate check` prints have somebody who serves a dialect.
fn is_promised(yaml: &str, client: ClientDialect) -> bool {
    let config = load(&Source::new("t.yaml", yaml), &AssumedEnvironment).config;
    let config = config.expect("the config is sound");
    let route = &config.settings.routes[0];
    let mut members = route.tiers.iter().flatten();
    members.any(|member| {
        let abilities = &config.settings.backends[member.backend].abilities;
        let profile = TargetProfile { model: "m", host: "127.0.0.1" };
        !matches!(prospect(client, abilities, &profile), Prospect::Never(_))
    })
}

#[test]
fn no_route_is_called_able_when_the_request_would_be_refused() {
    let fakes = [good(), good(), good()];
    let urls: Vec<String> = fakes.iter().map(FakeServer::url).collect();
    let mut draws = Draws(7);
    let (mut answered, mut refused) = (0, 0);
    for round in 0..24 {
        let yaml = config(&mut draws, &urls);
        let gate = Gate::start(&yaml, &[]);
        let routes = gate.get("/v1/routes").json();
        for client in CLIENT_DIALECTS {
            for bits in [0, 1 << draws.below(5), draws.below(32)] {
                let (path, body) = request(client.word, bits);
                let says = explained(&gate, &path, &body);
                let answer = gate.post(&path, &body.to_string());
                let context = format!(
                    "round {round}, {} with {bits:05b}: {says:?}, {} {}\n{yaml}",
                    client.word,
                    answer.status,
                    answer.text()
                );
                match &says {
                    Some(target) => {
                        assert_eq!(answer.status, 200, "{context}");
                        let resolved = answer.header("x-tidegate-resolved");
                        assert_eq!(resolved, Some(target.as_str()), "{context}");
                        answered += 1;
                    }
                    None => {
                        assert_eq!(answer.status, 400, "{context}");
                        refused += 1;
                    }
                }
                if bits == 0 {
                    let listed = &routes["routes"][0]["resolves_by_dialect"][client.word];
                    let first = listed[0].as_str().map(str::to_owned);
                    assert_eq!(first, says, "{context}\n{listed}");
                    assert_eq!(is_promised(&yaml, client), answer.status == 200, "{context}");
                }
            }
        }
    }
    assert!(answered > 50 && refused > 20, "both happen: {answered} answered, {refused} refused");
}

#[test]
fn health_is_unhealthy_when_clients_of_one_dialect_have_nobody_left() {
    let (chat, embeds) = (always(Step::status(500)), good());
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n  a: {{api: openai, url: '{}/v1', serves: [chat]}}\n  \
         b: {{api: openai, url: '{}/v1', serves: [embeddings]}}\n\
         routes:\n  r: {{tiers: [[a/m], [b/m]]}}\n",
        chat.url(),
        embeds.url()
    );
    let gate = Gate::start(&yaml, &[]);
    assert_eq!(gate.get("/v1/health").json()["status"], "healthy");
    for _ in 0..3 {
        assert_eq!(gate.chat().status, 500);
    }
    assert_eq!(gate.get("/v1/health").json()["status"], "unhealthy", "embeddings help no chat");
    let routes = gate.get("/v1/routes").json();
    assert_eq!(routes["routes"][0]["resolves_by_dialect"]["messages"], json!(["a/m"]));
}

#[test]
fn health_says_whether_clients_of_every_dialect_are_answered() {
    let mut draws = Draws(11);
    let (mut good_rounds, mut bad_rounds) = (0, 0);
    for round in 0..24 {
        let fakes: Vec<FakeServer> = (0..3)
            .map(|_| if draws.below(2) == 0 { good() } else { always(Step::status(500)) })
            .collect();
        let urls: Vec<String> = fakes.iter().map(FakeServer::url).collect();
        let yaml = config(&mut draws, &urls);
        let gate = Gate::start(&yaml, &[]);
        let served: Vec<ClientDialect> =
            CLIENT_DIALECTS.into_iter().filter(|it| is_promised(&yaml, *it)).collect();
        let ask = |client: &ClientDialect| {
            let (path, body) = request(client.word, 0);
            gate.post(&path, &body.to_string()).status
        };
        // Three failures in a row open a breaker; a target may be asked by one dialect only.
        for _ in 0..3 {
            for client in &served {
                ask(client);
            }
        }
        if served.is_empty() {
            continue;
        }
        let told = gate.get("/v1/health").json();
        let answers: Vec<(&str, u16)> =
            served.iter().map(|client| (client.word, ask(client))).collect();
        let is_answered = answers.iter().all(|(_, status)| *status == 200);
        let context = format!("round {round}: {told} {answers:?}\n{yaml}");
        assert_eq!(told["status"] != "unhealthy", is_answered, "{context}");
        *(if is_answered { &mut good_rounds } else { &mut bad_rounds }) += 1;
    }
    assert!(good_rounds > 4 && bad_rounds > 4, "both happen: {good_rounds} and {bad_rounds}");
}
