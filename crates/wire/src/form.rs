//! What the gateway must know of a form (`multipart/form-data`) before it can choose a target.
//!
//! Files are uploaded as forms, and the model is one of their fields. One pass over the bytes finds
//! it; nothing is copied, and the files are not looked into.
//!
//! Rules:
//! - What two readers could cut differently is refused: anything before the first boundary or after
//!   the last one, a boundary that a line only begins with, folded headers, names with escapes, a
//!   field without a name.
//! - `model` or `stream` given twice is refused, and so is a model that comes as a file.
//! - A form says nothing about tools, images or its length in tokens.
//!
//! Left to others: putting another model into a form ([`crate::splice`]).

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::{self, Finder};
use tidegate_core::route::Needs;

use crate::head::{BodyShape, ModelField, RequestHead};

/// The longest boundary there may be (RFC 2046, 5.1.1).
const BOUNDARY_MAX: usize = 70;

/// What can be wrong with a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormFault {
    /// The content type names no boundary, or not a valid one.
    #[error("the content type names no valid `boundary`")]
    NoBoundary,
    /// The body does not begin with the boundary.
    #[error("the form does not begin with its boundary")]
    NoFirstPart,
    /// A line begins with the boundary and goes on.
    #[error("a line of the form only begins with the boundary")]
    UnclearBoundary,
    /// The last boundary is missing.
    #[error("the form ends without its last boundary")]
    EndsEarly,
    /// Something follows the last boundary.
    #[error("something follows the last boundary of the form")]
    Trailing,
    /// The head of a part cannot be understood.
    #[error("a part of the form has no plain `content-disposition` with a `name`")]
    BadPart,
    /// A field that decides where the request goes is there for the second time.
    #[error("`{0}` is given twice")]
    GivenTwice(&'static str),
    /// The model is a file, or encoded, or not plain text.
    #[error("`model` must be plain text")]
    BadModel,
}

/// The boundary that a content type names, if the content type is a form's.
///
/// # Errors
/// It is a form without a valid boundary, or with two.
pub fn boundary(content_type: &[u8]) -> Option<Result<&[u8], FormFault>> {
    let (kind, parameters) = cut(content_type, b';').unwrap_or((content_type, b""));
    if !kind.trim_ascii().eq_ignore_ascii_case(b"multipart/form-data") {
        return None;
    }
    let mut found = None;
    for (name, value) in Parameters(parameters) {
        if name.eq_ignore_ascii_case(b"boundary") && found.replace(value).is_some() {
            return Some(Err(FormFault::NoBoundary));
        }
    }
    let is_sound = |boundary: &&[u8]| {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
        let ends_well = boundary.last().is_some_and(|byte| *byte != b' ');
        boundary.len() <= BOUNDARY_MAX && boundary.iter().all(is_plain) && ends_well
    };
    Some(found.filter(is_sound).ok_or(FormFault::NoBoundary))
}

impl<'a> RequestHead<'a> {
    /// Reads a whole form with this boundary.
    ///
    /// # Errors
    /// The form cannot be read in exactly one way, or says twice or oddly what must be certain.
    pub fn read_form(body: &'a [u8], boundary: &[u8]) -> Result<Self, FormFault> {
        let mut parts = Parts::new(body, boundary)?;
        let (mut model, mut stream, mut session) = (None, None, None);
        while let Some(part) = parts.next()? {
            let value = &body[part.value.clone()];
            match part.name {
                b"model" => {
                    let field = ModelField { name: text(&part, value)?, span: part.value };
                    if model.replace(field).is_some() {
                        return Err(FormFault::GivenTwice("model"));
                    }
                }
                b"stream" => {
                    let is_on = value.eq_ignore_ascii_case(b"true") || value == b"1";
                    if stream.replace(is_on).is_some() {
                        return Err(FormFault::GivenTwice("stream"));
                    }
                }
                b"user" if !value.is_empty() => session = Some(String::from_utf8_lossy(value)),
                _ => {}
            }
        }
        Ok(Self {
            model,
            is_stream: stream.unwrap_or(false),
            session,
            needs: Needs::default(),
            state_id: None,
            is_threaded: false,
            shape: BodyShape::Form { boundary_len: boundary.len() },
        })
    }
}

/// The name of a model: plain text, or nobody could tell where the request goes.
fn text<'a>(part: &FormPart<'_>, value: &'a [u8]) -> Result<Cow<'a, str>, FormFault> {
    let text = std::str::from_utf8(value).ok().filter(|it| !it.chars().any(char::is_control));
    match text {
        Some(text) if !part.is_file && !part.is_encoded => Ok(text.into()),
        _ => Err(FormFault::BadModel),
    }
}

/// One part of a form.
struct FormPart<'a> {
    name: &'a [u8],
    value: Range<usize>,
    is_file: bool,
    /// Whether a transfer encoding is said to be undone first.
    is_encoded: bool,
}

/// The parts of a form, in order.
struct Parts<'a> {
    body: &'a [u8],
    delimiter: Finder<'static>,
    /// Just past a boundary.
    at: usize,
}

impl<'a> Parts<'a> {
    fn new(body: &'a [u8], boundary: &[u8]) -> Result<Self, FormFault> {
        let delimiter = [b"\r\n--", boundary].concat();
        if !body.starts_with(&delimiter[2..]) {
            return Err(FormFault::NoFirstPart);
        }
        let at = delimiter.len() - 2;
        Ok(Self { body, delimiter: Finder::new(&delimiter).into_owned(), at })
    }

    /// The next part; `None` past the last.
    fn next(&mut self) -> Result<Option<FormPart<'a>>, FormFault> {
        let rest = &self.body[self.at..];
        if let Some(epilogue) = rest.strip_prefix(b"--") {
            let is_over = epilogue.trim_ascii().is_empty();
            return if is_over { Ok(None) } else { Err(FormFault::Trailing) };
        }
        let padding = rest.iter().take_while(|byte| b" \t".contains(byte)).count();
        if rest.len() < padding + 2 {
            return Err(FormFault::EndsEarly);
        }
        if !rest[padding..].starts_with(b"\r\n") {
            return Err(FormFault::UnclearBoundary);
        }
        let start = self.at + padding + 2;
        let end = self.delimiter.find(&self.body[start..]).ok_or(FormFault::EndsEarly)? + start;
        self.at = end + self.delimiter.needle().len();
        let part = &self.body[start..end];
        let head_len = memmem::find(part, b"\r\n\r\n").ok_or(FormFault::BadPart)?;
        FormPart::read(&part[..head_len], start + head_len + 4..end).map(Some)
    }
}

impl<'a> FormPart<'a> {
    fn read(head: &'a [u8], value: Range<usize>) -> Result<Self, FormFault> {
        let mut found = None;
        let mut is_encoded = false;
        for line in head.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let (name, said) = cut(line, b':').ok_or(FormFault::BadPart)?;
            if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
                return Err(FormFault::BadPart);
            }
            is_encoded |= name.eq_ignore_ascii_case(b"content-transfer-encoding");
            let is_disposition = name.eq_ignore_ascii_case(b"content-disposition");
            if is_disposition && found.replace(disposition(said)?).is_some() {
                return Err(FormFault::BadPart);
            }
        }
        let (name, is_file) = found.ok_or(FormFault::BadPart)?;
        Ok(Self { name, value, is_file, is_encoded })
    }
}

/// The name of a field, and whether it is a file.
fn disposition(said: &[u8]) -> Result<(&[u8], bool), FormFault> {
    let (kind, parameters) = cut(said, b';').ok_or(FormFault::BadPart)?;
    let (mut name, mut is_file) = (None, false);
    for (key, value) in Parameters(parameters) {
        match key.to_ascii_lowercase().as_slice() {
            b"name" if name.replace(value).is_some() => return Err(FormFault::BadPart),
            b"name" => {}
            b"name*" => return Err(FormFault::BadPart),
            b"filename" | b"filename*" => is_file = true,
            _ => {}
        }
    }
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\%".contains(byte);
    let is_form_data = kind.trim_ascii().eq_ignore_ascii_case(b"form-data");
    match name {
        Some(name) if is_form_data && !name.is_empty() && name.iter().all(is_plain) => {
            Ok((name, is_file))
        }
        _ => Err(FormFault::BadPart),
    }
}

/// `a=b; c="d"`, one after the other; quotes taken off, escapes left as they are.
struct Parameters<'a>(&'a [u8]);

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_ascii_start();
        let equals = text.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (text[..equals].trim_ascii(), text[equals + 1..].trim_ascii_start());
        let Some(quoted) = value.strip_prefix(b"\"") else {
            let (value, rest) = cut(value, b';').unwrap_or((value, b""));
            self.0 = rest;
            return Some((name, value.trim_ascii()));
        };
        let mut is_escaped = false;
        let end = quoted.iter().position(|byte| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        })?;
        self.0 = cut(&quoted[end..], b';').map_or(&b""[..], |(_, rest)| rest);
        Some((name, &quoted[..end]))
    }
}

fn cut(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, text)?;
    Some((&text[..place], &text[place + 1..]))
}

#[cfg(test)]
mod tests;
