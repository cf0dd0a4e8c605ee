//! Something that is not offered because of something else, for `check --connect` and the log.

use std::{fmt, sync::Arc};

use crate::{listing::Kind, raw::shown};

/// One definition that is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What it is.
    pub kind: Kind,
    /// The name it would have, or its uri.
    pub name: Arc<str>,
    /// Whose it is.
    pub server: Arc<str>,
    /// What that server calls it.
    pub own: Arc<str>,
    /// Who offers the name instead; nobody if it is left out for all.
    pub winner: Option<Arc<str>>,
    /// Why.
    pub reason: ConflictReason,
}

/// Why something is not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// Its server has another of this name, which comes first.
    Twice,
    /// With `naming: priority`: a server that comes first has it.
    Shadowed,
    /// With `naming: manual`: another server has it, and no rename settles it.
    Unresolved,
    /// A server that comes first has the uri.
    SameUri,
    /// With `naming: prefix`: the hashes of two long or odd names meet.
    SameDigits,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, server) = (self.kind, &self.server);
        let (name, own) = (shown(&self.name), shown(&self.own));
        let winner = self.winner.as_deref().unwrap_or_default();
        match self.reason {
            ConflictReason::Twice => {
                write!(f, "{kind}: `{server}` has `{name}` twice; the first counts")
            }
            ConflictReason::Shadowed => write!(
                f,
                "{kind}: `{name}` is that of `{winner}`; `{own}` of `{server}` is shadowed until \
                 one of them is renamed"
            ),
            ConflictReason::Unresolved => write!(
                f,
                "{kind}: `{own}` of `{server}` is left out, because another server offers \
                 `{name}` too; rename one of them"
            ),
            ConflictReason::SameUri => {
                write!(f, "{kind}: `{name}` is that of `{winner}`; `{server}` has it too")
            }
            ConflictReason::SameDigits => write!(
                f,
                "{kind}: `{own}` of `{server}` is left out, because `{winner}` has the name \
                 `{name}`; rename one of them"
            ),
        }
    }
}
