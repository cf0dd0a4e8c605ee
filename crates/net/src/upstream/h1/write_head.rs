//! Writing the head of a request, straight into the bytes that are sent.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header, request, uri::PathAndQuery};

use crate::fields::push_number;

/// Room for the head of a usual request, so that it is written without growing.
const USUAL: usize = 1024;

/// The head of a request whose body has this length; `None` for one that cannot be written.
pub(super) fn request(parts: &request::Parts, body_len: u64) -> Option<Bytes> {
    // Only the path and the query: the address of the server is the `host` header's.
    let path = parts.uri.path_and_query()?;
    let may_have_body = !matches!(parts.method, Method::GET | Method::HEAD | Method::DELETE);
    let is_due = body_len > 0 || may_have_body;
    let is_told = parts.headers.contains_key(header::CONTENT_LENGTH);
    let length = (is_due && !is_told).then_some(body_len);
    Some(written(&parts.method, path, parts.headers.iter(), length))
}

/// A head of these headers, with the length of its body where that is given.
pub(in crate::upstream) fn written<'a>(
    method: &Method,
    path: &PathAndQuery,
    headers: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>,
    length: Option<u64>,
) -> Bytes {
    let mut out = Vec::with_capacity(USUAL);
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(path.as_str().as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in headers {
        // Names and values of these types have neither line breaks nor NUL in them.
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if let Some(length) = length {
        out.extend_from_slice(b"content-length: ");
        push_number(&mut out, length);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.into()
}
