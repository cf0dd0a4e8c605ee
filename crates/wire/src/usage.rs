//! How many tokens an answer used, as the provider counted them.
//!
//! Metrics want it of every answer, and answers are large, so the object under `usage`, or Gemini's
//! `usageMetadata`, is found by a search for its key, from the end of a body, and only it is read.
//!
//! Rules:
//! - `input` counts every input token, cached ones too; `cached` those read from a cache. Anthropic
//!   counts cached ones apart, so they are added. Gemini counts the results of its own tools and
//!   its thoughts apart, so they are added to the input and to the output.
//! - Counts of a stream only grow, so of several the largest holds.
//! - Inside a string the quotes of the key would be escaped: the model cannot forge a count.
//!   What cannot be read counts nothing.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::{Finder, FinderRev};
use serde::Serialize;

use crate::json::{Fault, Scanner};

static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(KEY));
static USAGE_REV: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(KEY));
const KEY: &[u8] = b"\"usage";

/// How far from its end a body in pieces is searched across the pieces: usage comes last but for
/// the caller's own metadata, which may have 16 KiB.
const TAIL: usize = 32 * 1024;

/// Tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// All input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that a cache saved.
    pub cached: u64,
}

impl Usage {
    /// Reads the usage of a whole body.
    #[must_use]
    pub fn of_body(body: &[u8]) -> Option<Self> {
        USAGE_REV.rfind_iter(body).find_map(|at| read_at(body, at))
    }

    /// Reads the usage of a body that came in pieces.
    #[must_use]
    pub fn of_pieces(pieces: &[Bytes]) -> Option<Self> {
        if let [body] = pieces {
            return Self::of_body(body);
        }
        let mut last = Vec::new();
        let mut len = 0;
        for piece in pieces.iter().rev() {
            if len >= TAIL {
                break;
            }
            len += piece.len();
            last.push(&piece[piece.len().saturating_sub(TAIL)..]);
        }
        last.reverse();
        let in_tail = Self::of_body(&last.concat());
        in_tail.or_else(|| pieces.iter().rev().find_map(|piece| Self::of_body(piece)))
    }

    /// Reads the object of counts that the scanner stands at, and steps over it.
    pub(crate) fn read(scanner: &mut Scanner<'_>) -> Result<Self, Fault> {
        let mut counts = Counts::default();
        counts.read(scanner)?;
        let cached = counts.cached.max(counts.cached_apart);
        let input = counts.input.saturating_add(counts.cached_apart);
        let input = input.saturating_add(counts.written).saturating_add(counts.tool_results);
        Ok(Self { input, output: counts.output.saturating_add(counts.thoughts), cached })
    }

    /// Takes note of the usage in one frame of a stream, if it tells any.
    pub fn see(&mut self, frame: &[u8]) {
        let found = USAGE.find_iter(frame).filter_map(|at| read_at(frame, at));
        for usage in found {
            self.input = self.input.max(usage.input);
            self.output = self.output.max(usage.output);
            self.cached = self.cached.max(usage.cached);
        }
    }
}

/// Reads the object that follows the key at `at`.
fn read_at(text: &[u8], at: usize) -> Option<Usage> {
    let rest = &text[at + KEY.len()..];
    let rest = rest.strip_prefix(b"Metadata").unwrap_or(rest).strip_prefix(b"\"")?;
    let value = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    if value.first() != Some(&b'{') {
        return None;
    }
    Usage::read(&mut Scanner::new(value)).ok()
}

#[derive(Default)]
struct Counts {
    input: u64,
    output: u64,
    /// Cached tokens that are part of the input count.
    cached: u64,
    /// Cached tokens that are not.
    cached_apart: u64,
    /// Tokens written to a cache, not part of the input count either.
    written: u64,
    /// Input tokens of the provider's own tools, not part of the input count.
    tool_results: u64,
    /// Tokens of thinking that are not part of the output count.
    thoughts: u64,
}

impl Counts {
    fn read(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            let slot = match &*key.name() {
                b"prompt_tokens" | b"input_tokens" | b"promptTokenCount" => &mut self.input,
                b"completion_tokens" | b"output_tokens" | b"candidatesTokenCount" => {
                    &mut self.output
                }
                b"cached_tokens" | b"prompt_cache_hit_tokens" | b"cachedContentTokenCount" => {
                    &mut self.cached
                }
                b"toolUsePromptTokenCount" => &mut self.tool_results,
                b"thoughtsTokenCount" => &mut self.thoughts,
                b"cache_read_input_tokens" => &mut self.cached_apart,
                b"cache_creation_input_tokens" => &mut self.written,
                b"prompt_tokens_details" | b"input_tokens_details"
                    if scanner.peek() == Some(b'{') =>
                {
                    self.read(scanner)?;
                    continue;
                }
                _ => {
                    scanner.skip_value()?;
                    continue;
                }
            };
            match scanner.peek() {
                Some(b'0'..=b'9') => *slot = scanner.number()?.parse().unwrap_or(*slot),
                _ => scanner.skip_value()?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, input: u64, output: u64, cached: u64) {
        let expected = Some(Usage { input, output, cached });
        assert_eq!(Usage::of_body(body.as_bytes()), expected, "{body}");
    }

    #[test]
    fn every_dialect_of_usage_is_read() {
        check(
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,
                "prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0}},"x":1}"#,
            9,
            3,
            4,
        );
        check(
            r#"{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2},
                "output_tokens":3,"output_tokens_details":{"reasoning_tokens":1}}}"#,
            9,
            3,
            2,
        );
        check(
            r#"{"usage":{"input_tokens":9,"cache_creation_input_tokens":100,
                "cache_read_input_tokens":1000,"output_tokens":3}}"#,
            1109,
            3,
            1000,
        );
        check(r#"{"usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":5}}"#, 9, 0, 5);
        check(r#"{"usage":{"prompt_tokens":8,"total_tokens":8}}"#, 8, 0, 0);
        check(
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,
                "thoughtsTokenCount":20,"cachedContentTokenCount":4,"toolUsePromptTokenCount":2,
                "totalTokenCount":34,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}}"#,
            11,
            23,
            4,
        );
    }

    #[test]
    fn what_tells_no_usage_counts_nothing() {
        for body in [
            "",
            "{}",
            r#"{"usage":null}"#,
            r#"{"a":"usage"}"#,
            r#"{"usage":{"prompt_tokens":"#,
            r#"{"content":"\"usage\":{\"prompt_tokens\":5}"}"#,
        ] {
            assert_eq!(Usage::of_body(body.as_bytes()), None, "{body}");
        }
        check(r#"{"usage":{"prompt_tokens":-5,"completion_tokens":1e3}}"#, 0, 0, 0);
        check(r#"{"usage":{"prompt_tokens":99999999999999999999999}}"#, 0, 0, 0);
    }

    #[test]
    fn usage_that_spans_pieces_is_read() {
        let body = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
        for cut in 1..body.len() {
            let (left, right) = body.split_at(cut);
            let pieces = [Bytes::copy_from_slice(left.as_bytes()), Bytes::from(right.to_owned())];
            let expected = Some(Usage { input: 9, output: 3, cached: 0 });
            assert_eq!(Usage::of_pieces(&pieces), expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_stream_tells_its_usage_bit_by_bit() {
        let mut usage = Usage::default();
        usage.see(br#"data: {"message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#);
        usage.see(br#"data: {"usage":null}"#);
        usage.see(br#"data: {"type":"message_delta","usage":{"output_tokens":7}}"#);
        assert_eq!(usage, Usage { input: 9, output: 7, cached: 0 });
    }
}
