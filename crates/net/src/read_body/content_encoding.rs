//! Bodies that a client compressed: decompressed here, because what is forwarded is read first.
//!
//! Rules kept here:
//! - `gzip`, `deflate` and `zstd`, one at a time; any other coding, or one upon another, is 415
//!   (S26).
//! - The limit of a body holds for what it is decompressed to. Decompression stops there, however
//!   little was sent (S46), and what the decompressor keeps is bounded by the same limit.
//! - Between two chunks other connections of the thread get their turn.

use std::io::Read;

use bytes::Bytes;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, StatusCode, header};

use super::{Refusal, TOO_LARGE};

/// How much is decompressed at a time: a fraction of a millisecond's work.
const CHUNK: usize = 64 * 1024;
/// The window that every zstd decompressor should take (RFC 8878, 3.1.1.1.2): 8 MiB.
const ZSTD_WINDOW_LOG_MIN: u32 = 23;
/// The largest window of zstd without `--long`: 128 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentEncoding {
    Identity,
    Gzip,
    Deflate,
    Zstd,
}

impl ContentEncoding {
    /// What the headers say.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        const NOT_TAKEN: Refusal = Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send the body without content-encoding, or with one of gzip, deflate and zstd",
        );
        let mut found = Self::Identity;
        for value in headers.get_all(header::CONTENT_ENCODING) {
            for coding in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                let coding = match coding.to_ascii_lowercase().as_slice() {
                    b"" | b"identity" => continue,
                    b"gzip" | b"x-gzip" => Self::Gzip,
                    b"deflate" => Self::Deflate,
                    b"zstd" => Self::Zstd,
                    _ => return Err(NOT_TAKEN),
                };
                if found != Self::Identity {
                    return Err(NOT_TAKEN);
                }
                found = coding;
            }
        }
        Ok(found)
    }

    /// The body without it, at most `limit` bytes.
    pub(super) async fn removed_from(self, body: Bytes, limit: u64) -> Result<Bytes, Refusal> {
        const BROKEN: Refusal =
            Refusal::new(StatusCode::BAD_REQUEST, "the body is not what its content-encoding says");
        let mut reader: Box<dyn Read + '_> = match self {
            Self::Identity => return Ok(body),
            Self::Gzip => Box::new(MultiGzDecoder::new(&body[..])),
            Self::Deflate if is_zlib(&body) => Box::new(ZlibDecoder::new(&body[..])),
            // Some clients send the bare format, which is not what HTTP calls `deflate`.
            Self::Deflate => Box::new(DeflateDecoder::new(&body[..])),
            Self::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(&body[..]).map_err(|_| BROKEN)?;
                decoder.window_log_max(window_log(limit)).map_err(|_| BROKEN)?;
                Box::new(decoder)
            }
        };
        let mut whole = Vec::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            let len = reader.read(&mut chunk).map_err(|_| BROKEN)?;
            if len == 0 {
                break;
            }
            if (whole.len() + len) as u64 > limit {
                return Err(TOO_LARGE);
            }
            whole.extend_from_slice(&chunk[..len]);
            tokio::task::yield_now().await;
        }
        Ok(whole.into())
    }
}

/// Whether bytes begin like the zlib format (RFC 1950, 2.2).
fn is_zlib(body: &[u8]) -> bool {
    let Some(&[method, flags]) = body.first_chunk::<2>() else { return false };
    method & 0x0f == 8 && u16::from_be_bytes([method, flags]) % 31 == 0
}

/// The largest window that a body within the limit needs.
fn window_log(limit: u64) -> u32 {
    let needed = u64::BITS - limit.leading_zeros();
    needed.clamp(ZSTD_WINDOW_LOG_MIN, ZSTD_WINDOW_LOG_MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::HeaderValue;

    use super::*;

    fn said(values: &[&'static str]) -> Result<ContentEncoding, u16> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(value));
        }
        ContentEncoding::of(&headers).map_err(|it| it.status.as_u16())
    }

    #[test]
    fn s26_one_known_coding_is_taken_and_nothing_else() {
        assert_eq!(said(&[]), Ok(ContentEncoding::Identity));
        assert_eq!(said(&["identity"]), Ok(ContentEncoding::Identity));
        assert_eq!(said(&["GZIP"]), Ok(ContentEncoding::Gzip));
        assert_eq!(said(&["identity, deflate"]), Ok(ContentEncoding::Deflate));
        assert_eq!(said(&["zstd"]), Ok(ContentEncoding::Zstd));
        for values in [&["gzip, gzip"][..], &["gzip", "zstd"], &["br"], &["gzip;q=1"], &["x"]] {
            assert_eq!(said(values), Err(415), "{values:?}");
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    fn bare(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    fn zstd_of(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 3).expect("memory takes it")
    }

    async fn decoded(coding: ContentEncoding, body: &[u8], limit: u64) -> Result<Vec<u8>, u16> {
        let found = coding.removed_from(Bytes::copy_from_slice(body), limit).await;
        found.map(|bytes| bytes.to_vec()).map_err(|it| it.status.as_u16())
    }

    type Case = (ContentEncoding, fn(&[u8]) -> Vec<u8>);
    const CASES: [Case; 4] = [
        (ContentEncoding::Gzip, gzip),
        (ContentEncoding::Deflate, zlib),
        (ContentEncoding::Deflate, bare),
        (ContentEncoding::Zstd, zstd_of),
    ];

    #[tokio::test]
    async fn a_body_comes_out_as_it_was() {
        let text = "good morning, ".repeat(20_000).into_bytes();
        for (coding, encode) in CASES {
            assert_eq!(decoded(coding, &encode(&text), 1 << 20).await, Ok(text.clone()));
            let limit = text.len() as u64;
            assert_eq!(decoded(coding, &encode(&text), limit).await, Ok(text.clone()));
            assert_eq!(decoded(coding, &encode(&text), limit - 1).await, Err(413), "{coding:?}");
        }
    }

    #[tokio::test]
    async fn s46_a_bomb_stops_at_the_limit() {
        let zeros = vec![0; 64 << 20];
        for (coding, encode) in CASES {
            let bomb = encode(&zeros);
            assert!(bomb.len() < zeros.len() / 500, "{coding:?} {}", bomb.len());
            assert_eq!(decoded(coding, &bomb, 1 << 20).await, Err(413), "{coding:?}");
        }
    }

    #[tokio::test]
    async fn what_is_not_compressed_as_it_says_is_refused() {
        for coding in [ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Zstd] {
            assert_eq!(
                decoded(coding, b"{\"model\":\"r\"}", 1 << 20).await,
                Err(400),
                "{coding:?}"
            );
        }
        for (coding, encode) in [(ContentEncoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>), CASES[3]] {
            let whole = encode(b"good morning");
            assert_eq!(decoded(coding, &whole[..whole.len() - 1], 1 << 20).await, Err(400));
        }
    }

    #[tokio::test]
    async fn s46_a_zstd_window_that_no_body_needs_is_refused() {
        // Magic number, a descriptor without content size, a window of 2^37 bytes.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 27 << 3, 0x01, 0x00, 0x00];
        assert_eq!(decoded(ContentEncoding::Zstd, &frame, 32 << 20).await, Err(400));
    }
}
