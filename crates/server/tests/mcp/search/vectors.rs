//! `mcp.search.embeddings`: what a route's vectors change, and that nothing depends on them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    gate::Gate,
    mcp::McpClient,
    time::{eventually, ms, now},
};

use super::names;
use crate::bed::Setup;

/// How the service answers.
const UP: u8 = 0;
const BROKEN: u8 = 1;
const SILENT: u8 = 2;

/// Serves `/v1/embeddings`: texts about `beta` and requests point one way, all others another.
struct Embedder {
    address: SocketAddr,
    mood: Arc<AtomicU8>,
    /// How many texts each request had.
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Embedder {
    fn start(mood: u8) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let embedder = Self { address, mood: Arc::new(AtomicU8::new(mood)), asked: Arc::default() };
        let (mood, asked) = (Arc::clone(&embedder.mood), Arc::clone(&embedder.asked));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (mood, asked) = (Arc::clone(&mood), Arc::clone(&asked));
                thread::spawn(move || serve(stream, &mood, &asked));
            }
        });
        embedder
    }

    fn set(&self, mood: u8) {
        self.mood.store(mood, Ordering::SeqCst);
    }

    /// Requests with more than one text: those for tools.
    fn batches(&self) -> Vec<usize> {
        let asked = self.asked.lock().expect("no test panics with it");
        asked.iter().copied().filter(|texts| *texts > 1).collect()
    }
}

/// One request, one answer.
fn serve(stream: TcpStream, mood: &AtomicU8, asked: &Mutex<Vec<usize>>) -> Option<()> {
    let mut reader = BufReader::new(&stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let inputs = body["input"].as_array()?;
    let mood = mood.load(Ordering::SeqCst);
    if mood == SILENT {
        // Until the other side has had enough.
        _ = reader.read(&mut [0]);
        return None;
    }
    let (status, answer) = if mood == BROKEN {
        ("500 Broken", json!({"error": {"message": "broken"}}))
    } else {
        asked.lock().ok()?.push(inputs.len());
        let row = |(index, text): (usize, &Value)| {
            let is_that_way = inputs.len() == 1 || text.as_str()?.contains("beta");
            let vector = if is_that_way { [0.0, 1.0] } else { [1.0, 0.0] };
            Some(json!({"object": "embedding", "index": index, "embedding": vector}))
        };
        let rows: Vec<Value> = inputs.iter().enumerate().filter_map(row).collect();
        ("200 OK", json!({"object": "list", "model": "m", "data": rows}))
    };
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
    let head = format!("{head}content-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    (&stream).write_all(format!("{head}{answer}").as_bytes()).ok()
}

/// Two tools that words cannot tell apart: without vectors the order of names decides.
pub(super) fn twins() -> FakeMcpServer {
    let tool = |name: &str| {
        let definition = json!({"name": name, "description": "Converts a picture",
            "inputSchema": {"type": "object"}});
        Tool::new(name, ToolAct::Echo).defined_as(&definition.to_string())
    };
    FakeMcpServer::start(McpScript::of(vec![tool("alpha"), tool("beta")]))
}

fn gate(twins: &FakeMcpServer, embedder: &Embedder) -> Gate {
    let top = format!(
        "providers: {{p: {{api: openai, url: 'http://{}/v1'}}}}\n\
         routes: {{embed: {{tiers: [[p/m]]}}}}",
        embedder.address
    );
    let mcp = "tools: search, search: {embeddings: {route: embed}},";
    let health = "failure_threshold: 2, open_for: 100ms, recovery_threshold: 1";
    Setup { mcp, health, top: &top, ..Setup::of(&[("pictures", twins)]) }.start()
}

/// The first name that is found, and whether the answer says that it is degraded.
pub(super) fn find(client: &McpClient) -> (String, bool) {
    let found = client.call("find_tool", json!({"tool_description": "convert a picture"}));
    assert_ne!(found["isError"], true, "{found}");
    let first = names(&found).first().map(|it| (*it).to_owned()).unwrap_or_default();
    (first, found["structuredContent"]["degraded"] == true)
}

/// Without a prefix: there is one server.
pub(super) const BY_NAME: &str = "alpha";
const BY_VECTOR: &str = "beta";

#[test]
fn vectors_of_a_route_rank_tools_and_no_session_asks_for_them_again() {
    let (twins, embedder) = (twins(), Embedder::start(UP));
    let gate = gate(&twins, &embedder);
    eventually("vectors decide", || find(&gate.open()) == (BY_VECTOR.to_owned(), false));
    for _ in 0..5 {
        assert_eq!(find(&gate.open()), (BY_VECTOR.to_owned(), false));
    }
    assert_eq!(embedder.batches(), [2], "both tools, once");
}

#[test]
fn a_route_that_is_down_degrades_the_search_and_one_that_is_back_mends_it() {
    let (twins, embedder) = (twins(), Embedder::start(BROKEN));
    let gate = gate(&twins, &embedder);
    let client = gate.open();
    assert_eq!(find(&client), (BY_NAME.to_owned(), true));
    embedder.set(UP);
    eventually("vectors decide", || find(&client) == (BY_VECTOR.to_owned(), false));
    embedder.set(BROKEN);
    assert_eq!(find(&client), (BY_NAME.to_owned(), true));
    embedder.set(UP);
    eventually("vectors decide again", || find(&client) == (BY_VECTOR.to_owned(), false));
    assert_eq!(embedder.batches(), [2], "what is known is not asked for again");
}

#[test]
fn a_route_that_hangs_delays_no_search_beyond_its_deadline() {
    let (twins, embedder) = (twins(), Embedder::start(SILENT));
    let gate = gate(&twins, &embedder);
    let client = gate.open();
    let began = now();
    assert_eq!(find(&client), (BY_NAME.to_owned(), true));
    // The deadline is 300 ms; the rest is a busy machine.
    assert!(now().duration_since(began) < ms(3000), "{:?}", now().duration_since(began));
}
