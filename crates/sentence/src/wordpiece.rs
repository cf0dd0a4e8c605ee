//! Texts as the model's word pieces: BERT's uncased WordPiece.
//!
//! A text is brought to lower case, accents are taken off, punctuation and Chinese characters stand
//! alone, and every word becomes the longest pieces that the vocabulary has. The vocabulary is that
//! of `tokenizer.json` beside the model.

use std::collections::HashMap;

use serde_json::Value;

/// Pieces of a text that the model reads, with the two marks around them.
pub(crate) const PIECES_MAX: usize = 128;
/// Letters of a word; a longer one is unknown.
const LETTERS_MAX: usize = 100;

/// The pieces that the model knows.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pieces: HashMap<String, i32>,
    start: i32,
    end: i32,
    unknown: i32,
}

impl Vocabulary {
    /// Reads a `tokenizer.json` of a WordPiece model.
    pub(crate) fn read(text: &[u8]) -> Result<Self, &'static str> {
        let file: Value = serde_json::from_slice(text).map_err(|_| "it is no JSON")?;
        let listed = file["model"]["vocab"].as_object().ok_or("it has no `model.vocab`")?;
        let number = |value: &Value| i32::try_from(value.as_i64()?).ok();
        let pieces: Option<HashMap<String, i32>> =
            listed.iter().map(|(piece, value)| Some((piece.clone(), number(value)?))).collect();
        let pieces = pieces.ok_or("a piece of its vocabulary has no number")?;
        let mark = |name: &str| pieces.get(name).copied();
        let (Some(start), Some(end), Some(unknown)) = (mark("[CLS]"), mark("[SEP]"), mark("[UNK]"))
        else {
            return Err("its vocabulary lacks [CLS], [SEP] or [UNK]");
        };
        Ok(Self { start, end, unknown, pieces })
    }

    /// The pieces of a text, at most [`PIECES_MAX`].
    pub(crate) fn pieces(&self, text: &str) -> Vec<i32> {
        let mut found = vec![self.start];
        for word in words(text) {
            self.add(&word, &mut found);
            if found.len() >= PIECES_MAX {
                break;
            }
        }
        found.truncate(PIECES_MAX - 1);
        found.push(self.end);
        found
    }

    /// The longest pieces of a word; if some part of it has none, the word is unknown.
    fn add(&self, word: &str, found: &mut Vec<i32>) {
        let before = found.len();
        let mut rest = word;
        if word.chars().count() > LETTERS_MAX {
            found.push(self.unknown);
            return;
        }
        while !rest.is_empty() {
            let is_first = rest.len() == word.len();
            let ends = rest.char_indices().map(|(at, letter)| at + letter.len_utf8());
            let longest = ends.rev().find_map(|end| {
                let piece = &rest[..end];
                let known = if is_first {
                    self.pieces.get(piece)
                } else {
                    self.pieces.get(&format!("##{piece}"))
                };
                known.map(|number| (*number, end))
            });
            let Some((number, end)) = longest else {
                found.truncate(before);
                found.push(self.unknown);
                return;
            };
            found.push(number);
            rest = &rest[end..];
        }
    }
}

/// The words of a text, as BERT splits it.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        let stands_alone = is_punctuation(letter) || is_ideograph(letter);
        if (letter.is_whitespace() || letter.is_control() || stands_alone) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if stands_alone {
            words.push(letter.to_string());
        } else if !letter.is_whitespace() && !letter.is_control() {
            word.extend(letter.to_lowercase().filter_map(without_accent));
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn is_punctuation(letter: char) -> bool {
    letter.is_ascii_punctuation()
        || matches!(letter, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}')
        || matches!(letter, '\u{3001}'..='\u{3003}' | '¡' | '§' | '«' | '¶' | '·' | '»' | '¿')
}

fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// A letter without its accent, for the alphabets of western Europe; none for a mark that follows
/// the letter it belongs to.
fn without_accent(letter: char) -> Option<char> {
    Some(match letter {
        '\u{300}'..='\u{36f}' => return None,
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' => 'i',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ō' | 'ŏ' | 'ő' => 'o',
        'ŕ' | 'ŗ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' => 's',
        'ţ' | 'ť' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let pieces =
            ["[UNK]", "[CLS]", "[SEP]", "tide", "##gate", "##s", ",", "high", "cafe", "潮"];
        let listed: serde_json::Map<String, Value> =
            pieces.iter().enumerate().map(|(at, piece)| ((*piece).to_owned(), at.into())).collect();
        let file = serde_json::json!({"model": {"type": "WordPiece", "vocab": listed}});
        Vocabulary::read(file.to_string().as_bytes()).expect("a vocabulary")
    }

    #[test]
    fn words_become_their_longest_pieces_between_the_marks() {
        assert_eq!(vocabulary().pieces("High, Tidegates"), [1, 7, 6, 3, 4, 5, 2]);
        assert_eq!(vocabulary().pieces("Café 潮tide"), [1, 8, 9, 3, 2]);
        assert_eq!(vocabulary().pieces("tidex high"), [1, 0, 7, 2], "a word is known or it is not");
        assert_eq!(vocabulary().pieces(""), [1, 2]);
    }

    #[test]
    fn a_text_of_any_length_fits() {
        let found = vocabulary().pieces(&"high ".repeat(1000));
        assert_eq!((found.len(), found.last()), (PIECES_MAX, Some(&2)));
        assert_eq!(vocabulary().pieces(&"x".repeat(1000)), [1, 0, 2]);
    }

    #[test]
    fn a_file_that_is_no_vocabulary_is_refused() {
        for bad in ["", "{}", r#"{"model":{"vocab":{"a":1}}}"#, r#"{"model":{"vocab":{"a":"b"}}}"#]
        {
            assert!(Vocabulary::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
