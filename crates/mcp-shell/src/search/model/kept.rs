//! Vectors of texts by the texts' hashes, in memory and in a file beside the model, so that a
//! start costs no minute of encoding.
//!
//! Rules kept here:
//! - At most [`KEPT_MAX`] vectors; the oldest go first.
//! - The file is of one model, by its fingerprint and the length of its vectors. One that is of
//!   another, too large, cut off or damaged counts as none, and is written anew.
//! - It is replaced whole: whoever reads it meanwhile sees the old one or the new one. Where it
//!   cannot be written, that is said once, and vectors are made again at each start.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::search::vectors::{DIMENSIONS_MAX, KEPT_MAX, Kept};

/// What the file begins with: a name and a version.
const MAGIC: &[u8; 8] = b"tgvec\0\0\x01";
/// Magic, fingerprint, length of a vector, count.
const HEAD: usize = 8 + 8 + 4 + 4;
/// Of everything before it.
const CHECKSUM: usize = 32;

/// All that are known.
pub(super) struct KeptVectors {
    file: PathBuf,
    fingerprint: u64,
    dimensions: usize,
    by_hash: BTreeMap<u64, Kept>,
    /// Oldest first.
    order: VecDeque<u64>,
    unsaved: usize,
    is_silent: bool,
}

impl KeptVectors {
    /// Those of the file beside a model.
    pub(super) fn beside(model: &Path, fingerprint: u64, dimensions: usize) -> Self {
        let mut name = model.file_name().unwrap_or_default().to_owned();
        name.push(".vectors");
        let file = model.with_file_name(name);
        let mut kept = Self {
            file,
            fingerprint,
            dimensions,
            by_hash: BTreeMap::new(),
            order: VecDeque::new(),
            unsaved: 0,
            is_silent: false,
        };
        let found = read(&kept.file).ok().and_then(|bytes| kept.parsed(&bytes));
        for (hash, vector) in found.unwrap_or_default() {
            kept.insert(hash, vector);
        }
        kept
    }

    pub(super) fn has(&self, hash: u64) -> bool {
        self.by_hash.contains_key(&hash)
    }

    /// The vector of a text.
    pub(super) fn get(&self, hash: u64) -> Option<Vec<f32>> {
        self.by_hash.get(&hash).map(Kept::numbers)
    }

    /// Takes a new one.
    pub(super) fn put(&mut self, hash: u64, vector: &[f32]) {
        if vector.len() == self.dimensions {
            self.insert(hash, Kept::new(vector));
            self.unsaved += 1;
        }
    }

    /// How many the file does not have.
    pub(super) const fn unsaved(&self) -> usize {
        self.unsaved
    }

    /// Writes the file, if there is something new.
    pub(super) fn save(&mut self) {
        if self.unsaved == 0 {
            return;
        }
        self.unsaved = 0;
        if let Err(error) = write(&self.file, &self.bytes())
            && !self.is_silent
        {
            self.is_silent = true;
            let file = self.file.display();
            tracing::info!(%error, "tools are encoded at each start: cannot write `{file}`");
        }
    }

    fn insert(&mut self, hash: u64, vector: Kept) {
        if self.by_hash.insert(hash, vector).is_none() {
            self.order.push_back(hash);
        }
        if self.order.len() > KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_hash.remove(&oldest);
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.order.len() * (12 + self.dimensions) + 64);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.fingerprint.to_le_bytes());
        for number in [self.dimensions, self.order.len()] {
            bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        for (hash, kept) in
            self.order.iter().filter_map(|hash| Some((hash, self.by_hash.get(hash)?)))
        {
            bytes.extend_from_slice(&hash.to_le_bytes());
            bytes.extend_from_slice(&kept.step.to_le_bytes());
            bytes.extend(kept.cells.iter().map(|cell| cell.to_le_bytes()[0]));
        }
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    /// What a file holds, if it is whole and of this model.
    fn parsed(&self, bytes: &[u8]) -> Option<Vec<(u64, Kept)>> {
        let (body, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
        let (head, rows) = body.split_at_checked(HEAD)?;
        let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let is_same = head.starts_with(MAGIC)
            && head[8..16] == self.fingerprint.to_le_bytes()
            && number(16)? as usize == self.dimensions
            && Sha256::digest(body)[..] == *checksum;
        let (row, count) = (12 + self.dimensions, number(20)? as usize);
        if !is_same || count > KEPT_MAX || rows.len() != count * row {
            return None;
        }
        rows.chunks_exact(row).map(kept_row).collect()
    }
}

fn kept_row(row: &[u8]) -> Option<(u64, Kept)> {
    let hash = u64::from_le_bytes(row.get(..8)?.try_into().ok()?);
    let step = f32::from_le_bytes(row.get(8..12)?.try_into().ok()?);
    let cells = row.get(12..)?.iter().map(|byte| i8::from_le_bytes([*byte])).collect();
    (step.is_finite() && step > 0.0).then_some((hash, Kept { cells, step }))
}

/// The largest file that can be one.
const FILE_MAX: u64 = (HEAD + CHECKSUM + KEPT_MAX * (12 + DIMENSIONS_MAX)) as u64;

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let about = fs::metadata(path)?;
    if !about.is_file() || about.len() > FILE_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let part = PathBuf::from(name);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        fs::rename(&part, path)
    });
    if written.is_err() {
        drop(fs::remove_file(&part));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model's path in a folder of a test's own.
    fn model(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).expect("a folder for a test");
        folder.join("model.onnx")
    }

    fn saved(model: &Path) -> PathBuf {
        let mut kept = KeptVectors::beside(model, 1, 3);
        kept.put(10, &[1.0, 0.0, -0.5]);
        kept.put(11, &[0.0, 2.0, 0.0]);
        kept.put(12, &[1.0, 0.0]);
        assert!(kept.has(10) && !kept.has(12), "one of another length is none");
        kept.save();
        assert_eq!(kept.unsaved(), 0);
        kept.file
    }

    #[test]
    fn a_file_gives_back_what_was_kept_to_the_same_model_only() {
        let model = model("kept-same");
        saved(&model);
        let again = KeptVectors::beside(&model, 1, 3);
        let vector = again.get(10).expect("it was kept");
        assert!((vector[0] - 1.0).abs() < 0.01 && (vector[2] + 0.5).abs() < 0.01, "{vector:?}");
        assert!(again.has(11) && again.unsaved() == 0);
        assert!(!KeptVectors::beside(&model, 2, 3).has(10), "another model");
        assert!(!KeptVectors::beside(&model, 1, 4).has(10), "another length");
        fs::remove_dir_all(model.parent().expect("a folder")).expect("it is the test's own");
    }

    #[test]
    fn a_damaged_file_counts_as_none_and_is_written_anew() {
        let model = model("kept-damaged");
        let file = saved(&model);
        let whole = fs::read(&file).expect("it was written");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&file, &bytes).expect("it can be written");
            assert!(!KeptVectors::beside(&model, 1, 3).has(10), "byte {at}");
        }
        for length in [0, 1, HEAD, whole.len() - 1] {
            fs::write(&file, &whole[..length]).expect("it can be written");
            assert!(!KeptVectors::beside(&model, 1, 3).has(10), "{length} bytes");
        }
        saved(&model);
        assert_eq!(fs::read(&file).expect("it was written"), whole);
        fs::remove_dir_all(model.parent().expect("a folder")).expect("it is the test's own");
    }

    #[test]
    fn where_nothing_can_be_written_vectors_are_kept_in_memory() {
        let mut kept = KeptVectors::beside(Path::new("/nowhere/at/all/model.onnx"), 1, 2);
        kept.put(1, &[1.0, 0.0]);
        kept.save();
        assert!(kept.has(1));
    }

    #[test]
    fn only_so_many_are_kept_and_the_oldest_go_first() {
        let mut kept = KeptVectors::beside(Path::new("/nowhere/at/all/model.onnx"), 1, 1);
        (0..KEPT_MAX as u64 + 2).for_each(|hash| kept.put(hash, &[1.0]));
        assert_eq!((kept.by_hash.len(), kept.order.len()), (KEPT_MAX, KEPT_MAX));
        assert!(!kept.has(1) && kept.has(2));
    }
}
