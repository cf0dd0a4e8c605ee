//! The search behind `find_tool`: which of thousands of tools fits a request.
//!
//! Pure code over texts: no network, no clock, no randomness. A request is compared with every tool
//! in several ways (words, name, server, letters, meaning, deeds), and the weighted sum decides.
//!
//! A tour, in the order a tool and then a request meet it:
//! - `document`, `words`, `stem`, `lexicon`, `grams`, `analysis`: a tool's texts, taken apart.
//! - `postings`, `servers`, `matrix`, `spelling`, `model`, `index`: everything about all tools.
//! - `literal`, `query`, `find`, `parts`, `judge`, `explain`: a request, what speaks for each tool,
//!   and whether that is enough; `vectors`: the word of another model.
//! - `tokens`: what a listing would have cost; [`eval`]: how well the search does.

mod analysis;
mod document;
pub mod eval;
mod explain;
mod find;
mod grams;
mod index;
mod judge;
mod lexicon;
mod literal;
mod matrix;
mod model;
mod parts;
mod postings;
mod query;
mod servers;
mod spelling;
mod stem;
mod tokens;
mod vectors;
mod words;

pub use crate::{
    document::{Document, Listed, SCHEMA_MAX, TEXT_MAX},
    explain::{Matched, Place},
    find::{Answer, Hit},
    index::Index,
    judge::{FAINT, GOOD},
    parts::Parts,
    query::{QUERY_MAX, Query},
    tokens::estimated_tokens,
    vectors::{External, Vectors},
};
