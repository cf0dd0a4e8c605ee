//! Makes `model/near.bin` anew, the table of words that are near each other by the word model:
//! `cargo run --release -p tidegate-search --example near`.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("model/near.bin");
    fs::write(file, tidegate_search::near_table())
}
