//! What a server needs to know before it can answer: it says so in its result, and the same
//! request comes again with the answers.
//!
//! The state that a server hands out with its questions is its own; it goes back as it came.

use serde_json::value::RawValue;

use crate::{
    message::Params,
    raw::{Fields, Flaw},
};

/// Questions of one result that are asked; no server needs more at once.
pub const QUESTIONS_MAX: usize = 64;

/// What a server needs.
#[derive(Clone, Debug, Default)]
pub struct Needed {
    /// Its questions, each under a key of its own.
    pub questions: Vec<Question>,
    /// What it wants to see again.
    pub state: Option<Box<RawValue>>,
}

/// One question: a request as sessions know it.
#[derive(Clone, Debug)]
pub struct Question {
    /// Under which its answer goes back.
    pub key: String,
    /// What is asked: `elicitation/create`, `sampling/createMessage`, `roots/list`.
    pub method: String,
    /// With what.
    pub params: Option<Box<RawValue>>,
}

/// Whether a result is none yet.
#[must_use]
pub fn is_needed(result: &RawValue) -> bool {
    memchr::memmem::find(result.get().as_bytes(), b"input_required").is_some()
        && Fields::of(result, &[])
            .is_ok_and(|fields| fields.text("resultType").as_deref() == Some("input_required"))
}

impl Needed {
    /// Reads a result that [`is_needed`].
    ///
    /// # Errors
    /// It asks nothing that could be answered.
    pub fn read(result: &RawValue) -> Result<Self, Flaw> {
        let fields = Fields::of(result, &[])?;
        let state = fields.get("requestState").map(ToOwned::to_owned);
        let Some(asked) = fields.get("inputRequests") else {
            let nothing = || Flaw::Absent("requestState".to_owned());
            return Ok(Self { questions: Vec::new(), state: Some(state.ok_or_else(nothing)?) });
        };
        let asked = Fields::of(asked, &[])?;
        let mut questions = Vec::new();
        for key in asked.names().take(QUESTIONS_MAX) {
            let Some(value) = asked.get(key) else { continue };
            let question = Fields::of(value, &[])?;
            let method = question.text("method");
            questions.push(Question {
                key: key.to_owned(),
                method: method.ok_or_else(|| Flaw::Absent("method".to_owned()))?,
                params: question.get("params").map(ToOwned::to_owned),
            });
        }
        Ok(Self { questions, state })
    }

    /// The same request again, with the answers in the order of the questions.
    pub fn answer(&self, params: &mut Params<'_>, answers: Vec<Box<RawValue>>) {
        let mut responses = Fields::default();
        for (question, answer) in self.questions.iter().zip(answers) {
            responses.set(&question.key, answer);
        }
        params.remove("inputResponses");
        if let (false, Ok(json)) =
            (responses.is_empty(), RawValue::from_string(responses.to_json()))
        {
            params.set("inputResponses", json);
        }
        match &self.state {
            Some(state) => params.set("requestState", state.clone()),
            None => _ = params.remove("requestState"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("json")
    }

    #[test]
    fn the_same_request_comes_again_with_the_answers_and_the_state() {
        let result = raw(concat!(
            r#"{"resultType":"input_required","requestState":"opaque ","inputRequests":"#,
            r#"{"who":{"method":"elicitation/create","params":{"message":"?"}},"#,
            r#""where":{"method":"roots/list"}}}"#
        ));
        assert!(is_needed(&result) && !is_needed(&raw(r#"{"content":["input_required"]}"#)));
        let needed = Needed::read(&result).expect("questions");
        let methods: Vec<&str> = needed.questions.iter().map(|it| it.method.as_str()).collect();
        assert_eq!(methods, ["elicitation/create", "roots/list"]);
        let before = raw(r#"{"name":"t","requestState":"old"}"#);
        let mut params = Params::parse(Some(&before)).expect("params");
        needed.answer(&mut params, vec![raw(r#"{"action":"accept"}"#), raw(r#"{"roots":[]}"#)]);
        let expected = concat!(
            r#"{"name":"t","requestState":"opaque ","#,
            r#""inputResponses":{"who":{"action":"accept"},"where":{"roots":[]}}}"#
        );
        assert_eq!(params.to_json(), expected);
    }

    #[test]
    fn a_result_without_questions_and_state_cannot_be_answered() {
        assert!(Needed::read(&raw(r#"{"resultType":"input_required"}"#)).is_err());
        let bad = r#"{"resultType":"input_required","inputRequests":{"a":{}}}"#;
        assert!(Needed::read(&raw(bad)).is_err());
    }
}
