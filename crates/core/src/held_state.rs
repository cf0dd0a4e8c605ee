//! State of a conversation that one provider keeps and no other can read.
//!
//! A request may refer to what it does not bring along: an earlier response, a conversation, an
//! uploaded file, cached content. Only the provider that has it can serve such a request. It may
//! also bring reasoning that its provider has sealed: others can serve it, without that reasoning.
//!
//! Which provider holds the state is found out when a request begins (`holder.rs`); which targets
//! that leaves is decided by [`crate::route::Needs`] like everything else a request needs.

use serde::{Deserialize, Serialize};

use crate::settings::Protocol;

/// A kind of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateKind {
    /// An earlier response (`previous_response_id`).
    PreviousResponse,
    /// A conversation that the provider keeps (`conversation`).
    Conversation,
    /// Items of earlier responses, named by their ids (`item_reference`).
    StoredItem,
    /// A thread of messages (`thread`), continued by the id of its last answer.
    Thread,
    /// A file that was uploaded to the provider.
    File,
    /// Content that the provider has cached (`cachedContent`).
    CachedContent,
    /// Reasoning that only its provider can read: encrypted, or signed.
    SealedReasoning,
}

impl StateKind {
    /// Whether the request means nothing without it. Sealed reasoning can be left out.
    #[must_use]
    pub const fn is_required(self) -> bool {
        !matches!(self, Self::SealedReasoning)
    }

    /// Whether it exists in one format of the provider's only, so that a request that names it
    /// cannot be converted, not even to another format of the same provider's.
    pub(crate) const fn is_of_one_format(self) -> bool {
        matches!(
            self,
            Self::PreviousResponse | Self::Conversation | Self::StoredItem | Self::Thread
        )
    }

    /// What a request refers to, as a phrase.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::PreviousResponse => "the response that `previous_response_id` names",
            Self::Conversation => "the conversation that `conversation` names",
            Self::StoredItem => "items of earlier responses by their ids",
            Self::Thread => "the thread that `thread.previous_message_id` names",
            Self::File => "an uploaded file",
            Self::CachedContent => "the content that `cachedContent` names",
            Self::SealedReasoning => "reasoning that only its provider can read",
        }
    }
}

/// Who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A provider, by its place in the settings.
    Endpoint(u32),
    /// A provider that the settings no longer have.
    Gone,
}

/// State that a request refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldState {
    /// What it is.
    pub kind: StateKind,
    /// Whose protocol it belongs to; `None` where any provider may have it.
    pub protocol: Option<Protocol>,
    /// Who holds it, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

impl HeldState {
    /// State of this kind, held by nobody knows whom.
    #[must_use]
    pub const fn new(kind: StateKind, protocol: Option<Protocol>) -> Self {
        Self { kind, protocol, holder: None }
    }
}
