//! `cargo xtask`: the project's chores as plain Rust, so that a fresh checkout needs nothing but
//! cargo.
//!
//! | command | does |
//! |---|---|
//! | `ci` | every check a change must pass, stage by stage ([`ci`]) |
//! | `deny` | what the dependency tree may hold ([`deny`]) |
//! | `docs [--check]` | writes the generated files, or says which are stale ([`docs`]) |
//! | `sdk` | the official SDKs against the gateway ([`sdk`]) |
//! | `mcp` | real MCP servers behind the gateway, used by the official clients ([`mcp`]) |
//! | `mcp search` | an agent's loop over twelve real servers with `tools: search` ([`mcp::agent`]) |
//! | `conformance` | the MCP conformance suite, directly and through a gateway ([`conformance`]) |
//! | `clients [CLIENT…]` | coding agents, unchanged, against the gateway ([`clients`]) |
//! | `dashboard [quick]` | the page of the admin listener, in a browser ([`dashboard`]) |
//! | `ops` | alert rules, metrics and the systemd unit, checked by their own tools ([`ops`]) |
//! | `fleet [measure [BINARY]]` | several gateways and a real Redis; the Kubernetes manifests ([`fleet`]) |
//! | `otlp` | traces and metrics, read by OpenTelemetry's own packages ([`otlp`]) |
//! | `bench [core \| gateway \| mcp \| journal \| instructions]` | the benches; comparisons with other proxies ([`mod@bench`]) |
//! | `mutants [core \| mcp] [--shard K/N] [FILE…]` | small faults put into the code, and which no test notices ([`mutants`]) |
//! | `readme` | the line with which the README says to install the gateway ([`readme`]) |
//! | `dist` | the release binary, locked and stripped, and a Debian package of it ([`dist`]) |
//! | `nightly` | the long runs: many seeds, many property cases ([`ci::nightly`]) |
//!
//! Only [`say`] prints. A chore ends with exit code 0, 1 (it failed) or 2 (no such chore).

mod advisories;
mod bench;
mod ci;
mod clients;
mod conformance;
mod counts;
mod dashboard;
mod deny;
mod diagnostics;
mod dist;
mod docs;
mod fleet;
mod gateway;
mod install;
mod mcp;
mod mutants;
mod ops;
mod otlp;
mod process;
mod readme;
mod recording;
mod say;
mod sdk;
mod stage;

use std::process::ExitCode;

use gateway::Gateway;

const USAGE: &str = "usage: cargo xtask <ci | deny | docs [--check] | sdk | mcp [search] | \
                     conformance | clients [CLIENT…] | dashboard [quick] | \
                     fleet [measure [BINARY]] | ops | otlp | \
                     bench [core | gateway | mcp | journal | instructions] | \
                     mutants [core | mcp] [--shard K/N] [FILE…] | readme | dist | nightly>";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["ci"] => ci::ci(),
        ["deny"] => deny::check(),
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["fleet"] => fleet::run(),
        ["fleet", "measure"] => fleet::measure(None),
        ["fleet", "measure", binary] => fleet::measure(Some(binary)),
        ["sdk"] => Gateway::build().and_then(|it| sdk::run(&it)).map(|_| ()),
        ["mcp"] => Gateway::build().and_then(|it| mcp::run(&it)).map(|_| ()),
        ["mcp", "search"] => mcp::agent::run().map(|_| ()),
        ["conformance"] => Gateway::build().and_then(|it| conformance::run(&it)).map(|_| ()),
        ["clients", only @ ..] => clients::run(only),
        ["dashboard"] => dashboard::run().map(|_| ()),
        ["dashboard", "quick"] => dashboard::quick().map(|_| ()),
        ["ops"] => ops::run(),
        ["otlp"] => otlp::run(),
        ["bench", rest @ ..] => bench::run(rest),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["readme"] => readme::run(),
        ["dist"] => dist::run(),
        ["nightly"] => ci::nightly(),
        _ => {
            say::trouble(USAGE);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::trouble(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
