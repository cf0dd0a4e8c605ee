//! One request of the stateless era (2026-07-28): a POST that says for itself who asks, and is
//! answered on its own.
//!
//! | request | answer |
//! |---|---|
//! | `server/discover` | at once; no server is waited for |
//! | a list, a call | JSON; events if something is to be told before, or it takes a while |
//! | `subscriptions/listen` | events, until the client closes the stream |
//! | what only sessions know | 404 |
//!
//! Rules kept here:
//! - A client that closes its request does not want it answered: whoever works on it is told.
//! - Health is looked at for every request (`Visibility::Request`).
//! - Ids of requests say nothing here: two clients of one caller may use the same.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::value::RawValue;
use tidegate_mcp::{
    catalogue::CAPABILITIES,
    listing::Kind,
    message::{ErrorObject, Id, METHOD_NOT_FOUND, error_object, made},
    raw::quoted,
    stateless::{
        Envelope, Refused, discover, dress,
        listen::{self, Filter},
        status_of,
    },
};
use tokio::sync::oneshot;

use super::list;
use crate::{
    caller::Caller,
    mcp::{
        client::Client,
        door::Answer,
        hello::own_info,
        hub::Hub,
        relay::{Asked, Made, Relayed, relay, subscribe},
        stream::{Stream, Weight},
    },
};

/// An answer that takes longer than this begins as a stream, whose signs of life keep it open.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// One request.
pub(super) struct Request<'a> {
    pub(super) id: Id,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
    pub(super) heads: &'a [(String, String)],
}

/// Answers one request.
pub(super) async fn serve(
    hub: &Rc<Hub>,
    request: Request<'_>,
    caller: &Arc<Caller>,
    answer: oneshot::Sender<Answer>,
) {
    let id = &request.id;
    // A client that has gone does not hear it.
    let refuse = |refused: &Refused, answer: oneshot::Sender<Answer>| {
        let status = status(refused.code);
        drop(answer.send(Answer::json(status, refused.to_answer(Some(id)))));
    };
    let envelope = match Envelope::read(request.method, request.params, request.heads) {
        Ok(envelope) => envelope,
        Err(refused) => return refuse(&refused, answer),
    };
    let client = match hub.stand_in(caller, &envelope) {
        Ok(client) => client,
        Err(refused) => return drop(answer.send(refused)),
    };
    let visit = client.visit();
    match request.method {
        discover::METHOD => {
            let made = Ok(discovered(&client));
            drop(answer.send(whole(&request, made)));
        }
        listen::METHOD => match Filter::read(request.params) {
            Ok(filter) => listen(&client, id, filter, answer).await,
            Err(refused) => refuse(&refused, answer),
        },
        _ => work(&client, &request, &envelope, answer).await,
    }
    drop(visit);
}

/// Has a request answered: whole, or as a stream once there is something to tell.
async fn work(
    client: &Rc<Client>,
    request: &Request<'_>,
    envelope: &Envelope,
    mut answer: oneshot::Sender<Answer>,
) {
    let (stream, events) = Stream::plain();
    let mut work = std::pin::pin!(respond(client, request, envelope, &stream));
    tokio::select! {
        biased;
        made = &mut work => return drop(answer.send(whole(request, made))),
        () = stream.spoken() => {}
        () = tokio::time::sleep(SILENT_FOR) => {}
        // Dropping the work tells the server.
        () = answer.closed() => return,
    }
    if answer.send(Answer::events(events)).is_err() {
        return;
    }
    tokio::select! {
        biased;
        made = &mut work => {
            let (_, text) = dressed(request, made);
            stream.send(text.as_bytes(), Weight::Needed);
            stream.end();
        }
        () = stream.abandoned() => {}
    }
}

async fn respond(
    client: &Rc<Client>,
    request: &Request<'_>,
    envelope: &Envelope,
    stream: &Rc<Stream>,
) -> Made {
    let Request { method, params, heads, .. } = request;
    if let Some(kind) = Kind::of_method(method) {
        return list(client, kind, *params).await;
    }
    match Relayed::of_method(method) {
        None | Some(Relayed::Subscribe | Relayed::Unsubscribe) => {
            let message = format!("method not found: {}", quoted(method));
            Err(error_object(METHOD_NOT_FOUND, &message, None))
        }
        Some(what) => {
            let asked = Asked { params: *params, stream, envelope: Some(envelope), heads };
            relay(client, what, asked).await
        }
    }
}

/// Tells a client what it asked for, until it closes the stream or the gateway does.
async fn listen(client: &Rc<Client>, id: &Id, filter: Filter, answer: oneshot::Sender<Answer>) {
    let (stream, events) = Stream::plain();
    let uris = filter.uris.clone();
    let number = client.listens.open(id, filter, &stream);
    let end = ListenEnd { client, number };
    if answer.send(Answer::events(events)).is_err() {
        return;
    }
    let told = async {
        client.first_look().await;
        for uri in &uris {
            subscribe(client, uri, true).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = told => {}
        () = stream.abandoned() => {}
        () = client.listens.over() => {
            let farewell = Ok(listen::farewell(id));
            let made = made(id, &farewell.map(|it| dress::for_stateless("", &it, &own())));
            stream.send(made.as_bytes(), Weight::Needed);
            stream.end();
        }
    }
    drop(end);
    for uri in uris.iter().filter(|uri| !client.listens.wants(uri)) {
        subscribe(client, uri, false).await;
    }
}

struct ListenEnd<'a> {
    client: &'a Client,
    number: u64,
}

impl Drop for ListenEnd<'_> {
    fn drop(&mut self) {
        self.client.listens.close(self.number);
    }
}

fn discovered(client: &Client) -> String {
    let instructions = client.catalogue().instructions(|place| client.may_use(place));
    discover::answer(CAPABILITIES, instructions.as_deref())
}

fn own() -> Box<RawValue> {
    RawValue::from_string(own_info()).expect("our own words are JSON")
}

fn status(code: i64) -> StatusCode {
    StatusCode::from_u16(status_of(code)).unwrap_or(StatusCode::OK)
}

/// An answer as this era writes it, and the status that goes with it.
fn dressed(request: &Request<'_>, outcome: Made) -> (StatusCode, String) {
    let outcome = match outcome {
        Ok(result) => Ok(dress::for_stateless(request.method, &result, &own())),
        Err(error) => Err(dress::error_for_stateless(&error)),
    };
    let code = outcome.as_ref().err().and_then(|error| {
        serde_json::from_str::<&RawValue>(error).ok().map(|error| ErrorObject::read(error).code)
    });
    (code.map_or(StatusCode::OK, status), made(&request.id, &outcome))
}

fn whole(request: &Request<'_>, outcome: Made) -> Answer {
    let (status, text) = dressed(request, outcome);
    Answer::json(status, text)
}
