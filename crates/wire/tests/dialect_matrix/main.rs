//! The matrix of dialects: every client with every provider, plain and streaming, case by case.
//!
//! - [`spoken`]: the four dialects, their samples (`tests/dialects`) and their [`readers`].
//! - [`asked`] and [`seen`]: what a provider is asked and a client sees, in neutral words.
//! - [`drive`]: a pair, driven as the data plane does it.
//! - [`cells`]: the cases and what each expects. [`page`]: `docs/dialect-matrix.md`.
//! - [`requests`], [`details`] and [`answers`]: rules that no cell shows. [`order`]: streams that
//!   break their own rules. [`splits`]: how a stream is cut. [`returns`]: there and back again.
//!   [`hostile`]: damaged samples. [`bounds`]: what a converter holds. [`limits`]: how long a field
//!   of a request may be. [`claude`]: what Claude models of different ages refuse.
//!   [`odd`]: what is odd but legal. [`quiet`]: no field is lost without a word.
//!   [`situations`]: what once went wrong.

mod answers;
mod asked;
mod bounds;
mod cells;
mod claude;
mod details;
mod drive;
mod hostile;
mod limits;
mod odd;
mod order;
mod page;
mod quiet;
mod readers;
mod requests;
mod returns;
mod seen;
mod situations;
mod splits;
mod spoken;

use std::path::Path;

use cells::{CASES, check};
use drive::Exchange;
use spoken::Spoken;

/// Set by `cargo xtask docs`: write the page instead of comparing it.
const WRITE: &str = "TIDEGATE_WRITE_PAGE";

#[test]
fn every_cell_holds_and_the_page_says_so() {
    let (mut tables, mut failed) = (Vec::new(), Vec::new());
    for client in Spoken::ALL {
        let mut rows = Vec::new();
        for case in CASES {
            let mut marks = Vec::new();
            for upstream in Spoken::ALL {
                let exchange = Exchange { client, upstream };
                for is_stream in [false, true] {
                    let cell = std::panic::catch_unwind(|| check(case, exchange, is_stream));
                    match cell {
                        Ok(mark) => marks.push((client == upstream, mark)),
                        Err(_) => failed.push((case.title, exchange, is_stream)),
                    }
                }
            }
            rows.push((case.title, marks));
        }
        tables.push((client, rows));
    }
    assert!(failed.is_empty(), "these cells do not hold, each said why above: {failed:#?}");
    let page = page::page(&tables);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialect-matrix.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, page).expect("the page can be written");
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == page, "docs/dialect-matrix.md is stale; run `cargo xtask docs`");
}
