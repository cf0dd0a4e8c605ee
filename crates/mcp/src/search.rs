//! The search behind `find_tool`: which of thousands of tools fits a request.
//!
//! Pure code over texts: no network, no clock, no randomness. A request is compared with every tool
//! in several ways (words, name, server, letters, meaning, deeds), and the weighted sum decides.
//!
//! A tour, in the order a tool and then a request meet it:
//! - `document`, `words`, `stem`, `lexicon`, `grams`, `analysis`: a tool's texts, taken apart.
//! - `postings`, `servers`, `matrix`, `spelling`, `model`, `index`: everything about all tools.
//! - `literal`, `query`, `find`, `parts`: a request, and what speaks for each tool.
//! - `tokens`: what a listing would have cost.

mod analysis;
mod document;
mod find;
mod grams;
mod index;
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
mod words;

pub use self::{
    document::{Document, SCHEMA_MAX, TEXT_MAX},
    find::{Answer, Hit},
    index::Index,
    parts::Parts,
    query::{QUERY_MAX, Query},
    tokens::estimated_tokens,
};
