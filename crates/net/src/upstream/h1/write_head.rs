//! Writing the head of a request, straight into the bytes that are sent.

use bytes::Bytes;
use http::{Method, header, request};

/// Room for the head of a usual request, so that it is written without growing.
const USUAL: usize = 1024;

/// The head of a request whose body has this length; `None` for one that cannot be written.
pub(super) fn request(parts: &request::Parts, body_len: u64) -> Option<Bytes> {
    let mut out = Vec::with_capacity(USUAL);
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    // Only the path and the query: the address of the server is the `host` header's.
    let path = parts.uri.path_and_query()?;
    out.extend_from_slice(path.as_str().as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in &parts.headers {
        // Names and values of these types have neither line breaks nor NUL in them.
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    let may_have_body = !matches!(parts.method, Method::GET | Method::HEAD | Method::DELETE);
    let is_due = body_len > 0 || may_have_body;
    if is_due && !parts.headers.contains_key(header::CONTENT_LENGTH) {
        out.extend_from_slice(format!("content-length: {body_len}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    Some(out.into())
}
