//! What is left of a request once it is taken apart: a plain value that is read in many places.
//!
//! `query` makes it; servers and tools are compared with it.

use crate::{
    action::Action, concepts::About, kinds::Kinds, matrix::Row, postings::Term, products::Product,
    words::Word,
};

/// A word of a request that counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) term: Term,
    pub(crate) weight: f32,
    /// Its term as a word of a server's name, and what it counts there.
    pub(crate) name: (Term, f32),
    /// Whether it was put in place of another.
    pub(crate) is_fixed: bool,
}

/// A request, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) words: Vec<Asked>,
    pub(crate) pairs: Vec<Term>,
    pub(crate) grams: Vec<(Term, f32)>,
    pub(crate) action: Action,
    pub(crate) kinds: Kinds,
    pub(crate) direction: Row,
    pub(crate) about: About,
    /// Products that it names.
    pub(crate) products: Vec<Product>,
    /// Its words as they are meant, each with what it counts.
    pub(crate) meant: Vec<(Word, f32)>,
}
