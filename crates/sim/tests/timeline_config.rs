//! Timelines that run with the routes and health settings of a config file.

use std::{fs, path::Path};

use tidegate_config::{
    load as load_config,
    secret::Environment,
    source::{Source, read_file},
};
use tidegate_sim::{
    builtin,
    scenario::{RenderOptions, Scenario, load},
    timeline::Timeline,
};

const CONFIG: &str = "
health: { open_for: 10s }
providers:
  mine: { api: openai, url: http://127.0.0.1:9/v1, key: env:MINE }
  yours: { api: openai, url: http://127.0.0.1:10/v1 }
routes:
  fast: { tiers: [[yours/small]] }
  main: { tiers: [[mine/big], [yours/big, yours/small]] }
default_route: main
";

/// Nothing is set.
struct Empty;

impl Environment for Empty {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Result<String, String> {
        Err("there are no files".to_owned())
    }
}

fn example(name: &str) -> Timeline {
    match builtin::get(name).and_then(builtin::Builtin::scenario) {
        Some(Scenario::Timeline(timeline)) => *timeline,
        _ => panic!("{name} is a timeline"),
    }
}

fn with(text: &str) -> Result<Timeline, String> {
    let config = load_config(&Source::new("mine.yaml", text), &Empty).config;
    example("hard-outage").with_config("mine.yaml", &config.expect("a sound config"))
}

#[test]
fn the_targets_of_the_default_route_play_the_scripts_in_order() {
    let report = with(CONFIG).expect("it has a route").run(1);
    let json = report.to_json();
    let casting = json["casting"].as_array().expect("a list");
    assert_eq!(casting[0], "mine/big plays openai/gpt-5");
    assert_eq!(casting[1], "yours/big plays anthropic/claude-sonnet");
    assert_eq!(casting[2], "yours/small plays local/llama");
    assert_eq!(json["backends"][0]["id"], "mine/big");
    assert_eq!(json["backends"][0]["opens"], 1, "it plays, though its key is not set");
    assert!(report.render(&RenderOptions::default()).contains("mine/big plays openai/gpt-5"));
    assert!(report.replay().contains(" -c mine.yaml"), "{}", report.replay());
}

#[test]
fn who_has_no_counterpart_is_left_out_with_its_expectations() {
    let one = CONFIG.replace("default_route: main", "default_route: fast");
    let report = with(&one).expect("it has a route").run(1);
    let json = report.to_json();
    assert_eq!(json["casting"][1], "nobody plays anthropic/claude-sonnet");
    assert!(!report.failures().is_empty(), "one target cannot survive its own outage");
    let wanted = json["expectations"].to_string();
    assert!(!wanted.contains("anthropic"), "{wanted}");
}

#[test]
fn a_config_without_a_route_is_refused() {
    let only_tools = "mcp: { servers: { a: { url: 'http://127.0.0.1:1/mcp' } } }\n";
    assert_eq!(with(only_tools).err().as_deref(), Some("the config has no route"));
}

#[test]
fn a_scenario_names_its_config_relative_to_itself() {
    let folder = std::env::temp_dir().join("tidegate-timeline-config");
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    fs::write(folder.join("tidegate.yaml"), CONFIG).expect("it can be written");
    let story = |backend: &str| {
        let text = format!(
            "for: 1m\ntraffic: {{ rate: 2/s }}\nconfig: tidegate.yaml\n\
             backends:\n  {backend}: [{{ at: 5s, do: refuse }}]\n\
             expect: {{ client_failures: {{ max: 0 }} }}\n"
        );
        let path = folder.join("story.yaml");
        fs::write(&path, text).expect("it can be written");
        load(&read_file(&path).expect("it was written"))
    };
    let (scenario, problems) = story("mine/big");
    assert_eq!(problems, []);
    assert_eq!(scenario.expect("it is sound").run(1).failures(), []);
    let (_, problems) = story("mine/bit");
    let words: Vec<&str> = problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(words, ["`backends.mine/bit`: no backend is called `mine/bit`"]);
    assert_eq!(problems[0].help, ["did you mean `mine/big`?"]);
}
