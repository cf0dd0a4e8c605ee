//! The search behind `find_tool`: which of thousands of tools fits a request.
//!
//! Pure code over texts: no network, no clock, no randomness. A request is compared with every tool
//! in several ways (words, letters, server, meaning, action, kinds of values), and the weighted sum
//! decides.
//!
//! A tour, in the order a tool and then a request meet it:
//! - `document`, `words`, `stem`, `lexicon`, `grams`, `analysis`: a tool's texts, taken apart.
//! - `classes`, `verbs`, `action`, `kinds`, `concepts`: what a tool does, takes and is about, and
//!   what a request wants, gives and is about.
//! - `postings`, `servers`, `matrix`, `spelling`, `model`, `index`: everything about all tools.
//! - `literal`, `step`, `query`, `find`, `soft`, `parts`, `products`, `judge`, `explain`: a
//!   request, what speaks for each tool, and whether that is enough; `vectors` and `sentences`: the
//!   word of another model.
//! - `offer`, `request`, `reply`: `find_tool` as clients see it, what they ask and what they get.
//! - `tokens`: what a listing would have cost; [`eval`]: how well the search does.
//!
//! The weights are fitted by the example `fit`; the table of near words is made by `near`.

mod action;
mod analysis;
mod classes;
mod concepts;
mod document;
pub mod eval;
mod explain;
mod find;
mod grams;
mod index;
mod judge;
mod kinds;
mod lexicon;
mod literal;
mod matrix;
mod model;
mod offer;
mod parts;
mod postings;
mod products;
mod query;
mod reply;
mod request;
mod sentences;
mod servers;
mod soft;
mod spelling;
mod stem;
mod step;
mod tokens;
mod vectors;
mod verbs;
mod words;

pub use crate::{
    action::Effect,
    document::{Document, Listed, SCHEMA_MAX, TEXT_MAX},
    explain::{Matched, Place},
    find::{Answer, Hit},
    index::Index,
    judge::{FAINT, GOOD},
    offer::{CALL, FIND, OfferedServer, call_tool, find_tool},
    parts::{NAMES, PARTS, Parts},
    query::{QUERY_MAX, Query},
    reply::{Reply, signature},
    request::{LIMIT_MAX, Request},
    sentences::{Reading, SentenceTexts, Sentences},
    soft::near_table,
    tokens::estimated_tokens,
    vectors::{External, Vectors},
};
