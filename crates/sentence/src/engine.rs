//! The engine: an ONNX file, run by `rten`.
//!
//! Rules kept here: files are read within bounds; a panic of the engine is an error or no vector;
//! one thread, since a search is small and the other cores belong to requests.

use std::fs::File;
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use rten::{Model, NodeId, RunOptions, ThreadPool};
use rten_tensor::{NdTensor, prelude::*};

use crate::{load_error::LoadError, wordpiece::Vocabulary};

/// What a BERT is given, in this order.
const INPUTS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];
/// Bytes of a model: ten times that of the one which this is made for.
const MODEL_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of a vocabulary: those of models for a hundred languages have 17 MB.
const VOCABULARY_MAX: u64 = 32 * 1024 * 1024;
/// Numbers in a vector.
const DIMENSIONS_MAX: usize = 4096;

/// A loaded model.
pub(crate) struct Engine {
    model: Model,
    vocabulary: Vocabulary,
    inputs: [NodeId; 3],
    output: NodeId,
    /// One thread: a search is small, and the other cores belong to requests.
    threads: Arc<ThreadPool>,
    dimensions: usize,
    fingerprint: u64,
}

impl Engine {
    /// Loads a model and the vocabulary beside it, and tries it once.
    pub(crate) fn load(file: &Path) -> Result<Self, LoadError> {
        let bytes = read(file, MODEL_MAX)?;
        let beside = file.with_file_name("tokenizer.json");
        let listed = read(&beside, VOCABULARY_MAX)?;
        let vocabulary = Vocabulary::read(&listed)
            .map_err(|what| LoadError::Unusable { path: beside, what: what.to_owned() })?;
        let unusable = |what: String| LoadError::Unusable { path: file.to_owned(), what };
        let fingerprint = fingerprint(&[&bytes, &listed]);
        let loaded = catch_unwind(AssertUnwindSafe(|| Model::load(bytes)));
        let loaded = loaded.map_err(|_| unusable("the engine failed on it".to_owned()))?;
        let model = loaded.map_err(|error| unusable(error.to_string()))?;
        let [Some(ids), Some(mask), Some(kinds)] = INPUTS.map(|name| model.find_node(name)) else {
            return Err(unusable(format!("it does not take {}", INPUTS.join(", "))));
        };
        let Some(&output) = model.output_ids().first() else {
            return Err(unusable("it gives nothing".to_owned()));
        };
        let threads = Arc::new(ThreadPool::with_num_threads(1));
        let inputs = [ids, mask, kinds];
        let mut engine =
            Self { model, vocabulary, inputs, output, threads, dimensions: 0, fingerprint };
        let Some(tried) = engine.encode("tide") else {
            return Err(unusable("it does not give a vector per piece of a text".to_owned()));
        };
        if tried.len() > DIMENSIONS_MAX {
            return Err(unusable(format!("its vectors have {} numbers", tried.len())));
        }
        engine.dimensions = tried.len();
        Ok(engine)
    }

    /// The length of its vectors.
    pub(crate) const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The same for the same files: what kept vectors are known by.
    pub(crate) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The vector of a text: the mean over its pieces, of length one. Nothing if the model
    /// fails or gives no numbers.
    pub(crate) fn encode(&self, text: &str) -> Option<Vec<f32>> {
        catch_unwind(AssertUnwindSafe(|| self.run(text))).ok().flatten()
    }

    fn run(&self, text: &str) -> Option<Vec<f32>> {
        let pieces = self.vocabulary.pieces(text);
        let count = pieces.len();
        let row = |numbers: Vec<i32>| NdTensor::from_data([1, count], numbers);
        let [ids, mask, kinds] = self.inputs;
        let inputs = vec![
            (ids, row(pieces).into()),
            (mask, row(vec![1; count]).into()),
            (kinds, row(vec![0; count]).into()),
        ];
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        let [output] = self.model.run_n(inputs, [self.output], Some(options)).ok()?;
        let output: NdTensor<f32, 3> = output.try_into().ok()?;
        if output.shape()[..2] != [1, count] {
            return None;
        }
        let mut sum = vec![0.0_f32; output.size(2)];
        for piece in 0..count {
            for (at, sum) in sum.iter_mut().enumerate() {
                *sum += output[[0, piece, at]];
            }
        }
        let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        let is_sound = length.is_finite() && length > 0.0;
        is_sound.then(|| sum.iter().map(|x| x / length).collect())
    }
}

/// A whole file within a bound; a folder, a device or a pipe is none.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, LoadError> {
    let unreadable = |error| LoadError::Unreadable { path: path.to_owned(), error };
    let unusable = |what: String| LoadError::Unusable { path: path.to_owned(), what };
    // Looked at before it is opened: opening a pipe would wait for somebody to write.
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(unusable("it is no file".to_owned()));
    }
    let too_large = || unusable(format!("it has more than {} MiB", most / 1024 / 1024));
    if about.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// FNV-1a over eight bytes at a time: it tells versions of a file apart, not forgeries.
fn fingerprint(files: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
    for file in files {
        mix(file.len() as u64);
        let (words, rest) = file.as_chunks::<8>();
        words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| mix(u64::from(*byte)));
    }
    hash
}
