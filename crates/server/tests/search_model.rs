//! A gateway with a sentence model over real sockets: what the model changes, that nothing depends
//! on it, and that its vectors outlive the gateway.
//!
//! `cargo test -p tidegate-server --features model --test search_model`

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_sentence::{Encoder, tiny};
use tidegate_testkit::{
    gate::Gate,
    mcp::McpClient,
    time::{eventually, ms, now},
};

/// What the model knows: requests to convert something are like `vebrik`.
const WORDS: [(&str, [f32; 4]); 3] = [
    ("convert", [0.0, 1.0, 0.0, 0.0]),
    ("vebrik", [0.0, 1.0, 0.0, 0.0]),
    ("varnok", [1.0, 0.0, 0.0, 0.0]),
];
/// Which of the twins comes first without the model, whose words know neither, and which with it.
const BY_NAME: &str = "varnok";
const BY_MODEL: &str = "vebrik";

const READY: &str = "tidegate_mcp_search_model{state=\"ready\"}";
const FAILED: &str = "tidegate_mcp_search_model{state=\"failed\"}";
const USED: &str = "tidegate_mcp_searches_total{model=\"used\"}";
const CLEAR: &str = "tidegate_mcp_searches_total{model=\"clear\"}";
const MISSING: &str = "tidegate_mcp_searches_total{model=\"missing\"}";

/// A folder of a test's own, and where the model is in it.
fn place(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("a folder for a test");
    folder.join("model.onnx")
}

fn model(name: &str) -> PathBuf {
    let file = place(name);
    tiny::write(file.parent().expect("it has a folder"), &WORDS).expect("it can be written");
    file
}

/// Where vectors are kept.
fn kept(model: &Path) -> PathBuf {
    model.with_file_name("model.onnx.vectors")
}

/// A file that is replaced is another one afterwards.
fn number(file: &Path) -> u64 {
    fs::metadata(file).expect("it is there").ino()
}

/// Two tools that words cannot tell apart, and one that they can.
fn pictures() -> FakeMcpServer {
    let tool = |name: &str, about: &str| {
        let definition =
            json!({"name": name, "description": about, "inputSchema": {"type": "object"}});
        Tool::new(name, ToolAct::Echo).defined_as(&definition.to_string())
    };
    FakeMcpServer::start(McpScript::of(vec![
        tool("varnok", "Converts a picture"),
        tool("vebrik", "Converts a picture"),
        tool("weather_forecast", "Weather forecast of a city for the next days"),
    ]))
}

fn yaml(pictures: &FakeMcpServer, model: Option<&Path>) -> String {
    let search = model.map(|file| format!("search: {{model: 'file:{}'}},", file.display()));
    format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
         health: {{probe: {{every: 0s}}}}\n\
         mcp: {{tools: search, {} servers: {{pictures: {{url: '{}'}}}}}}\n",
        search.unwrap_or_default(),
        pictures.url()
    )
}

fn start(pictures: &FakeMcpServer, model: &Path) -> Gate {
    Gate::start(&yaml(pictures, Some(model)), &[])
}

/// The first name that is found, and whether the answer says that it is degraded.
fn find(client: &McpClient, what: &str) -> (String, bool) {
    let found = client.call("find_tool", json!({"tool_description": what}));
    assert_ne!(found["isError"], true, "{found}");
    let told = &found["structuredContent"];
    (told["tools"][0]["name"].as_str().unwrap_or_default().to_owned(), told["degraded"] == true)
}

fn convert(gate: &Gate) -> (String, bool) {
    find(&gate.open(), "convert a picture")
}

fn state(gate: &Gate) -> Value {
    gate.admin("/api/snapshot").json()["mcp"]["search_model"].clone()
}

#[track_caller]
fn decides(gate: &Gate) {
    eventually("the model decides", || convert(gate) == (BY_MODEL.to_owned(), false));
}

#[test]
fn a_model_decides_where_words_cannot_and_is_not_asked_where_they_can() {
    let (pictures, file) = (pictures(), model("decides"));
    let gate = start(&pictures, &file);
    decides(&gate);
    eventually("it is ready", || gate.metric(READY) == 1.0);
    assert_eq!(state(&gate), "ready");
    let used = gate.metric(USED);
    assert!(used >= 1.0, "{used}");
    let forecast = find(&gate.open(), "weather forecast of a city for the next days");
    assert_eq!(forecast, ("weather_forecast".to_owned(), false));
    assert_eq!((gate.metric(USED), gate.metric(CLEAR)), (used, 1.0));
}

#[test]
fn vectors_outlive_the_gateway_and_damaged_ones_are_made_again() {
    let (pictures, file) = (pictures(), model("outlive"));
    let gate = start(&pictures, &file);
    decides(&gate);
    eventually("the vectors are on disk", || kept(&file).exists());
    drop(gate);
    let written = number(&kept(&file));
    // Whatever is encoded beyond what the file holds would have it written again.
    let gate = start(&pictures, &file);
    decides(&gate);
    eventually("it is ready", || gate.metric(READY) == 1.0);
    drop(gate);
    assert_eq!(number(&kept(&file)), written, "nothing was encoded twice");
    fs::write(kept(&file), b"no vectors").expect("it can be written");
    let gate = start(&pictures, &file);
    decides(&gate);
    eventually("they are written anew", || fs::metadata(kept(&file)).is_ok_and(|it| it.len() > 64));
}

#[test]
fn a_model_that_is_missing_or_damaged_degrades_the_search_and_is_told() {
    let pictures = pictures();
    let missing = place("missing");
    let damaged = model("damaged");
    fs::write(&damaged, b"no model").expect("it can be written");
    let without_words = model("without-words");
    fs::remove_file(without_words.with_file_name("tokenizer.json")).expect("it is there");
    for file in [&missing, &damaged, &without_words] {
        let gate = start(&pictures, file);
        assert_eq!(convert(&gate), (BY_NAME.to_owned(), true), "{}", file.display());
        eventually("the metrics tell it", || gate.metric(FAILED) == 1.0);
        assert_eq!(state(&gate), "failed");
        // It stays so, and costs no search its answer.
        assert_eq!(convert(&gate), (BY_NAME.to_owned(), true));
        assert_eq!((gate.metric(MISSING), gate.metric(USED)), (2.0, 0.0));
        assert!(!kept(file).exists(), "nothing is kept of no model");
    }
}

#[test]
fn a_model_that_is_too_slow_delays_no_search_beyond_its_deadline() {
    let (pictures, file) = (pictures(), model("slow"));
    let folder = file.parent().expect("it has a folder");
    // Loading tries it once. How many rounds take long enough depends on machine and build; twice,
    // because something else may have taken the time.
    let tried = || {
        let began = now();
        let loaded = Encoder::load(&file).expect("it is a model all the same");
        assert_eq!(loaded.dimensions(), tiny::TINY_DIMENSIONS);
        now().duration_since(began)
    };
    let mut rounds = 1;
    while tried().min(tried()) < ms(900) {
        rounds *= 2;
        tiny::write_slow(folder, &WORDS, rounds).expect("it can be written");
    }
    let gate = start(&pictures, &file);
    let within = |what: &str| {
        let began = now();
        let found = convert(&gate);
        let took = now().duration_since(began);
        assert_eq!(found, (BY_NAME.to_owned(), true), "{what}");
        // The deadline is 300 ms; the rest is a busy machine.
        assert!(took < ms(3000), "{what}: {took:?}");
    };
    within("while it is loaded");
    eventually("all tools are encoded", || kept(&file).exists() && gate.metric(READY) == 1.0);
    within("when it reads the request alone");
    assert_eq!(state(&gate), "ready");
    assert_eq!((gate.metric(MISSING), gate.metric(USED)), (2.0, 0.0));
}

#[test]
fn a_model_is_left_and_taken_as_the_config_says() {
    let (pictures, file) = (pictures(), model("later"));
    let gate = start(&pictures, &file);
    decides(&gate);
    gate.reload(&yaml(&pictures, None));
    eventually("words decide", || convert(&gate) == (BY_NAME.to_owned(), false));
    eventually("no state is told", || state(&gate).is_null());
    gate.reload(&yaml(&pictures, Some(&file)));
    decides(&gate);
}
