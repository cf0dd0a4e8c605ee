//! Calls that need to ask before they can answer: the questions stand in the result, and the same
//! request comes again with the answers.
//!
//! Rules kept here:
//! - Nothing is kept between the two: which call it is, which round, and what was heard so far is
//!   in the state that the client brings back. A state that it changed is refused and noted.
//! - A client is asked only what it says it can be asked; else the call is refused with what it
//!   would have to be able to do.
//! - A call counts as carried out when it has heard everything.

use serde_json::{Map, Value, json};

use super::{FakeMcp, McpScript, Refusal, RequestFate, meta};
use crate::fake_mcp::answer::Reply;
use crate::fake_mcp::call::text;
use crate::fake_mcp::questions::{self, Question};

/// What a state begins with: not everything that can be changed on the way is JSON.
const SEAL: &str = "fake state: ";

/// What is brought back.
struct State {
    /// Which call of the tool it was, from 0.
    call: u64,
    /// How many rounds have been asked.
    round: u64,
    heard: Vec<String>,
}

impl State {
    fn read(text: &str) -> Option<Self> {
        let state: Value = serde_json::from_str(text.strip_prefix(SEAL)?).ok()?;
        let heard = state["heard"].as_array()?.iter().filter_map(|it| it.as_str());
        Some(Self {
            call: state["call"].as_u64()?,
            round: state["round"].as_u64()?,
            heard: heard.map(str::to_owned).collect(),
        })
    }

    fn write(&self) -> String {
        let state = json!({"call": self.call, "round": self.round, "heard": self.heard});
        format!("{SEAL}{state}")
    }
}

/// What becomes of a call of a tool that asks; none if this is no such call.
pub(super) fn course(fake: &FakeMcp, script: &McpScript, message: &Value) -> Option<RequestFate> {
    let params = &message["params"];
    if message["method"] != "tools/call" {
        return None;
    }
    let name = params["name"].as_str()?;
    let tool = script.tools.iter().find(|tool| tool.name == name)?;
    let mut state = match params["requestState"].as_str() {
        Some(text) => match State::read(text) {
            Some(state) => state,
            None => return Some(wrong(fake, "the requestState is not the one that was given")),
        },
        None => State { call: fake.record.calls(name), round: 0, heard: Vec::new() },
    };
    let act = tool.act(state.call);
    let rounds = questions::rounds(&act)?;
    let questions = questions::of(&act);
    if let Some(refusal) = undeclared(&questions, message) {
        return Some(RequestFate::Refuse(refusal));
    }
    if state.round == 0 {
        fake.record.call(name);
    } else {
        let answers = &params["inputResponses"];
        let is_whole = answers.as_object().is_some_and(|it| it.len() == questions.len());
        let answer = |question: &Question| answers.get(question.key);
        let answers: Option<Vec<&Value>> = questions.iter().map(answer).collect();
        let Some(answers) = answers.filter(|_| is_whole) else {
            return Some(wrong(fake, "the inputResponses are not those that were asked for"));
        };
        state.heard.extend(answers.iter().map(|answer| format!("result {answer}")));
    }
    if state.round >= rounds {
        fake.record.delivered(name);
        return Some(RequestFate::Known(text(&state.heard.join("; "))));
    }
    state.round += 1;
    let asked: Map<String, Value> = questions.iter().map(asked).collect();
    let result = json!({"resultType": "input_required", "inputRequests": asked,
        "requestState": state.write()});
    Some(RequestFate::Known(Reply::Result(result.to_string())))
}

fn asked(question: &Question) -> (String, Value) {
    let mut request = json!({"method": question.method});
    if !question.params.is_null() {
        request["params"] = question.params.clone();
    }
    (question.key.to_owned(), request)
}

fn wrong(fake: &FakeMcp, what: &str) -> RequestFate {
    fake.record.breach(what);
    RequestFate::Refuse(Refusal::new(-32602, what))
}

/// What the client would have to be able to do, and does not say it can.
fn undeclared(questions: &[Question], message: &Value) -> Option<Refusal> {
    let can = meta(message, "clientCapabilities");
    let missing = questions.iter().filter(|question| can[question.capability].is_null());
    let missing: Map<String, Value> =
        missing.map(|question| (question.capability.to_owned(), json!({}))).collect();
    if missing.is_empty() {
        return None;
    }
    let data = Some(json!({"requiredCapabilities": missing}));
    Some(Refusal { data, ..Refusal::new(-32021, "the client cannot be asked what is needed") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_mcp::tool::{Tool, ToolAct};

    fn call(capabilities: Value, more: Value) -> Value {
        let mut params = json!({"name": "t",
            "_meta": {"io.modelcontextprotocol/clientCapabilities": capabilities}});
        for (key, value) in more.as_object().expect("an object") {
            params[key] = value.clone();
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    }

    fn known(course: Option<RequestFate>) -> Value {
        match course {
            Some(RequestFate::Known(Reply::Result(text))) => {
                serde_json::from_str(&text).expect("JSON")
            }
            Some(RequestFate::Refuse(refusal)) => json!([refusal.code, refusal.data]),
            _ => Value::Null,
        }
    }

    #[test]
    fn a_call_asks_round_by_round_and_its_state_is_brought_back() {
        let script = McpScript::of(vec![Tool::new("t", ToolAct::Rounds(2)).then(ToolAct::Echo)]);
        let fake = FakeMcp::new(script.clone());
        let can = json!({"elicitation": {}});
        let mut more = json!({});
        for round in 1..=2 {
            let asked = known(course(&fake, &script, &call(can.clone(), more)));
            assert_eq!(asked["resultType"], "input_required");
            assert_eq!(asked["inputRequests"]["name"]["method"], "elicitation/create");
            more = json!({"requestState": asked["requestState"],
                "inputResponses": {"name": {"round": round}}});
            assert_eq!(fake.record.counts().delivered("t"), 0);
        }
        let done = known(course(&fake, &script, &call(can.clone(), more)));
        assert_eq!(done["content"][0]["text"], r#"result {"round":1}; result {"round":2}"#);
        assert_eq!(fake.record.counts().delivered("t"), 1);
        // The next call is another act, which does not ask.
        assert!(course(&fake, &script, &call(can, json!({}))).is_none());
        assert_eq!(fake.record.calls("t"), 1);
        assert!(fake.record.breaches().is_empty());
    }

    #[test]
    fn a_client_is_asked_only_what_it_can_be_asked() {
        let script = McpScript::of(vec![Tool::new("t", ToolAct::AskAll)]);
        let fake = FakeMcp::new(script.clone());
        let refused = known(course(&fake, &script, &call(json!({"roots": {}}), json!({}))));
        let missing = json!({"requiredCapabilities": {"elicitation": {}, "sampling": {}}});
        assert_eq!(refused, json!([-32021, missing]));
    }

    #[test]
    fn a_state_or_answers_that_were_changed_are_refused_and_noted() {
        let script = McpScript::of(vec![Tool::new("t", ToolAct::Roots)]);
        let fake = FakeMcp::new(script.clone());
        let can = json!({"roots": {}});
        let state =
            known(course(&fake, &script, &call(can.clone(), json!({}))))["requestState"].clone();
        for more in [
            json!({"requestState": "x", "inputResponses": {"folders": {}}}),
            json!({"requestState": state, "inputResponses": {"name": {}}}),
            json!({"requestState": state, "inputResponses": {"folders": {}, "name": {}}}),
            json!({"requestState": state}),
        ] {
            let said = known(course(&fake, &script, &call(can.clone(), more)));
            assert_eq!(said[0], -32602);
        }
        assert_eq!(fake.record.breaches().len(), 4);
    }
}
