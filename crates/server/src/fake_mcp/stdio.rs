//! A fake MCP server as a child process: one message a line.
//!
//! Rules kept here:
//! - One conversation for as long as the process lives; everything is said on one stream.
//! - It ends when its input does, unless its script says that only a signal ends it.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::sleep;

use super::FakeMcp;
use super::answer::{self, Plan, Reply};
use super::record::Received;
use super::script::{Opening, Script};
use super::talk::{Out, Outs, Talk};
use crate::task;

/// Lines read ahead of what is answered.
const LINES_AHEAD: usize = 64;

/// How fast it writes to stderr when it floods.
const FLOOD_PAUSE: Duration = Duration::from_millis(1);

/// Talks over these until the input ends or the script makes it die; whether it died.
///
/// # Errors
/// If no thread or runtime can be had.
pub fn serve_stdio(
    script: Script,
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
    script: Script,
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
    let mut output = Some(output);
    let mut talk: Option<Arc<Talk>> = None;
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
        if message["method"] == "initialize" {
            let Some(opened) = open(fake, &message).await else { continue };
            if let (Some(output), Some(outs)) = (output.take(), opened.attach(0, None, false)) {
                task::spawn("fake stdout", write(outs, output, Arc::clone(fake)));
            }
            let hello = answer::hello(&fake.script.load(), &opened.version);
            let text = answer::message(&message["id"], &Reply::Result(hello));
            opened.tell(&text.unwrap_or_default());
            talk = Some(opened);
            continue;
        }
        match &talk {
            Some(talk) => take(fake, talk, message),
            None => fake.record.breach(format!("{} before initialize", message["method"])),
        }
    }
}

async fn open(fake: &Arc<FakeMcp>, hello: &Value) -> Option<Arc<Talk>> {
    let script = fake.script.load_full();
    match script.opening {
        Opening::Answer | Opening::Garbage => {}
        Opening::Slow(ms) => answer::wait(ms).await,
        Opening::Hang | Opening::Status(_) => return None,
        Opening::Close => {
            fake.go_down();
            return None;
        }
    }
    let version = answer::version(&script, hello);
    Some(fake.begin(&version))
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
            // A child has one connection, its pipes: cutting it is dying.
            None if matches!(reply, Reply::Cut) => fake.go_down(),
            None => {}
        }
    });
}

async fn write(mut outs: Outs, mut output: impl Write, fake: Arc<FakeMcp>) {
    while let Some(out) = outs.recv().await {
        let Out::Message(_, text) = out else { continue };
        if writeln!(output, "{text}").and_then(|()| output.flush()).is_err() {
            // Nobody reads any more.
            fake.go_down();
            return;
        }
    }
}
