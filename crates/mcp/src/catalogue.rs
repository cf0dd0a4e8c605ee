//! The union of what all servers offer, as clients see it.
//!
//! Rules kept here:
//! - A catalogue never changes; a server's new listing makes a new one. It is made from the last
//!   known listing of every server, whether that is up or not: health decides what a session sees,
//!   never what a thing is called.
//! - Names are unique and lists are sorted, so that the same config and listings give the same
//!   text. A definition is the server's own, with its name replaced and nothing else.
//! - Nothing is lost silently: whatever is not offered because of another is a [`Conflict`].
//! - Uris stay as they are: they are locators. Of two servers with one uri, the first in the
//!   config has it.
//!
//! Names are made in [`crate::names`]; which servers a session sees is in [`crate::session`].

mod build;
mod conflict;
mod greeting;
mod nearest;
mod page;
mod template;

use std::sync::Arc;

pub use self::{
    conflict::{Conflict, ConflictReason},
    greeting::{CAPABILITIES, INSTRUCTIONS_MAX},
    page::{BadCursor, Page},
};
use self::{greeting::Greeting, template::Template};
use crate::{
    listing::{Hints, Kind, fingerprint},
    names::NamingSettings,
};

/// Everything that is offered.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// By kind, sorted by name.
    offers: [Vec<Offered>; 4],
    /// Of the offered templates, in the same order.
    templates: Vec<Template>,
    conflicts: Vec<Conflict>,
    greetings: Vec<Greeting>,
    /// Which servers have names like these, and whose lists are not known.
    naming: NamingSettings,
    unreached: Vec<bool>,
    versions: [u64; 4],
}

/// One thing that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// What clients call it: a name, a uri or a template.
    pub name: Arc<str>,
    /// The place of its server in the config.
    pub server: usize,
    /// What its server calls it.
    pub own: Arc<str>,
    /// Its definition for clients.
    pub raw: Arc<str>,
    /// A tool's hints.
    pub hints: Hints,
    /// A hash of its definition by the server.
    pub fingerprint: u64,
    /// Whether its name, title or description holds characters that people do not see.
    pub has_hidden_text: bool,
}

impl Catalogue {
    /// What is offered of a kind, sorted by name.
    #[must_use]
    pub fn offers(&self, kind: Kind) -> &[Offered] {
        &self.offers[kind as usize]
    }

    /// One thing by what clients call it.
    #[must_use]
    pub fn find(&self, kind: Kind, name: &str) -> Option<&Offered> {
        let offers = self.offers(kind);
        offers
            .binary_search_by(|offered| offered.name.as_ref().cmp(name))
            .ok()
            .map(|at| &offers[at])
    }

    /// All tools.
    #[must_use]
    pub fn tools(&self) -> &[Offered] {
        self.offers(Kind::Tools)
    }

    /// A tool by its offered name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Offered> {
        self.find(Kind::Tools, name)
    }

    /// All prompts.
    #[must_use]
    pub fn prompts(&self) -> &[Offered] {
        self.offers(Kind::Prompts)
    }

    /// A prompt by its offered name.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&Offered> {
        self.find(Kind::Prompts, name)
    }

    /// All resources.
    #[must_use]
    pub fn resources(&self) -> &[Offered] {
        self.offers(Kind::Resources)
    }

    /// A listed resource by its uri.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<&Offered> {
        self.find(Kind::Resources, uri)
    }

    /// All templates.
    #[must_use]
    pub fn templates(&self) -> &[Offered] {
        self.offers(Kind::Templates)
    }

    /// A template by its own text, as a completion names it.
    #[must_use]
    pub fn template(&self, uri_template: &str) -> Option<&Offered> {
        self.find(Kind::Templates, uri_template)
    }

    /// The template that a uri fits best: the one that spells out most of it; of equals, that of
    /// the server first in the config.
    #[must_use]
    pub fn template_for(&self, uri: &str) -> Option<&Offered> {
        let fitting = self.templates.iter().zip(self.templates());
        let fitting = fitting.filter(|(template, _)| template.matches(uri));
        let best = fitting.min_by_key(|(template, offered)| {
            (std::cmp::Reverse(template.literal_len()), offered.server)
        });
        best.map(|(_, offered)| offered)
    }

    /// The server to ask about a uri: that which lists it, or has a template for it, or the only
    /// one there is.
    #[must_use]
    pub fn server_of(&self, uri: &str) -> Option<usize> {
        let found = self.resource(uri).or_else(|| self.template_for(uri));
        let only = (self.greetings.len() == 1).then_some(0);
        found.map(|offered| offered.server).or(only)
    }

    /// The server that a name belongs to by its prefix, if nobody knows yet what that server
    /// offers: what it has is unavailable, and not unknown.
    #[must_use]
    pub fn unreached_owner(&self, name: &str) -> Option<usize> {
        self.naming.owner_of(name).filter(|server| self.is_unreached(*server))
    }

    /// Whether nobody knows yet what a server offers.
    #[must_use]
    pub fn is_unreached(&self, server: usize) -> bool {
        self.unreached.get(server).copied().unwrap_or(false)
    }

    /// What is not offered, and why.
    #[must_use]
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// A hash of everything that is offered: equal catalogues have equal versions, in every run.
    #[must_use]
    pub fn version(&self) -> u64 {
        let parts = self.versions.map(|version| version.to_string());
        fingerprint(&parts.each_ref().map(String::as_str))
    }

    /// A hash of what is offered of one kind.
    #[must_use]
    pub fn version_of(&self, kind: Kind) -> u64 {
        self.versions[kind as usize]
    }
}

#[cfg(test)]
mod tests;
