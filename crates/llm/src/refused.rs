//! Requests that are refused before they have a plan: each leaves a decision too.

use std::sync::Arc;

use tidegate_core::time::Millis;
use tidegate_gateway::{log::path_class, worker::Worker};
use tidegate_journal::{
    decision::{Decision, cut_name},
    request_id::RequestId,
};
use tidegate_wire::error_body::OwnErrorKind;

/// A request that is refused.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRequest<'a> {
    pub id: &'a str,
    pub path: &'a str,
    pub caller: &'a Arc<str>,
    pub kind: OwnErrorKind,
}

/// Records a refusal.
pub fn refused(worker: &Worker, request: &RefusedRequest<'_>) {
    refused_model(worker, request, None);
}

/// Records a refusal of a request for a model.
pub(crate) fn refused_model(worker: &Worker, request: &RefusedRequest<'_>, model: Option<&str>) {
    let row = request.kind.row();
    let id = RequestId::parse(request.id).unwrap_or_default();
    let now = worker.gateway.now();
    worker.record(Decision {
        caller: Arc::clone(request.caller),
        path: path_class(request.path),
        model: model.map(cut_name),
        ..Decision::refused(id, now, Millis::ZERO, row.status, row.code)
    });
}
