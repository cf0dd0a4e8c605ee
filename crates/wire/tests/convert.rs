//! Requests, answers, errors and streams between OpenAI Chat and Anthropic Messages.

#[path = "convert/properties.rs"]
mod properties;
#[path = "convert/replies.rs"]
mod replies;
#[path = "convert/requests.rs"]
mod requests;
#[path = "convert/streams.rs"]
mod streams;

use serde_json::Value;
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::fault::RequestFault;
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::dialect::Dialect;

const CHAT: Dialect = Dialect::OpenAiChat;
const MESSAGES: Dialect = Dialect::AnthropicMessages;

fn pair(client: Dialect, target: Dialect) -> DialectPair {
    DialectPair::new(client, target).expect("the pair is known")
}

/// A request as the target gets it, and the notes.
fn convert(client: Dialect, model: &str, request: &Value) -> Result<(Value, String), RequestFault> {
    let (target, host) = match client {
        Dialect::AnthropicMessages => (CHAT, "api.openai.com"),
        _ => (MESSAGES, "api.anthropic.com"),
    };
    let profile = TargetProfile { model, host };
    let converted = pair(client, target).request(request.to_string().as_bytes(), &profile, 7)?;
    let notes: Vec<_> = converted.notes.as_slice().iter().map(ToString::to_string).collect();
    Ok((parse(&converted.body), notes.join("\n")))
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("written JSON can be read")
}

fn context() -> ReplyContext {
    ReplyContext { created_unix_s: 7, includes_usage: true, ..ReplyContext::default() }
}
