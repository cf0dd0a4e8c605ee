//! The checks of the fuzz targets (`fuzz/checks.rs`), over every committed seed and over damaged
//! copies of them.
//!
//! Seeds are the files of `fuzz/corpus` and the samples of `tests/dialects`. `PROPTEST_CASES` asks
//! for a longer run; `cargo xtask nightly` does. What a check may hold at a time is measured too.

#[path = "../../../fuzz/checks.rs"]
mod checks;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use allocation_counter::measure;
use proptest::prelude::*;
use proptest::sample::{Index, select};

type Check = fn(&[u8]);

const TARGETS: [(&str, Check, &str); 5] = [
    ("sse", checks::sse, ".sse"),
    ("head", checks::head, ".request.json"),
    ("request", checks::request, ".request.json"),
    ("reply", checks::reply, ".json"),
    ("stream", checks::stream, ".sse"),
];

static SEEDS: LazyLock<Vec<Vec<Vec<u8>>>> =
    LazyLock::new(|| TARGETS.iter().map(|(name, _, ending)| seeds(name, ending)).collect());

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn seeds(target: &str, ending: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = files(&root.join("fuzz/corpus").join(target));
    assert!(!paths.is_empty(), "no seeds for {target}");
    for dialect in ["chat", "gemini", "messages", "responses"] {
        let samples = files(&root.join("tests/dialects").join(dialect));
        paths.extend(samples.into_iter().filter(|path| path.to_string_lossy().ends_with(ending)));
    }
    paths.iter().map(|path| std::fs::read(path).expect("a seed can be read")).collect()
}

/// What a check may hold at once: some copies of its input in every shape that it has on the way.
fn check(target: usize, data: &[u8]) {
    let (name, check, _) = TARGETS[target];
    let held = measure(|| check(data)).bytes_max;
    let most = (data.len() as u64 + 1) * 400 + (1 << 20);
    assert!(held <= most, "{name} held {held} bytes for {}", data.len());
}

#[test]
fn every_seed_passes_its_check() {
    for (target, seeds) in SEEDS.iter().enumerate() {
        for seed in seeds {
            check(target, seed);
        }
    }
}

/// Bytes that change, go, come twice or come from another seed.
fn damage(data: &mut Vec<u8>, other: &[u8], at: Index, from: Index, byte: u8, how: u8) {
    let place = at.index(data.len() + 1);
    let end = data.len().min(place + usize::from(byte) % 48);
    match how {
        0 => data.insert(place, byte),
        1 => drop(data.drain(place..end)),
        2 => {
            let again = data[place..end].to_vec();
            data.splice(place..place, again);
        }
        3 if !other.is_empty() => {
            let start = from.index(other.len());
            let piece = other[start..other.len().min(start + 64)].to_vec();
            data.splice(place..end, piece);
        }
        _ if place < data.len() => data[place] = byte,
        _ => data.push(byte),
    }
}

/// This many cases, unless a longer run was asked for.
fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if is_asked { asked.cases } else { usual }, ..asked }
}

proptest! {
    #![proptest_config(cases(160))]

    #[test]
    fn damaged_seeds_pass_too(
        target in 0..TARGETS.len(), seed in any::<Index>(), other in any::<Index>(),
        changes in prop::collection::vec(
            (any::<Index>(), any::<Index>(), prop_oneof![
                any::<u8>(), select(b"{}[]\",:\\ud8e0 -1.\n\r\x1f\xc3".to_vec())], 0..5_u8),
            1..6),
    ) {
        let seeds = &SEEDS[target];
        let mut data = seeds[seed.index(seeds.len())].clone();
        let other = &seeds[other.index(seeds.len())];
        for (at, from, byte, how) in changes {
            damage(&mut data, other, at, from, byte, how);
        }
        check(target, &data);
    }

    #[test]
    fn arbitrary_bytes_pass_too(
        target in 0..TARGETS.len(), data in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        check(target, &data);
    }
}
