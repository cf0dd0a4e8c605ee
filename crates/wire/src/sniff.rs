//! Whether an answer is a stream of events: by its media type, or by how it begins.
//!
//! Servers label their streams `Text/Event-Stream`, `text/plain`, or not at all. One that is not
//! recognised would be delivered only at its end, and a break in it would look like a good end.

/// What a media type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// A stream of events.
    Events,
    /// JSON of any kind.
    Json,
    /// A web page.
    Html,
    /// Sound, pictures, films: bytes that nobody here reads.
    Binary,
    /// Nothing that helps.
    Other,
}

/// Reads a `content-type`, letter case and parameters aside.
#[must_use]
pub fn media(content_type: Option<&[u8]>) -> Media {
    let text = content_type.unwrap_or_default();
    let essence = text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is = |word: &str| essence.eq_ignore_ascii_case(word.as_bytes());
    let begins = |word: &str| {
        essence.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()))
    };
    let ends = |word: &str| {
        let start = essence.len().saturating_sub(word.len());
        essence[start..].eq_ignore_ascii_case(word.as_bytes())
    };
    if is("text/event-stream") {
        Media::Events
    } else if is("application/json") || ends("+json") {
        Media::Json
    } else if is("text/html") || is("application/xhtml+xml") {
        Media::Html
    } else if begins("audio/") || begins("image/") || begins("video/") {
        Media::Binary
    } else {
        Media::Other
    }
}

/// What the beginning of a body says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Its first line is one of an event stream.
    Events,
    /// It is something else.
    Other,
    /// Too little has come to tell.
    Unknown,
}

const FIRST_LINES: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// Looks at the beginning of a body, after a byte order mark and blank lines.
#[must_use]
pub fn opening(body: &[u8]) -> Opening {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    if body.len() < BOM.len() && BOM.starts_with(body) {
        return Opening::Unknown;
    }
    let text = body.strip_prefix(BOM).unwrap_or(body);
    let first = text.iter().position(|byte| !matches!(byte, b'\n' | b'\r'));
    let line = first.map_or(&[][..], |at| &text[at..]);
    if FIRST_LINES.iter().any(|name| line.starts_with(name)) {
        Opening::Events
    } else if FIRST_LINES.iter().any(|name| name.starts_with(line)) {
        Opening::Unknown
    } else {
        Opening::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_read_whatever_their_case_and_parameters() {
        for (text, expected) in [
            ("text/event-stream", Media::Events),
            ("Text/Event-Stream;charset=utf-8", Media::Events),
            (" TEXT/EVENT-STREAM ; x=y", Media::Events),
            ("text/event-streams", Media::Other),
            ("application/json; charset=utf-8", Media::Json),
            ("application/problem+json", Media::Json),
            ("text/HTML", Media::Html),
            ("audio/mpeg", Media::Binary),
            ("image/png", Media::Binary),
            ("text/plain", Media::Other),
            ("", Media::Other),
        ] {
            assert_eq!(media(Some(text.as_bytes())), expected, "{text}");
        }
        assert_eq!(media(None), Media::Other);
    }

    #[test]
    fn a_stream_is_known_by_its_first_line() {
        for text in ["data: {}", "event: x", "id:1", "retry: 5", ": c", "\u{feff}\r\n\n\ndata:"] {
            assert_eq!(opening(text.as_bytes()), Opening::Events, "{text}");
        }
        for text in ["{\"data\":1}", "<html>", "dato", "data {", "RIFF", " data:", "\u{feff}{"] {
            assert_eq!(opening(text.as_bytes()), Opening::Other, "{text}");
        }
        for text in ["", "\n", "d", "even", "\r\nretr"] {
            assert_eq!(opening(text.as_bytes()), Opening::Unknown, "{text}");
        }
        assert_eq!(opening(b"\xef\xbb"), Opening::Unknown);
    }
}
