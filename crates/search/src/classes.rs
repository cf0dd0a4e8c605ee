//! Classes of actions: what verbs stand for, as bits of a set.

/// Classes, as a set of bits.
pub(crate) type Classes = u32;

pub(crate) const GET: Classes = 1;
pub(crate) const LIST: Classes = 1 << 1;
pub(crate) const SEARCH: Classes = 1 << 2;
pub(crate) const COUNT: Classes = 1 << 3;
pub(crate) const JUDGE: Classes = 1 << 4;
pub(crate) const CAPTURE: Classes = 1 << 5;
pub(crate) const CONVERT: Classes = 1 << 6;
pub(crate) const CREATE: Classes = 1 << 7;
pub(crate) const UPDATE: Classes = 1 << 8;
pub(crate) const DELETE: Classes = 1 << 9;
pub(crate) const SEND: Classes = 1 << 10;
pub(crate) const RUN: Classes = 1 << 11;
pub(crate) const STOP: Classes = 1 << 12;
pub(crate) const RESTORE: Classes = 1 << 13;
pub(crate) const MOVE: Classes = 1 << 14;
pub(crate) const COPY: Classes = 1 << 15;
pub(crate) const CLOSE: Classes = 1 << 16;
pub(crate) const PUBLISH: Classes = 1 << 17;
pub(crate) const PLAY: Classes = 1 << 18;
pub(crate) const COMMIT: Classes = 1 << 19;
pub(crate) const STAGE: Classes = 1 << 20;
pub(crate) const MERGE: Classes = 1 << 21;
pub(crate) const NAVIGATE: Classes = 1 << 22;
pub(crate) const TYPE: Classes = 1 << 23;
pub(crate) const UPLOAD: Classes = 1 << 24;
pub(crate) const SCHEDULE: Classes = 1 << 25;
pub(crate) const PAY: Classes = 1 << 26;
pub(crate) const ASSIGN: Classes = 1 << 27;
pub(crate) const COMMENT: Classes = 1 << 28;
pub(crate) const CONNECT: Classes = 1 << 29;
pub(crate) const COMPARE: Classes = 1 << 30;
