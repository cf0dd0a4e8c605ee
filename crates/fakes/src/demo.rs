//! The built-in demo: a config, and the outage that its fake providers follow.
//!
//! A newcomer without keys or network sees real failover. The config goes through the same loader
//! as every file, so it is also an example that cannot rot.
//!
//! | second of three minutes | 0–40 | 40–60 | 60–100 | 100–130 | 130–142 | 142–180 |
//! |---|---|---|---|---|---|---|
//! | `ebb` | ok | slow | 529 | ok | ok | ok |
//! | `flow` | ok | ok | ok | ok | 429 | ok |
//! | `slack` | ok | ok | ok | ok | ok | ok |
//!
//! Never two at once: the demo shows failover, not an outage of everything.
//!
//! Two MCP servers stand beside them: `tides` is always there, `harbour` crashes for the last half
//! minute of every two.

use std::time::Duration;

use tidegate_config::file::FakeServer;

use crate::{
    fake::{Script, Step},
    fake_mcp,
};

/// The demo's config file.
pub const CONFIG: &str = include_str!("demo.yaml");

/// The outage begins again after this long.
const ROUND: Duration = Duration::from_secs(180);

/// What a provider of `api: fake` does, by its name: those of the demo follow the outage, any
/// other answers well. A model name can ask for a behaviour in both.
pub fn script_for(provider: &str) -> Script {
    let phases = match provider {
        "ebb" => vec![
            talks(60),
            talks(1500).at(second(40)),
            Step::status(529).with_latency(Duration::from_millis(40)).at(second(60)),
            talks(60).at(second(100)),
        ],
        "flow" => vec![
            talks(90),
            Step::status(429).with_retry_after("12").at(second(130)),
            talks(90).at(second(142)),
        ],
        "slack" => vec![talks(140)],
        _ => Vec::new(),
    };
    let models = vec!["tide-small".to_owned()];
    // Nobody reads the calls of a fake inside the gateway, so none are kept.
    let script = Script { phases, repeat_phases: ROUND, models, record: 0, ..Script::default() };
    script.named(provider)
}

/// What a server of `fake:` is: a tide table, or the logbook of a harbour.
pub fn mcp_script(name: &str, fake: FakeServer) -> fake_mcp::McpScript {
    let tool = |name: &str, about: &str, act| fake_mcp::Tool::new(name, act).about(about);
    let (tools, outage) = match fake {
        FakeServer::Steady => (
            vec![
                tool("next_tide", "When the next tide comes", text("high water at 14:20"))
                    .read_only(),
                tool("echo", "Says what it was told", fake_mcp::ToolAct::Echo).idempotent(),
            ],
            None,
        ),
        FakeServer::Flaky => (
            vec![
                tool("list_ships", "Ships in the harbour", text("Ebb, Flow, Slack")).read_only(),
                tool("write_log", "Adds a line to the logbook", text("written")),
            ],
            Some(fake_mcp::Outage { up_ms: 90_000, down_ms: 30_000 }),
        ),
    };
    fake_mcp::McpScript { tools, outage, record: 0, ..fake_mcp::McpScript::default() }.named(name)
}

fn text(text: &str) -> fake_mcp::ToolAct {
    fake_mcp::ToolAct::Text(text.to_owned())
}

/// An answer at a pace that a person can watch.
fn talks(latency_ms: u64) -> Step {
    let gap = Duration::from_millis(25);
    Step { latency: Duration::from_millis(latency_ms), token_gap: gap, ..Step::ok() }
}

const fn second(second: u64) -> Duration {
    Duration::from_secs(second)
}

#[cfg(test)]
mod tests {
    use tidegate_config::load;
    use tidegate_config::secret::FixedEnvironment;
    use tidegate_config::source::Source;

    use super::*;
    use crate::fake::Act;

    const PROVIDERS: [&str; 3] = ["ebb", "flow", "slack"];

    #[test]
    fn the_config_is_sound_and_names_the_providers_that_have_a_script() {
        let loaded = load(&Source::new("demo.yaml", CONFIG), &FixedEnvironment::default());
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        assert_eq!((loaded.summary.routes, loaded.summary.targets), (1, 3));
        for provider in PROVIDERS {
            assert!(CONFIG.contains(&format!("{provider}: {{ api: fake }}")), "{provider}");
            assert!(!script_for(provider).phases.is_empty(), "{provider}");
        }
    }

    #[test]
    fn at_most_one_provider_is_in_trouble_at_any_second() {
        let scripts = PROVIDERS.map(script_for);
        let mut troubled_seconds = [0; 3];
        for at in 0..ROUND.as_secs() {
            let is_bad = |script: &Script| {
                let step = script.phases.iter().rev().find(|step| step.at <= second(at));
                step.is_none_or(|step| step.act != Act::Ok || step.latency > second(1))
            };
            let bad = scripts.each_ref().map(is_bad);
            assert!(bad.iter().filter(|bad| **bad).count() <= 1, "at second {at}");
            for (count, bad) in troubled_seconds.iter_mut().zip(bad) {
                *count += u32::from(bad);
            }
        }
        assert_eq!(troubled_seconds, [60, 12, 0]);
    }

    #[test]
    fn a_fake_provider_outside_the_demo_answers_well() {
        let script = script_for("mine");
        assert!(script.phases.is_empty() && script.steps.is_empty() && script.model_names);
        assert_eq!(script.name, "mine");
    }
}
