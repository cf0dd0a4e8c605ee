//! The model's thread: one text at a time, requests of searches first.
//!
//! Rules kept here:
//! - A model that cannot be loaded, or fails at [`FAILURES_MAX`] texts in a row, has failed: that
//!   is told once, the queue is closed, and searches go on without it.
//! - A text is encoded once: vectors are kept by their texts' hashes, on disk too, every
//!   [`SAVED_EVERY`] new ones and at the end of a version.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use tidegate_mcp::listing::fingerprint;
use tidegate_search::{Index, SentenceTexts};
use tidegate_sentence::{Encoder, LoadError};

use super::{
    ModelState,
    kept::KeptVectors,
    queue::{ModelQueue, Next, ToolsFill},
};

/// Texts in a row that a model may fail at.
const FAILURES_MAX: usize = 8;
/// New vectors after which the file is written: some ten seconds of work.
const SAVED_EVERY: usize = 1024;

/// What turns a text into a vector.
pub(super) trait Encode {
    fn dimensions(&self) -> usize;
    /// The same for the same model.
    fn fingerprint(&self) -> u64;
    fn encode(&self, text: &str) -> Option<Vec<f32>>;
}

impl Encode for Encoder {
    fn dimensions(&self) -> usize {
        self.dimensions()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint()
    }

    fn encode(&self, text: &str) -> Option<Vec<f32>> {
        self.encode(text)
    }
}

/// What the thread has before it has a model.
pub(super) struct Work {
    pub(super) queue: Arc<ModelQueue>,
    /// The model's file.
    pub(super) file: PathBuf,
    pub(super) tell: Box<dyn Fn(ModelState) + Send>,
}

/// A version of the tools that is being encoded.
struct FillUnderWay {
    fill: ToolsFill,
    texts: SentenceTexts,
    missing: VecDeque<String>,
}

impl Work {
    /// Starts the thread; whether there is one.
    pub(super) fn start(
        self,
        load: impl FnOnce() -> Result<Box<dyn Encode>, LoadError> + Send + 'static,
    ) -> bool {
        let queue = Arc::clone(&self.queue);
        let run = move || match load() {
            Ok(model) => self.run(&*model),
            Err(error) => self.fail(&error.to_string()),
        };
        let started = std::thread::Builder::new().name("tidegate-model".to_owned()).spawn(run);
        if let Err(error) = &started {
            tracing::warn!(%error, "tools are found without `mcp.search.model`: no thread for it");
            queue.close();
        }
        started.is_ok()
    }

    fn fail(&self, why: &str) {
        tracing::warn!("tools are found without `mcp.search.model`: {why}");
        (self.tell)(ModelState::Failed);
        self.queue.close();
    }

    /// Until the queue is closed.
    fn run(self, model: &dyn Encode) {
        let mut kept = KeptVectors::beside(&self.file, model.fingerprint(), model.dimensions());
        let mut under_way: Option<FillUnderWay> = None;
        let mut failures = 0;
        (self.tell)(ModelState::Ready);
        loop {
            let vector = match self.queue.next(under_way.is_some()) {
                Next::End => return kept.save(),
                Next::Request(asked) => {
                    let vector = model.encode(&asked.text);
                    let is_known = vector.is_some();
                    // The search may have gone on without it.
                    let _ = asked.told.send(vector);
                    is_known
                }
                Next::Tools(fill) => {
                    under_way = Some(FillUnderWay::begin(fill, &kept));
                    (self.tell)(ModelState::Encoding);
                    continue;
                }
                Next::Continue => {
                    let text = under_way.as_mut().and_then(FillUnderWay::next_text);
                    let Some(text) = text else {
                        if let Some(done) = under_way.take() {
                            done.publish(&kept, model.dimensions());
                        }
                        kept.save();
                        (self.tell)(ModelState::Ready);
                        continue;
                    };
                    let vector = model.encode(&text);
                    let is_known = vector.is_some();
                    if let Some(vector) = vector {
                        kept.put(fingerprint(&[&text]), &vector);
                    }
                    if kept.unsaved() >= SAVED_EVERY {
                        kept.save();
                    }
                    is_known
                }
            };
            failures = if vector { 0 } else { failures + 1 };
            if failures >= FAILURES_MAX {
                return self.fail("it gives no vectors");
            }
        }
    }
}

impl FillUnderWay {
    fn begin(fill: ToolsFill, kept: &KeptVectors) -> Self {
        let texts = fill.index.sentence_texts();
        let all = texts.tools.iter().chain(&texts.servers);
        let missing = all.filter(|text| !kept.has(fingerprint(&[text]))).cloned().collect();
        Self { fill, texts, missing }
    }

    /// The next text to encode; none if all are, or nobody wants them any more.
    fn next_text(&mut self) -> Option<String> {
        if self.fill.told.is_closed() { None } else { self.missing.pop_front() }
    }

    fn publish(self, kept: &KeptVectors, dimensions: usize) {
        let Self { fill, texts, .. } = self;
        let index: &Index = &fill.index;
        let vectors = |texts: &[String]| -> Vec<Option<Vec<f32>>> {
            texts.iter().map(|text| kept.get(fingerprint(&[text]))).collect()
        };
        let sentences =
            index.sentences(dimensions, &vectors(&texts.tools), &vectors(&texts.servers));
        fill.told.send_replace(Some(Arc::new(sentences)));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::mpsc;

    use tidegate_search::{Document, Query, Reading};
    use tokio::sync::watch;

    use super::*;

    /// Texts with `beta` point one way, all others another.
    struct Compass {
        encoded: mpsc::Sender<String>,
        is_broken: bool,
    }

    impl Encode for Compass {
        fn dimensions(&self) -> usize {
            2
        }

        fn fingerprint(&self) -> u64 {
            7
        }

        fn encode(&self, text: &str) -> Option<Vec<f32>> {
            self.encoded.send(text.to_owned()).expect("the test listens");
            let is_that_way = text.contains("beta");
            (!self.is_broken).then(|| if is_that_way { vec![0.0, 1.0] } else { vec![1.0, 0.0] })
        }
    }

    struct Bed {
        queue: Arc<ModelQueue>,
        encoded: mpsc::Receiver<String>,
        states: mpsc::Receiver<ModelState>,
    }

    impl Drop for Bed {
        fn drop(&mut self) {
            self.queue.close();
        }
    }

    fn start(folder: &Path, is_broken: bool) -> Bed {
        let (sender, encoded) = mpsc::channel();
        let (tell, states) = mpsc::channel();
        let queue = Arc::new(ModelQueue::default());
        let tell = Box::new(move |state| _ = tell.send(state));
        let work = Work { queue: Arc::clone(&queue), file: folder.join("model.onnx"), tell };
        assert!(work.start(move || Ok(Box::new(Compass { encoded: sender, is_broken }))));
        Bed { queue, encoded, states }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).expect("a folder for a test");
        folder
    }

    fn index(names: &[&str]) -> Arc<Index> {
        let tool = |name: &&str| Document::plain("s", name, "Converts a picture", []);
        Arc::new(Index::build(names.iter().map(tool).collect()))
    }

    fn fill(
        queue: &ModelQueue,
        index: &Arc<Index>,
    ) -> watch::Receiver<Option<Arc<tidegate_search::Sentences>>> {
        let (told, known) = watch::channel(None);
        assert!(queue.put_tools(ToolsFill { index: Arc::clone(index), told }), "there is room");
        known
    }

    #[tokio::test]
    async fn tools_are_encoded_once_and_a_request_is_compared_with_them() {
        let folder = folder("model-once");
        let index = index(&["alpha", "beta"]);
        let bed = start(&folder, false);
        let mut known = fill(&bed.queue, &index);
        let sentences = known.wait_for(Option::is_some).await.expect("they come").clone();
        let sentences = sentences.expect("it was waited for");
        let asked = bed.queue.put_request("beta").expect("there is room");
        let request = asked.await.expect("an answer").expect("a vector");
        let reading = Some(Reading { sentences: &sentences, request: &request });
        let query = Query { description: "convert a picture", reading, ..Query::default() };
        let found = index.search(&query, &|_| true, 2);
        assert_eq!(&*index.documents()[found.hits[0].doc].name, "beta");
        let first: Vec<String> = bed.encoded.try_iter().collect();
        assert_eq!(first.len(), 4, "two tools, their server and the request: {first:?}");
        drop(bed);
        // Another start, and one more tool: the file has the others.
        let more = self::index(&["alpha", "beta", "gamma"]);
        let bed = start(&folder, false);
        let mut known = fill(&bed.queue, &more);
        known.wait_for(Option::is_some).await.expect("they come");
        let again: Vec<String> = bed.encoded.try_iter().collect();
        assert!(again.len() == 1 && again[0].contains("gamma"), "{again:?}");
        drop(bed);
        // The thread of the model may still be writing its file, so what is left is left.
        drop(fs::remove_dir_all(&folder));
    }

    #[tokio::test]
    async fn a_model_that_gives_nothing_has_failed_and_nobody_waits_for_it() {
        let folder = folder("model-broken");
        let bed = start(&folder, true);
        let names: Vec<String> = (0..20).map(|at| format!("tool_{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut known = fill(&bed.queue, &index(&names));
        assert!(known.wait_for(Option::is_some).await.is_err(), "the other end is gone");
        assert_eq!(bed.encoded.try_iter().count(), FAILURES_MAX);
        assert!(bed.queue.put_request("x").is_none());
        assert_eq!(bed.states.try_iter().last(), Some(ModelState::Failed));
        drop(fs::remove_dir_all(&folder));
    }

    #[tokio::test]
    async fn a_model_that_cannot_be_loaded_has_failed() {
        let (tell, states) = mpsc::channel();
        let queue = Arc::new(ModelQueue::default());
        let tell = Box::new(move |state| _ = tell.send(state));
        let work = Work { queue: Arc::clone(&queue), file: PathBuf::from("none"), tell };
        let mut known = fill(&queue, &index(&["alpha"]));
        assert!(work.start(|| Err(LoadError::NoEngine)));
        assert!(known.wait_for(Option::is_some).await.is_err(), "the other end is gone");
        assert_eq!(states.recv(), Ok(ModelState::Failed));
    }
}
