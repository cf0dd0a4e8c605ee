//! What a client's request meets, in order, up to the plane that answers it.
//!
//! The guard refuses what is not safe to look at, the paths are told apart here, and a request goes
//! to MCP or, if it names a model, to the LLM plane, whose `forward` is the life of a request.

use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use tidegate_config::bytes::ByteSize;
use tidegate_gateway::{
    guard,
    live::Live,
    log::{self, Access, Refused},
    report, status,
    worker::Worker,
};
use tidegate_llm::{
    answer,
    forward::forward,
    inbound::{Inbound, new_id},
    refused::{RefusedRequest, refused},
};
use tidegate_mcp_shell::{self as mcp, McpHandle};
use tidegate_net::{
    client_body::ClientBody,
    connection::{RequestBody, scheme},
    passed::passed,
    read_body::{Refusal, TOO_LARGE, read_body},
};
use tidegate_wire::{
    dialect::Dialect,
    error_body::{OwnError, OwnErrorKind},
    gemini::{GeminiCall, GeminiMethod},
    operation::Operation,
};

const UNLISTED: &str = "this path is not one of inference, so it is not forwarded; \
    `providers.NAME.serves` with `other` in it lets a provider take it";
const GEMINI: &str = "this method of Gemini's API is not served: `generateContent`, \
    `streamGenerateContent`, `countTokens`, `embedContent` and `batchEmbedContents` are";
const GEMINI_STREAM: &str = "`streamGenerateContent` is served as a stream of events only: add \
    `alt=sse` to the query";

/// What requests are answered with on one thread.
pub(crate) struct Ingress {
    pub(crate) worker: Rc<Worker>,
    /// The way to the MCP thread.
    pub(crate) mcp: McpHandle,
}

/// Answers one request, and logs it.
pub(crate) async fn answer(
    ingress: &Ingress,
    request: Request<RequestBody>,
) -> Response<ClientBody> {
    let worker = &ingress.worker;
    let began = worker.gateway.now();
    let method = request.method().clone();
    let path: Rc<str> = Rc::from(&*guard::plain_path(&method, request.uri()));
    let response = respond(ingress, request, Rc::clone(&path)).await;
    // A routed request logs its own line when its answer has ended.
    if answer::is_routed(&response) {
        return response;
    }
    let (gateway, id) = (&worker.gateway, answer::id_of(&response));
    if response.status() == StatusCode::UNAUTHORIZED {
        let refused =
            Refused { event: "unknown_key", caller: "", path: &path, route: "", request_id: id };
        report::refused(gateway, &refused);
    }
    let access = Access {
        method: &method,
        path: &path,
        route: "",
        target: None,
        status: response.status().as_u16(),
        attempts: 0,
        took: gateway.now().since(began),
        request_id: id,
        caller: "",
    };
    log::access(&gateway.live.load().file.log, &access);
    response
}

async fn respond(
    ingress: &Ingress,
    request: Request<RequestBody>,
    path: Rc<str>,
) -> Response<ClientBody> {
    let worker = &ingress.worker;
    let live = worker.gateway.live.load_full();
    let (head, body) = request.into_parts();
    let dialect = Dialect::of_path(&path);
    let id = new_id();
    let is_mcp = &*path == mcp::PATH;
    let fail = |kind, message: &str| match is_mcp {
        true => {
            let mut response = McpHandle::refuse(kind, message);
            answer::name(&mut response, &id);
            response
        }
        false => answer::own(dialect, &id, OwnError::new(kind, message)),
    };

    if let Err(refusal) = guard::check(
        scheme(&head.extensions),
        worker.gateway.address,
        &head.method,
        &head.uri,
        &head.headers,
    ) {
        if let Some(event) = guard::event_of(&refusal) {
            let (caller, route, request_id) = ("", "", &*id);
            let refused = Refused { event, caller, path: &path, route, request_id };
            report::refused(&worker.gateway, &refused);
        }
        let Refusal { status, message } = refusal;
        let mut response = fail(kind_of(status), message);
        // Whatever follows on this connection cannot be trusted to begin where it seems to.
        if status == StatusCode::BAD_REQUEST {
            close_after(&mut response);
        }
        return response;
    }
    match (&head.method, &*path) {
        // Load balancers ask with either method; a HEAD's answer goes out without its body.
        (&Method::GET | &Method::HEAD, "/health") => {
            return answer::with(StatusCode::OK, Default::default(), ClientBody::empty());
        }
        (&Method::GET | &Method::HEAD, "/ready") => {
            let (status, body) = status::ready(&live, worker.gateway.now());
            return answer::json(status, body);
        }
        _ => {}
    }
    let caller = match live.callers.who(&head.headers) {
        Ok(caller) => caller,
        Err(unauthorized) => {
            let mut response = fail(OwnErrorKind::InvalidApiKey, unauthorized.message());
            let challenge = HeaderValue::from_static(unauthorized.challenge());
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            return response;
        }
    };
    if is_mcp {
        if passed(&head.headers, &worker.gateway.mark).is_none() {
            return fail(
                OwnErrorKind::LoopDetected,
                "this request has been here before: a server's url leads back to this gateway",
            );
        }
        let limit = live.file.limits.mcp_body.min(live.file.limits.body).0;
        let (request, caller) = ((head.method, &head.headers), Arc::clone(&caller.name));
        let mut response = ingress.mcp.answer(request, body, caller, limit).await;
        answer::name(&mut response, &id);
        return response;
    }
    if let Err(refused) = check_operation(&live, &head.method, &path, head.uri.query()) {
        let mut response = fail(refused.kind, refused.message);
        let allow = refused.allow.map(|it| (header::ALLOW, HeaderValue::from_static(it)));
        response.headers_mut().extend(allow);
        return response;
    }
    if head.method == Method::GET {
        let gateway = &worker.gateway;
        return match status::get(&live, &gateway.clock, &path, &head.headers, &caller) {
            Some((status, body)) => answer::json(status, body),
            None => fail(OwnErrorKind::NotFound, "there is nothing at this path"),
        };
    }
    let refuse = |kind: OwnErrorKind, message: &str| {
        refused(worker, &RefusedRequest { id: &id, path: &path, caller: &caller.name, kind });
        fail(kind, message)
    };
    let Some(marks) = passed(&head.headers, &worker.gateway.mark) else {
        return refuse(
            OwnErrorKind::LoopDetected,
            "this request has been here before: a provider's url leads back to this gateway",
        );
    };
    let limit = live.file.limits.body;
    let body = match read_body(&head.headers, body, limit.0).await {
        Ok(body) => body,
        Err(refusal) if refusal == TOO_LARGE => {
            return refuse(OwnErrorKind::BodyTooLarge, &too_large(&head.headers, limit));
        }
        Err(Refusal { status, message }) => return refuse(kind_of(status), message),
    };
    let query = head.uri.query().map(str::to_owned);
    let inbound = Inbound { id, path, query, headers: head.headers, passed: marks, body, caller };
    forward(worker, &live, inbound).await
}

/// Why there is nothing to do at a path.
struct RefusedOperation {
    kind: OwnErrorKind,
    message: &'static str,
    /// The method that the path takes instead.
    allow: Option<&'static str>,
}

/// Whether a path is one of the gateway's own or one that may be forwarded, with this method.
fn check_operation(
    live: &Live,
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> Result<(), RefusedOperation> {
    let refuse = |kind, message, allow| Err(RefusedOperation { kind, message, allow });
    let operation = Operation::of_path(path);
    // Before the models that can be asked about: the paths of both begin alike.
    if operation == Some(Operation::Gemini) && method == Method::POST {
        let Some(call) = GeminiCall::of_path(path) else {
            return refuse(OwnErrorKind::NotImplemented, GEMINI, None);
        };
        let wants_events = query.is_some_and(|query| query.split('&').any(|it| it == "alt=sse"));
        if call.method == GeminiMethod::StreamGenerateContent && !wants_events {
            return refuse(OwnErrorKind::InvalidRequest, GEMINI_STREAM, None);
        }
        return Ok(());
    }
    if status::is_path(path) {
        let message = "this path takes GET only";
        return match *method {
            Method::GET => Ok(()),
            _ => refuse(OwnErrorKind::MethodNotAllowed, message, Some("GET")),
        };
    }
    match operation {
        None => refuse(OwnErrorKind::NotFound, "there is nothing at this path", None),
        Some(Operation::Unlisted) if !live.serves_unlisted() => {
            refuse(OwnErrorKind::NotFound, UNLISTED, None)
        }
        Some(_) if method == Method::POST => Ok(()),
        Some(_) => {
            let message = "this path takes POST only";
            refuse(OwnErrorKind::MethodNotAllowed, message, Some("POST"))
        }
    }
}

/// Makes a response the last one of its connection.
fn close_after(response: &mut Response<ClientBody>) {
    let close = http::HeaderValue::from_static("close");
    response.headers_mut().insert(http::header::CONNECTION, close);
}

/// What a client with too large a body is told: how large it is, if its head said so, and what the
/// operator allows.
fn too_large(headers: &HeaderMap, limit: ByteSize) -> String {
    let told = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let told: Option<u64> = told.and_then(|digits| digits.parse().ok());
    let size = match told.filter(|told| *told > limit.0) {
        Some(told) => format!("has {told} bytes"),
        None => "is larger than that".to_owned(),
    };
    format!(
        "a request may have {} bytes (`limits.body: {limit}`), and this one {size}: send less, for \
         example smaller images, or raise the setting",
        limit.0
    )
}

fn kind_of(status: StatusCode) -> OwnErrorKind {
    match status {
        StatusCode::FORBIDDEN => OwnErrorKind::PermissionDenied,
        StatusCode::NOT_FOUND => OwnErrorKind::NotFound,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => OwnErrorKind::UnsupportedMediaType,
        StatusCode::REQUEST_TIMEOUT => OwnErrorKind::Timeout,
        _ => OwnErrorKind::InvalidRequest,
    }
}
