//! `tidegate check` as a user meets it: which file is taken, what goes where, the exit code.
//!
//! Which mistakes are found, and in what words, is tested in the config crate.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Run, program, run};

/// Sound, without a warning.
const SOUND: &str = "\
providers:
  near: { api: openai, url: http://127.0.0.1:11434/v1 }
  far: { api: openai, url: https://example.com/v1, key: env:FAR_KEY }
routes:
  fast:
    tiers: [[near/small], [far/large]]
";

/// An empty folder named after the test.
fn folder(test: &str) -> PathBuf {
    support::folder(&format!("check-{test}"))
}

/// Runs `tidegate check` with `args` in `folder`, with a key for [`SOUND`] and no other variable.
fn check(folder: &Path, args: &[&str]) -> Run {
    let mut command = program(folder);
    command.env("FAR_KEY", "k").env("HOME", folder.join("home"));
    run(command.arg("check").args(args))
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    fs::write(folder.join(name), text).expect("the build's own folder takes files");
}

#[test]
fn a_sound_file_is_0_and_shows_its_routes() {
    let folder = folder("sound");
    write(&folder, "tidegate.yaml", SOUND);
    let run = check(&folder, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    let routes = "\
tidegate.yaml is sound. 2 targets, 1 route, 0 MCP servers.
  fast    tier 0 near/small     tier 1 far/large
  fast serves chat, responses, messages, gemini clients
    near/small, far/large
      messages clients lose ";
    assert!(run.stdout.starts_with(routes), "{}", run.stdout);
    let outages = "
  fast survives 6 of 8 built-in outages
    not 429-storm: 379 of 2057 requests fail
    too few of its targets are healthy at the same time: add a tier at another provider
  total-loss cannot be survived by any config; see `tidegate sim NAME -c tidegate.yaml`
";
    assert!(run.stdout.ends_with(outages), "{}", run.stdout);
}

#[test]
fn a_sound_file_says_whom_each_route_serves_and_what_that_costs() {
    let folder = folder("clients");
    let text = "\
providers:
  anthropic: { api: anthropic, url: https://example.com }
  groq: { api: openai, url: https://api.groq.com/openai/v1, serves: [chat] }
  vectors: { api: openai, url: https://example.org/v1, serves: [embeddings] }
routes:
  mixed:
    tiers: [[anthropic/claude-opus-5], [groq/llama-3.3-70b-versatile]]
  embed:
    tiers: [[vectors/small]]
  odd:
    tiers: [[vectors/small], [groq/llama-3.3-70b-versatile]]
";
    write(&folder, "tidegate.yaml", text);
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    for line in [
        "  mixed serves chat, responses, messages, gemini clients\n",
        "      takes no images, takes no documents, does not reason\n",
        "  embed serves no client that wants text\n",
        "      chat clients: does not serve this endpoint\n",
    ] {
        assert!(run.stdout.contains(line), "{line}{}", run.stdout);
    }
    let shown = check(&folder, &["--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let groq = &shown["clients"]["mixed"]["targets"]["groq/llama-3.3-70b-versatile"];
    assert_eq!(groq["clients"]["chat"]["sent"], "as it came", "{groq}");
    assert_eq!(groq["clients"]["messages"]["sent"], "anthropic>openai-chat", "{groq}");
    let lost = groq["clients"]["messages"]["lost"].as_array().expect("a list");
    assert!(lost.iter().any(|it| it == "top_k"), "{groq}");
    assert_eq!(shown["clients"]["embed"]["serves"], serde_json::json!([]));
    let of = |name: &str| {
        let all = shown["predictions"].as_array().into_iter().flatten();
        all.filter(|it| it["route"] == name).count()
    };
    assert_eq!((of("mixed"), of("embed"), of("odd")), (1, 1, 1));
}

#[test]
fn a_sound_file_says_which_outages_each_route_would_survive_and_why_not() {
    let folder = folder("outages");
    write(&folder, "tidegate.yaml", format!("{SOUND}  lone:\n    tiers: [[far/large]]\n"));
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert!(run.stdout.contains("\n  fast survives 6 of 8 built-in outages\n"), "{}", run.stdout);
    assert!(run.stdout.contains("\n    not hard-outage: "), "{}", run.stdout);
    assert!(run.stdout.contains("\n    the route has a single target: "), "{}", run.stdout);
    assert!(run.stdout.contains("total-loss cannot be survived by any config"), "{}", run.stdout);
    // A machine without the keys gets the same answer: they are not what an outage is about.
    let mut without = program(&folder);
    let without = support::run(without.args(["check", "--json"]));
    let with: Value = serde_json::from_str(&check(&folder, &["--json"]).stdout).expect("JSON");
    let without: Value = serde_json::from_str(&without.stdout).expect("JSON");
    assert_eq!(with["predictions"], without["predictions"]);
    let [fast, lone] = with["predictions"].as_array().expect("a list").as_slice() else {
        panic!("{with}");
    };
    assert_eq!((&fast["survived"], &fast["of"]), (&6.into(), &8.into()), "{fast}");
    let outage = |name: &str| {
        let outages = lone["outages"].as_array().expect("a list");
        outages.iter().find(|it| it["scenario"] == name).expect("an outage").clone()
    };
    assert_eq!(outage("hard-outage")["survived"], false);
    assert!(outage("hard-outage")["client_failures"].as_u64() > Some(100), "{lone}");
}

#[test]
fn a_certificate_that_cannot_be_used_makes_a_file_unsound() {
    let folder = folder("certificate");
    write(&folder, "cert.pem", "nothing");
    write(&folder, "key.pem", "nothing");
    let tls = "tls: { cert: \"file:cert.pem\", key: \"file:key.pem\" }\n";
    write(&folder, "tidegate.yaml", format!("{tls}{SOUND}"));
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("`tls.cert` cannot be used: it holds no cert"), "{}", run.stdout);
    assert!(!run.stdout.contains("is sound"), "{}", run.stdout);
}

#[test]
fn what_a_provider_does_not_serve_is_shown() {
    let folder = folder("serves");
    let text = SOUND.replace("near: { ", "near: { serves: [chat, embeddings], ");
    write(&folder, "tidegate.yaml", text);
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert!(run.stdout.contains("\n  near serves only chat, embeddings\n"), "{}", run.stdout);
    assert!(run.stdout.starts_with("tidegate.yaml is sound. "), "no warning: {}", run.stdout);
    let document: Value =
        serde_json::from_str(&check(&folder, &["--json"]).stdout).expect("one document");
    assert_eq!(document["serves"], serde_json::json!({"near": ["chat", "embeddings"]}));
}

#[test]
fn a_warning_alone_is_0() {
    let folder = folder("warning");
    write(&folder, "tidegate.yaml", SOUND.replace(", [far/large]", ""));
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert!(run.stdout.contains("warning[TG"), "{}", run.stdout);
    assert!(run.stdout.contains("is sound, with 1 warning."), "{}", run.stdout);
}

#[test]
fn every_error_is_shown_at_once_on_stdout_and_the_code_is_1() {
    let folder = folder("errors");
    let wrong = SOUND.replace("tiers:", "tires: 1\n    tiers:").replace("far/large", "fra/large");
    write(&folder, "tidegate.yaml", wrong);
    let run = check(&folder, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{}", run.stdout);
    insta::assert_snapshot!("two-errors", run.stdout);
}

#[test]
fn json_is_one_document_with_problems_and_counts() {
    let folder = folder("json");
    write(&folder, "bad.yaml", "routes: { fast: { tires: [] } }\nproviders: 7\n");
    let run = check(&folder, &["bad.yaml", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    assert_eq!(document["file"], "bad.yaml");
    assert_eq!(document["sound"], false);
    let problems = document["problems"].as_array().map(Vec::len).unwrap_or_default();
    assert!(problems >= 2, "{document:#}");
    let counted = document["errors"].as_u64().zip(document["warnings"].as_u64());
    assert_eq!(counted.map(|(errors, warnings)| errors + warnings), Some(problems as u64));
}

#[test]
fn json_of_a_sound_file_has_its_routes() {
    let folder = folder("json-sound");
    write(&folder, "tidegate.yaml", SOUND);
    let document: Value =
        serde_json::from_str(&check(&folder, &["--json"]).stdout).expect("one document");
    assert_eq!(document["sound"], true);
    assert_eq!(document["tiers"]["fast"], serde_json::json!([["near/small"], ["far/large"]]));
}

#[test]
fn no_file_anywhere_is_3_and_says_what_to_type_next() {
    let run = check(&folder("nothing"), &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    assert!(run.stderr.contains("hint: `tidegate "), "{}", run.stderr);
    assert!(run.stderr.contains(".config/tidegate/tidegate.yaml"), "{}", run.stderr);
}

#[test]
fn the_users_config_folder_is_looked_into_last() {
    let folder = folder("user");
    let user = folder.join("home/.config/tidegate");
    fs::create_dir_all(&user).expect("the build's own folder takes folders");
    write(&user, "tidegate.yaml", SOUND);
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    write(&folder, "tidegate.yaml", "nonsense: 1\n");
    assert_eq!(check(&folder, &[]).code, Some(1));
    assert_eq!(check(&folder, &["-c", "home/.config/tidegate/tidegate.yaml"]).code, Some(0));
}

#[test]
fn what_cannot_be_read_as_yaml_is_3_with_the_reason_on_stderr() {
    let folder = folder("unreadable");
    fs::create_dir(folder.join("dir.yaml")).expect("the build's own folder takes folders");
    write(&folder, "latin.yaml", b"routes: { caf\xe9: 1 }\n");
    write(&folder, "open.yaml", "routes: [a, b\n");
    let large = fs::File::create(folder.join("large.yaml")).expect("a file");
    large.set_len(50 * 1024 * 1024).expect("a file may be sparse");
    for (name, reason) in [
        ("missing.yaml", "does not exist"),
        ("dir.yaml", "is a directory"),
        ("latin.yaml", "not UTF-8"),
        ("open.yaml", "open.yaml:"),
        ("large.yaml", "larger than"),
    ] {
        let run = check(&folder, &[name]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{name}");
        assert!(run.stderr.contains(reason), "{name}: {}", run.stderr);
        let json = check(&folder, &[name, "--json"]);
        assert_eq!((json.code, json.stderr.as_str()), (Some(3), ""), "{name}");
        let document: Value = serde_json::from_str(&json.stdout).expect("one document");
        assert_eq!(document["errors"], 1, "{name}");
    }
}

#[test]
fn ascii_findings_have_only_ascii() {
    let folder = folder("ascii");
    write(&folder, "tidegate.yaml", SOUND.replace("[near/small]", "[near/small, far/small]"));
    write(&folder, "bad.yaml", "nonsense: 1\n");
    for args in [&["--ascii"][..], &["--ascii", "bad.yaml"]] {
        let run = check(&folder, args);
        assert!(run.stdout.is_ascii(), "{}", run.stdout);
    }
    assert!(!check(&folder, &[]).stdout.is_ascii());
}

#[test]
fn a_model_that_cannot_be_used_is_an_error_that_says_what_to_do() {
    let folder = folder("model");
    let text = "\
mcp:
  tools: search
  search: { model: 'file:none/model.onnx' }
  servers: { a: { url: http://127.0.0.1:9/mcp } }
";
    write(&folder, "tidegate.yaml", text);
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let (problem, advice) = if cfg!(feature = "model") {
        ("cannot read `", "`tokenizer.json` stand in one folder")
    } else {
        ("this build of tidegate cannot run sentence models", "--features model")
    };
    assert!(run.stdout.contains("TG070") && run.stdout.contains(problem), "{}", run.stdout);
    let words: Vec<&str> = run.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(advice), "{}", run.stdout);
}

#[test]
fn a_model_that_is_no_file_or_that_nobody_asks_is_told() {
    let folder = folder("model-value");
    let servers = "servers: { a: { url: http://127.0.0.1:9/mcp } }";
    let text = format!("mcp: {{ tools: search, search: {{ model: model.onnx }}, {servers} }}\n");
    write(&folder, "tidegate.yaml", text);
    let run = check(&folder, &[]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("`mcp.search.model` is not a file"), "{}", run.stdout);
    let text = format!("mcp: {{ search: {{ model: 'file:model.onnx' }}, {servers} }}\n");
    write(&folder, "tidegate.yaml", text);
    let run = check(&folder, &[]);
    assert!(run.stdout.contains("only with `mcp.tools: search`"), "{}", run.stdout);
}

#[test]
fn the_summary_fits_60_80_and_120_columns() {
    let folder = folder("widths");
    let config = "\
providers:
  near: { api: anthropic, url: http://127.0.0.1:11434 }
  far: { api: openai, url: https://example.com/v1 }
routes:
  fast:
    tiers: [[near/claude-sonnet-4-5], [far/gpt-5-mini]]
";
    fs::write(folder.join("tidegate.yaml"), config).expect("the folder takes files");
    for columns in [60, 80, 120] {
        let mut command = program(&folder);
        let text = run(command.arg("check").env("COLUMNS", columns.to_string())).stdout;
        let summary = text.split_once("tidegate.yaml is sound").map_or("", |(_, rest)| rest);
        let widest = summary.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= columns), "{columns}: {text}");
        assert!(summary.contains("clients lose"), "{text}");
    }
}
