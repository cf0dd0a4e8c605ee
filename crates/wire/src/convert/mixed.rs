//! Fields of one dialect in a request of another.
//!
//! A body that is half of one dialect and half of another is a mistake of the client's. Its own
//! provider would refuse it; a conversion that leaves the foreign half out would answer another
//! question than the one that was asked. So it is refused here too.

use super::fault::RequestFault;
use crate::dialect::Dialect;

use Dialect::{AnthropicMessages, Gemini, OpenAiChat, OpenAiResponses};

/// Fields that say what is asked, and the dialects that have them.
const OWNERS: [(&str, &[Dialect]); 19] = [
    ("messages", &[OpenAiChat, AnthropicMessages]),
    ("max_tokens", &[OpenAiChat, AnthropicMessages]),
    ("max_completion_tokens", &[OpenAiChat]),
    ("stop", &[OpenAiChat]),
    ("response_format", &[OpenAiChat]),
    ("reasoning_effort", &[OpenAiChat]),
    ("functions", &[OpenAiChat]),
    ("system", &[AnthropicMessages]),
    ("stop_sequences", &[AnthropicMessages]),
    ("input", &[OpenAiResponses]),
    ("instructions", &[OpenAiResponses]),
    ("max_output_tokens", &[OpenAiResponses]),
    ("previous_response_id", &[OpenAiResponses]),
    ("contents", &[Gemini]),
    ("systemInstruction", &[Gemini]),
    ("system_instruction", &[Gemini]),
    ("generationConfig", &[Gemini]),
    ("generation_config", &[Gemini]),
    ("toolConfig", &[Gemini]),
];

/// Refuses a body of this dialect that has a field of another.
///
/// # Errors
/// It has one.
pub(super) fn refuse(dialect: Dialect, has: impl Fn(&str) -> bool) -> Result<(), RequestFault> {
    let is_foreign = |row: &&(&str, &[Dialect])| !row.1.contains(&dialect) && has(row.0);
    match OWNERS.iter().find(is_foreign) {
        None => Ok(()),
        Some((field, owners)) => {
            let owner = owners.first().map_or("another dialect", |owner| title(*owner));
            let problem = format!(
                "is a field of {owner}, and this is a request of {}; send it to that API's path",
                title(dialect)
            );
            Err(RequestFault::invalid(*field, problem))
        }
    }
}

const fn title(dialect: Dialect) -> &'static str {
    match dialect {
        AnthropicMessages => "Messages",
        OpenAiResponses => "Responses",
        Gemini => "Gemini",
        _ => "Chat Completions",
    }
}
