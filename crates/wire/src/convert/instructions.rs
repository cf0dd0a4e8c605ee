//! What instructions may consist of: text.
//!
//! OpenAI takes images and files among its instructions, and no other vendor does; its own
//! Responses API has its instructions as one text, too. What is no text moves to the user's turn
//! that follows, with a note.

use super::notes::Notes;
use super::part::{Content, Part};
use super::request::{GenerationRequest, Message, Role};

/// Moves what is no text out of the instructions.
pub(super) fn fit(request: &mut GenerationRequest, notes: &mut Notes) {
    let mut at = 0;
    let mut moved = take_other(&mut request.system);
    // The system prompt stands before the first message, so what it had goes before that too.
    loop {
        if !moved.is_empty() {
            notes.rewritten("system", "images and files of an instruction move to the user's turn");
            give(request, at, std::mem::take(&mut moved));
        }
        let is_instruction = |message: &Message| message.role == Role::System;
        let next = request.messages.iter().skip(at).position(is_instruction);
        let Some(offset) = next else { break };
        at += offset + 1;
        moved = take_other(&mut request.messages[at - 1].parts);
    }
}

/// Takes the parts that are no text.
fn take_other(parts: &mut Vec<Part>) -> Vec<Part> {
    parts.extract_if(.., |part| !matches!(part.content, Content::Text(_))).collect()
}

/// Puts parts at the beginning of the user's turn that stands there, or before what stands there.
fn give(request: &mut GenerationRequest, at: usize, parts: Vec<Part>) {
    match request.messages.get_mut(at) {
        Some(message) if message.role == Role::User => {
            message.parts.splice(0..0, parts);
        }
        _ => request.messages.insert(at, Message { role: Role::User, parts }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::part::MediaSource;

    fn image(id: &str) -> Part {
        let source = MediaSource::Url { url: id.to_owned(), media_type: None };
        Part::new(Content::Image { source, detail: None })
    }

    #[test]
    fn images_move_behind_the_instruction_that_had_them() {
        let message = |role, parts| Message { role, parts };
        let mut request = GenerationRequest {
            system: vec![Part::text("a"), image("1")],
            messages: vec![
                message(Role::Assistant, vec![Part::text("b")]),
                message(Role::System, vec![image("2"), Part::text("c")]),
                message(Role::User, vec![Part::text("d")]),
            ],
            ..GenerationRequest::default()
        };
        let mut notes = Notes::default();
        fit(&mut request, &mut notes);
        assert_eq!(request.system, [Part::text("a")]);
        let expected = [
            message(Role::User, vec![image("1")]),
            message(Role::Assistant, vec![Part::text("b")]),
            message(Role::System, vec![Part::text("c")]),
            message(Role::User, vec![image("2"), Part::text("d")]),
        ];
        assert_eq!(request.messages, expected);
        assert_eq!(notes.as_slice().len(), 1);
    }
}
