//! What happened besides requests: changes of state, what operators did, reloads, refusals.
//!
//! Each is data with words of closed sets and names of the config. A reason that an operator wrote
//! is the only free text; it is cut, and JSON escapes what a terminal could act on.

use std::sync::{Arc, OnceLock};

use tidegate_core::{outcome::OutcomeKind, time::Now};

use crate::decision::Decision;

/// How much of a text that an operator wrote is kept.
pub const REASON_MAX: usize = 500;

/// A change of state, with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitionRecord {
    /// When.
    pub at: Now,
    /// Whose.
    pub backend: Arc<str>,
    /// `backend`, `endpoint` or `key`.
    pub scope: &'static str,
    /// The state before.
    pub from: &'static str,
    /// The state after.
    pub to: &'static str,
    /// Why, as a word.
    pub reason: &'static str,
    /// Why, with the evidence, for people.
    pub detail: String,
    /// When it ends by itself.
    pub until: Option<Now>,
    /// `degraded`, `news` or `detail`.
    pub weight: &'static str,
    /// The breaker's generation from now on.
    pub generation: Option<u64>,
    /// The outcome that tipped it.
    pub evidence: Option<OutcomeKind>,
    /// Its HTTP status.
    pub status: Option<u16>,
    /// The key's name, where it is about a target together with one of its keys.
    pub key: Option<Arc<str>>,
    /// Whether it is about a breaker, and not a window, an exclusion or a switch.
    pub is_breaker: bool,
}

/// What an operator did to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRecord {
    /// When.
    pub at: Now,
    /// `drain`, `hold`, `probe`, `reset` or `resume`.
    pub deed: &'static str,
    /// To which.
    pub backend: Arc<str>,
    /// Why, in the operator's words; cut.
    pub reason: String,
    /// When it ends by itself.
    pub until: Option<Now>,
    /// What a probe brought.
    pub result: Option<&'static str>,
    /// `token` or `cookie`.
    pub by: &'static str,
}

/// A reload of the config, taken or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadRecord {
    /// When.
    pub at: Now,
    /// `signal`, `file` or `api`.
    pub by: &'static str,
    /// Whether the new config serves now.
    pub is_taken: bool,
    /// The config that serves now.
    pub sha: Arc<str>,
    /// The keys that differ from before.
    pub changed: Vec<String>,
    /// Why it was refused: one line each.
    pub problems: Vec<String>,
}

/// A request that was refused for the sake of security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityRecord {
    /// When.
    pub at: Now,
    /// What it was, as a word.
    pub event: &'static str,
    /// The caller's name, where a key was known.
    pub caller: String,
    /// The path, as a class.
    pub path: &'static str,
    /// The route that was asked for.
    pub route: String,
    /// The request.
    pub request_id: String,
    /// How many more of the kind were not told singly before this one.
    pub repeated: u64,
}

/// A route whose requests go elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRecord {
    /// When.
    pub at: Now,
    /// Which route.
    pub route: String,
    /// Where they went before.
    pub from: Vec<String>,
    /// Where they go now.
    pub to: Vec<String>,
}

/// What an event tells of.
#[derive(Clone, Debug)]
pub enum EventBody {
    /// A backend changed state.
    Transition(Arc<TransitionRecord>),
    /// A request that an operator wants to see.
    Decision(u64, Arc<Decision>),
    /// An operator acted.
    Action(Arc<ActionRecord>),
    /// The config was read again.
    Reload(Arc<ReloadRecord>),
    /// A request was refused.
    Security(Arc<SecurityRecord>),
    /// A route's requests go elsewhere.
    Moved(Arc<MoveRecord>),
}

impl EventBody {
    /// The name of the event in the stream.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Transition(_) => "transition",
            Self::Decision(..) => "decision",
            Self::Action(_) => "action",
            Self::Reload(_) => "reload",
            Self::Security(_) => "security",
            Self::Moved(_) => "moved",
        }
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let strings = |list: &[String]| list.iter().map(|it| 24 + it.len()).sum::<usize>();
        match self {
            Self::Transition(it) => size_of::<TransitionRecord>() + it.detail.len(),
            // The decision itself is counted where decisions are kept.
            Self::Decision(..) => 32,
            Self::Action(it) => size_of::<ActionRecord>() + it.reason.len(),
            Self::Reload(it) => {
                size_of::<ReloadRecord>() + strings(&it.changed) + strings(&it.problems)
            }
            Self::Security(it) => {
                size_of::<SecurityRecord>() + it.caller.len() + it.route.len() + it.request_id.len()
            }
            Self::Moved(it) => size_of::<MoveRecord>() + strings(&it.from) + strings(&it.to),
        }
    }
}

/// An event with its place in the stream.
#[derive(Debug)]
pub struct Event {
    /// Its number: each event has one more than the one before.
    pub seq: u64,
    /// When it was recorded.
    pub at: Now,
    /// What it tells of.
    pub body: EventBody,
    /// Its JSON, made for the first reader.
    json: OnceLock<String>,
}

impl Event {
    /// An event.
    #[must_use]
    pub fn new(seq: u64, at: Now, body: EventBody) -> Self {
        Self { seq, at, body, json: OnceLock::new() }
    }

    /// Its JSON, made once.
    pub fn json(&self, make: impl FnOnce(&Self) -> String) -> &str {
        self.json.get_or_init(|| make(self))
    }

    /// Bytes of memory that it takes, about: its JSON is as long as twice its data.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let json = match self.body {
            EventBody::Decision(..) => 1024,
            _ => 512,
        };
        size_of::<Self>() + self.body.bytes() + json
    }
}

/// A text that an operator wrote, as far as a record keeps it.
#[must_use]
pub fn cut_reason(reason: &str) -> String {
    reason[..reason.floor_char_boundary(REASON_MAX)].to_owned()
}
