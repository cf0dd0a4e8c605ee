//! A request of the gateway's own to one of its routes, in the process.
//!
//! It takes the whole way of a client's request, from the plan of the core to the metrics, so that
//! what the gateway asks for itself fails over, opens breakers and is counted like anything else.
//!
//! Left to the caller: a deadline. A request that is dropped is one whose client left.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;

use super::{answer::RESOLVED, forward::forward, inbound::Inbound, new_id};
use crate::{caller::Caller, gateway::Worker};

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The model that answered, by its name in the config.
    pub(crate) model: String,
    pub(crate) body: Bytes,
}

/// Asks; nothing unless a target succeeded, within `max` bytes. The body names the route as its
/// model.
pub(crate) async fn ask(
    worker: &Rc<Worker>,
    path: &str,
    body: impl Into<Bytes>,
    max: usize,
) -> Option<Said> {
    let live = worker.gateway.live.load_full();
    let json = HeaderValue::from_static("application/json");
    let inbound = Inbound {
        id: new_id(),
        path: path.to_owned(),
        query: None,
        headers: HeaderMap::from_iter([(header::CONTENT_TYPE, json)]),
        passed: worker.gateway.mark.clone(),
        body: body.into(),
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
        if body.len() + data.len() > max {
            return None;
        }
        body.extend_from_slice(&data);
    }
    Some(Said { model, body: body.freeze() })
}
