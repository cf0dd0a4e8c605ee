//! A server's address and headers, worked out once from the config.
//!
//! Rules kept here:
//! - Nothing of a client goes to a server: a request carries the configured headers, those of the
//!   protocol, and the mark that tells loops (S33, S58).
//! - Headers that the protocol or the connection needs cannot be configured: ours win.
//! - A header whose secret is not there makes the server unusable, with words that say which.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use tidegate_config::{file::ServerFile, secret::Environment};
use tidegate_net::{
    passed::PASSED,
    upstream::{Origin, SplicedBody, tls},
};

use crate::transport::MESSAGE_MAX;

/// The session a request belongs to.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The protocol version that was agreed on.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Where a stream is to go on.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Configured headers of these names are left out: they belong to the protocol, or to one
/// connection.
const OURS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
    "x-tidegate-passed",
];

/// Where a server is, and what every request to it carries.
#[derive(Debug)]
pub(crate) struct HttpPlace {
    /// Names the kept connections of calls: a server that moved has others.
    pub(super) connections: Arc<str>,
    /// Names the connections of GET streams, so that those never take one away from calls.
    pub(super) listening: Arc<str>,
    pub(super) place: Origin,
    /// Path and query.
    target: Uri,
    headers: HeaderMap,
    /// The largest message that is taken from the server.
    answer_max: Cell<usize>,
}

/// Why a server of the config cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("server `{server}`: {reason}")]
pub(crate) struct PlaceError {
    server: String,
    reason: String,
}

impl PlaceError {
    /// Why, without the server's name.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }
}

impl HttpPlace {
    /// Works out where a server with a `url` is. `mark` is the gateway's own, for [`PASSED`].
    pub(crate) fn new(
        name: &str,
        file: &ServerFile,
        folder: &Path,
        environment: &dyn Environment,
        mark: &HeaderValue,
    ) -> Result<Self, PlaceError> {
        let fail = |reason: String| PlaceError { server: name.to_owned(), reason };
        let url = file.url.as_deref().ok_or_else(|| fail("it has no url".into()))?;
        let uri: Uri = url.parse().map_err(|_| fail(format!("`{url}` is no url")))?;
        let host = uri.host().ok_or_else(|| fail(format!("`{url}` has no host")))?.to_owned();
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let authority =
            uri.port_u16().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let mut headers = configured(file, folder, environment).map_err(fail)?;
        let authority =
            HeaderValue::try_from(authority).map_err(|_| fail("its host cannot be sent".into()))?;
        headers.insert(header::HOST, authority);
        headers.insert(PASSED, mark.clone());
        // Answers are read on their way, so they must come as they are.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let agent = HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")));
        headers.entry(header::USER_AGENT).or_insert(agent);
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let target = path.parse().map_err(|_| fail(format!("`{path}` cannot be asked for")))?;
        let tls =
            is_tls.then(|| tls(file.ca.as_ref(), folder, environment)).transpose().map_err(fail)?;
        let ca = file.ca.as_ref().map(ToString::to_string).unwrap_or_default();
        let connections = format!("mcp:{name} {url} {ca} {}", file.allow_private);
        Ok(Self {
            listening: format!("{connections} listening").into(),
            connections: connections.into(),
            place: Origin { host, port, allow_private: file.allow_private, tls },
            target,
            headers,
            answer_max: Cell::new(MESSAGE_MAX),
        })
    }

    /// The largest message that is taken from the server.
    pub(crate) fn answer_max(&self) -> usize {
        self.answer_max.get()
    }

    /// Takes over a changed limit; what is being read keeps the old one.
    pub(crate) fn set_answer_max(&self, max: usize) {
        self.answer_max.set(max);
    }

    /// Path and query of the configured url.
    pub(crate) fn target(&self) -> &Uri {
        &self.target
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.place.tls.is_some() { "https" } else { "http" }
    }

    /// Whether a url has the scheme, host and port of the configured one.
    pub(crate) fn is_origin_of(&self, url: &Uri) -> bool {
        let default_port = if self.place.tls.is_some() { 443 } else { 80 };
        let same = |text: Option<&str>, ours: &str| {
            text.is_some_and(|text| text.eq_ignore_ascii_case(ours))
        };
        same(url.scheme_str(), self.scheme())
            && same(url.host(), &self.place.host)
            && url.port_u16().unwrap_or(default_port) == self.place.port
    }

    /// A request without the headers of a session.
    pub(super) fn request(&self, method: Method, body: SplicedBody) -> Request<SplicedBody> {
        let mut request = Request::new(body);
        let accept = match method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
        if method == Method::POST {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        *request.method_mut() = method;
        request
    }
}

fn configured(
    file: &ServerFile,
    folder: &Path,
    environment: &dyn Environment,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (key, value) in &file.headers {
        let name = HeaderName::try_from(key).map_err(|_| format!("`{key}` is no header"))?;
        if OURS.contains(&name.as_str()) {
            continue;
        }
        let secret = value
            .resolve(environment, folder)
            .map_err(|problem| format!("header `{key}`: {problem}"))?;
        let mut value = HeaderValue::try_from(secret.expose())
            .map_err(|_| format!("the value of header `{key}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
