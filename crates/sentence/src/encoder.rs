//! The model: loaded, tried once, then asked text by text.
//!
//! A file that is not what it should be is an error that says so; a text that the model cannot
//! read is no vector. A build without the engine loads nothing, and says that.

#[cfg(not(feature = "onnx"))]
use std::convert::Infallible;
use std::path::Path;

#[cfg(feature = "onnx")]
use crate::engine::Engine;
use crate::load_error::LoadError;

/// A loaded model.
pub struct Encoder {
    #[cfg(feature = "onnx")]
    engine: Engine,
    #[cfg(not(feature = "onnx"))]
    never: Infallible,
}

#[cfg(feature = "onnx")]
impl Encoder {
    /// Loads a model and the vocabulary beside it, and tries it once.
    ///
    /// # Errors
    /// A file is missing, or is not what it should be.
    pub fn load(file: &Path) -> Result<Self, LoadError> {
        Engine::load(file).map(|engine| Self { engine })
    }

    /// The length of its vectors.
    #[must_use]
    pub const fn dimensions(&self) -> usize {
        self.engine.dimensions()
    }

    /// The same for the same files: what kept vectors are known by.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.engine.fingerprint()
    }

    /// The vector of a text: the mean over its pieces, of length one. Nothing if the model fails or
    /// gives no numbers.
    #[must_use]
    pub fn encode(&self, text: &str) -> Option<Vec<f32>> {
        self.engine.encode(text)
    }
}

#[cfg(not(feature = "onnx"))]
impl Encoder {
    /// Says that this build has no engine.
    ///
    /// # Errors
    /// Always.
    pub const fn load(_file: &Path) -> Result<Self, LoadError> {
        Err(LoadError::NoEngine)
    }

    /// The length of its vectors.
    #[must_use]
    pub const fn dimensions(&self) -> usize {
        match self.never {}
    }

    /// What kept vectors are known by.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        match self.never {}
    }

    /// The vector of a text.
    #[must_use]
    pub const fn encode(&self, _text: &str) -> Option<Vec<f32>> {
        match self.never {}
    }
}
