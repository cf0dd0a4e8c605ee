//! What a request takes as things grow: routes, targets, open streams.
//!
//! Each row is a table of one size against instructions per request, by the same count as the
//! cases. What grows with a size is a cost that somebody with many of them pays.

use std::path::Path;

use super::callgrind::CountedGateway;
use super::case::{Case, PROVIDER, with_targets};
use super::exchange::{TurnClient, Upstream};
use crate::say;

/// Requests per count.
const TIMES: u32 = 300;

/// Counts and prints the tables.
pub(super) fn run(binary: &Path, folder: &Path) -> anyhow::Result<()> {
    say::line("| what grows | how many | instructions per chat |\n|---|---|---|");
    for routes in [1, 10, 100, 1000] {
        let counted = Case::chat(with_routes(routes)).count(binary, folder, TIMES)?;
        row("routes", routes, counted.each);
    }
    for targets in [3, 10, 30, 100] {
        let counted = Case::chat(with_targets(targets - 1)).count(binary, folder, TIMES)?;
        row("targets in tiers of ten", targets, counted.each);
    }
    for targets in [3, 10, 30, 100] {
        let counted = Case::chat(in_one_tier(targets)).count(binary, folder, TIMES)?;
        row("targets in one tier", targets, counted.each);
    }
    for streams in [1, 10, 100] {
        row("open streams", streams, beside_streams(binary, folder, streams)?);
    }
    Ok(())
}

fn row(what: &str, size: u32, each: u64) {
    say::line(&format!("| {what} | {size} | {each} |"));
}

fn with_routes(count: u32) -> String {
    let routes: Vec<String> =
        (1..count).map(|it| format!("r{it}: {{ tiers: [[p/m{it}]] }}, ")).collect();
    format!("{PROVIDER}routes: {{ {}bench: {{ tiers: [[p/bench]] }} }}\n", routes.concat())
}

fn in_one_tier(count: u32) -> String {
    let targets: Vec<String> = (0..count).map(|it| format!("p/t{it}")).collect();
    format!("{PROVIDER}routes: {{ bench: {{ tiers: [[{}]] }} }}\n", targets.join(", "))
}

/// Chats while so many streams are open and silent.
fn beside_streams(binary: &Path, folder: &Path, count: u32) -> anyhow::Result<u64> {
    let (mut upstream, mut held) = (Upstream::start()?, Upstream::start()?);
    let provider = |name: &str, port: u16| {
        format!("{name}: {{ api: openai, url: \"http://127.0.0.1:{port}/v1\", key: a-key }}")
    };
    let config = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: \"127.0.0.1:0\" }}\n\
         health: {{ probe: {{ every: 0s }} }}\nproviders: {{ {}, {} }}\n\
         routes: {{ bench: {{ tiers: [[p/bench]] }}, held: {{ tiers: [[held/bench]] }} }}\n",
        provider("p", upstream.port),
        provider("held", held.port),
    );
    let mut gateway = CountedGateway::start(binary, folder, "streams", &config)?;
    let mut open = Vec::new();
    for _ in 0..count {
        let mut client = TurnClient::connect(&gateway.url, "held", true)?;
        client.open_stream(&mut held)?;
        open.push((client, held.set_aside()));
    }
    let mut client = TurnClient::connect(&gateway.url, "bench", false)?;
    let each = gateway.count_each(TIMES, || client.chat(&mut upstream))?;
    drop(open);
    Ok(each)
}
