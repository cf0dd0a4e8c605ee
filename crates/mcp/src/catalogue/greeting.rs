//! What the gateway says about itself when a client greets it.
//!
//! It answers at once, before any server may have been reached, so it declares everything it can
//! pass on; a list of something that no server has is empty.

use super::Catalogue;
use crate::{listing::Listing, raw::shown};

/// The gateway's own capabilities, as text of JSON.
pub const CAPABILITIES: &str = concat!(
    r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"#,
    r#""prompts":{"listChanged":true},"completions":{},"logging":{}}"#,
);

/// Bytes of one server's instructions that are passed on: they are put before every conversation.
pub const INSTRUCTIONS_MAX: usize = 4096;

/// One server's part.
#[derive(Debug)]
pub(super) struct Greeting {
    name: String,
    instructions: Option<String>,
}

impl Greeting {
    pub(super) fn new(name: &str, listing: Option<&Listing>) -> Self {
        let instructions = listing.and_then(|listing| listing.info.instructions.as_deref());
        Self { name: shown(name), instructions: instructions.map(cut) }
    }
}

impl Catalogue {
    /// The instructions of the servers that a session sees, each under its server's name if more
    /// than one server is configured.
    #[must_use]
    pub fn instructions(&self, is_visible: impl Fn(usize) -> bool) -> Option<String> {
        let visible = self.greetings.iter().enumerate().filter(|(server, _)| is_visible(*server));
        let known = visible.filter_map(|(_, greeting)| {
            greeting.instructions.as_ref().map(|text| (greeting.name.as_str(), text.as_str()))
        });
        let parts: Vec<String> = known
            .map(|(name, text)| match self.greetings.len() {
                1 => text.to_owned(),
                _ => format!("# {name}\n\n{text}"),
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

/// A text within the limit, with a mark where it was cut.
fn cut(text: &str) -> String {
    const MARK: &str = "…";
    let text = text.trim();
    if text.len() <= INSTRUCTIONS_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(INSTRUCTIONS_MAX - MARK.len());
    format!("{}{MARK}", &text[..end])
}
