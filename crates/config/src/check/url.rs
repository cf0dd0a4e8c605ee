//! Whether a url can be used as the base of requests.

use http::Uri;

use crate::{diagnostic::quoted, file::MODEL_PLACE};

/// Whether a url may carry a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// It is sent with every request.
    Allowed,
    /// There is another key for it.
    Refused,
}

/// What is wrong with a url, as a lowercase fragment. Never repeats a user name, a password or a
/// query.
pub(super) fn url_problem(text: &str, query: Query) -> Option<String> {
    // The parser drops a fragment silently, so it is looked for in the text.
    if text.contains('#') {
        return Some("a url cannot have a fragment (`#`)".to_owned());
    }
    // The place of a model's name is filled in for every request.
    let uri: Uri = match text.replace(MODEL_PLACE, "model").parse() {
        Ok(uri) => uri,
        Err(_) => return Some(format!("{} is not a url", quoted(text))),
    };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Some(format!("{} does not start with `http://` or `https://`", quoted(text)));
    };
    if !matches!(scheme, "http" | "https") {
        return Some(format!("{} is not `http` or `https`", quoted(scheme)));
    }
    if authority.as_str().contains('@') {
        return Some("a url cannot hold a user name or password: use `key`".to_owned());
    }
    // Host and port are all that is left of the authority; the parser takes any digits for a port.
    let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let port = after_host.strip_prefix(':').map(str::parse::<u16>);
    if authority.host().is_empty() || port.is_some_and(|port| port.is_err()) {
        return Some(format!("{} has no usable host and port", quoted(text)));
    }
    let has_query = query == Query::Refused && uri.query().is_some();
    has_query.then(|| "a url cannot have a query (`?`): use `query`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_accepted() {
        let azure = "https://x.openai.azure.com/openai/deployments/{model}";
        for url in
            ["http://127.0.0.1:11434/v1", "https://api.groq.com/openai/v1", "http://[::1]:1", azure]
        {
            assert_eq!(url_problem(url, Query::Refused), None, "{url}");
        }
    }

    #[test]
    fn a_query_is_accepted_where_it_is_sent() {
        assert_eq!(url_problem("https://x/mcp?team=a&key=b", Query::Allowed), None);
        let said = url_problem("https://u:secret@x/mcp?key=secret", Query::Allowed);
        assert!(said.is_some_and(|said| !said.contains("secret")));
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        let cases = [
            ("", "not a url"),
            ("api.groq.com", "does not start with"),
            ("/v1", "does not start with"),
            ("ftp://x/", "`ftp` is not"),
            ("http://", "not a url"),
            ("http://a b/", "not a url"),
            ("http://u:secret@x/", "user name"),
            ("http://x:99999/", "no usable host"),
            ("http://x:/", "no usable host"),
            ("http://x/?a=b", "query"),
            ("http://x/#a", "fragment"),
        ];
        for (url, expected) in cases {
            let said = url_problem(url, Query::Refused).unwrap_or_default();
            assert!(said.contains(expected), "{url}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
