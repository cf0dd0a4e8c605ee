//! Hints as bytes, inside the seal: fixed widths, big-endian, nothing that could be read two ways.
//!
//! An [`Entry`] is what one replica puts onto the stream at once: a number of its own, when it was
//! written by the store's clock, and hints. What is kept under a key of its own is an entry of one
//! hint.
//!
//! Rules kept here:
//! - A reader takes everything or nothing: a byte too few or too many is no entry.
//! - The first byte is the layout's version. A replica of another version is told from a broken
//!   value, so that it can be named.
//! - A reader trusts nothing: counts and lengths are bounded before anything is made of them.

use tidegate_core::{
    breaker::OpenCause,
    hint::{BreakerOf, Excluded, Fact, Haste, Hint, Lasts, OperatorAction, Stamp},
    mark::MarkReason,
    names::{Fingerprint, PinKey, ReplicaId},
    time::Millis,
};

use crate::{identity::InstanceId, seal::SealedName, session_record::SessionEvent};

/// The layout's version.
const LAYOUT: u8 = 1;

/// More hints than a writer puts into one entry.
pub(crate) const HINTS_MAX: usize = 256;

/// What one replica told at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Who told it.
    pub(crate) writer: ReplicaId,
    /// One more than the entry before it; zero where entries are not numbered.
    pub(crate) number: u64,
    /// When it was written, by the store's clock.
    pub(crate) told_at_ms: u64,
    /// What was told.
    pub(crate) news: Vec<News>,
}

/// One thing that was told, and how long before the entry was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A hint for the core; its age is how long it waited to be written.
    Hint(Hint),
    /// A session changed hands.
    Session(SessionEvent),
}

/// Why bytes are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodecError {
    /// Another version of this program wrote them.
    Version,
    /// They are no entry.
    Form,
}

impl Entry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 96 * self.news.len());
        out.push(LAYOUT);
        put(&mut out, &self.writer.0.to_be_bytes());
        put(&mut out, &self.number.to_be_bytes());
        put(&mut out, &self.told_at_ms.to_be_bytes());
        put(&mut out, &(self.news.len() as u16).to_be_bytes());
        for news in &self.news {
            match news {
                News::Hint(hint) => put_hint(&mut out, hint, self.writer),
                News::Session(event) => put_event(&mut out, event),
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes.split_first() {
            Some((&LAYOUT, rest)) => Bytes(rest).entry().ok_or(CodecError::Form),
            Some(_) => Err(CodecError::Version),
            None => Err(CodecError::Form),
        }
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

fn put_millis(out: &mut Vec<u8>, span: Millis) {
    put(out, &span.0.to_be_bytes());
}

/// The stamp's writer stands only where it is not the entry's.
fn put_hint(out: &mut Vec<u8>, hint: &Hint, writer: ReplicaId) {
    let is_own = hint.stamp.writer == writer;
    out.push(if is_own { 1 } else { 2 });
    if !is_own {
        put(out, &hint.stamp.writer.0.to_be_bytes());
    }
    put_millis(out, hint.age);
    put(out, &hint.stamp.version.to_be_bytes());
    put_fact(out, &hint.fact);
}

fn put_fact(out: &mut Vec<u8>, fact: &Fact) {
    match fact {
        Fact::Window { backend, key, remaining, reason } => {
            out.push(1);
            put(out, &backend.0);
            put(out, &key.0);
            put_millis(out, *remaining);
            out.push(reason_code(*reason));
        }
        Fact::Exclusion { of, remaining, reason } => {
            out.push(2);
            match of {
                Excluded::Key(key) => {
                    out.push(1);
                    put(out, &key.0);
                }
                Excluded::Pair { backend, key } => {
                    out.push(2);
                    put(out, &backend.0);
                    put(out, &key.0);
                }
                Excluded::Model(backend) => {
                    out.push(3);
                    put(out, &backend.0);
                }
            }
            out.push(u8::from(remaining.is_some()));
            put_millis(out, remaining.unwrap_or_default());
            out.push(reason_code(*reason));
        }
        Fact::Action { backend, action, lasts } => {
            out.push(3);
            put(out, &backend.0);
            out.push(match action {
                OperatorAction::Drain => 1,
                OperatorAction::Hold => 2,
            });
            let (code, span) = match lasts {
                Lasts::For(span) => (1, *span),
                Lasts::UntilEnded => (2, Millis::ZERO),
                Lasts::Ended => (3, Millis::ZERO),
            };
            out.push(code);
            put_millis(out, span);
        }
        Fact::Reset { backend } => {
            out.push(4);
            put(out, &backend.0);
        }
        Fact::Opened { of, remaining, cause } => {
            out.push(5);
            let (code, name) = match of {
                BreakerOf::Backend(name) => (1, name),
                BreakerOf::Endpoint(name) => (2, name),
            };
            out.push(code);
            put(out, &name.0);
            put_millis(out, *remaining);
            put_cause(out, cause);
        }
        Fact::Pin { session, backend, key, remaining, stays } => {
            out.push(6);
            put(out, &session.0.to_be_bytes());
            put(out, &backend.0);
            put(out, &key.0);
            put_millis(out, *remaining);
            put_millis(out, *stays);
        }
    }
}

const fn reason_code(reason: MarkReason) -> u8 {
    match reason {
        MarkReason::RateLimited => 1,
        MarkReason::RetryAfter => 2,
        MarkReason::AuthRejected => 3,
        MarkReason::Exhausted => 4,
        MarkReason::ModelGone => 5,
        MarkReason::Manual => 6,
    }
}

fn put_cause(out: &mut Vec<u8>, cause: &OpenCause) {
    let (code, one, other) = match cause {
        OpenCause::ConsecutiveFailures(count) => (1, *count, 0),
        OpenCause::BrokenAnswers(count) => (2, *count, 0),
        OpenCause::FailureRatio { failed, samples } => (3, *failed, *samples),
        OpenCause::TrialFailed => (4, 0, 0),
        OpenCause::ProbeFailed => (5, 0, 0),
        OpenCause::Held => (6, 0, 0),
        OpenCause::Suspected(count) => (7, *count, 0),
    };
    out.push(code);
    put(out, &one.to_be_bytes());
    put(out, &other.to_be_bytes());
}

fn put_event(out: &mut Vec<u8>, event: &SessionEvent) {
    let (code, name, epoch, by) = match event {
        SessionEvent::Claimed { name, epoch, by } => (3, name, epoch, by),
        SessionEvent::Released { name, epoch, by } => (4, name, epoch, by),
    };
    out.push(code);
    out.push(name.0.len() as u8);
    put(out, name.0.as_bytes());
    put(out, &epoch.to_be_bytes());
    put(out, &by.0.to_be_bytes());
}

/// What is left to read.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (head, rest) = self.0.split_first_chunk::<COUNT>()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_be_bytes)
    }

    fn millis(&mut self) -> Option<Millis> {
        self.u64().map(Millis)
    }

    fn name(&mut self) -> Option<Fingerprint> {
        self.take().map(Fingerprint)
    }

    fn entry(mut self) -> Option<Entry> {
        let writer = ReplicaId(self.u128()?);
        let (number, told_at_ms) = (self.u64()?, self.u64()?);
        let count = usize::from(self.take().map(u16::from_be_bytes)?);
        if count > HINTS_MAX {
            return None;
        }
        let mut news = Vec::with_capacity(count);
        for _ in 0..count {
            news.push(self.news(writer)?);
        }
        self.0.is_empty().then_some(Entry { writer, number, told_at_ms, news })
    }

    fn news(&mut self, entry_writer: ReplicaId) -> Option<News> {
        let writer = match self.byte()? {
            1 => entry_writer,
            2 => ReplicaId(self.u128()?),
            code @ (3 | 4) => return self.event(code).map(News::Session),
            _ => return None,
        };
        let age = self.millis()?;
        let stamp = Stamp { version: self.u64()?, writer };
        Some(News::Hint(Hint { age, stamp, fact: self.fact()?, haste: Haste::AtOnce }))
    }

    fn event(&mut self, code: u8) -> Option<SessionEvent> {
        let length = usize::from(self.byte()?);
        let (name, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let is_name = name.iter().all(u8::is_ascii_hexdigit);
        let name = std::str::from_utf8(name).ok().filter(|_| is_name)?;
        let name = SealedName(name.to_owned());
        let (epoch, by) = (self.u64()?, InstanceId(self.u128()?));
        Some(match code {
            3 => SessionEvent::Claimed { name, epoch, by },
            _ => SessionEvent::Released { name, epoch, by },
        })
    }

    fn fact(&mut self) -> Option<Fact> {
        Some(match self.byte()? {
            1 => Fact::Window {
                backend: self.name()?,
                key: self.name()?,
                remaining: self.millis()?,
                reason: self.reason()?,
            },
            2 => {
                let of = match self.byte()? {
                    1 => Excluded::Key(self.name()?),
                    2 => Excluded::Pair { backend: self.name()?, key: self.name()? },
                    3 => Excluded::Model(self.name()?),
                    _ => return None,
                };
                let stands = self.byte()?;
                let span = self.millis()?;
                let remaining = match (stands, span) {
                    (1, span) => Some(span),
                    (0, Millis::ZERO) => None,
                    _ => return None,
                };
                Fact::Exclusion { of, remaining, reason: self.reason()? }
            }
            3 => {
                let backend = self.name()?;
                let action = match self.byte()? {
                    1 => OperatorAction::Drain,
                    2 => OperatorAction::Hold,
                    _ => return None,
                };
                let lasts = match (self.byte()?, self.millis()?) {
                    (1, span) => Lasts::For(span),
                    (2, Millis::ZERO) => Lasts::UntilEnded,
                    (3, Millis::ZERO) => Lasts::Ended,
                    _ => return None,
                };
                Fact::Action { backend, action, lasts }
            }
            4 => Fact::Reset { backend: self.name()? },
            5 => {
                let of = match self.byte()? {
                    1 => BreakerOf::Backend(self.name()?),
                    2 => BreakerOf::Endpoint(self.name()?),
                    _ => return None,
                };
                Fact::Opened { of, remaining: self.millis()?, cause: self.cause()? }
            }
            6 => Fact::Pin {
                session: PinKey(self.u128()?),
                backend: self.name()?,
                key: self.name()?,
                remaining: self.millis()?,
                stays: self.millis()?,
            },
            _ => return None,
        })
    }

    fn reason(&mut self) -> Option<MarkReason> {
        Some(match self.byte()? {
            1 => MarkReason::RateLimited,
            2 => MarkReason::RetryAfter,
            3 => MarkReason::AuthRejected,
            4 => MarkReason::Exhausted,
            5 => MarkReason::ModelGone,
            6 => MarkReason::Manual,
            _ => return None,
        })
    }

    fn cause(&mut self) -> Option<OpenCause> {
        Some(match (self.byte()?, self.u32()?, self.u32()?) {
            (1, count, 0) => OpenCause::ConsecutiveFailures(count),
            (2, count, 0) => OpenCause::BrokenAnswers(count),
            (3, failed, samples) => OpenCause::FailureRatio { failed, samples },
            (4, 0, 0) => OpenCause::TrialFailed,
            (5, 0, 0) => OpenCause::ProbeFailed,
            (6, 0, 0) => OpenCause::Held,
            (7, count, 0) => OpenCause::Suspected(count),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
