//! From what a provider said to an outcome: the wire crate's table, with this provider's api.

use http::{HeaderMap, StatusCode};
use tidegate_core::outcome::Outcome;
use tidegate_gateway::provider::Target;
use tidegate_wire::classify::{Answer, Api, classify, classify_error};

/// An answer that is no success.
pub(crate) fn of_answer(
    target: &Target,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now_unix_ms: u64,
) -> Outcome {
    let (api, status) = (api(target), status.as_u16());
    classify(&Answer { api, status, headers, body, now_unix_ms })
}

/// An error inside an answer that began as a success.
pub(crate) fn of_event(target: &Target, status: StatusCode, event: &[u8]) -> Outcome {
    let headers = &HeaderMap::new();
    let (api, status) = (api(target), status.as_u16());
    classify_error(&Answer { api, status, headers, body: event, now_unix_ms: 0 })
}

fn api(target: &Target) -> Api {
    use tidegate_config::file::Api as Written;
    match target.provider.api {
        Written::Anthropic => Api::Anthropic,
        Written::Gemini => Api::Gemini,
        Written::Openai | Written::Fake => Api::OpenAi,
    }
}
