//! Labelled sets, and the parts of every request and tool that is likely enough to matter.

use std::{error::Error, fs, path::Path};

use tidegate_search::{
    Index, Query, Reading, Sentences,
    eval::{self, Case},
};
use tidegate_sentence::Encoder;

use crate::learn::{Example, Examples};

/// Tools per request: the right ones and the best of the others by the weights that there are.
const CANDIDATES: usize = 100;

/// A set of labelled requests.
pub struct Set {
    pub name: String,
    examples: Vec<(Example, bool)>,
    /// By example: which server is right, as a hash.
    servers: Vec<u64>,
}

/// Which requests of a set.
#[derive(Clone, Copy, PartialEq)]
pub enum Half {
    Fitted,
    Checked,
    Both,
}

/// Reads the set of a folder and those of the folders in it.
pub fn read(folder: &Path, model: Option<&Encoder>) -> Result<Vec<Set>, Box<dyn Error>> {
    let mut sets = vec![Set::read((folder, "queries-dev.jsonl"), "main", model)?];
    let mut folders: Vec<_> =
        fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    for folder in folders.iter().filter(|folder| folder.join("queries.jsonl").exists()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sets.push(Set::read((folder, "queries.jsonl"), &name, model)?);
    }
    Ok(sets)
}

impl Set {
    fn read(
        (folder, queries): (&Path, &str),
        name: &str,
        model: Option<&Encoder>,
    ) -> Result<Self, Box<dyn Error>> {
        let index = Index::build(eval::tools(&fs::read_to_string(folder.join("tools.jsonl"))?)?);
        let cases = eval::cases(&fs::read_to_string(folder.join(queries))?)?;
        let model = model.map(|model| (model, sentences(&index, model)));
        let (mut examples, mut servers) = (Vec::new(), Vec::new());
        for case in cases.iter().filter(|case| !case.gold.is_empty()) {
            let Some(example) = example(&index, case, model.as_ref()) else { continue };
            let server = case.gold[0].split('/').next().unwrap_or_default();
            examples.push((example, hash(&case.query).is_multiple_of(2)));
            servers.push(hash(server));
        }
        Ok(Self { name: name.to_owned(), examples, servers })
    }

    /// The examples of one half.
    pub fn half(&self, half: Half) -> Examples {
        let is_in = |is_even: bool| half == Half::Both || is_even == (half == Half::Fitted);
        let chosen = self.examples.iter().filter(|(_, is_even)| is_in(*is_even));
        Examples(chosen.map(|(example, _)| example.clone()).collect())
    }

    /// All but one part of several, and that part; the requests for one server are in one part.
    pub fn fold(&self, fold: u64, folds: u64) -> (Examples, Examples) {
        let (mut fit, mut check) = (Vec::new(), Vec::new());
        for ((example, _), server) in self.examples.iter().zip(&self.servers) {
            let to = if server % folds == fold { &mut check } else { &mut fit };
            to.push(example.clone());
        }
        (Examples(fit), Examples(check))
    }
}

/// The candidates of a request; nothing if no right tool is in the index.
fn example(index: &Index, case: &Case, model: Option<&(&Encoder, Sentences)>) -> Option<Example> {
    let request = model.and_then(|(model, _)| model.encode(&case.query));
    let reading = model.zip(request.as_deref());
    let reading = reading.map(|((_, sentences), request)| Reading { sentences, request });
    let query = Query { description: &case.query, reading, ..Query::default() };
    let parts = index.all_parts(&query);
    let is_right = |doc: usize| case.gold.iter().any(|gold| **gold == *index.documents()[doc].id);
    let sum = |doc: usize| parts[doc].contributions().iter().map(|(_, value)| value).sum::<f32>();
    let mut docs: Vec<(usize, f32)> = (0..parts.len()).map(|doc| (doc, sum(doc))).collect();
    docs.sort_by(|one, other| other.1.total_cmp(&one.1));
    let chosen =
        docs.iter().enumerate().filter(|(at, (doc, _))| *at < CANDIDATES || is_right(*doc));
    let rows: Vec<_> = chosen.map(|(_, (doc, _))| (parts[*doc].values(), is_right(*doc))).collect();
    rows.iter().any(|(_, is_right)| *is_right).then_some(Example(rows))
}

/// The vectors of all tools and servers.
pub fn sentences(index: &Index, model: &Encoder) -> Sentences {
    let texts = index.sentence_texts();
    let encode = |texts: &[String]| texts.iter().map(|text| model.encode(text)).collect::<Vec<_>>();
    index.sentences(model.dimensions(), &encode(&texts.tools), &encode(&texts.servers))
}

/// The same number for the same text in every run.
pub fn hash(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 32
}
