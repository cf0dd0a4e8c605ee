//! What a tool asks its client, in either era.
//!
//! A call with questions has rounds; the questions of one round stand side by side, each under a
//! key. With a session they are requests to the client, one after the other; without, they go into
//! the result (`stateless`).

use serde_json::{Value, json};

use super::talk::Talk;
use super::tool::ToolAct;

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    /// Under which its answer is given.
    pub(super) key: &'static str,
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// What a client must be able to do to be asked.
    pub(super) capability: &'static str,
}

/// How often a tool asks; none if it does not.
pub(super) fn rounds(act: &ToolAct) -> Option<u64> {
    match act {
        ToolAct::Sample | ToolAct::Elicit | ToolAct::Roots | ToolAct::AskAll => Some(1),
        ToolAct::Rounds(count) => Some(*count),
        _ => None,
    }
}

/// What it asks in every round.
pub(super) fn of(act: &ToolAct) -> Vec<Question> {
    match act {
        ToolAct::Sample => vec![sampling()],
        ToolAct::Elicit | ToolAct::Rounds(_) => vec![elicitation()],
        ToolAct::Roots => vec![roots()],
        ToolAct::AskAll => vec![elicitation(), roots(), sampling()],
        _ => Vec::new(),
    }
}

/// Asks the client of a session everything and gives what it said: its results, or its errors.
pub(super) async fn ask(talk: &Talk, stream: u64, act: &ToolAct) -> String {
    let mut heard = Vec::new();
    for _ in 0..rounds(act).unwrap_or_default() {
        for question in of(act) {
            let answer = talk.ask(stream, question.method, question.params).await;
            heard.push(match answer.get("result") {
                Some(result) => format!("result {result}"),
                None => format!("error {}", answer["error"]),
            });
        }
    }
    heard.join("; ")
}

fn sampling() -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": "say hello"}});
    let params = json!({"messages": [message], "maxTokens": 10});
    let method = "sampling/createMessage";
    Question { key: "words", method, params, capability: "sampling" }
}

fn elicitation() -> Question {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"message": "your name?", "requestedSchema": schema});
    Question { key: "name", method: "elicitation/create", params, capability: "elicitation" }
}

fn roots() -> Question {
    let params = Value::Null;
    Question { key: "folders", method: "roots/list", params, capability: "roots" }
}
