//! What a sentence model makes of tools and servers: a vector for each, beside an index.
//!
//! The model itself is run elsewhere: here are the texts it is given, and what its vectors say of a
//! request. A tool or server without a vector counts as like nothing.

use crate::{
    document::{Document, cut},
    index::Index,
    matrix::{Matrix, Row},
    model::normalise,
};

/// Bytes of a tool's description that the model is given.
const TOOL_TEXT: usize = 2000;
/// Bytes of what a server says of itself that the model is given.
const SERVER_TEXT: usize = 600;

/// The texts of an index that a sentence model reads, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentenceTexts {
    /// One per tool.
    pub tools: Vec<String>,
    /// One per server.
    pub servers: Vec<String>,
}

/// The vectors of an index's tools and servers.
#[derive(Clone, Debug, Default)]
pub struct Sentences {
    tools: Matrix,
    servers: Matrix,
    /// Where the tools of each server point to together.
    means: Matrix,
}

/// A request as a sentence model reads it, and the vectors to compare it with.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Of the index that is searched.
    pub sentences: &'a Sentences,
    /// Of the request.
    pub request: &'a [f32],
}

/// How alike a request is to each.
pub(crate) struct SentenceFit {
    pub(crate) tools: Vec<f32>,
    pub(crate) servers: Vec<f32>,
    pub(crate) means: Vec<f32>,
}

impl Index {
    /// What a sentence model is given of this index.
    #[must_use]
    pub fn sentence_texts(&self) -> SentenceTexts {
        let tool = |document: &Document| {
            let Document { server, name, description, .. } = document;
            format!("{server}: {name}\n{}", cut(description, TOOL_TEXT))
        };
        let server = |at: usize| {
            let first =
                self.servers.documents(at).first().map(|doc| &self.documents[*doc as usize]);
            first.map_or(String::new(), |document| {
                let text = format!("{}: {}", document.server, document.server_text);
                cut(&text, SERVER_TEXT).to_owned()
            })
        };
        SentenceTexts {
            tools: self.documents.iter().map(tool).collect(),
            servers: (0..self.servers.count()).map(server).collect(),
        }
    }

    /// The vectors of this index: of the texts above, in their order, all of one length. One of
    /// another length counts as none.
    #[must_use]
    pub fn sentences(
        &self,
        dimensions: usize,
        tools: &[Option<Vec<f32>>],
        servers: &[Option<Vec<f32>>],
    ) -> Sentences {
        let rows = |vectors: &[Option<Vec<f32>>], count: usize| {
            let mut matrix = Matrix::new(dimensions);
            for at in 0..count {
                let mut vector = vectors.get(at).cloned().flatten().unwrap_or_default();
                normalise(&mut vector);
                matrix.push(&Row::kept(&vector));
            }
            matrix
        };
        let mut means = Matrix::new(dimensions);
        for server in 0..self.servers.count() {
            let mut sum = vec![0.0; dimensions];
            let docs = self.servers.documents(server).iter();
            for vector in docs.filter_map(|doc| tools.get(*doc as usize)?.as_ref()) {
                sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
            }
            normalise(&mut sum);
            means.push(&Row::kept(&sum));
        }
        let tools = rows(tools, self.documents.len());
        Sentences { tools, servers: rows(servers, self.servers.count()), means }
    }
}

impl Reading<'_> {
    /// How alike the request is to each tool and server; nothing by a vector of another length, or
    /// beside another index.
    pub(crate) fn fit(&self, index: &Index) -> Option<SentenceFit> {
        let Sentences { tools, servers, means } = self.sentences;
        let is_of_index =
            tools.rows() == index.documents.len() && servers.rows() == index.servers.count();
        if !is_of_index || tools.dimensions() != self.request.len() || self.request.is_empty() {
            return None;
        }
        let mut request = self.request.to_vec();
        normalise(&mut request);
        let request = Row::asked(&request);
        Some(SentenceFit {
            tools: tools.likeness(&request),
            servers: servers.likeness(&request),
            means: means.likeness(&request),
        })
    }
}
