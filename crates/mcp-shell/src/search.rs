//! `tools: search`: a client sees two tools, `find_tool` and `call_tool`, and through them all.
//!
//! - `describe`: the two tools as clients see them.
//! - `find`: the answer to `find_tool`. `index`: what it searches, made off this thread.
//! - `embed`: vectors from a route of the gateway's own, where the config wants them; `vectors`:
//!   those that are known.
//! - `call`: what `call_tool` really asks for, checked before it goes anywhere.
//!
//! Rules kept here:
//! - `call_tool` is the same path as a direct call: health, breaker, filters, errors. Here only its
//!   wrapping is taken off. Tools can still be called by their own names.
//! - What is wrong with a request is told as a tool's result, where a model reads it.

mod call;
mod describe;
mod embed;
mod find;
mod index;
mod vectors;

use std::rc::Rc;

use serde_json::value::RawValue;
use tidegate_config::file::ToolList;
use tidegate_mcp::{message::Params, raw::quoted};
use tidegate_search::{CALL, FIND};

pub(crate) use self::{describe::page, index::Indexes};
use super::client::Client;

/// What a `tools/call` comes to.
pub(crate) enum Taken {
    /// It is answered here: the result's text.
    Answer(String),
    /// It is a call of another tool, with these params.
    Call(Box<RawValue>),
    /// It is none of ours.
    Not,
}

/// Whether this client sees the two tools instead of all.
pub(crate) fn is_on(client: &Client) -> bool {
    client.ground.live().file.mcp.tools == ToolList::Search
}

/// Takes a call of one of the two tools.
pub(crate) async fn take(client: &Rc<Client>, params: Option<&RawValue>) -> Taken {
    let Ok(params) = Params::parse(params) else { return Taken::Not };
    let arguments = params.get("arguments");
    match params.text("name").as_deref() {
        Some(FIND) => {
            client.first_look().await;
            Taken::Answer(find::find(client, arguments).await)
        }
        Some(CALL) => {
            if !call::is_known(client, &params) {
                // A server whose lists are not known yet may have it.
                client.first_look().await;
            }
            match call::unwrapped(client, &params) {
                Ok(params) => Taken::Call(params),
                Err(message) => Taken::Answer(failed(&message)),
            }
        }
        _ => Taken::Not,
    }
}

/// A tool's result that says what is wrong.
fn failed(message: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#, quoted(message))
}
