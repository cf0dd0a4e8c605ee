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
//! - What a server with sessions asks in the middle of a call, the client is asked with its answer
//!   (`parked`).
//! - Ids of requests say nothing here: two clients of one caller may use the same.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;
use tidegate_gateway::caller::Caller;
use tidegate_mcp::{
    catalogue::CAPABILITIES,
    listing::Kind,
    message::{ErrorObject, INTERNAL_ERROR, Id, METHOD_NOT_FOUND, Params, error_object, made},
    raw::quoted,
    stateless::{
        Envelope, Refused, discover, dress, heading,
        listen::{self, Filter},
        status_of,
    },
};
use tidegate_runtime::task;
use tokio::sync::{mpsc, oneshot};

use super::{
    list,
    parked::{Back, UnderWay},
};
use crate::{
    client::Client,
    door::Answer,
    hello::own_info,
    hub::{CallTurn, Hub},
    large::Large,
    party::Desk,
    relay::{Asked, Made, Relayed, busy, relay, subscribe},
    stream::{Stream, Weight},
};

/// An answer that takes longer than this begins as a stream, whose signs of life keep it open.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// One request.
pub(super) struct Request<'a> {
    pub(super) id: Id,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
    pub(super) heads: &'a [(String, String)],
    pub(super) large: Option<&'a Large>,
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
        _ => work(&client, &request, envelope, answer).await,
    }
    drop(visit);
}

/// The client's side of an answer that has not begun.
type Unsent = Option<(oneshot::Sender<Answer>, mpsc::Receiver<Bytes>)>;

/// Has a request answered, or one that its client comes back for.
async fn work(
    client: &Rc<Client>,
    request: &Request<'_>,
    envelope: Envelope,
    answer: oneshot::Sender<Answer>,
) {
    let (stream, events) = Stream::plain(client.ground.account(&client.caller()));
    let params = Params::parse(request.params).unwrap_or_default();
    let asked = format!("{} {:?}", request.method, heading::name_of(request.method, &params));
    let call = match client.parked.back(request.params, &asked, client.ground.now()) {
        Back::Goes(call) => call,
        Back::Asks(told) => return drop(answer.send(whole(request, Ok(told)))),
        Back::Refused(it) => {
            let error = error_object(it.code, &it.message, it.data.as_deref());
            return drop(answer.send(whole(request, Err(error))));
        }
        Back::Not => {
            let turn = client.ground.hub().and_then(|hub| hub.take_call(&client.caller()));
            let Some(turn) = turn else {
                let busy = busy(client, request.method, request.params);
                return drop(answer.send(whole(request, busy)));
            };
            begin(client, request, (envelope, turn), &stream, asked)
        }
    };
    call.desk.move_to(&stream);
    attend(client, request, call, &stream, Some((answer, events))).await;
}

/// Begins a call in a task of its own: it may have to wait for its client.
fn begin(
    client: &Rc<Client>,
    request: &Request<'_>,
    (envelope, turn): (Envelope, CallTurn),
    stream: &Rc<Stream>,
    asked: String,
) -> UnderWay {
    let desk = Desk::new(stream);
    let (client, own_desk) = (Rc::clone(client), Rc::clone(&desk));
    let (method, params) = (request.method.to_owned(), request.params.map(ToOwned::to_owned));
    let (heads, large) = (request.heads.to_vec(), request.large.cloned());
    let (sender, made) = oneshot::channel();
    let task = task::spawn_owned("mcp request", async move {
        let (params, envelope) = (params.as_deref(), Some(&envelope));
        let (desk, heads, large) = (&own_desk, heads.as_slice(), large.as_ref());
        let asked = Asked { params, large, desk, envelope, heads };
        // Nobody waits for it if its client has gone.
        drop(sender.send(respond(&client, &method, asked).await));
        drop(turn);
    });
    UnderWay { task, made, desk, request: asked }
}

/// Waits with a client until its call is answered: whole, or as a stream once there is something
/// to tell or nothing for too long.
async fn attend(
    client: &Rc<Client>,
    request: &Request<'_>,
    mut call: UnderWay,
    stream: &Rc<Stream>,
    mut unsent: Unsent,
) {
    let mut silence = std::pin::pin!(tokio::time::sleep(SILENT_FOR));
    loop {
        let desk = Rc::clone(&call.desk);
        tokio::select! {
            biased;
            made = &mut call.made => {
                let made = made.unwrap_or_else(|_| Err(ended()));
                return finish(request, unsent, stream, made);
            }
            questions = desk.questions() => {
                match client.parked.park(call, questions, client.ground.now()) {
                    Ok(told) => return finish(request, unsent, stream, Ok(told)),
                    Err(same) => call = same,
                }
            }
            () = stream.spoken(), if unsent.is_some() => start(&mut unsent),
            () = &mut silence, if unsent.is_some() => start(&mut unsent),
            // Dropping the call tells its server.
            () = gone(&mut unsent, stream) => return,
        }
    }
}

/// The answer begins as a stream.
fn start(unsent: &mut Unsent) {
    if let Some((answer, events)) = unsent.take() {
        // A client that has gone is noticed at the stream.
        drop(answer.send(Answer::events(events)));
    }
}

async fn gone(unsent: &mut Unsent, stream: &Stream) {
    match unsent {
        Some((answer, _)) => answer.closed().await,
        None => stream.abandoned().await,
    }
}

fn finish(request: &Request<'_>, unsent: Unsent, stream: &Stream, made: Made) {
    match unsent {
        Some((answer, _)) => drop(answer.send(whole(request, made))),
        None => {
            stream.answer(&request.id, dressed(request, made).1.as_bytes());
            stream.end();
        }
    }
}

fn ended() -> String {
    error_object(INTERNAL_ERROR, "the gateway gave this call up", None)
}

async fn respond(client: &Rc<Client>, method: &str, asked: Asked<'_>) -> Made {
    if let Some(kind) = Kind::of_method(method) {
        return list(client, kind, asked.params).await;
    }
    match Relayed::of_method(method) {
        None | Some(Relayed::Subscribe | Relayed::Unsubscribe) => {
            let message = format!("method not found: {}", quoted(method));
            Err(error_object(METHOD_NOT_FOUND, &message, None))
        }
        Some(what) => relay(client, what, asked).await,
    }
}

/// Tells a client what it asked for, until it closes the stream or the gateway does.
async fn listen(client: &Rc<Client>, id: &Id, filter: Filter, answer: oneshot::Sender<Answer>) {
    let (stream, events) = Stream::plain(client.ground.account(&client.caller()));
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
