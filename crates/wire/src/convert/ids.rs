//! Ids of tool calls that a target would refuse.
//!
//! An id of the history was given by whoever answered then, and vendors differ in how long one may
//! be: 40 letters in Chat Completions, 64 in Responses. One that is longer is cut and gets a mark
//! of the whole at its end, at the call and at its result alike. The client never sees it: the ids
//! of new calls are the target's own, or made here ([`CallIds`]) where it gives none: Gemini may,
//! and some servers behind Chat Completions do.

use super::part::Content;
use super::request::GenerationRequest;
use crate::dialect::Dialect;

/// Shortens the ids of calls where the target wants it.
pub(super) fn fit(request: &mut GenerationRequest, target: Dialect) {
    let most = match target {
        Dialect::OpenAiChat => 40,
        Dialect::OpenAiResponses => 64,
        _ => return,
    };
    for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
        let id = match &mut part.content {
            Content::ToolCall(call) => &mut call.id,
            Content::ToolResult(result) => &mut result.call_id,
            _ => continue,
        };
        if id.len() > most {
            *id = shorter(id, most);
        }
    }
}

fn shorter(id: &str, most: usize) -> String {
    let mut end = most.saturating_sub(17).min(id.len());
    while !id.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}_{:016x}", &id[..end], mark(id.as_bytes()))
}

/// FNV-1a: the same bytes always have the same mark, and others another.
pub(super) fn mark(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |mark, byte| {
        (mark ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Makes ids for calls that have none.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    base: String,
    next: usize,
}

impl CallIds {
    /// For the answer with this id.
    pub(super) fn new(answer: &str) -> Self {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "_-".contains(*letter);
        // Other vendors take letters, digits, `_` and `-`, and not too many of them: with the words
        // around it an id stays within the 40 of Chat Completions.
        Self { base: answer.chars().filter(is_plain).take(30).collect(), next: 0 }
    }

    /// The call's own id, or one for it.
    pub(super) fn id(&mut self, own: String) -> String {
        self.next += 1;
        if own.is_empty() { format!("call_{}_{}", self.base, self.next - 1) } else { own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_id_is_cut_to_one_of_its_own() {
        let long = format!("toolu_{}", "a".repeat(60));
        let other = format!("{long}b");
        for most in [40, 64] {
            assert_eq!(shorter(&long, most).len(), most);
            assert_ne!(shorter(&long, most), shorter(&other, most));
        }
        let odd = "ä".repeat(50);
        assert!(shorter(&odd, 40).len() <= 40);
    }
}
