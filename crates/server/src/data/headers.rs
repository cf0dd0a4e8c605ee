//! Which headers cross the gateway.
//!
//! Rules kept here:
//! - Upstream goes what a provider's API knows, from a list; nothing else. So no credential,
//!   cookie, hop-by-hop or forwarding header of a client ever reaches a provider (S10, S13, S21).
//! - Back goes everything but hop-by-hop headers and cookies.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers of a client's request that go upstream as they are.
const UPWARD: &[HeaderName] =
    &[header::CONTENT_TYPE, header::ACCEPT, header::USER_AGENT, header::ACCEPT_LANGUAGE];
/// More of them.
const UPWARD_NAMES: &[&str] =
    &["idempotency-key", "traceparent", "tracestate", "http-referer", "x-title"];
/// And those that begin like this.
const UPWARD_PREFIXES: &[&str] = &["anthropic-", "openai-", "x-stainless-"];

/// Headers that belong to one connection, or that we set ourselves.
static NOT_DOWNWARD: [HeaderName; 13] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::SET_COOKIE,
    header::CONTENT_LENGTH,
    header::ALT_SVC,
    header::STRICT_TRANSPORT_SECURITY,
];

/// What goes upstream of a client's headers.
pub(crate) fn upward(client: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(client.len().min(16) + 4);
    for (name, value) in client {
        let text = name.as_str();
        if UPWARD.contains(name)
            || UPWARD_NAMES.contains(&text)
            || UPWARD_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        {
            headers.append(name.clone(), value.clone());
        }
    }
    // Answers are read on their way through, so they must come as they are.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// What goes back to the client of a provider's headers.
pub(crate) fn downward(mut headers: HeaderMap) -> HeaderMap {
    for name in &NOT_DOWNWARD {
        headers.remove(name);
    }
    headers
}

/// Labels a stream of events as one, whatever the provider called it.
pub(crate) fn label_events(headers: &mut HeaderMap) {
    let label = HeaderValue::from_static("text/event-stream");
    let known = headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
    if !known.is_some_and(|it| it.starts_with(label.as_bytes())) {
        headers.insert(header::CONTENT_TYPE, label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(names: &[&str]) -> HeaderMap {
        names
            .iter()
            .map(|name| {
                let name = HeaderName::try_from(*name).expect("a header");
                (name, HeaderValue::from_static("v"))
            })
            .collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        headers.keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn s21_credentials_cookies_and_hop_by_hop_headers_stay_here() {
        let client = map(&[
            "authorization",
            "x-api-key",
            "api-key",
            "cookie",
            "host",
            "connection",
            "transfer-encoding",
            "x-forwarded-for",
            "x-forwarded-host",
            "content-type",
            "anthropic-version",
            "x-stainless-lang",
        ]);
        let mut sent = names(&upward(&client)).into_iter().map(str::to_owned).collect::<Vec<_>>();
        sent.sort();
        assert_eq!(
            sent,
            ["accept-encoding", "anthropic-version", "content-type", "x-stainless-lang"]
        );
    }

    #[test]
    fn a_provider_sets_no_cookies_and_no_connection_rules_here() {
        let upstream = map(&["set-cookie", "connection", "x-request-id", "retry-after"]);
        let back = downward(upstream);
        let mut back = names(&back);
        back.sort_unstable();
        assert_eq!(back, ["retry-after", "x-request-id"]);
    }
}
