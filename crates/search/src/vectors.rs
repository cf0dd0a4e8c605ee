//! Vectors of another model, which stand in for the embedded one's where they are known.
//!
//! They come later than an index and change on their own, so they stand beside it: one row per
//! document, in the same order. A document without a vector keeps the embedded model's word.

use crate::{
    matrix::{Matrix, Row},
    model::normalise,
};

/// Vectors of documents, by place.
#[derive(Clone, Debug, Default)]
pub struct Vectors(Matrix);

/// A request's vector, and those of the documents by the same model.
#[derive(Clone, Copy, Debug)]
pub struct External<'a> {
    /// Of the documents.
    pub documents: &'a Vectors,
    /// Of the request.
    pub request: &'a [f32],
}

impl Vectors {
    /// Those of documents, in their order, all of one length; one of another length counts as
    /// none.
    #[must_use]
    pub fn new(dimensions: usize, vectors: impl IntoIterator<Item = Option<Vec<f32>>>) -> Self {
        let mut matrix = Matrix::new(dimensions);
        for vector in vectors {
            let mut vector = vector.unwrap_or_default();
            normalise(&mut vector);
            matrix.push(&Row::kept(&vector));
        }
        Self(matrix)
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl External<'_> {
    /// How alike the request is to each of so many documents; nothing for those without a vector,
    /// and nothing at all by a vector of another length.
    pub(crate) fn likeness(&self, documents: usize) -> Option<Vec<Option<f32>>> {
        let Vectors(matrix) = self.documents;
        if matrix.dimensions() != self.request.len() {
            return None;
        }
        let mut request = self.request.to_vec();
        normalise(&mut request);
        let found = matrix.likeness(&Row::asked(&request)).into_iter().enumerate();
        let known = found.map(|(doc, likeness)| matrix.has(doc).then_some(likeness));
        Some(known.chain(std::iter::repeat(None)).take(documents).collect())
    }
}
