//! A request of the gateway's own to one of its routes, in the process.
//!
//! It takes the whole way of a client's request, from the plan of the core to the metrics, so that
//! what the gateway asks for itself fails over, opens breakers and is counted like anything else.
//!
//! Left to the caller: a deadline. A request that is dropped is one whose client left.

use std::rc::Rc;

use bytes::BytesMut;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;
use tidegate_gateway::{
    caller::Caller,
    own_request::{AskRoute, OwnAnswer, OwnRequest},
    worker::Worker,
};

use super::{
    answer::RESOLVED,
    forward::forward,
    inbound::{Inbound, new_id},
};

/// Asks routes on a thread, with its connections.
#[must_use]
pub fn ask_route(worker: &Rc<Worker>) -> AskRoute {
    let worker = Rc::clone(worker);
    Rc::new(move |request| {
        let worker = Rc::clone(&worker);
        Box::pin(async move { ask(&worker, request).await })
    })
}

async fn ask(worker: &Rc<Worker>, request: OwnRequest) -> Option<OwnAnswer> {
    let live = worker.gateway.live.load_full();
    let json = HeaderValue::from_static("application/json");
    let inbound = Inbound {
        id: new_id(),
        path: request.path.into(),
        query: None,
        headers: HeaderMap::from_iter([(header::CONTENT_TYPE, json)]),
        passed: worker.gateway.mark.clone(),
        body: request.body,
        caller: Caller::own(),
    };
    let (head, mut rest) = forward(worker, &live, inbound).await.into_parts();
    if !head.status.is_success() {
        return None;
    }
    let resolved = head.headers.get(RESOLVED).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let model = resolved.split_once('/').map_or(resolved, |(_, model)| model).to_owned();
    let mut body = BytesMut::new();
    while let Some(frame) = rest.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if body.len() + data.len() > request.answer_max {
            return None;
        }
        body.extend_from_slice(&data);
    }
    Some(OwnAnswer { model, body: body.freeze() })
}
