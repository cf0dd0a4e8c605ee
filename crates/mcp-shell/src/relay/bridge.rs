//! A call between two eras of the protocol.
//!
//! | client | server | what differs |
//! |---|---|---|
//! | session | session | nothing |
//! | stateless | stateless | nothing: what a server needs to know is asked of the client itself |
//! | session | stateless | what the server needs is asked of the client, and the call made again |
//! | stateless | session | log lines come only at the level that the request asked for; what the
//!   server asks, the client is asked with the answer to its request (`front/parked`) |

use std::rc::Rc;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_mcp::{
    call::{Code, Errand, Unavailable},
    cause::Cause,
    message::{Params, error_object},
    stateless::{
        MISSING_CAPABILITY, dress,
        input::{Needed, is_needed},
    },
};

use super::{Answered, Ask, Client, Link};

/// How often a server may say that it needs to know more before one call is done.
const ROUNDS_MAX: usize = 10;
/// How long to wait before a call is made again about which nothing was asked.
const STATE_ONLY_WAIT: std::time::Duration = std::time::Duration::from_millis(100);

/// Asks a server on behalf of a client, whichever eras they speak.
pub(super) async fn ask(client: &Rc<Client>, link: &Rc<Link>, ask: Ask) -> Answered {
    prepare(client, link, &ask).await;
    let answered = link.ask(ask.clone()).await;
    go_on(client, link, ask, answered).await
}

/// Before a request goes over a link on behalf of a client.
pub(super) async fn prepare(client: &Client, link: &Rc<Link>, ask: &Ask) {
    if client.hello.is_stateless() && !link.is_stateless() {
        wake_logs(link, ask).await;
    }
}

/// What a first answer leads to: the answer for the client, perhaps after questions and more
/// requests over the same link.
pub(super) async fn go_on(
    client: &Rc<Client>,
    link: &Rc<Link>,
    mut ask: Ask,
    mut answered: Answered,
) -> Answered {
    let method = ask.method;
    for _ in 0..ROUNDS_MAX {
        let Answered::Reply(Ok(result)) = &answered else { return answered };
        if client.hello.is_stateless() || !link.is_stateless() {
            return answered;
        }
        let needed = serde_json::from_slice::<&RawValue>(result).ok().filter(|it| is_needed(it));
        let Some(needed) = needed else {
            let text = String::from_utf8_lossy(result);
            return Answered::Reply(Ok(dress::for_session(method, &text).into()));
        };
        match again(client, &ask, needed).await {
            Ok(params) => {
                ask.params = Some(params);
                answered = link.ask(ask.clone()).await;
            }
            Err(error) => return Answered::Reply(Err(error)),
        }
    }
    let server = link.server.name.to_string();
    let (cause, code) = (Cause::Malformed, Code::BackendUnavailable);
    Answered::Unavailable(Unavailable { server, cause, retry_after: None, code })
}

/// The params of the same call with what the server needs to know; the error that ends it if the
/// client does not tell.
async fn again(client: &Rc<Client>, ask: &Ask, needed: &RawValue) -> Result<Box<RawValue>, Bytes> {
    let flawed = |what: &str| Bytes::from(error_object(-32603, what, None));
    let needed = Needed::read(needed)
        .map_err(|flaw| flawed(&format!("the server asks what cannot be read: {flaw}")))?;
    if needed.questions.is_empty() {
        tokio::time::sleep(STATE_ONLY_WAIT).await;
    }
    let mut answers = Vec::new();
    for question in &needed.questions {
        if !client.hello.can().be_asked(&question.method) {
            let message = format!("the server asks `{}`, which was not declared", question.method);
            return Err(Bytes::from(error_object(MISSING_CAPABILITY, &message, None)));
        }
        let asked = (question.method.as_str(), question.params.as_deref());
        let told = client.inquire(asked, ask.party.clone()).await;
        let told = told.map_err(|error| Bytes::from(error.get().to_owned()))?;
        answers.push(told);
    }
    let mut params = Params::parse(ask.params.as_deref()).unwrap_or_default();
    needed.answer(&mut params, answers);
    RawValue::from_string(params.to_json()).map_err(|_| flawed("the answers are no JSON"))
}

/// A server with sessions is told once that log lines are wanted; each call takes its own.
async fn wake_logs(link: &Rc<Link>, ask: &Ask) {
    let wants = ask.party.as_ref().is_some_and(|party| party.level.is_some());
    let is_able = link.info().is_some_and(|info| info.can("logging"));
    if !wants || !is_able || link.has_level() || link.server.is_shared_child() {
        return;
    }
    link.set_level("debug");
    let params = RawValue::from_string(r#"{"level":"debug"}"#.to_owned()).ok();
    let errand = Errand::Repeatable;
    let ask = Ask { method: "logging/setLevel", params, errand, party: None };
    drop(link.ask(ask).await);
}
