//! A model of a few words, for tests: the engine, the vocabulary and everything around them run on
//! it as on a real one, and nothing has to be fetched.
//!
//! It is an ONNX file with one node: a word's vector is its row of a table.

use std::{fs, io, path::Path};

/// Numbers in a vector.
pub const TINY_DIMENSIONS: usize = 4;

/// Writes `model.onnx` and `tokenizer.json` into a folder. Words that are not listed are unknown,
/// and say nothing.
///
/// # Errors
/// The folder cannot be written to.
pub fn write(folder: &Path, words: &[(&str, [f32; TINY_DIMENSIONS])]) -> io::Result<()> {
    let marks = ["[UNK]", "[CLS]", "[SEP]"].map(|mark| (mark, [0.001; TINY_DIMENSIONS]));
    let rows: Vec<_> = marks.iter().chain(words).collect();
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        rows.iter().enumerate().map(|(at, (word, _))| ((*word).to_owned(), at.into())).collect();
    let tokenizer = serde_json::json!({"model": {"type": "WordPiece", "vocab": vocabulary}});
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string())?;
    let table: Vec<u8> =
        rows.iter().flat_map(|(_, row)| row).flat_map(|number| number.to_le_bytes()).collect();
    fs::write(folder.join("model.onnx"), model(rows.len(), &table))
}

/// The fields of ONNX's protobuf messages that are needed, by their numbers.
fn model(rows: usize, table: &[u8]) -> Vec<u8> {
    const FLOAT: u64 = 1;
    const INT64: u64 = 7;
    let initializer = [
        number(1, rows as u64),
        number(1, TINY_DIMENSIONS as u64),
        number(2, FLOAT),
        bytes(8, b"table"),
        bytes(9, table),
    ]
    .concat();
    let node = [
        bytes(1, b"table"),
        bytes(1, b"input_ids"),
        bytes(2, b"last_hidden_state"),
        bytes(3, b"look_up"),
        bytes(4, b"Gather"),
    ]
    .concat();
    let value = |name: &[u8], kind: u64, rank: usize| {
        let shape: Vec<u8> = (0..rank).flat_map(|_| bytes(1, &bytes(2, b"n"))).collect();
        let tensor = [number(1, kind), bytes(2, &shape)].concat();
        [bytes(1, name), bytes(2, &bytes(1, &tensor))].concat()
    };
    let inputs = ["input_ids", "attention_mask", "token_type_ids"];
    let inputs = inputs.iter().flat_map(|name| bytes(11, &value(name.as_bytes(), INT64, 2)));
    let graph = [
        bytes(1, &node),
        bytes(2, b"tiny"),
        bytes(5, &initializer),
        inputs.collect(),
        bytes(12, &value(b"last_hidden_state", FLOAT, 3)),
    ]
    .concat();
    let opset = [bytes(1, b""), number(2, 13)].concat();
    [number(1, 8), bytes(7, &graph), bytes(8, &opset)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}
