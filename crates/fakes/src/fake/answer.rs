//! What a fake says, before any dialect: pieces of text, or of a tool call's arguments.
//!
//! The text names who answered, as which model, and what was heard, so that a test or a person
//! can tell answers apart.

use super::ask::Ask;
use super::step::{MAX_TOKENS, Step};

/// The most of the client's own words that is echoed.
const MAX_ECHO_CHARS: usize = 400;

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Makes its ids differ from those of other answers.
    pub(super) number: u64,
    pub(super) model: String,
    /// The pieces of a stream; together they are the text, or the arguments.
    pub(super) pieces: Vec<String>,
    /// The name of the tool that is called instead of saying something.
    pub(super) tool: Option<String>,
    pub(super) input_tokens: u64,
    pub(super) wants_usage: bool,
}

impl Answer {
    pub(super) fn new(number: u64, name: &str, ask: &Ask, step: &Step) -> Self {
        let pieces = match &ask.tool {
            Some(tool) => in_pieces(&tool.arguments.to_string()),
            None => words(&said(name, ask), step),
        };
        Self {
            number,
            model: ask.model.clone(),
            pieces,
            tool: ask.tool.as_ref().map(|tool| tool.name.clone()),
            input_tokens: ask.input_tokens,
            wants_usage: ask.wants_usage,
        }
    }

    /// All of it.
    pub(super) fn whole(&self) -> String {
        self.pieces.concat()
    }

    pub(super) fn output_tokens(&self) -> u64 {
        self.pieces.len() as u64
    }
}

fn said(name: &str, ask: &Ask) -> String {
    let model = if ask.model.is_empty() { "no model" } else { &ask.model };
    let heard: String = ask.text.chars().take(MAX_ECHO_CHARS).collect();
    match ask.images {
        0 => format!("{name} as {model} heard: {heard}"),
        images => format!("{name} as {model} saw {images} image(s) and heard: {heard}"),
    }
}

/// A word a token; exactly as many as the step says, else enough for its fault to have a place.
fn words(text: &str, step: &Step) -> Vec<String> {
    let mut words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
    let least = step.after.map_or(0, |after| after.saturating_add(1));
    let length = step.tokens.map_or(words.len().max(least as usize), |tokens| tokens as usize);
    let length = length.min(MAX_TOKENS as usize);
    for number in words.len()..length {
        words.push(format!(" t{number}"));
    }
    words.truncate(length);
    words
}

/// Arguments come in pieces that are no words: eight characters each.
fn in_pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(8).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ask::Dialect;
    use super::*;

    #[test]
    fn the_text_names_who_answered_and_what_was_heard() {
        let mut ask = Ask::blank(Dialect::Chat, "small", false);
        ask.text = "good morning".to_owned();
        let answer = Answer::new(0, "ebb", &ask, &Step::ok());
        assert_eq!(answer.whole(), "ebb as small heard: good morning");
        assert_eq!(answer.output_tokens(), 6);
    }

    #[test]
    fn an_answer_has_exactly_the_tokens_asked_for_or_room_for_its_fault() {
        use super::super::step::Act;
        let ask = Ask::blank(Dialect::Chat, "small", false);
        let length = |step: &Step| Answer::new(0, "ebb", &ask, step).pieces.len();
        let exactly = |tokens| Step { tokens: Some(tokens), ..Step::ok() };
        assert_eq!([length(&exactly(0)), length(&exactly(2)), length(&exactly(60))], [0, 2, 60]);
        assert_eq!(length(&Step::after(Act::Cut, 40)), 41);
        assert_eq!(length(&Step::after(Act::Cut, u32::MAX)), MAX_TOKENS as usize);
    }
}
