//! Which headers cross the gateway.
//!
//! Rules kept here:
//! - Upstream goes what a provider's API knows, from a list; nothing else. So no credential,
//!   cookie, hop-by-hop or forwarding header of a client ever reaches a provider (S10, S13, S21).
//! - Back goes what a client of the API uses, from a list; nothing else. So a provider can set no
//!   cookie and no rule of a browser here, and tells nothing of its insides (S61).
//! - What goes back has our own secrets covered (S2).

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tidegate_net::upstream::RequestLines;
use tidegate_wire::mask::Mask;

/// Headers of a client's request that go upstream as they are.
const UPWARD: &[HeaderName] =
    &[header::CONTENT_TYPE, header::ACCEPT, header::USER_AGENT, header::ACCEPT_LANGUAGE];
/// More of them.
const UPWARD_NAMES: &[&str] =
    &["idempotency-key", "traceparent", "tracestate", "http-referer", "x-title"];
/// And those that begin like this.
const UPWARD_PREFIXES: &[&str] = &["anthropic-", "openai-", "x-stainless-"];

/// Headers of a provider's answer that a client gets (docs/routing.md lists them).
const DOWNWARD: &[&str] = &[
    "content-type",
    "content-language",
    "content-disposition",
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-should-retry",
    "request-id",
    "x-request-id",
    "apim-request-id",
    "x-ms-request-id",
    "x-amzn-requestid",
    "x-amzn-errortype",
    "x-goog-request-id",
    "x-generation-id",
    "ratelimit",
    "deprecation",
    "sunset",
];
/// And those that begin like this.
const DOWNWARD_PREFIXES: &[&str] = &["anthropic-", "openai-", "x-ratelimit-", "ratelimit-"];

static ACCEPT_ENCODING: HeaderName = header::ACCEPT_ENCODING;
static IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Adds what goes upstream of a client's headers.
pub(crate) fn upward<'a>(client: &'a HeaderMap, lines: &mut RequestLines<'a>) {
    for (name, value) in client {
        let text = name.as_str();
        if UPWARD.contains(name)
            || UPWARD_NAMES.contains(&text)
            || UPWARD_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        {
            lines.add(name, value);
        }
    }
    // Answers are read on their way through, so they must come as they are.
    lines.set(&ACCEPT_ENCODING, &IDENTITY);
}

/// What goes back to the client of a provider's headers.
pub(crate) fn downward(upstream: &HeaderMap, mask: &Mask) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    for (name, value) in upstream {
        let text = name.as_str();
        if DOWNWARD.contains(&text)
            || DOWNWARD_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        {
            let covered = mask.cover(value.as_bytes());
            let covered = covered.and_then(|it| HeaderValue::try_from(it).ok());
            headers.append(name.clone(), covered.unwrap_or_else(|| value.clone()));
        }
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
    use tidegate_net::upstream::SplicedBody;

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
        let mut lines = RequestLines::post("/".to_owned(), SplicedBody::default()).expect("a path");
        upward(&client, &mut lines);
        let mut sent: Vec<&str> = lines.headers().map(|(name, _)| name.as_str()).collect();
        sent.sort_unstable();
        assert_eq!(
            sent,
            ["accept-encoding", "anthropic-version", "content-type", "x-stainless-lang"]
        );
    }

    #[test]
    fn a_provider_sets_nothing_here_but_what_a_client_of_its_api_uses() {
        let upstream = map(&[
            "set-cookie",
            "connection",
            "server",
            "via",
            "x-powered-by",
            "access-control-allow-origin",
            "strict-transport-security",
            "x-internal-host",
            "content-encoding",
            "content-length",
            "content-type",
            "x-request-id",
            "request-id",
            "retry-after",
            "openai-processing-ms",
            "anthropic-ratelimit-requests-remaining",
            "x-ratelimit-reset-tokens",
        ]);
        let back = downward(&upstream, &Mask::new([]));
        let mut back = names(&back);
        back.sort_unstable();
        let expected = [
            "anthropic-ratelimit-requests-remaining",
            "content-type",
            "openai-processing-ms",
            "request-id",
            "retry-after",
            "x-ratelimit-reset-tokens",
            "x-request-id",
        ];
        assert_eq!(back, expected);
    }

    #[test]
    fn s2_a_secret_in_a_header_is_covered() {
        let value = HeaderValue::from_static("for sk-canary-1234!");
        let upstream = HeaderMap::from_iter([(HeaderName::from_static("x-request-id"), value)]);
        let back = downward(&upstream, &Mask::new([&b"sk-canary-1234"[..]]));
        assert_eq!(back["x-request-id"], "for **************!");
    }
}
