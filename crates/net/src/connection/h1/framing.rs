//! Where the body of a request ends, and its bytes without the framing around them.

use bytes::{Bytes, BytesMut};

use super::BodyBroke;
use crate::chunked::{Chunked, Merged, Strictness};

/// How far the body of a request has been read.
#[derive(Debug)]
pub(super) enum RequestFraming {
    /// Nothing more comes.
    Ended,
    /// So many bytes are still to come.
    Length(u64),
    Chunked(Chunked),
    /// Its chunks could not be read. Where they end is not known, so nothing more is.
    Broken,
}

/// What can be taken from the buffer now.
#[derive(Debug)]
pub(super) enum Taken {
    Data(Bytes),
    /// More has to be read.
    More,
    Ended,
}

impl RequestFraming {
    pub(super) fn of_length(length: u64) -> Self {
        if length == 0 { Self::Ended } else { Self::Length(length) }
    }

    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunked::new(Strictness::Strict))
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// How many bytes are still to come, if that was announced.
    pub(super) fn exact_len(&self) -> Option<u64> {
        match self {
            Self::Ended => Some(0),
            Self::Length(left) => Some(*left),
            Self::Chunked(_) | Self::Broken => None,
        }
    }

    /// Takes what is ready off the buffer.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Result<Taken, BodyBroke> {
        match self {
            Self::Ended => Ok(Taken::Ended),
            Self::Broken => Err(BodyBroke),
            _ if buffer.is_empty() => Ok(Taken::More),
            Self::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                *self = Self::of_length(*left - count as u64);
                Ok(Taken::Data(buffer.split_to(count).freeze()))
            }
            Self::Chunked(chunked) => {
                let Ok(Merged { data, is_over }) = chunked.merge(buffer) else {
                    *self = Self::Broken;
                    return Err(BodyBroke);
                };
                if is_over {
                    *self = Self::Ended;
                }
                Ok(match (data.is_empty(), is_over) {
                    (false, _) => Taken::Data(data),
                    (true, true) => Taken::Ended,
                    (true, false) => Taken::More,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_of_chunks_after_a_fault() {
        let mut framing = RequestFraming::chunked();
        let mut buffer = BytesMut::from("3\r\nabcd0\r\n\r\n");
        assert!(framing.take(&mut buffer).is_err());
        // What follows would be sound by itself.
        buffer = BytesMut::from("0\r\n\r\n");
        assert!(framing.take(&mut buffer).is_err());
        assert!(!framing.has_ended());
        assert_eq!(framing.exact_len(), None);
    }

    #[test]
    fn a_body_takes_its_own_bytes_and_none_of_what_follows() {
        for (mut framing, text) in [
            (RequestFraming::of_length(3), "abcGET"),
            (RequestFraming::chunked(), "1\r\na\r\n2\r\nbc\r\n0\r\nt: v\r\n\r\nGET"),
        ] {
            let mut buffer = BytesMut::from(text);
            let taken = framing.take(&mut buffer);
            assert!(matches!(taken, Ok(Taken::Data(data)) if data == "abc"));
            assert!(matches!(framing.take(&mut buffer), Ok(Taken::Ended)));
            assert_eq!(buffer, "GET");
        }
    }
}
