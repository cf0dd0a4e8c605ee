//! Catalogues as small as most are: some servers of the first set, drawn at random, and all of its
//! requests. A request whose server was not drawn has no answer there, and should be declined.
//!
//! Some are answered all the same, by a tool of another server that does the same: the share that
//! is declined is a lower bound.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs;
use std::path::Path;

use tidegate_search::{
    Document, Index, Query, Reading, Sentences,
    eval::{self, Case, DEPTH, Figures},
};
use tidegate_sentence::Encoder;

/// Tools of a catalogue, about.
pub const SIZES: [usize; 5] = [20, 50, 100, 200, 500];
/// Catalogues of each size.
const DRAWS: u64 = 60;

/// The first set, by server, and what a model makes of its texts.
pub struct Small<'a> {
    by_server: BTreeMap<String, Vec<Document>>,
    cases: Vec<Case>,
    model: Option<&'a Encoder>,
    vectors: HashMap<String, Option<Vec<f32>>>,
}

impl<'a> Small<'a> {
    /// Reads the set of a folder.
    pub fn read(folder: &Path, model: Option<&'a Encoder>) -> Result<Self, Box<dyn Error>> {
        let mut by_server: BTreeMap<String, Vec<Document>> = BTreeMap::new();
        for tool in eval::tools(&fs::read_to_string(folder.join("tools.jsonl"))?)? {
            by_server.entry(tool.server.to_string()).or_default().push(tool);
        }
        let cases = eval::cases(&fs::read_to_string(folder.join("queries-dev.jsonl"))?)?;
        Ok(Self { by_server, cases, model, vectors: HashMap::new() })
    }

    /// Figures over catalogues of about so many tools.
    pub fn figures(&mut self, size: usize) -> Figures {
        let mut figures = Figures::default();
        for draw in 0..DRAWS {
            let mut names: Vec<&String> = self.by_server.keys().collect();
            names.sort_by_key(|name| super::sets::hash(&format!("{draw} {size} {name}")));
            let mut tools = Vec::new();
            for name in names {
                if tools.len() < size {
                    tools.extend(self.by_server[name].iter().cloned());
                }
            }
            self.count(&Index::build(tools), &mut figures);
        }
        figures
    }

    fn count(&mut self, index: &Index, figures: &mut Figures) {
        let sentences = self.sentences(index);
        let is_here = |gold: &String| index.documents().iter().any(|it| *it.id == **gold);
        for case in self.cases.clone() {
            let gold = case.gold.iter().filter(|gold| is_here(gold)).cloned().collect();
            let case = Case { gold, ..case };
            let query = Query { description: &case.query, ..Query::default() };
            let mut answer = index.search(&query, &|_| true, DEPTH);
            let request = match &sentences {
                Some(_) if !answer.is_clear() => self.vector(&case.query),
                _ => None,
            };
            if let (Some(sentences), Some(request)) = (&sentences, &request) {
                let reading = Some(Reading { sentences, request });
                answer = index.search(&Query { reading, ..query }, &|_| true, DEPTH);
            }
            figures.count(index, &case, &answer);
        }
    }

    fn sentences(&mut self, index: &Index) -> Option<Sentences> {
        let dimensions = self.model?.dimensions();
        let texts = index.sentence_texts();
        let tools: Vec<_> = texts.tools.iter().map(|text| self.vector(text)).collect();
        let servers: Vec<_> = texts.servers.iter().map(|text| self.vector(text)).collect();
        Some(index.sentences(dimensions, &tools, &servers))
    }

    fn vector(&mut self, text: &str) -> Option<Vec<f32>> {
        let model = self.model?;
        self.vectors.entry(text.to_owned()).or_insert_with(|| model.encode(text)).clone()
    }
}
