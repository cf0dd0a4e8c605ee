//! One probe: a `GET` to the provider, of which only the response head is wanted.
//!
//! Rules kept here:
//! - A fresh connection every time, and none is kept: a kept one would not notice that nobody can
//!   connect any more.
//! - Any HTTP answer, 5xx too, means that the endpoint can be reached.
//! - It carries the provider's own headers and its first key; a failure is a class, never an
//!   address (S61).

use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderValue, Method, Request, StatusCode, header};
use tidegate_config::file::Api;
use tidegate_gateway::{provider::Target, worker::Worker};
use tidegate_net::upstream::{ConnectError, SplicedBody};

/// What a probe found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeReply {
    /// An HTTP answer with this status.
    Answer(StatusCode),
    /// No answer: no connection, a broken one, or silence.
    Nothing,
    /// We had no descriptor or port left: says nothing about the provider.
    OwnShortage,
}

/// Why a probe got no HTTP answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The path of the config cannot be asked for.
    Path,
    /// No connection.
    Connect(ConnectError),
    /// The connection broke before an answer.
    Broken,
}

/// Asks a provider; whoever calls limits the time.
pub async fn ask(worker: Rc<Worker>, target: Arc<Target>) -> ProbeReply {
    match status_of(&worker, &target).await {
        Ok(status) => ProbeReply::Answer(status),
        Err(Silence::Connect(ConnectError::Shortage)) => ProbeReply::OwnShortage,
        Err(_) => ProbeReply::Nothing,
    }
}

/// The status that a provider answers with; whoever calls limits the time.
pub async fn status_of(worker: &Worker, target: &Target) -> Result<StatusCode, Silence> {
    let provider = &target.provider;
    let request = request(target).ok_or(Silence::Path)?;
    let connected = match &provider.origin {
        Some(origin) => worker.pool.fresh(&provider.connections, origin).await,
        None => {
            let io = worker.gateway.dial_fake(&provider.name);
            worker.pool.handshake(&provider.connections, io, false).await
        }
    };
    let answered = match connected {
        Ok(connection) => match connection.send(request).await {
            Ok(response) => Ok(response.status()),
            Err(_) => Err(Silence::Broken),
        },
        Err(error) => Err(Silence::Connect(error)),
    };
    // An HTTP/2 connection is kept as soon as it is there. Whoever uses one has a hold of its own.
    worker.pool.clear();
    answered
}

fn request(target: &Target) -> Option<Request<SplicedBody>> {
    let provider = &target.provider;
    let request = Request::builder().method(Method::GET).uri(provider.probe_path());
    let mut request = request.body(SplicedBody::default()).ok()?;
    let headers = request.headers_mut();
    headers.insert(header::USER_AGENT, HeaderValue::from_static("tidegate-probe"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if provider.api == Api::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    for (name, value) in &provider.headers {
        headers.insert(name.clone(), value.clone());
    }
    if let Some((name, value)) = target.credentials.iter().flatten().next() {
        headers.insert(name.clone(), value.clone());
    }
    headers.insert(header::HOST, provider.authority.clone());
    Some(request)
}
