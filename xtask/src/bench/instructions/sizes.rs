//! What a request takes as things grow: routes, targets, conversations, open streams.
//!
//! Each row is one size against instructions per request, by the same count as the cases, as a
//! number and as a bar. What grows with a size is a cost that somebody with many of them pays.

use std::path::Path;

use serde_json::json;

use super::callgrind::CountedGateway;
use super::case::{Case, LISTENING, ROUTE, fake_mcp, provider, provider_at, with_targets};
use super::exchange::{TurnClient, Upstream};
use crate::bench::mcp::client::Client;
use crate::say;

/// Requests per count.
const TIMES: u32 = 300;

/// Instructions that a block of a bar stands for.
const BAR: u64 = 5000;

/// Counts and prints the tables.
pub(super) fn run(binary: &Path, folder: &Path) -> anyhow::Result<()> {
    say::line("| what grows | how many | instructions per request | |\n|---|---|---|---|");
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
    for conversations in [1, 100, 10_000, 100_000] {
        row("conversations", conversations, among(binary, folder, conversations)?);
    }
    for streams in [1, 10, 100, 1000, 10_000] {
        // A stream has a socket on both sides of the gateway, and on both sides of this process.
        let needed = 2 * streams + 200;
        if open_files_max().is_some_and(|most| most < needed) {
            say::line(&format!("| open streams | {streams} | left out: `ulimit -n {needed}` | |"));
            continue;
        }
        row("open streams", streams, beside_streams(binary, folder, streams)?);
    }
    for tools in [100, 1000, 10_000] {
        row("MCP tools, for a call", tools, among_tools(binary, folder, tools)?);
    }
    Ok(())
}

/// How many files a process may have open, where the system says so.
fn open_files_max() -> Option<u32> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    soft_limit(&limits)
}

fn soft_limit(limits: &str) -> Option<u32> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn row(what: &str, size: u32, each: u64) {
    let bar = "█".repeat((each / BAR) as usize);
    say::line(&format!("| {what} | {size} | {each} | {bar} |"));
}

fn with_routes(count: u32) -> String {
    let routes: Vec<String> =
        (1..count).map(|it| format!("r{it}: {{ tiers: [[p/m{it}]] }}, ")).collect();
    let routes = routes.concat();
    format!("{}routes: {{ {routes}bench: {{ tiers: [[p/bench]] }} }}\n", provider())
}

fn in_one_tier(count: u32) -> String {
    let targets: Vec<String> = (0..count).map(|it| format!("p/t{it}")).collect();
    format!("{}routes: {{ bench: {{ tiers: [[{}]] }} }}\n", provider(), targets.join(", "))
}

/// Chats of conversations of which so many are known.
fn among(binary: &Path, folder: &Path, count: u32) -> anyhow::Result<u64> {
    let mut upstream = Upstream::start()?;
    let provider = provider().replace("@UPSTREAM@", &upstream.port.to_string());
    let config = format!("{LISTENING}{provider}{ROUTE}");
    let mut gateway = CountedGateway::start(binary, folder, "conversations", &config)?;
    let mut client = TurnClient::connect(&gateway.url, "bench", false)?;
    for number in 0..count {
        client.in_conversation(number);
        client.chat(&mut upstream)?;
    }
    let mut number = 0;
    gateway.count_each(TIMES, || {
        // Far apart, so that none is the one that was used last.
        number = (number + count / 7 + 1) % count;
        client.in_conversation(number);
        client.chat(&mut upstream)
    })
}

/// Calls of one tool of so many.
fn among_tools(binary: &Path, folder: &Path, count: u32) -> anyhow::Result<u64> {
    let names = (1..count).map(|it| format!("t{it}")).chain(["echo".to_owned()]);
    let tools: Vec<_> = names.map(|it| json!({"name": it})).collect();
    let (server, url) = fake_mcp(binary, folder, &json!({"tools": tools}))?;
    let config = format!("{LISTENING}mcp: {{ servers: {{ upstream: {{ url: \"{url}\" }} }} }}\n");
    let mut gateway = CountedGateway::start(binary, folder, "tools", &config)?;
    let mut client = Client::open(gateway.url.trim_start_matches("http://"))?;
    let each = gateway.count_each(TIMES, || client.call());
    drop(server);
    each
}

/// Chats while so many streams are open and silent.
fn beside_streams(binary: &Path, folder: &Path, count: u32) -> anyhow::Result<u64> {
    let (mut upstream, mut held) = (Upstream::start()?, Upstream::start()?);
    let config = format!(
        "{LISTENING}providers: {{ {}, {} }}\n\
         routes: {{ bench: {{ tiers: [[p/bench]] }}, held: {{ tiers: [[held/bench]] }} }}\n",
        provider_at("p", &upstream.port.to_string()),
        provider_at("held", &held.port.to_string()),
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

#[cfg(test)]
mod tests {
    use super::soft_limit;

    #[test]
    fn the_limit_of_open_files_is_read() {
        let limits = "Limit             Soft Limit    Hard Limit    Units\n\
                      Max processes     unlimited     unlimited     processes\n\
                      Max open files    20000         65536         files\n";
        assert_eq!(soft_limit(limits), Some(20_000));
        assert_eq!(soft_limit("Max open files    unlimited     unlimited\n"), None);
    }
}
