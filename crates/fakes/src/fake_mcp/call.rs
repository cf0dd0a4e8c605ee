//! What the tools of a fake MCP server do.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Reply, touch, wait};
use super::talk::Talk;
use super::tool::{Tool, ToolAct};
use super::{FakeMcp, notification, questions};

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY\
42YAAAAASUVORK5CYII=";

/// Levels of log messages, the least important first.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Carries a call out.
pub(super) async fn perform(
    fake: &Arc<FakeMcp>,
    talk: &Arc<Talk>,
    stream: u64,
    params: &Value,
    act: ToolAct,
) -> Reply {
    let tool = params["name"].as_str().unwrap_or_default();
    let done = || text(&format!("{tool} done"));
    match act {
        ToolAct::Echo => text(&params["arguments"].to_string()),
        ToolAct::Text(said) => text(&said),
        ToolAct::Count => text(&format!("{} call {}", talk.id, talk.count(tool))),
        ToolAct::Structured(value) => {
            let content = json!([{"type": "text", "text": value.to_string()}]);
            Reply::Result(json!({"content": content, "structuredContent": value}).to_string())
        }
        ToolAct::Raw(result) => Reply::Result(result),
        ToolAct::Failed(said) => {
            let content = json!([{"type": "text", "text": said}]);
            Reply::Result(json!({"content": content, "isError": true}).to_string())
        }
        ToolAct::Image => {
            let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
            Reply::Result(json!({"content": [image]}).to_string())
        }
        ToolAct::Big(bytes) => text(&"x".repeat(bytes)),
        ToolAct::Slow(ms) => {
            wait(ms).await;
            done()
        }
        ToolAct::Hang => std::future::pending().await,
        ToolAct::Progress { steps, every_ms } => {
            progress(talk, stream, &params["_meta"]["progressToken"], steps, every_ms).await;
            done()
        }
        ToolAct::Logs(levels) => {
            let wanted = talk.level();
            // Without sessions nobody hears logs who did not ask for them with the call itself.
            let is_heard = wanted.is_some() || !talk.is_stateless();
            let is_said = |level: &&String| is_heard && is_wanted(level, wanted.as_deref());
            for level in levels.iter().filter(is_said) {
                talk.say(stream, &log(level, &format!("{tool} says {level}")));
            }
            done()
        }
        ToolAct::Sample
        | ToolAct::Elicit
        | ToolAct::Roots
        | ToolAct::AskAll
        | ToolAct::Rounds(_) => text(&questions::ask(talk, stream, &act).await),
        ToolAct::Say(message) => {
            talk.say(stream, &message);
            done()
        }
        ToolAct::Crash => {
            fake.go_down();
            Reply::Nothing
        }
        ToolAct::CutBefore | ToolAct::CutAfter => Reply::Cut,
        ToolAct::Error { code, message } => Reply::Error(code, message),
        ToolAct::Status { status, .. } => Reply::Error(-32603, format!("status {status}")),
        ToolAct::Garbage => Reply::Text("<html>this is no message</html>".to_owned()),
        ToolAct::WrongId => {
            Reply::Text(r#"{"jsonrpc":"2.0","id":"nobody's","result":{"content":[]}}"#.to_owned())
        }
        ToolAct::Drop(ms) => {
            if stream != 0 && fake.script.load().primes && !talk.is_stateless() {
                talk.detach(stream);
            }
            wait(ms).await;
            done()
        }
        ToolAct::Add(_) | ToolAct::Remove(_) => {
            change(fake, &act);
            done()
        }
        ToolAct::Touch(uri) => {
            touch(fake, &uri);
            done()
        }
        ToolAct::Flood(count) => {
            flood(talk, count);
            done()
        }
    }
}

/// Sends so many log messages on the stream that belongs to no request.
pub(super) fn flood(talk: &Talk, count: u64) {
    for number in 0..count {
        talk.tell(&log("info", &format!("flood {number}")));
    }
}

fn change(fake: &FakeMcp, act: &ToolAct) {
    fake.change_tools(|tools| match act {
        ToolAct::Add(name) => tools.push(Tool::new(name, ToolAct::Echo)),
        ToolAct::Remove(name) => tools.retain(|tool| tool.name != *name),
        _ => {}
    });
}

async fn progress(talk: &Talk, stream: u64, token: &Value, steps: u64, every_ms: u64) {
    for step in 1..=steps {
        wait(every_ms).await;
        if !token.is_null() {
            let params = json!({"progressToken": token, "progress": step, "total": steps,
                "message": format!("step {step}")});
            talk.say(stream, &notification("notifications/progress", Some(params)));
        }
    }
}

fn log(level: &str, text: &str) -> String {
    let params = json!({"level": level, "logger": "fake", "data": text});
    notification("notifications/message", Some(params))
}

/// Whether a client that set this level (none: all of them) wants a message of that one.
fn is_wanted(level: &str, wanted: Option<&str>) -> bool {
    let rank = |level: &str| LEVELS.iter().position(|known| *known == level).unwrap_or_default();
    wanted.is_none_or(|wanted| rank(level) >= rank(wanted))
}

pub(super) fn text(text: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": text}]}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_keeps_out_what_is_less_important() {
        assert!(is_wanted("debug", None) && is_wanted("error", Some("warning")));
        assert!(is_wanted("warning", Some("warning")) && !is_wanted("info", Some("warning")));
    }
}
