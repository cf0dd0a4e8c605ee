//! `tidegate init` as a user meets it: what is written, what is refused, and that no secret leaks.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;
use support::{Run, folder, program, run};

/// `init` in a folder without any Ollama: nothing listens on port 1.
fn init(folder: &Path, args: &[&str]) -> Command {
    let mut command = program(folder);
    command.arg("init").args(args).env("OLLAMA_HOST", "127.0.0.1:1");
    command
}

fn check(folder: &Path) -> Run {
    run(program(folder).args(["check", "--json"]))
}

#[test]
fn keys_of_the_environment_become_a_config_that_check_accepts_without_their_values() {
    let folder = folder("init-environment");
    let mut command = init(&folder, &[]);
    command.env("OPENAI_API_KEY", "canary-1").env("ANTHROPIC_API_KEY", "canary-2");
    let done = run(command.env("GROQ_API_KEY", ""));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let text = fs::read_to_string(folder.join("tidegate.yaml")).expect("it was written");
    assert!(text.contains("key: env:OPENAI_API_KEY"), "{text}");
    assert!(!text.contains("groq:"), "an empty variable is no key: {text}");
    let said = format!("{text}{}{}", done.stdout, done.stderr);
    assert!(!said.contains("canary"), "{said}");
    assert!(
        done.stdout.starts_with("wrote tidegate.yaml from the environment: 2 providers, 1 route")
    );
    assert!(done.stderr.ends_with("next: tidegate check\n"), "{}", done.stderr);
    assert_eq!(check(&folder).code, Some(0));
}

#[test]
fn a_file_that_exists_is_kept_unless_force_is_given() {
    let folder = folder("init-exists");
    let path = folder.join("tidegate.yaml");
    fs::write(&path, "mine\n").expect("the folder takes files");
    let refused = run(init(&folder, &[]).env("GROQ_API_KEY", "x"));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("`tidegate.yaml` exists already"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&path).expect("still there"), "mine\n");
    assert_eq!(run(init(&folder, &["--force"]).env("GROQ_API_KEY", "x")).code, Some(0));
    assert!(fs::read_to_string(&path).expect("replaced").contains("groq:"));
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is left beside it");
}

#[test]
fn without_keys_and_without_ollama_nothing_is_written() {
    let folder = folder("init-nothing");
    let done = run(&mut init(&folder, &[]));
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""));
    assert!(done.stderr.contains("ANTHROPIC_API_KEY, OPENAI_API_KEY"), "{}", done.stderr);
    assert!(!folder.join("tidegate.yaml").exists());
    let json: Value =
        serde_json::from_str(&run(&mut init(&folder, &["--json"])).stdout).expect("JSON");
    assert_eq!(json["written"], false);
}

#[test]
fn a_local_ollama_is_asked_for_its_models_and_a_mute_one_is_not_waited_for() {
    let folder = folder("init-ollama");
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address").to_string();
    let answers = thread::spawn(move || {
        let (mut stream, _) = server.accept().expect("a client");
        let mut request = [0; 1024];
        let count = stream.read(&mut request).expect("a request");
        assert!(request[..count].starts_with(b"GET /api/tags HTTP/1.0\r\n"));
        let answer = "HTTP/1.0 200 OK\r\n\r\n{\"models\":[{\"name\":\"qwen3:8b\"}]}";
        stream.write_all(answer.as_bytes()).expect("a client that listens");
        drop(stream);
        // The second client gets no answer at all.
        server.accept()
    });
    let done = run(init(&folder, &["-o", "-"]).env("OLLAMA_HOST", &address));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains(&format!("url: http://{address}/v1")), "{}", done.stdout);
    assert!(done.stdout.contains("- [ollama/qwen3:8b]"), "{}", done.stdout);
    assert!(!folder.join("tidegate.yaml").exists());
    let mute = run(init(&folder, &[]).env("OLLAMA_HOST", &address));
    assert_eq!(mute.code, Some(1), "{}", mute.stdout);
    drop(answers.join().expect("the server did its part"));
}

#[test]
fn a_litellm_config_says_line_by_line_what_was_not_carried_over() {
    let folder = folder("init-litellm");
    let config = "\
model_list:
  - model_name: fast
    litellm_params: { model: groq/llama-3.1-8b-instant, api_key: gsk_canary, rpm: 30 }
  - model_name: deep
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_key: os.environ/CLAUDE_KEY }
router_settings:
  fallbacks: [{ deep: [fast] }]
";
    fs::write(folder.join("config.yaml"), config).expect("the folder takes files");
    let done = run(&mut init(&folder, &["--from", "config.yaml"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let expected = "\
wrote tidegate.yaml from config.yaml: 2 providers, 2 routes, 0 MCP servers
  config.yaml:3: model_list[0].litellm_params.api_key: changed: a literal secret is not copied: \
set GROQ_API_KEY to the value in this line, and remove it from that file
  config.yaml:3: model_list[0].litellm_params.rpm: not carried over: limits per target are not \
supported; a provider's own rate limits are followed
";
    assert_eq!(done.stdout, expected);
    assert_eq!(done.stderr, "next: set GROQ_API_KEY, CLAUDE_KEY, then tidegate check\n");
    let text = fs::read_to_string(folder.join("tidegate.yaml")).expect("it was written");
    assert!(!text.contains("canary"), "{text}");
    let tiers = "      - [anthropic/claude-sonnet-4-5]\n      - [groq/llama-3.1-8b-instant]\n";
    assert!(text.contains(tiers), "{text}");
    assert_eq!(check(&folder).code, Some(0));
}

#[test]
fn json_has_the_notes_the_variables_and_the_config() {
    let folder = folder("init-json");
    let servers = "{\"mcpServers\": {\n\"a\": {\"url\": \"https://example.com/mcp\", \
                   \"headers\": {\"Authorization\": \"Bearer canary\"}, \"cwd\": \"/\"}}}";
    fs::write(folder.join("mcp.json"), servers).expect("the folder takes files");
    let done = run(&mut init(&folder, &["--from", "mcp.json", "--json"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!format!("{}{}", done.stdout, done.stderr).contains("canary"), "{}", done.stdout);
    let json: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(json["written"], true);
    assert_eq!(json["servers"], 1);
    assert_eq!(json["variables"], serde_json::json!(["A_AUTHORIZATION"]));
    assert_eq!(json["notes"][0]["line"], 2);
    assert_eq!(json["notes"][1]["kind"], "not_carried_over");
    let written = fs::read_to_string(folder.join("tidegate.yaml")).expect("it was written");
    assert_eq!(json["config"], written.as_str());
    assert_eq!(check(&folder).code, Some(0));
}

#[test]
fn a_file_that_is_no_known_products_config_is_3_and_nothing_is_written() {
    let folder = folder("init-bad");
    let write = |name: &str, text: &[u8]| {
        fs::write(folder.join(name), text).expect("the folder takes files");
    };
    write("empty.yaml", b"");
    write("not-yaml.yaml", b"model_list: [canary\n  - {\n");
    write("not-json.json", b"{\"mcpServers\": {\"a\": canary}}");
    write("not-utf8.yaml", b"model_list: \xff\n");
    write("other.yaml", b"services: { web: { image: canary } }\n");
    write("list.json", b"[1, 2]");
    write("huge.yaml", &vec![b'#'; 9 * 1024 * 1024]);
    write("bomb.json", "[".repeat(100_000).as_bytes());
    for name in [
        "empty.yaml",
        "not-yaml.yaml",
        "not-json.json",
        "not-utf8.yaml",
        "other.yaml",
        "list.json",
        "huge.yaml",
        "bomb.json",
        "missing.yaml",
        ".",
    ] {
        let done = run(&mut init(&folder, &["--from", name]));
        assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""), "{name}: {}", done.stderr);
        assert!(done.stderr.contains(name), "{name}: {}", done.stderr);
        assert!(!done.stderr.contains("canary"), "{name}: {}", done.stderr);
        assert!(!folder.join("tidegate.yaml").exists(), "{name}");
    }
    write(
        "nothing.yaml",
        b"model_list: [{ model_name: a, litellm_params: { model: sagemaker/x } }]",
    );
    let done = run(&mut init(&folder, &["--from", "nothing.yaml"]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("nothing.yaml:1: model_list[0]: not carried over"));
}
