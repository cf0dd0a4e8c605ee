//! The check of the fuzz target `connection` (`fuzz/connection.rs`), over every committed seed and
//! over damaged copies of them. `PROPTEST_CASES` asks for a longer run; `cargo xtask nightly` does.

#[path = "../../../fuzz/connection.rs"]
mod connection;

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};

static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/connection");
    let entries = std::fs::read_dir(folder).expect("the folder of the seeds");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds");
    paths.iter().map(|path| std::fs::read(path).expect("a seed can be read")).collect()
});

#[test]
fn every_seed_passes_its_check() {
    for seed in SEEDS.iter() {
        connection::connection(seed);
    }
}

/// This many cases, unless a longer run was asked for.
fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if is_asked { asked.cases } else { usual }, ..asked }
}

/// Bytes that change, go, come, or come from another seed.
fn damage(data: &mut Vec<u8>, other: &[u8], (at, from): (Index, Index), byte: u8, how: u8) {
    let place = at.index(data.len() + 1);
    let end = data.len().min(place + usize::from(byte) % 24);
    match how {
        0 => data.insert(place, byte),
        1 => drop(data.drain(place..end)),
        2 => {
            let start = from.index(other.len());
            let piece = other[start..other.len().min(start + 64)].to_vec();
            data.splice(place..end, piece);
        }
        _ if place < data.len() => data[place] = byte,
        _ => data.push(byte),
    }
}

proptest! {
    #![proptest_config(cases(160))]

    #[test]
    fn damaged_seeds_pass_too(
        seed in any::<Index>(), other in any::<Index>(),
        changes in prop::collection::vec(
            ((any::<Index>(), any::<Index>()), prop_oneof![
                any::<u8>(), select(b"\r\n: \t;0159afHT/.\0\x7f\xff".to_vec())], 0..4_u8),
            1..6),
    ) {
        let mut data = SEEDS[seed.index(SEEDS.len())].clone();
        let other = &SEEDS[other.index(SEEDS.len())];
        for (places, byte, how) in changes {
            damage(&mut data, other, places, byte, how);
        }
        connection::connection(&data);
    }

    #[test]
    fn arbitrary_bytes_pass_too(data in prop::collection::vec(any::<u8>(), 0..120)) {
        connection::connection(&data);
    }
}
