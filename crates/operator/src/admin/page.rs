//! The dashboard's files, as the admin listener serves them: `GET /` and everything below `/web/`.
//!
//! The files of `web/` are part of the binary, as they are: what is served is what is read there.
//! While developing, `TIDEGATE_WEB_DIR=web tidegate serve` reads them from disk instead.
//!
//! Rules kept here:
//! - The policy in [`POLICY`] lets the page load scripts, styles and data from this listener only:
//!   no inline script or style, nothing from outside, no frame around it.
//! - The files are the same for everybody and hold nothing of the gateway, so they need no token:
//!   without them nobody could log in. Data is behind `/api/`.
//! - Only the files of the table exist. A path cannot lead out of the folder, also not on disk.

use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use tidegate_config::secret::Environment;
use tidegate_net::client_body::ClientBody;

mod files;
#[cfg(test)]
mod tests;

use self::files::FILES;

/// Names the folder to read the files from, instead of the copies in the binary.
const FOLDER: &str = "TIDEGATE_WEB_DIR";

/// What is below this is a file of the dashboard.
const PREFIX: &str = "/web/";

const INDEX: &str = "index.html";

/// What the page may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Headers of every file.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    // A browser keeps a copy and asks each time whether it is still right.
    (header::CACHE_CONTROL, "no-cache"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// One file of the dashboard.
pub(super) struct WebFile {
    /// From the folder `web`.
    path: &'static str,
    bytes: &'static [u8],
}

/// The tags of the files in the binary, in their order.
static TAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| FILES.iter().map(|file| tag_of(file.bytes)).collect());

/// The page itself. Where reading needs the token it comes with 401, and shows the login.
pub(super) fn index(status: StatusCode, environment: &dyn Environment) -> Response<ClientBody> {
    let file = FILES.iter().position(|file| file.path == INDEX);
    let (body, _) = content(file.expect("a test finds the page in the table"), environment);
    respond(status, INDEX, body)
}

/// The file at a path, if the path is one of the dashboard's.
pub(super) fn asset(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    environment: &dyn Environment,
) -> Option<Response<ClientBody>> {
    let path = path.strip_prefix(PREFIX)?;
    let place = FILES.iter().position(|file| file.path == path);
    let Some(place) = place.filter(|_| *method == Method::GET) else {
        let mut missing = respond(StatusCode::NOT_FOUND, ".txt", Bytes::from_static(b"not found"));
        let no_store = HeaderValue::from_static("no-store");
        missing.headers_mut().insert(header::CACHE_CONTROL, no_store);
        return Some(missing);
    };
    let (body, tag) = content(place, environment);
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == *tag);
    let mut response = if is_known {
        respond(StatusCode::NOT_MODIFIED, path, Bytes::new())
    } else {
        respond(StatusCode::OK, path, body)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Some(response)
}

/// The bytes of a file and their tag.
fn content(place: usize, environment: &dyn Environment) -> (Bytes, String) {
    let file = &FILES[place];
    if let Some(folder) = environment.variable(FOLDER)
        && let Ok(bytes) = std::fs::read(Path::new(&folder).join(file.path))
    {
        let tag = tag_of(&bytes);
        return (Bytes::from(bytes), tag);
    }
    (Bytes::from_static(file.bytes), TAGS[place].clone())
}

/// Half of a SHA-256 digest: enough to tell two versions of a file apart.
fn tag_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

fn respond(status: StatusCode, path: &str, body: Bytes) -> Response<ClientBody> {
    let mut response = Response::new(ClientBody::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(type_of(path)));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn type_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}
