//! What one server offers, as it said so.
//!
//! Rules kept here:
//! - A definition is kept as text. Only what the gateway acts on is read out of it: its key, a
//!   tool's hints, and whether it holds text that people do not see (S40).
//! - A server's list may be wrong, long or endless: a definition that breaks the protocol's schema
//!   is left out, counted and named, and [`Gather`] bounds the rest. One bad tool never costs the
//!   others, nor those of other servers.
//! - Two listings are compared by their text, not by a hash: a server that changes a tool after it
//!   was looked at is told on (S39), and could otherwise look for two texts with one hash.
//!
//! How offers of several servers become one list is in [`crate::catalogue`].

mod fingerprint;
mod gather;
mod hidden;
mod info;
mod valid;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

pub use self::{
    fingerprint::fingerprint,
    gather::{Ask, Gather, ITEMS_MAX, LISTING_MAX, PAGES_MAX, Shortfall},
    hidden::has_hidden_text,
    info::ServerInfo,
    valid::Defect,
};
use crate::raw::Fields;

/// Bytes of a name or a uri: names have 128 at most by the protocol, uris a few hundred.
const KEY_MAX: usize = 8192;

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Templates of resources' uris.
    Templates,
    /// Prompts.
    Prompts,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The method that lists them.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The kind that a method lists.
    #[must_use]
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The notification that says the list has changed.
    #[must_use]
    pub const fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }

    /// The key in a server's capabilities that says it has them.
    #[must_use]
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The field of a page that holds them.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Templates => "resourceTemplates",
            Self::Tools | Self::Resources | Self::Prompts => self.capability(),
        }
    }

    /// The field of a definition that tells it from others.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Templates => "resource templates",
            Self::Tools | Self::Resources | Self::Prompts => self.field(),
        })
    }
}

/// What a tool says about itself. A server may lie: a hint widens what is retried, nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Hints {
    /// It changes nothing.
    #[serde(rename = "readOnlyHint", deserialize_with = "claim")]
    pub read_only: bool,
    /// Calling it twice is like calling it once.
    #[serde(rename = "idempotentHint", deserialize_with = "claim")]
    pub idempotent: bool,
    /// It may destroy something, and says so.
    #[serde(rename = "destructiveHint", deserialize_with = "claim")]
    pub destructive: bool,
}

impl Hints {
    /// Whether a call may be made again when nobody knows whether the first was carried out.
    #[must_use]
    pub const fn may_replay(self) -> bool {
        self.read_only || self.idempotent
    }
}

/// A hint that is not `true` is none, whatever it is.
fn claim<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Claim {
        Said(bool),
        Else(IgnoredAny),
    }
    Ok(matches!(Claim::deserialize(deserializer)?, Claim::Said(true)))
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name, uri or template.
    pub key: Arc<str>,
    /// The whole definition.
    pub raw: Arc<str>,
    /// A hash of the definition, the same in every run.
    pub fingerprint: u64,
    /// A tool's hints.
    pub hints: Hints,
    /// Whether its key, title or description holds characters that people do not see.
    pub has_hidden_text: bool,
}

impl Item {
    /// Reads a definition; none if it has no usable key or is no clear object.
    #[must_use]
    pub fn read(kind: Kind, value: &RawValue) -> Option<Self> {
        let fields = Fields::of(value, &[]).ok()?;
        let key = fields.text(kind.key()).filter(|key| (1..=KEY_MAX).contains(&key.len()))?;
        let is_hidden = |name| fields.text(name).is_some_and(|text| has_hidden_text(&text));
        let hints = match (kind, fields.get("annotations")) {
            (Kind::Tools, Some(value)) => serde_json::from_str(value.get()).unwrap_or_default(),
            _ => Hints::default(),
        };
        Some(Self {
            has_hidden_text: [kind.key(), "title", "description"].into_iter().any(is_hidden),
            key: key.into(),
            raw: value.get().into(),
            fingerprint: fingerprint(&[value.get()]),
            hints,
        })
    }
}

/// Everything one server offers.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// What it said about itself.
    pub info: ServerInfo,
    /// By kind, in the server's order.
    items: [Vec<Item>; 4],
}

impl Listing {
    /// A listing of nothing.
    #[must_use]
    pub fn new(info: ServerInfo) -> Self {
        Self { info, items: Default::default() }
    }

    /// The definitions of a kind, in the server's order.
    #[must_use]
    pub fn items(&self, kind: Kind) -> &[Item] {
        &self.items[kind as usize]
    }

    /// Replaces the definitions of a kind.
    pub fn set_items(&mut self, kind: Kind, items: Vec<Item>) {
        self.items[kind as usize] = items;
    }

    /// How a newer listing of the same server differs.
    #[must_use]
    pub fn diff(&self, newer: &Self) -> Changes {
        let mut changes = Changes::default();
        for kind in Kind::ALL {
            let before = by_key(self.items(kind));
            let after = by_key(newer.items(kind));
            for (key, item) in &after {
                match before.get(key) {
                    None => changes.added.push((kind, item.key.clone())),
                    Some(old) if old.raw != item.raw => {
                        changes.changed.push((kind, item.key.clone()));
                    }
                    Some(_) => {}
                }
            }
            let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
            changes.removed.extend(gone.map(|(_, item)| (kind, item.key.clone())));
        }
        changes
    }
}

/// Definitions by key; of several with one key the first counts, as in the catalogue.
fn by_key(items: &[Item]) -> BTreeMap<&str, &Item> {
    items.iter().rev().map(|item| (item.key.as_ref(), item)).collect()
}

/// How a listing differs from an earlier one, each part by kind and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What is new.
    pub added: Vec<(Kind, Arc<str>)>,
    /// What is gone.
    pub removed: Vec<(Kind, Arc<str>)>,
    /// What is defined otherwise than before.
    pub changed: Vec<(Kind, Arc<str>)>,
}

impl Changes {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.touched().next().is_none()
    }

    /// Whether anything of a kind differs.
    #[must_use]
    pub fn touches(&self, kind: Kind) -> bool {
        self.touched().any(|touched| touched == kind)
    }

    fn touched(&self) -> impl Iterator<Item = Kind> {
        [&self.added, &self.removed, &self.changed].into_iter().flatten().map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests;
