//! Names of tools that a target would refuse, and back again.
//!
//! | vendor | letters | length |
//! |---|---|---|
//! | OpenAI | letters, digits, `_`, `-` | 64 |
//! | Anthropic | the same | 128 |
//! | Google | also `.` and `:`, none of them nor a digit or `-` first | 64 |
//!
//! A name that does not fit is sent with its refused letters replaced and a mark of the whole name
//! at its end, so that two long names stay two; [`super::context::ReplyContext`] knows the way
//! back.

use std::collections::BTreeMap;

use super::ids::mark;
use super::notes::Notes;
use super::part::Content;
use super::request::{GenerationRequest, ToolChoice};
use crate::dialect::Dialect;

/// Renames tools where the target wants it; what was sent, and the client's own name.
pub(super) fn fit(
    request: &mut GenerationRequest,
    target: Dialect,
    notes: &mut Notes,
) -> Vec<(String, String)> {
    let misfits = request.tools.iter().filter(|tool| !fits(&tool.name, target));
    let renamed: Vec<(String, String)> =
        misfits.map(|tool| (fitting(&tool.name, target), tool.name.clone())).collect();
    if renamed.is_empty() {
        return renamed;
    }
    for (_, own) in &renamed {
        notes.rewritten(own, "the target's dialect does not take this name of a tool");
    }
    let sent: BTreeMap<&str, &str> = renamed.iter().map(|(sent, own)| (&**own, &**sent)).collect();
    let rename = |name: &mut String| {
        if let Some(sent) = sent.get(name.as_str()) {
            *name = (*sent).to_owned();
        }
    };
    request.tools.iter_mut().for_each(|tool| rename(&mut tool.name));
    if let Some(ToolChoice::Named(name)) = &mut request.tool_choice {
        rename(name);
    }
    for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
        match &mut part.content {
            Content::ToolCall(call) => rename(&mut call.name),
            Content::ToolResult(result) => {
                if let Some(name) = &mut result.name {
                    rename(name);
                }
            }
            _ => {}
        }
    }
    renamed
}

const fn most(target: Dialect) -> usize {
    match target {
        Dialect::AnthropicMessages => 128,
        _ => 64,
    }
}

fn is_taken(letter: char, target: Dialect) -> bool {
    let is_googles = matches!(target, Dialect::Gemini) && matches!(letter, '.' | ':');
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') || is_googles
}

fn fits(name: &str, target: Dialect) -> bool {
    let is_begun_well = !matches!(target, Dialect::Gemini)
        || name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    is_begun_well
        && name.len() <= most(target)
        && name.chars().all(|letter| is_taken(letter, target))
}

fn fitting(name: &str, target: Dialect) -> String {
    // The same name always gets the same mark, so a conversation keeps its names.
    let mark = mark(name.as_bytes());
    let letters = name.chars().map(|it| if is_taken(it, target) { it } else { '_' });
    let mut out = String::with_capacity(most(target));
    if matches!(target, Dialect::Gemini) {
        out.push('_');
    }
    out.extend(letters.take(most(target) - 10));
    out.push_str(&format!("_{:08x}", mark as u32));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_gets_a_name_that_does_and_two_stay_two() {
        let long = format!("mcp__{}", "a".repeat(80));
        for target in [Dialect::OpenAiChat, Dialect::Gemini] {
            for name in [&*long, &format!("{long}b"), "a.b c", "ä", "7up!"] {
                let fitted = fitting(name, target);
                assert!(fits(&fitted, target), "{fitted}");
                assert_eq!(fitted, fitting(name, target));
            }
            assert_ne!(fitting(&long, target), fitting(&format!("{long}b"), target));
        }
        assert!(fits(&long, Dialect::AnthropicMessages));
        assert!(fits("a.b", Dialect::Gemini) && !fits("a.b", Dialect::OpenAiResponses));
    }
}
