//! Fits the weights of the parts to labelled requests, and says how well they do on others:
//! `cargo run --release -p tidegate-search --example fit -- FOLDER`.
//!
//! The folder holds one set of labelled requests, `tools.jsonl` and `queries-dev.jsonl`, and any
//! number of folders with `tools.jsonl` and `queries.jsonl`. Of the sets in folders one half of the
//! requests is fitted to, chosen by a hash of the text, and the other half is only looked at. The
//! first set is small: it is fitted to as a whole, and looked at by cross-validation in five parts,
//! where all requests for one server are in one part.
//! The weights are printed as they stand in `src/parts.rs`; nothing is written.

mod learn;
mod sets;

use std::{
    error::Error,
    io::{self, Write},
    path::Path,
};

use learn::{Examples, fitted};
use sets::Half;
use tidegate_search::{NAMES, PARTS};

/// Parts of a cross-validation.
const FOLDS: u64 = 5;
/// How much the first set counts against each other: its tools and requests are those of agents,
/// and the word model has seen requests like those of the others when it was made, so that its
/// likeness says more there than it does for requests that nobody has seen.
const MAIN: f64 = 4.0;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder holds the labelled requests?")?;
    let mut out = io::stdout().lock();
    let sets = sets::read(Path::new(&folder))?;
    let (main, others) = sets.split_first().ok_or("the folder holds no set")?;
    let other_halves: Vec<(Examples, f64)> =
        others.iter().map(|set| (set.half(Half::Fitted), 1.0)).collect();
    let weights = {
        let mut all = vec![(main.half(Half::Both), MAIN)];
        all.extend(other_halves.iter().cloned());
        fitted(&all)
    };
    for (name, weight) in NAMES.iter().zip(weights) {
        writeln!(out, "{weight:8.2}  {name}")?;
    }
    writeln!(out, "set                hit at 1   hit at 5   requests")?;
    let mut held_out = [0, 0, 0];
    let mut left_out: Vec<([usize; 3], usize)> = vec![([0; 3], 0); 0];
    for fold in 0..FOLDS {
        let (fit, check) = main.fold(fold, FOLDS);
        let mut all = vec![(fit, MAIN)];
        all.extend(other_halves.iter().cloned());
        let figures = check.figures(&fitted(&all));
        held_out.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
    }
    report(&mut out, &main.name, "fitted", main.half(Half::Both).figures(&weights))?;
    report(&mut out, &main.name, "held out", held_out)?;
    for set in others {
        report(&mut out, &set.name, "fitted", set.half(Half::Fitted).figures(&weights))?;
        report(&mut out, &set.name, "held out", set.half(Half::Checked).figures(&weights))?;
    }
    if std::env::args().any(|arg| arg == "--without") {
        for part in 0..PARTS {
            let mut figures = [0; 3];
            for fold in 0..FOLDS {
                let (fit, check) = main.fold(fold, FOLDS);
                let mut all = vec![(fit, MAIN)];
                all.extend(other_halves.iter().cloned());
                let found = learn::fitted_without(&all, Some(part));
                figures.iter_mut().zip(check.figures(&found)).for_each(|(sum, it)| *sum += it);
            }
            left_out.push((figures, part));
        }
        for (figures, part) in left_out {
            report(&mut out, &main.name, &format!("no {}", NAMES[part]), figures)?;
        }
    }
    Ok(())
}

/// One line of figures: found first, found among five, requests.
fn report(
    out: &mut impl Write,
    set: &str,
    which: &str,
    [first, fifth, n]: [usize; 3],
) -> io::Result<()> {
    let share = |hits: usize| 100.0 * hits as f64 / n.max(1) as f64;
    writeln!(out, "{set:10} {which:14} {:7.1}    {:7.1}    {n}", share(first), share(fifth))
}
