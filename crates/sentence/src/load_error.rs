//! Why a model cannot be used, and what to do about it.

use std::path::PathBuf;

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("`{}` is no usable model: {what}", path.display())]
    Unusable {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// This build has no engine.
    #[error("this build of tidegate cannot run sentence models")]
    NoEngine,
}

impl LoadError {
    /// What to do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "an ONNX file and its `tokenizer.json` stand in one folder; write `file:PATH` with \
                 the path from this config's folder"
            }
            Self::Unusable { .. } => {
                "use an ONNX export of a BERT such as all-MiniLM-L6-v2, with the `tokenizer.json` \
                 that belongs to it"
            }
            Self::NoEngine => {
                "build it with `cargo build --release --features model`, or remove the key: tools \
                 are found by the embedded word model then"
            }
        }
    }
}
