//! Models as files: what is loaded, and what is refused with which words.
//!
//! `cargo test -p tidegate-sentence --features onnx,tiny`

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_sentence::{Encoder, tiny};

const EAST: [f32; 4] = [1.0, 0.0, 0.0, 0.0];
const NORTH: [f32; 4] = [0.0, 1.0, 0.0, 0.0];

/// A folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("a folder for a test");
    folder
}

fn refused(file: &Path) -> String {
    match Encoder::load(file) {
        Ok(_) => panic!("`{}` was taken", file.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_text_points_where_its_words_do() {
    let folder = folder("words");
    tiny::write(&folder, &[("tide", EAST), ("gate", NORTH)]).expect("it can be written");
    let model = Encoder::load(&folder.join("model.onnx")).expect("a model");
    assert_eq!(model.dimensions(), 4);
    let vector = model.encode("Tide").expect("a vector");
    assert!(vector[0] > 0.99, "{vector:?}");
    let both = model.encode("tide, gate").expect("a vector");
    assert!((both[0] - both[1]).abs() < 0.01 && both[0] > 0.7, "{both:?}");
    let length: f32 = both.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-4, "{length}");
    assert!(model.encode("").is_some() && model.encode(&"tide ".repeat(10_000)).is_some());
}

#[test]
fn the_same_files_have_the_same_fingerprint_and_others_another() {
    let folder = folder("fingerprint");
    let load = || Encoder::load(&folder.join("model.onnx")).expect("a model").fingerprint();
    tiny::write(&folder, &[("tide", EAST)]).expect("it can be written");
    let first = load();
    assert_eq!(first, load());
    tiny::write(&folder, &[("tide", NORTH)]).expect("it can be written");
    assert_ne!(first, load(), "another model");
    tiny::write(&folder, &[("gate", NORTH)]).expect("it can be written");
    assert_ne!(first, load(), "another vocabulary");
}

#[test]
fn what_is_no_model_is_refused_with_a_reason() {
    let folder = folder("refused");
    let file = folder.join("model.onnx");
    assert!(refused(&file).starts_with("cannot read `"), "nothing is there");
    tiny::write(&folder, &[("tide", EAST)]).expect("it can be written");
    let whole = fs::read(&file).expect("it was written");
    fs::remove_file(folder.join("tokenizer.json")).expect("it was written");
    assert!(refused(&file).contains("tokenizer.json"));
    fs::write(folder.join("tokenizer.json"), "{}").expect("it can be written");
    assert!(refused(&file).contains("it has no `model.vocab`"));
    tiny::write(&folder, &[("tide", EAST)]).expect("it can be written");
    for bytes in [&b""[..], b"no model at all", &whole[..whole.len() / 2]] {
        fs::write(&file, bytes).expect("it can be written");
        assert!(refused(&file).contains("is no usable model"), "{} bytes", bytes.len());
    }
    assert!(refused(&folder).contains("it is no file"), "a folder");
}

#[test]
fn damage_anywhere_is_an_error_or_another_model_and_never_a_panic() {
    let folder = folder("damage");
    let file = folder.join("model.onnx");
    tiny::write(&folder, &[("tide", EAST), ("gate", NORTH)]).expect("it can be written");
    let whole = fs::read(&file).expect("it was written");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&file, &bytes).expect("it can be written");
        if let Ok(model) = Encoder::load(&file) {
            drop(model.encode("tide gate"));
        }
    }
}
