//! One frame of an event stream: its bytes as they came, and the fields in them.
//!
//! Fields are read as the standard says: `field: value` with one optional space, the last `event`
//! wins, several `data` lines are joined by line feeds, a line that begins with a colon is a
//! comment. `id` and `retry` are for the client and stay in the raw bytes.
//!
//! Left to others: finding frames ([`crate::sse`]), what an event means ([`crate::dialect`]).

use std::borrow::Cow;

use memchr::memchr2;

/// How much of an event a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// The beginning of one that is too long to be held.
    Start,
    /// A part of one whose beginning was shown. It has no fields of its own.
    Middle,
    /// The rest of one whose beginning was shown. It has no fields of its own.
    End,
    /// The beginning of one that the stream did not finish.
    Cut,
}

/// A frame.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Its bytes, with the blank line that closes it.
    pub raw: &'a [u8],
    /// How much of the event that is.
    pub extent: Extent,
    /// The event's name.
    pub name: Option<&'a [u8]>,
    /// The bytes without a byte order mark.
    text: &'a [u8],
    first_data: Option<&'a [u8]>,
    has_more_data: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl<'a> Frame<'a> {
    /// Reads the fields. Only the first frame of a stream may open with a byte order mark.
    pub(crate) fn parse(raw: &'a [u8], extent: Extent, is_first: bool) -> Self {
        let has_bom = is_first && raw.starts_with(BOM);
        let text = if has_bom { &raw[BOM.len()..] } else { raw };
        let (first_data, has_more_data) = (None, false);
        let mut frame = Self { raw, extent, name: None, text, first_data, has_more_data };
        if matches!(extent, Extent::Middle | Extent::End) {
            return frame;
        }
        for line in lines(text) {
            if let Some(data) = field(line, b"data") {
                frame.has_more_data = frame.first_data.is_some();
                frame.first_data.get_or_insert(data);
            } else if let Some(name) = field(line, b"event") {
                frame.name = Some(name);
            }
        }
        frame
    }

    /// What the event carries, if it stands in one line.
    pub(crate) fn only_data(&self) -> Option<&'a [u8]> {
        self.first_data.filter(|_| !self.has_more_data)
    }

    /// What the event carries; `None` if there is no `data` line, so that it is no event at all.
    #[must_use]
    pub fn data(&self) -> Option<Cow<'a, [u8]>> {
        let first = self.first_data?;
        if !self.has_more_data {
            return Some(Cow::Borrowed(first));
        }
        let all: Vec<&[u8]> = lines(self.text).filter_map(|line| field(line, b"data")).collect();
        Some(Cow::Owned(all.join(&b'\n')))
    }
}

/// The value of a line if it is one of this field.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// The lines of a frame, without their ends. A CRLF may show as an extra empty line, which has no
/// field in it.
fn lines(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, name: Option<&str>, data: Option<&str>) {
        let frame = Frame::parse(raw.as_bytes(), Extent::Whole, true);
        assert_eq!(frame.name, name.map(str::as_bytes), "{raw:?}");
        assert_eq!(frame.data().as_deref(), data.map(str::as_bytes), "{raw:?}");
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        check("event: a\ndata: b\n\n", Some("a"), Some("b"));
        check("event:a\r\ndata:  b\r\n\r\n", Some("a"), Some(" b"));
        check("data: a\rdata: b\rdata\r\r", None, Some("a\nb\n"));
        check("\u{feff}data: a\n\n", None, Some("a"));
        check("\u{feff}data: a\ndata: b\n\n", None, Some("a\nb"));
        check("id: 1\nretry: 5\n: data: a\ndatax: b\n\n", None, None);
        check("event: a\nevent: b\n\n", Some("b"), None);
        check("data: a\ndata: b\ndata: c\n\n", None, Some("a\nb\nc"));
        check("\n", None, None);
    }

    #[test]
    fn a_byte_order_mark_is_one_at_the_start_of_the_stream_only() {
        let later = Frame::parse("\u{feff}data: a\n\n".as_bytes(), Extent::Whole, false);
        assert_eq!(later.data(), None);
    }
}
