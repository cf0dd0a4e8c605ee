//! A model of a few words, for tests: the engine, the vocabulary and everything around them run on
//! it as on a real one, and nothing has to be fetched.
//!
//! It is an ONNX file with one node: a word's vector is its row of a table. A slow one has more.

use std::{fs, io, path::Path};

/// Numbers in a vector.
pub const TINY_DIMENSIONS: usize = 4;

/// Writes `model.onnx` and `tokenizer.json` into a folder. Words that are not listed are unknown,
/// and say nothing.
///
/// # Errors
/// The folder cannot be written to.
pub fn write(folder: &Path, words: &[(&str, [f32; TINY_DIMENSIONS])]) -> io::Result<()> {
    write_slow(folder, words, 0)
}

/// The same model, which computes so many rounds of no use for each text: one that is too slow.
///
/// # Errors
/// The folder cannot be written to.
pub fn write_slow(
    folder: &Path,
    words: &[(&str, [f32; TINY_DIMENSIONS])],
    rounds: usize,
) -> io::Result<()> {
    let marks = ["[UNK]", "[CLS]", "[SEP]"].map(|mark| (mark, [0.001; TINY_DIMENSIONS]));
    let rows: Vec<_> = marks.iter().chain(words).collect();
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        rows.iter().enumerate().map(|(at, (word, _))| ((*word).to_owned(), at.into())).collect();
    let tokenizer = serde_json::json!({"model": {"type": "WordPiece", "vocab": vocabulary}});
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string())?;
    let table: Vec<u8> =
        rows.iter().flat_map(|(_, row)| row).flat_map(|number| number.to_le_bytes()).collect();
    fs::write(folder.join("model.onnx"), model(rows.len(), &table, rounds))
}

/// Kinds of numbers, as ONNX counts them.
const FLOAT: u64 = 1;
const INT64: u64 = 7;
/// Rows and columns of what a round computes on.
const ROUND: i64 = 256;

/// The fields of ONNX's protobuf messages that are needed, by their numbers.
fn model(rows: usize, table: &[u8], rounds: usize) -> Vec<u8> {
    let rows_and_columns = [number(1, rows as u64), number(1, TINY_DIMENSIONS as u64)].concat();
    let mut initializers = bytes(5, &tensor("table", FLOAT, &rows_and_columns, table));
    let mut nodes = Vec::new();
    if rounds == 0 {
        nodes.extend(node("Gather", &["table", "input_ids"], "last_hidden_state", &[]));
    } else {
        // It begins with the request, so that nothing of it can be computed beforehand, and ends
        // with a factor of zero.
        let side = [ROUND.to_le_bytes(), ROUND.to_le_bytes()].concat();
        initializers.extend(bytes(5, &tensor("side", INT64, &number(1, 2), &side)));
        let zero = 0.0_f32.to_le_bytes();
        initializers.extend(bytes(5, &tensor("zero", FLOAT, &number(1, 1), &zero)));
        nodes.extend(node("Gather", &["table", "input_ids"], "rows", &[]));
        nodes.extend(node("Cast", &["input_ids"], "numbers", &attribute("to", FLOAT)));
        nodes.extend(node("ReduceMean", &["numbers"], "one", &attribute("keepdims", 1)));
        nodes.extend(node("Expand", &["one", "side"], "round0", &[]));
        for round in 0..rounds {
            let (from, to) = (format!("round{round}"), format!("round{}", round + 1));
            nodes.extend(node("Sin", &[&from], &to, &[]));
        }
        let last = format!("round{rounds}");
        nodes.extend(node("ReduceMean", &[&last], "mean", &attribute("keepdims", 1)));
        nodes.extend(node("Mul", &["mean", "zero"], "nothing", &[]));
        nodes.extend(node("Add", &["rows", "nothing"], "last_hidden_state", &[]));
    }
    let value = |name: &[u8], kind: u64, rank: usize| {
        let shape: Vec<u8> = (0..rank).flat_map(|_| bytes(1, &bytes(2, b"n"))).collect();
        let tensor = [number(1, kind), bytes(2, &shape)].concat();
        [bytes(1, name), bytes(2, &bytes(1, &tensor))].concat()
    };
    let inputs = ["input_ids", "attention_mask", "token_type_ids"];
    let inputs = inputs.iter().flat_map(|name| bytes(11, &value(name.as_bytes(), INT64, 2)));
    let graph = [
        nodes,
        bytes(2, b"tiny"),
        initializers,
        inputs.collect(),
        bytes(12, &value(b"last_hidden_state", FLOAT, 3)),
    ]
    .concat();
    let opset = [bytes(1, b""), number(2, 13)].concat();
    [number(1, 8), bytes(7, &graph), bytes(8, &opset)].concat()
}

/// Numbers that the model brings with it; `dims` are its fields for rows and columns.
fn tensor(name: &str, kind: u64, dims: &[u8], raw: &[u8]) -> Vec<u8> {
    [dims.to_vec(), number(2, kind), bytes(8, name.as_bytes()), bytes(9, raw)].concat()
}

/// A field of the graph: one operation.
fn node(operation: &str, inputs: &[&str], output: &str, attributes: &[u8]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input.as_bytes())).collect();
    let name = bytes(3, output.as_bytes());
    let rest = [bytes(2, output.as_bytes()), name, bytes(4, operation.as_bytes())].concat();
    bytes(1, &[inputs, rest, attributes.to_vec()].concat())
}

/// A whole number that an operation is told.
fn attribute(name: &str, value: u64) -> Vec<u8> {
    const INT: u64 = 2;
    bytes(5, &[bytes(1, name.as_bytes()), number(3, value), number(20, INT)].concat())
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
