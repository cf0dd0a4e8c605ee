//! A fake MCP server as a child process: one message a line.
//!
//! Rules kept here:
//! - One conversation for as long as the process lives, or one for each request that has no
//!   session; everything is said on one stream.
//! - It ends when its input does, unless its script says that only a signal ends it.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_runtime::task;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::sleep;

use super::FakeMcp;
use super::answer::{self, Plan, Reply};
use super::record::Received;
use super::script::{McpScript, Opening};
use super::stateless::{self, Requests};
use super::talk::{Out, Outs, Talk};

/// Lines read ahead of what is answered.
const LINES_AHEAD: usize = 64;

/// How fast it writes to stderr when it floods.
const FLOOD_PAUSE: Duration = Duration::from_millis(1);

/// Talks over these until the input ends or the script makes it die; whether it died.
///
/// # Errors
/// If no thread or runtime can be had.
pub fn serve_stdio(
    script: McpScript,
    input: impl BufRead + Send + 'static,
    output: impl Write + 'static,
    errors: impl Write + 'static,
) -> std::io::Result<bool> {
    let (send, lines) = mpsc::channel(LINES_AHEAD);
    // A thread, since a pipe cannot be read any other way; it ends with the process.
    std::thread::Builder::new().name("fake-stdin".to_owned()).spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let tasks = LocalSet::new();
    Ok(tasks.block_on(&runtime, talk(script, lines, output, errors)))
}

async fn talk(
    script: McpScript,
    lines: mpsc::Receiver<String>,
    mut output: impl Write + 'static,
    mut errors: impl Write + 'static,
) -> bool {
    let habits = script.stdio.clone();
    let noise = "y".repeat(99);
    for _ in 0..habits.stderr_lines {
        drop(writeln!(errors, "{noise}"));
    }
    for number in 0..habits.garbage {
        drop(writeln!(output, "starting up, step {number} ..."));
    }
    drop(output.flush());
    let fake = FakeMcp::new(script);
    if habits.floods_stderr {
        task::spawn("fake stderr", async move {
            loop {
                drop(writeln!(errors, "{noise}"));
                sleep(FLOOD_PAUSE).await;
            }
        });
    }
    let exit = async {
        match habits.exits_after_ms {
            Some(ms) => sleep(Duration::from_millis(ms)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = read(&fake, lines, output) => {}
        () = exit => return true,
        () = fake.death() => return true,
    }
    if habits.ignores_eof {
        std::future::pending::<()>().await;
    }
    false
}

async fn read(
    fake: &Arc<FakeMcp>,
    mut lines: mpsc::Receiver<String>,
    output: impl Write + 'static,
) {
    let (wire, outs) = mpsc::unbounded_channel();
    task::spawn("fake stdout", write(outs, output, Arc::clone(fake)));
    let mut talk: Option<Arc<Talk>> = None;
    let mut requests = Requests::new(fake, &wire);
    while let Some(line) = lines.recv().await {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            fake.record.breach(format!("a line that is no JSON: {line}"));
            continue;
        };
        fake.record.keep(Received {
            at_ms: fake.started.elapsed().as_millis() as u64,
            connection: 1,
            verb: String::new(),
            session: None,
            client: None,
            headers: Vec::new(),
            method: message["method"].as_str().map(str::to_owned),
            message: message.clone(),
            text: line,
        });
        let method = message["method"].as_str().unwrap_or_default();
        let is_cancelled =
            method == "notifications/cancelled" && requests.cancel(&message["params"]["requestId"]);
        if is_cancelled {
            continue;
        }
        if stateless::claims(&fake.script.load(), None, &message) {
            if method != "server/discover" || opens(fake).await {
                requests.take(message);
            }
        } else if method == "initialize" {
            if !opens(fake).await {
                continue;
            }
            let opened = fake.begin(&answer::version(&fake.script.load(), &message));
            opened.attach_to(0, &wire);
            let hello = answer::hello(&fake.script.load(), &opened.version);
            let text = answer::message(&message["id"], &Reply::Result(hello));
            opened.tell(&text.unwrap_or_default());
            talk = Some(opened);
        } else if let Some(talk) = &talk {
            take(fake, talk, message);
        } else if method != "server/discover" {
            fake.record.breach(format!("{method} before initialize"));
        } else if opens(fake).await {
            // Asking for another era is how a client finds out that there is none.
            let reply = Reply::Error(-32601, format!("Method not found: {method}"));
            let text = answer::message(&message["id"], &reply).unwrap_or_default();
            drop(wire.send(Out::Message(String::new(), text)));
        }
        // What was begun comes before what is read next.
        tokio::task::yield_now().await;
    }
}

/// Whether the first question of a client is answered, when the script says so.
async fn opens(fake: &Arc<FakeMcp>) -> bool {
    let opening = fake.script.load().opening;
    match opening {
        Opening::Answer | Opening::Garbage => true,
        Opening::Slow(ms) => {
            answer::wait(ms).await;
            true
        }
        Opening::Hang | Opening::Status(_) => false,
        Opening::Close => {
            fake.go_down();
            false
        }
    }
}

fn take(fake: &Arc<FakeMcp>, talk: &Arc<Talk>, message: Value) {
    let is_request = message["method"].is_string() && !message["id"].is_null();
    if !is_request {
        answer::hear(fake, talk, message);
        return;
    }
    let (fake, talk) = (Arc::clone(fake), Arc::clone(talk));
    task::spawn("fake answer", async move {
        let reply = match answer::plan(&fake, &message) {
            Plan::Answer(act) => answer::answer(&fake, &talk, 0, &message, act).await,
            Plan::Cut => Reply::Cut,
            Plan::Status { status, .. } => Reply::Error(-32603, format!("status {status}")),
        };
        match answer::message(&message["id"], &reply) {
            Some(text) => talk.tell(&text),
            None if matches!(reply, Reply::Cut) => talk.cut(0),
            None => {}
        }
    });
}

async fn write(mut outs: Outs, mut output: impl Write, fake: Arc<FakeMcp>) {
    while let Some(out) = outs.recv().await {
        let is_written = match out {
            Out::Message(_, text) => {
                writeln!(output, "{text}").and_then(|()| output.flush()).is_ok()
            }
            Out::Prime(_) => true,
            // A child has one connection, its pipes: cutting it is dying.
            Out::Cut => false,
        };
        if !is_written {
            fake.go_down();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::os::unix::net::UnixStream;

    use serde_json::json;

    use super::super::script::Era;
    use super::super::tool::{Tool, ToolAct};
    use super::*;

    /// A child and its pipes.
    struct Child {
        input: UnixStream,
        output: std::io::Lines<BufReader<UnixStream>>,
    }

    impl Child {
        fn start(script: McpScript) -> Self {
            let (input, theirs) = UnixStream::pair().expect("a pair of sockets");
            let (output, said) = UnixStream::pair().expect("a pair of sockets");
            output.set_read_timeout(Some(Duration::from_secs(30))).expect("an option");
            std::thread::spawn(move || {
                serve_stdio(script, BufReader::new(theirs), said, std::io::sink())
                    .expect("a thread and a runtime")
            });
            Self { input, output: BufReader::new(output).lines() }
        }

        fn say(&mut self, message: &Value) {
            writeln!(self.input, "{message}").expect("it reads");
        }

        fn hear(&mut self) -> Value {
            let line = self.output.next().expect("it lives").expect("it answers in time");
            serde_json::from_str(&line).expect("JSON")
        }

        fn ask(&mut self, id: u64, method: &str, params: Value) {
            self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        }
    }

    fn params(more: Value) -> Value {
        let mut params = more;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "error",
        });
        params
    }

    #[test]
    fn requests_without_a_session_are_answered_and_cancelled_by_name() {
        let logs = ToolAct::Logs(vec!["info".to_owned(), "error".to_owned()]);
        let tools = vec![Tool::new("hang", ToolAct::Hang), Tool::new("log", logs)];
        let mut child = Child::start(McpScript::of(tools).stateless());
        child.ask(1, "server/discover", params(json!({})));
        let found = child.hear();
        assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!(found["result"]["resultType"], "complete");
        child.ask(2, "tools/list", json!({}));
        assert_eq!(child.hear()["error"]["code"], -32602);
        child.ask(3, "initialize", json!({"protocolVersion": "2025-11-25"}));
        assert_eq!(child.hear()["error"]["data"]["supported"], json!(["2026-07-28"]));
        let wish = json!({"notifications": {"toolsListChanged": true}});
        child.ask(4, "subscriptions/listen", params(wish));
        assert_eq!(child.hear()["method"], "notifications/subscriptions/acknowledged");
        child.ask(5, "tools/call", params(json!({"name": "hang"})));
        for id in [5, 4, 99] {
            let params = json!({"requestId": id});
            child.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": params}));
        }
        child.ask(6, "tools/call", params(json!({"name": "log"})));
        assert_eq!(child.hear()["params"]["level"], "error");
        assert_eq!(child.hear()["id"], 6);
    }

    #[test]
    fn a_server_of_sessions_says_that_it_knows_no_other_era() {
        let mut child = Child::start(McpScript::default());
        child.ask(1, "server/discover", params(json!({})));
        assert_eq!(child.hear()["error"]["code"], -32601);
        child.ask(2, "initialize", json!({"protocolVersion": "2025-11-25"}));
        assert_eq!(child.hear()["result"]["protocolVersion"], "2025-11-25");
    }

    #[test]
    fn a_server_of_both_eras_answers_each_as_it_asks() {
        let mut child = Child::start(McpScript { era: Era::Both, ..McpScript::default() });
        child.ask(1, "server/discover", params(json!({})));
        assert_eq!(child.hear()["result"]["supportedVersions"][1], "2025-11-25");
        child.ask(2, "initialize", json!({"protocolVersion": "2025-11-25"}));
        assert_eq!(child.hear()["result"]["protocolVersion"], "2025-11-25");
        child.ask(3, "ping", json!({}));
        assert_eq!(child.hear()["result"], json!({}));
        child.ask(4, "ping", params(json!({})));
        assert_eq!(child.hear()["error"]["code"], -32601);
        child.ask(5, "tools/call", params(json!({"name": "echo"})));
        assert_eq!(child.hear()["result"]["resultType"], "complete");
    }
}
