//! What is refused before anything else is looked at.
//!
//! Rules kept here:
//! - On a loopback listener the `host` must be a loopback name, or the listener's own: a web page
//!   whose name was rebound to 127.0.0.1 still says its own name (S27, S29).
//! - An `origin` must be such a name too, with the listener's own scheme; `null` never is (S28).
//! - A request that two readers could cut differently is refused and the connection closed (S20).
//!   A body in chunks has no other transfer coding.
//! - A path has one spelling: no escapes, no empty or dot segments (S25). Only the name of a model
//!   that is asked about may be escaped, as SDKs do: it is looked up and never followed. One in a
//!   path of Gemini's is unescaped once, before anything looks at the path ([`plain_path`]).

use std::{borrow::Cow, net::SocketAddr};

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use tidegate_net::{query, read_body::Refusal};
use tidegate_text::percent::decoded_name;
use tidegate_wire::{form, gemini, operation::Operation};

/// What follows is a model's name.
pub const MODELS: &str = "/v1/models/";

/// The path that a request asks for. Gemini's paths name the model, and a client may escape in it
/// what routes' names have: slashes and colons. Dots that stand alone are no name: such a path
/// stays escaped, and is refused for that.
pub fn plain_path<'a>(method: &Method, uri: &'a Uri) -> Cow<'a, str> {
    let path = uri.path();
    let is_escaped = method == Method::POST && path.contains('%') && gemini::is_path(path);
    let has_dots = |path: &str| path.split(['/', ':']).any(|part| matches!(part, "." | ".."));
    let plain = if is_escaped { decoded_name(path).filter(|it| !has_dots(it)) } else { None };
    plain.map_or(Cow::Borrowed(path), Cow::Owned)
}

/// Checks everything that does not need the body.
pub fn check(
    scheme: &str,
    listen: SocketAddr,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    check_framing(headers)?;
    if listen.ip().to_canonical().is_loopback() {
        check_host(listen, uri, headers)?;
    }
    check_origin(scheme, listen, headers)?;
    let path = plain_path(method, uri);
    if !names_a_model(method, &path) {
        check_path(&path)?;
    }
    if method == Method::POST {
        check_content_type(&path, headers)?;
    }
    if uri.query().is_some_and(query::has_key) {
        return Err(KEY_IN_QUERY);
    }
    Ok(())
}

const KEY_IN_QUERY: Refusal =
    Refusal::new(StatusCode::BAD_REQUEST, "send the key in a header, never in the query");
const FOREIGN_HOST: Refusal =
    Refusal::new(StatusCode::FORBIDDEN, "this host name is not served here");
const FOREIGN_ORIGIN: Refusal =
    Refusal::new(StatusCode::FORBIDDEN, "requests from this origin are not served here");

/// The word under which a refusal is told to whoever watches for attacks; `None` for a mistake
/// that any client can make.
pub fn event_of(refusal: &Refusal) -> Option<&'static str> {
    let is = |known: &Refusal| known.message == refusal.message;
    if is(&FOREIGN_HOST) {
        Some("bad_host")
    } else if is(&FOREIGN_ORIGIN) {
        Some("bad_origin")
    } else if is(&KEY_IN_QUERY) {
        Some("key_in_query")
    } else {
        (refusal.status == StatusCode::BAD_REQUEST).then_some("bad_framing")
    }
}

/// Bodies are JSON, and forms where files are uploaded. A browser asks nobody before it posts
/// anything but JSON (S30): what keeps other pages' forms out is their `origin`.
fn check_content_type(path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first.filter(|_| second.is_none()) else {
        let is_said_once = second.is_none();
        return if is_said_once { Ok(()) } else { Err(NOT_JSON) };
    };
    let takes_forms = Operation::of_path(path).is_some_and(Operation::takes_forms);
    let is_form = || matches!(form::boundary(value.as_bytes()), Some(Ok(_)));
    if is_json(value) || (takes_forms && is_form()) { Ok(()) } else { Err(NOT_JSON) }
}

const NOT_JSON: Refusal =
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `content-type: application/json`");

/// Whether a body is said to be JSON.
fn is_json(content_type: &HeaderValue) -> bool {
    let kind = content_type.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    let (start, end) = (&b"application/"[..], &b"json"[..]);
    let kind = kind.trim_ascii();
    let begins = kind.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    let below = kind.get(start.len()..).unwrap_or_default();
    begins
        && (below.eq_ignore_ascii_case(end)
            || below.rsplit(|byte| *byte == b'+').next().is_some_and(|suffix| {
                suffix.len() < below.len() && suffix.eq_ignore_ascii_case(end)
            }))
}

fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    // One pass over all of them is cheaper than a search for each.
    let (mut framings, mut has_twin, mut is_coded) = (0, false, false);
    for (name, value) in headers {
        if name == header::CONTENT_LENGTH {
            framings += 1;
        } else if name == header::TRANSFER_ENCODING {
            framings += 1;
            is_coded |= !value.as_bytes().eq_ignore_ascii_case(b"chunked");
        } else if name.as_str().as_bytes().contains(&b'_') {
            has_twin |= headers.contains_key(name.as_str().replace('_', "-"));
        }
    }
    if framings > 1 {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "the length of the body is ambiguous"));
    }
    if is_coded {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "`transfer-encoding` may only be `chunked`",
        ));
    }
    if has_twin {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "a header is there twice, with `_` and with `-`",
        ));
    }
    Ok(())
}

fn check_host(listen: SocketAddr, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let named = uri.authority().map(|authority| authority.as_str());
    let host = named.or_else(|| first.and_then(|value| value.to_str().ok()));
    if second.is_none() && host.is_some_and(|host| is_ours(listen, host)) {
        return Ok(());
    }
    Err(FOREIGN_HOST)
}

/// An origin has the scheme of the listener; browsers write it in lower case.
fn check_origin(scheme: &str, listen: SocketAddr, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or("null");
    let host = origin.split_once("://").filter(|(it, _)| *it == scheme);
    if host.is_some_and(|(_, host)| is_ours(listen, host)) {
        return Ok(());
    }
    Err(FOREIGN_ORIGIN)
}

/// Whether a host, with or without a port, is a loopback name or the listener's own address.
fn is_ours(listen: SocketAddr, host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
        || ["127.0.0.1", "[::1]"].contains(&name)
        || match listen {
            SocketAddr::V4(v4) => name == v4.ip().to_string(),
            SocketAddr::V6(v6) => name == format!("[{}]", v6.ip()),
        }
        || listen.ip().to_canonical().is_ipv4() && name == listen.ip().to_canonical().to_string()
}

fn names_a_model(method: &Method, path: &str) -> bool {
    method == Method::GET && path.starts_with(MODELS)
}

fn check_path(path: &str) -> Result<(), Refusal> {
    if path == "/" || has_one_spelling(path) {
        return Ok(());
    }
    Err(Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
}

/// Whether no segment of a path is empty, `.` or `..`, and no character may be escaped. In one
/// pass: every request comes through here.
fn has_one_spelling(path: &str) -> bool {
    let (mut len, mut dots) = (0, 0);
    for byte in path.strip_prefix('/').unwrap_or(path).bytes().chain([b'/']) {
        match byte {
            b'/' if len == dots && len <= 2 => return false,
            b'/' => (len, dots) = (0, 0),
            b'.' => (len, dots) = (len + 1, dots + 1),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b':' | b'*' | b'@' => len += 1,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(uri: &str, headers: &[(&'static str, &'static str)]) -> Option<u16> {
        let listen = "127.0.0.1:8700".parse().expect("an address");
        let uri: Uri = uri.parse().expect("a uri");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        check("http", listen, &Method::POST, &uri, &map).err().map(|it| it.status.as_u16())
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8700");

    #[test]
    fn s27_only_loopback_names_are_served_on_loopback() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8700"] {
            let header = [("host", host)];
            let header: &[(&'static str, &'static str)] = &header;
            let listen = "127.0.0.1:8700".parse().expect("an address");
            let mut map = HeaderMap::new();
            map.append("host", header[0].1.parse().expect("a value"));
            assert!(
                check("http", listen, &Method::GET, &Uri::from_static("/v1/x"), &map).is_ok(),
                "{host}"
            );
        }
        assert_eq!(refused("/v1/x", &[("host", "evil.test")]), Some(403));
        assert_eq!(refused("/v1/x", &[("host", "127.0.0.1.evil.test")]), Some(403));
        assert_eq!(refused("/v1/x", &[]), Some(403));
        assert_eq!(refused("/v1/x", &[HOST, ("host", "localhost")]), Some(403));
    }

    #[test]
    fn s27_a_mapped_loopback_listener_is_a_loopback_listener() {
        let listen = "[::ffff:127.0.0.1]:8700".parse().expect("an address");
        let answer = |host: &'static str| {
            let map = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
            let checked = check("http", listen, &Method::GET, &Uri::from_static("/v1/x"), &map);
            checked.err().map(|it| it.status.as_u16())
        };
        assert_eq!(answer("evil.test"), Some(403));
        assert_eq!(answer("127.0.0.1:8700"), None);
        assert_eq!(answer("[::ffff:127.0.0.1]:8700"), None);
    }

    #[test]
    fn s28_a_foreign_or_null_origin_is_refused() {
        assert_eq!(refused("/v1/x", &[HOST, ("origin", "http://evil.test")]), Some(403));
        assert_eq!(refused("/v1/x", &[HOST, ("origin", "null")]), Some(403));
        assert_eq!(refused("/v1/x", &[HOST, ("origin", "http://localhost:3000")]), None);
        for origin in ["https://localhost:3000", "file://localhost", "x://127.0.0.1", "localhost"] {
            assert_eq!(refused("/v1/x", &[HOST, ("origin", origin)]), Some(403), "{origin}");
        }
    }

    #[test]
    fn s20_an_ambiguous_length_is_refused() {
        let chunked = ("transfer-encoding", "chunked");
        assert_eq!(refused("/v1/x", &[HOST, ("content-length", "3"), chunked]), Some(400));
        let twice = [HOST, ("content-length", "3"), ("content-length", "4")];
        assert_eq!(refused("/v1/x", &twice), Some(400));
        assert_eq!(refused("/v1/x", &[HOST, chunked, chunked]), Some(400));
        for coding in ["gzip, chunked", "chunked, chunked", "xchunked", "identity", "gzip", ""] {
            let coded = [HOST, ("transfer-encoding", coding)];
            assert_eq!(refused("/v1/x", &coded), Some(400), "{coding}");
        }
        assert_eq!(refused("/v1/x", &[HOST, ("transfer-encoding", "Chunked")]), None);
    }

    #[test]
    fn s25_a_path_has_one_spelling() {
        for path in ["//v1/models", "/v1/%2e%2e/admin", "/v1//x", "/v1/../x", "/v1/x;y", "/v1/x/"] {
            assert_eq!(refused(path, &[HOST]), Some(404), "{path}");
        }
        assert_eq!(refused("/v1/models/ollama/qwen2.5:7b", &[HOST]), None);
        let gemini = |model: &str| refused(&format!("/v1beta/models/{model}:countTokens"), &[HOST]);
        assert_eq!(gemini("ollama%2Fqwen2.5%3a7b"), None);
        for model in ["a%2F%2E%2E%2Fb", "a%252Fb", "a%00b", "a%2", "a%2F%2Fb", "%2e%2e", "a%3Bb"] {
            assert_eq!(gemini(model), Some(404), "{model}");
        }
    }

    #[test]
    fn s25_a_models_name_may_be_escaped_where_it_is_only_looked_up() {
        let listen = "127.0.0.1:8700".parse().expect("an address");
        let headers: HeaderMap =
            [(header::HOST, "localhost".parse().expect("a value"))].into_iter().collect();
        let uri = Uri::from_static("/v1/models/ollama%2Fqwen2.5%3A7b");
        assert!(check("http", listen, &Method::GET, &uri, &headers).is_ok());
        assert!(check("http", listen, &Method::POST, &uri, &headers).is_err());
    }

    #[test]
    fn s30_forms_are_taken_where_files_are_uploaded_and_nowhere_else() {
        let form = ("content-type", "multipart/form-data; boundary=x");
        assert_eq!(refused("/v1/audio/transcriptions", &[HOST, form]), None);
        assert_eq!(refused("/v1/images/edits", &[HOST, form]), None);
        for path in ["/v1/chat/completions", "/v1/moderations", "/v1/files", "/mcp", "/api/reload"]
        {
            assert_eq!(refused(path, &[HOST, form]), Some(415), "{path}");
        }
        let unbounded = ("content-type", "multipart/form-data");
        assert_eq!(refused("/v1/audio/transcriptions", &[HOST, unbounded]), Some(415));
        let json = ("content-type", "application/json");
        assert_eq!(refused("/v1/audio/speech", &[HOST, json]), None);
        assert_eq!(refused("/v1/audio/speech", &[HOST, json, form]), Some(415), "two answers");
    }

    #[test]
    fn s9_a_key_in_the_query_is_refused() {
        assert_eq!(refused("/v1/x?key=abc", &[HOST]), Some(400));
        assert_eq!(refused("/v1/x?beta=true", &[HOST]), None);
    }
}
