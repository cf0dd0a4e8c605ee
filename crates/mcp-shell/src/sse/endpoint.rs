//! Where messages go: the address that a server names when its stream begins.
//!
//! It is a reference to be read against the configured url, as in a web page: a path, a whole url,
//! or a part of one. Rules kept here:
//! - Scheme, host and port are those of the configured url; anything else is refused. Connections
//!   go to the configured place in any case, so that no other host can ever see a message.
//! - Only a path and a query are left, of at most [`ENDPOINT_MAX`] bytes.

use http::Uri;

use crate::http::HttpPlace;

/// The longest address taken: a path and a query with a session's id are much shorter.
const ENDPOINT_MAX: usize = 8 * 1024;

/// The path and query to post to; none if that is nowhere on this server.
pub(super) fn resolve(place: &HttpPlace, named: &[u8]) -> Option<Uri> {
    let text = std::str::from_utf8(named).ok()?.trim();
    if text.is_empty() || text.len() > ENDPOINT_MAX {
        return None;
    }
    let text = text.split('#').next().unwrap_or_default();
    let base = place.target();
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    let path = if path.starts_with("//") {
        of_url(place, &format!("{}:{path}", place.scheme()))?
    } else if has_scheme(path) {
        of_url(place, path)?
    } else if path.starts_with('/') {
        path.to_owned()
    } else if path.is_empty() {
        base.path().to_owned()
    } else {
        let folder = base.path().rfind('/').map_or("/", |at| &base.path()[..=at]);
        format!("{folder}{path}")
    };
    let path = without_dots(&path);
    let whole = query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
    whole.parse().ok()
}

/// The path of a url, if it is one of this server's.
fn of_url(place: &HttpPlace, url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    place.is_origin_of(&url).then(|| url.path().to_owned())
}

/// Whether a reference names its scheme: a colon before the first slash.
fn has_scheme(path: &str) -> bool {
    path.split('/').next().is_some_and(|first| first.contains(':'))
}

/// The path without steps to itself (`.`) and up (`..`), which never lead above the root.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." => {}
            ".." => drop(kept.pop()),
            part => {
                kept.push(part);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use http::HeaderValue;
    use tidegate_config::{file::ServerFile, secret::FixedEnvironment};

    use super::*;

    fn place(url: &str) -> HttpPlace {
        let file = ServerFile { url: Some(url.to_owned()), ..ServerFile::default() };
        let mark = HeaderValue::from_static("0");
        HttpPlace::new("s", &file, Path::new(""), &FixedEnvironment::default(), &mark)
            .expect("a usable server")
    }

    fn check(named: &str, expected: Option<&str>) {
        let endpoint = resolve(&place("http://Host.example:8080/a/b/sse?k=v"), named.as_bytes());
        assert_eq!(endpoint.map(|it| it.to_string()).as_deref(), expected, "{named}");
    }

    #[test]
    fn an_address_is_read_against_the_configured_url() {
        check("/messages?sessionId=1", Some("/messages?sessionId=1"));
        check(" /messages/?s=a/../b ", Some("/messages/?s=a/../b"));
        check("messages?s=1", Some("/a/b/messages?s=1"));
        check("./m", Some("/a/b/m"));
        check("../m/./n/..", Some("/a/m/"));
        check("../../../../m", Some("/m"));
        check("?s=1", Some("/a/b/sse?s=1"));
        check("/m#part", Some("/m"));
        check("http://host.example:8080/m?s=1", Some("/m?s=1"));
        check("HTTP://HOST.example:8080/m", Some("/m"));
        check("//host.example:8080/m", Some("/m"));
        check("/time/10:30", Some("/time/10:30"));
    }

    #[test]
    fn an_address_of_another_origin_is_none() {
        check("https://host.example:8080/m", None);
        check("http://host.example/m", None);
        check("http://host.example:8081/m", None);
        check("http://evil.example:8080/m", None);
        check("//evil.example/m", None);
        check("http://host.example:8080@evil.example/m", None);
        check("mailto:a@b", None);
        check("http://", None);
        check("", None);
        check(" ", None);
        check("/a b", None);
        check("/a\r\nx: y", None);
        check(&format!("/{}", "a".repeat(ENDPOINT_MAX)), None);
    }

    #[test]
    fn default_ports_need_not_be_written() {
        let place = place("http://h/sse");
        let resolved = resolve(&place, b"http://h:80/m").map(|it| it.to_string());
        assert_eq!(resolved.as_deref(), Some("/m"));
        assert!(resolve(&place, b"http://h:443/m").is_none());
    }

    #[test]
    fn what_is_no_text_is_no_address() {
        assert!(resolve(&place("http://h/sse"), b"/\xff").is_none());
    }
}
