//! What a client hears of a request that was handed to another replica, if that one ends before it
//! has answered.

use super::Hub;
use crate::{
    call::{Code, Unavailable},
    cause::Cause,
    message::{Message, Params, made},
};

/// The answer to a request whose answer is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWords {
    /// The message.
    pub message: String,
    /// Whether the request may be made once more instead.
    pub may_repeat: bool,
}

impl Hub {
    /// What a client that sent this message hears if its answer is lost; none if it wants no
    /// answer.
    pub fn last_words(&mut self, body: &[u8]) -> Option<LastWords> {
        let Ok(Message::Request { id, method, params }) = Message::parse(body) else { return None };
        let gone = |server: String, code| {
            let (cause, retry_after) = (Cause::OwnerGone, None);
            Unavailable { server, cause, retry_after, code }
        };
        if method != "tools/call" {
            let error = gone(String::new(), Code::BackendUnavailable).rpc_error().to_string();
            return Some(LastWords { message: made(&id, &Err(error)), may_repeat: true });
        }
        let name = Params::parse(params).ok().and_then(|it| it.text("name")).unwrap_or_default();
        let profile = std::sync::Arc::clone(&self.own_profile);
        let catalogue = self.catalogue(&profile);
        let tool = catalogue.tool(&name);
        let may_repeat = tool.is_some_and(|it| it.hints.may_replay());
        let server = tool.and_then(|it| self.groups.get(it.server)).map(|it| it.name.to_string());
        let code = if may_repeat { Code::BackendUnavailable } else { Code::ResultUnknown };
        let result = gone(server.unwrap_or(name), code).tool_result().to_string();
        Some(LastWords { message: made(&id, &Ok(result)), may_repeat })
    }
}
