//! Fits the weights of the parts to labelled requests, and says how well they do on others:
//! `cargo run --release -p tidegate-sentence --example fit -- FOLDER`, and for the weights of a
//! request that a sentence model has read
//! `cargo run --release -p tidegate-sentence --features onnx --example fit -- FOLDER --model FILE`.
//!
//! The folder holds one set of labelled requests, `tools.jsonl` and `queries-dev.jsonl`, and any
//! number of folders with `tools.jsonl` and `queries.jsonl`. Of the sets in folders one half of the
//! requests is fitted to, chosen by a hash of the text, and the other half is only looked at. The
//! first set is small: it is fitted to as a whole, and looked at by cross-validation in five parts,
//! where all requests for one server are in one part.
//! With `--small` nothing is fitted: it prints how the weights that there are do on catalogues of
//! 20 to 500 tools (`small`). With `--declined TOOLS QUERIES` in place of the folder it prints how
//! many requests without an answer could be declined at best (`hindsight`), with
//! `--evidence TOOLS QUERIES …` what a logistic model over other evidence adds (`evidence`), and
//! with `--left-out TOOLS QUERIES … [--model FILE]` how many requests are declined whose answer was
//! taken out (`left_out`).
//!
//! The weights are printed as they stand in `src/parts.rs`, with their figures and, for the same
//! held-out requests, those of the weights that are built in; nothing is written.

mod evidence;
mod hindsight;
mod learn;
mod left_out;
mod sets;
mod small;

use std::{
    error::Error,
    io::{self, Write},
    path::{Path, PathBuf},
};

use learn::{Examples, Weights, fitted};
use sets::Half;
use tidegate_search::{NAMES, PARTS, Parts, eval};
use tidegate_sentence::Encoder;

/// Parts of a cross-validation.
const FOLDS: u64 = 5;
/// How much the first set counts against each other: its tools and requests are those of agents,
/// and the word model has seen requests like those of the others when it was made, so that its
/// likeness says more there than it does for requests that nobody has seen.
const MAIN: f64 = 2.0;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = args.first().ok_or("which folder holds the labelled requests?")?;
    let model = args.iter().position(|arg| arg == "--model").map(|at| args.get(at + 1));
    let model = match model {
        Some(file) => Some(Encoder::load(Path::new(file.ok_or("which file is the model?")?))?),
        None => None,
    };
    let mut out = io::stdout().lock();
    if let [arg, tools, queries, ..] = &args[..]
        && arg == "--declined"
    {
        let share = hindsight::declined(Path::new(tools), Path::new(queries), model.as_ref())?;
        return Ok(writeln!(out, "{:.0} % declined at 2 % lost", 100.0 * share)?);
    }
    if folder == "--evidence" {
        let paths: Vec<PathBuf> = args[1..].iter().map(PathBuf::from).collect();
        writeln!(out, "requests                       more by sum, declined   by all, declined")?;
        for evidence::Told { set, by_sum: [sum, few], by_all: [all, many] } in
            evidence::told(&paths)?
        {
            writeln!(out, "{set:30} {sum:11.3} {few:9.2} {all:8.3} {many:9.2}")?;
        }
        return Ok(());
    }
    if folder == "--left-out" {
        let paths: Vec<String> =
            args[1..].iter().take_while(|arg| *arg != "--model").cloned().collect();
        return left_out(&mut out, &paths, model.as_ref());
    }
    if args.iter().any(|arg| arg == "--small") {
        return small(&mut out, Path::new(folder), model.as_ref());
    }
    let sets = sets::read(Path::new(folder), model.as_ref())?;
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
    let mut left_out: Vec<([usize; 3], usize)> = Vec::new();
    for fold in 0..FOLDS {
        let (fit, check) = main.fold(fold, FOLDS);
        let mut all = vec![(fit, MAIN)];
        all.extend(other_halves.iter().cloned());
        let figures = check.figures(&fitted(&all));
        held_out.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
    }
    report(&mut out, &main.name, "fitted", main.half(Half::Both).figures(&weights))?;
    report(&mut out, &main.name, "held out", held_out)?;
    let built_in = built_in(model.is_some());
    report(&mut out, &main.name, "built in", main.half(Half::Both).figures(&built_in))?;
    for set in others {
        report(&mut out, &set.name, "fitted", set.half(Half::Fitted).figures(&weights))?;
        let held_out = set.half(Half::Checked);
        report(&mut out, &set.name, "held out", held_out.figures(&weights))?;
        report(&mut out, &set.name, "built in", held_out.figures(&built_in))?;
    }
    if args.iter().any(|arg| arg == "--without") {
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

/// The weights that searches use: what parts of one add.
fn built_in(is_read: bool) -> Weights {
    let one = Parts {
        words: 1.0,
        pairs: 1.0,
        letters: 1.0,
        soft: 1.0,
        server: 1.0,
        server_name: 1.0,
        meaning: 1.0,
        server_meaning: 1.0,
        server_tools: 1.0,
        action: 1.0,
        effect: 1.0,
        kinds: 1.0,
        concepts: 1.0,
        server_concepts: 1.0,
        sentence: 1.0,
        server_sentence: 1.0,
        server_sentences: 1.0,
        is_read,
    };
    one.contributions().map(|(_, added)| f64::from(added))
}

/// The lines of `--left-out`: what is declined and lost as it is, and what is declined at best at
/// some shares of lost requests, each with its interval.
fn left_out(
    out: &mut impl Write,
    paths: &[String],
    model: Option<&Encoder>,
) -> Result<(), Box<dyn Error>> {
    for pair in paths.chunks_exact(2) {
        let left_out::Asked { answered, labelled, left_out } =
            left_out::asked(Path::new(&pair[0]), Path::new(&pair[1]), model)?;
        let share = |part: usize, whole: usize| {
            let (low, high) = eval::interval(part, whole);
            let shares = [eval::ratio(part, whole), low, high].map(|share| 100.0 * share);
            format!("{:.1} % ({:.1}–{:.1}) of {whole}", shares[0], shares[1], shares[2])
        };
        let poor = |all: &[f32]| all.iter().filter(|above| **above < 0.0).count();
        writeln!(out, "{}", pair[1])?;
        writeln!(out, "  lost                {}", share(poor(&answered), answered.len()))?;
        for (name, all) in [("labelled", &labelled), ("taken out", &left_out)] {
            writeln!(out, "  {name:10} declined {}", share(poor(all), all.len()))?;
            for lost in left_out::LOST {
                let below = left_out::below(&answered, all, lost);
                let lost = 100.0 * lost;
                writeln!(out, "    at {lost:2.0} % lost        {}", share(below, all.len()))?;
            }
        }
    }
    Ok(())
}

/// The lines of `--small`.
fn small(
    out: &mut impl Write,
    folder: &Path,
    model: Option<&Encoder>,
) -> Result<(), Box<dyn Error>> {
    let mut small = small::Small::read(folder, model)?;
    writeln!(out, "tools  hit at 1  hit at 5  requests  lost  declined  without an answer")?;
    for size in small::SIZES {
        let it = small.figures(size);
        let share = |part: usize, whole: usize| 100.0 * eval::ratio(part, whole);
        writeln!(
            out,
            "{size:5}  {:8.1}  {:8.1}  {:8}  {:4.1}  {:8.1}  {:17}",
            share(it.hits[0], it.n),
            share(it.hits[2], it.n),
            it.n,
            share(it.lost, it.n),
            share(it.declined, it.unanswerable),
            it.unanswerable,
        )?;
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
