//! One tool of a fake: how it is listed, and what it does call after call.

use serde::Deserialize;
use serde_json::{Value, json};

/// A tool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does with its calls, in order; the last goes on. Empty: echo.
    pub acts: Vec<ToolAct>,
    /// What it is for; none: words that say that it is fake.
    pub about: Option<String>,
    /// What it says about itself.
    pub hints: Hints,
    /// Its whole definition as JSON text, sent byte for byte; none: one made from the rest.
    pub definition: Option<String>,
}

/// What a tool says about itself; absent: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
}

/// What a tool does with a call.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolAct {
    /// Answers with its arguments as JSON text.
    #[default]
    Echo,
    /// Answers with this text.
    Text(String),
    /// Answers with the session's id and how many calls of this tool it made: state that is lost
    /// with the session.
    Count,
    /// Answers with structured content, and the same as text.
    Structured(Value),
    /// Answers with this result, byte for byte.
    Raw(String),
    /// Answers with a result that says `isError`.
    Failed(String),
    /// Answers with a picture.
    Image,
    /// Answers with so many bytes of text.
    Big(usize),
    /// Answers after so many milliseconds.
    Slow(u64),
    /// Never answers.
    Hang,
    /// Reports progress so many times, so far apart, if the client asked for it; then answers.
    Progress {
        /// How often.
        steps: u64,
        /// How far apart.
        every_ms: u64,
    },
    /// Sends a log message of each of these levels, if the client wants it; then answers.
    Logs(Vec<String>),
    /// Asks the client for a completion and answers with what it said.
    Sample,
    /// Asks the client's user and answers with what they said.
    Elicit,
    /// Asks for the client's roots and answers with them.
    Roots,
    /// Asks for all three at once and answers with everything.
    AskAll,
    /// Asks the client's user so many times, one after the other, and answers with everything.
    Rounds(u64),
    /// Sends this message on the call's stream, byte for byte, then answers.
    Say(String),
    /// Cuts the connection, before anything was done.
    CutBefore,
    /// Does its work, then cuts the connection instead of answering.
    CutAfter,
    /// Does its work, then dies: the process exits, all connections are cut.
    Crash,
    /// Answers with a JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// Answers with an HTTP status. (stdio: a JSON-RPC error -32603.)
    Status {
        /// The status.
        status: u16,
        /// The `retry-after` header.
        #[serde(default)]
        retry_after: Option<String>,
    },
    /// Answers with something that is not JSON.
    Garbage,
    /// Answers with the id of another request.
    WrongId,
    /// Closes the stream of the call after its priming event and answers so many milliseconds
    /// later, for a client that resumes. (Over HTTP with priming; elsewhere the same as `slow`.)
    Drop(u64),
    /// Adds a tool that echoes, tells everybody, and answers.
    Add(String),
    /// Takes a tool away, tells everybody, and answers.
    Remove(String),
    /// Says that a resource has changed to all that watch it, and answers.
    Touch(String),
    /// Sends so many log messages on the stream that belongs to no request, and answers.
    Flood(u64),
}

impl Tool {
    /// A tool that always does this.
    #[must_use]
    pub fn new(name: &str, act: ToolAct) -> Self {
        Self { name: name.to_owned(), acts: vec![act], ..Self::default() }
    }

    /// From the next call on it does this.
    #[must_use]
    pub fn then(mut self, act: ToolAct) -> Self {
        self.acts.push(act);
        self
    }

    /// Says what it is for.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.about = Some(about.to_owned());
        self
    }

    /// Says that it only reads.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.hints.read_only = Some(true);
        self
    }

    /// Says that twice is the same as once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.hints.idempotent = Some(true);
        self
    }

    /// Says that it destroys.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.hints.destructive = Some(true);
        self
    }

    /// Is listed with exactly this text.
    #[must_use]
    pub fn defined_as(mut self, json: &str) -> Self {
        self.definition = Some(json.to_owned());
        self
    }

    /// What it does with the n-th call (from 0).
    pub(super) fn act(&self, call: u64) -> ToolAct {
        let last = self.acts.len().saturating_sub(1);
        let at = usize::try_from(call).map_or(last, |call| call.min(last));
        self.acts.get(at).cloned().unwrap_or_default()
    }

    /// How it is listed.
    pub(super) fn listed(&self) -> String {
        if let Some(text) = &self.definition {
            return text.clone();
        }
        let about = self.about.clone().unwrap_or_else(|| format!("The fake tool {}", self.name));
        let mut tool = json!({
            "name": self.name,
            "description": about,
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        });
        let hints = [
            ("readOnlyHint", self.hints.read_only),
            ("idempotentHint", self.hints.idempotent),
            ("destructiveHint", self.hints.destructive),
        ];
        for (name, hint) in hints {
            if let Some(hint) = hint {
                tool["annotations"][name] = hint.into();
            }
        }
        tool.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_does_one_thing_after_the_other_and_goes_on_with_the_last() {
        let tool = Tool::new("t", ToolAct::Hang).then(ToolAct::Image);
        let acts: Vec<ToolAct> = (0..4).map(|call| tool.act(call)).collect();
        assert_eq!(acts, [ToolAct::Hang, ToolAct::Image, ToolAct::Image, ToolAct::Image]);
        assert_eq!(Tool::default().act(7), ToolAct::Echo);
    }

    #[test]
    fn hints_are_listed_only_where_there_are_any() {
        assert!(!Tool::new("t", ToolAct::Echo).listed().contains("annotations"));
        let listed = Tool::new("t", ToolAct::Echo).read_only().destructive().listed();
        assert!(listed.contains(r#""annotations":{"readOnlyHint":true,"destructiveHint":true}"#));
    }
}
